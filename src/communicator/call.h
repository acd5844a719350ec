// A collective as a program calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/coll/collective.h"
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
// Of what all ranks have to call alike, and of the plan with this digest.
uint64_t SignatureOf(const CollectiveCall& call, uint64_t plan_digest);

inline const std::byte* Advanced(const void* base, int64_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}
inline std::byte* Advanced(void* base, int64_t bytes) {
  return static_cast<std::byte*>(base) + bytes;
}

}  // namespace tutti
