// A collective as a program calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/copy.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/communicator.h"
#include "tutti/runtime/types.h"

namespace tutti {

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  const void* input = nullptr;
  void* output = nullptr;
  int64_t count = 0;  // elements as NCCL counts: of one rank's block, or of the whole buffer
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int32_t root = 0;

  int64_t block_bytes() const { return count * SizeOf(type); }
  bool has_root() const;
  // The count is of one rank's block.
  bool counts_blocks() const;
};

// "all-reduce of 8 float (sum)", "broadcast of 3 int32 with root 1".
std::string ToText(const CollectiveCall& call);
// What all ranks have to call alike.
bool AreAlike(const CollectiveCall& a, const CollectiveCall& b);
// Hash of that, and of the plan with this digest.
uint64_t SignatureOf(const CollectiveCall& call, uint64_t plan_digest);

// Elements that M stands for (docs/glossary.md).
int64_t ElementsOf(const CollectiveCall& call, int32_t num_ranks);
// What `rank` reads and writes: 0 where it does not.
int64_t InputBytes(const CollectiveCall& call, int32_t rank, int32_t num_ranks);
int64_t OutputBytes(const CollectiveCall& call, int32_t rank, int32_t num_ranks);
bool IsInPlace(const CollectiveCall& call, int32_t rank);
// kInvalidArgument: a count, root or buffer that cannot be.
Status CheckCall(const CollectiveCall& call, int32_t rank, int32_t num_ranks);
Status CheckRank(int32_t rank, const char* what, int32_t num_ranks);
Status CheckMessages(std::span<const Message> messages, int32_t rank, int32_t num_ranks);
// Messages of all-to-all, gather or scatter block by block, without a plan.
std::vector<Message> DirectMessages(const CollectiveCall& call, int32_t rank, int32_t num_ranks);
// Stands for `text` in the signatures of messages.
uint64_t SignatureOfText(const std::string& text);

inline const std::byte* Advanced(const void* base, int64_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}
inline std::byte* Advanced(void* base, int64_t bytes) {
  return static_cast<std::byte*>(base) + bytes;
}

// In place a rank's own block may be there already.
inline void CopyBlock(void* to, const void* from, int64_t bytes) {
  MoveMemory(to, from, static_cast<size_t>(bytes));
}

// Only read: the message is one that is sent.
inline Message SendOf(int32_t peer, const void* data, int64_t bytes) {
  return {.peer = peer, .data = const_cast<void*>(data), .bytes = bytes, .is_send = true};
}
inline Message ReceiveOf(int32_t peer, void* data, int64_t bytes) {
  return {.peer = peer, .data = data, .bytes = bytes, .is_send = false};
}

}  // namespace tutti
