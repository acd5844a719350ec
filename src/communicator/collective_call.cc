#include "collective_call.h"

#include <fmt/format.h>

#include "tutti/base/hash.h"

namespace tutti {

bool CollectiveCall::has_root() const {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

bool CollectiveCall::counts_blocks() const {
  return kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kBroadcast &&
         kind != CollectiveKind::kReduce;
}

std::string ToText(const CollectiveCall& call) {
  std::string text = fmt::format("{} of {} {}", Name(call.kind), call.count, Name(call.type));
  if (Reduces(call.kind)) text += fmt::format(" ({})", Name(call.op));
  if (call.has_root()) text += fmt::format(" with root {}", call.root);
  return text;
}

bool AreAlike(const CollectiveCall& a, const CollectiveCall& b) {
  return a.kind == b.kind && a.type == b.type && a.op == b.op && a.count == b.count &&
         a.root == b.root;
}

uint64_t SignatureOf(const CollectiveCall& call, uint64_t plan_digest) {
  Fnv1a signature;
  signature.AddWord(int64_t{static_cast<uint8_t>(call.kind)} << 24 |
                    int64_t{static_cast<uint8_t>(call.type)} << 16 |
                    int64_t{static_cast<uint8_t>(call.op)} << 8);
  signature.AddWord(call.count);
  signature.AddWord(call.root);
  signature.AddWord(static_cast<int64_t>(plan_digest));
  return signature.value();
}

int64_t ElementsOf(const CollectiveCall& call, int32_t num_ranks) {
  return call.counts_blocks() ? call.count * num_ranks : call.count;
}

int64_t InputBytes(const CollectiveCall& call, int32_t rank, int32_t num_ranks) {
  switch (call.kind) {
    case CollectiveKind::kBroadcast:
      return rank == call.root ? call.block_bytes() : 0;
    case CollectiveKind::kScatter:
      return rank == call.root ? call.block_bytes() * num_ranks : 0;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return call.block_bytes() * num_ranks;
    default:
      return call.block_bytes();
  }
}

int64_t OutputBytes(const CollectiveCall& call, int32_t rank, int32_t num_ranks) {
  switch (call.kind) {
    case CollectiveKind::kReduce:
      return rank == call.root ? call.block_bytes() : 0;
    case CollectiveKind::kGather:
      return rank == call.root ? call.block_bytes() * num_ranks : 0;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
      return call.block_bytes() * num_ranks;
    default:
      return call.block_bytes();
  }
}

bool IsInPlace(const CollectiveCall& call, int32_t rank) {
  const int64_t block = call.block_bytes() * rank;
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      return call.input == Advanced(call.output, block);
    case CollectiveKind::kReduceScatter:
      return call.output == Advanced(call.input, block);
    case CollectiveKind::kGather:
      return rank == call.root && call.input == Advanced(call.output, block);
    case CollectiveKind::kScatter:
      return rank == call.root && call.output == Advanced(call.input, block);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      return false;
    default:
      return call.input == call.output;
  }
}

Status CheckRank(int32_t rank, const char* what, int32_t num_ranks) {
  if (rank >= 0 && rank < num_ranks) return {};
  return InvalidArgument(fmt::format("{} {}: there are ranks 0 to {}", what, rank, num_ranks - 1));
}

Status CheckCall(const CollectiveCall& call, int32_t rank, int32_t num_ranks) {
  constexpr int64_t kMaxElements = int64_t{1} << 56;
  if (call.count < 0 || call.count > kMaxElements / num_ranks)
    return InvalidArgument(fmt::format("a count of {}", call.count));
  if (const Status root = CheckRank(call.root, "root", num_ranks); !root) return root;
  if (call.input == nullptr && InputBytes(call, rank, num_ranks) > 0)
    return InvalidArgument(fmt::format("{}: no input", ToText(call)));
  if (call.output == nullptr && OutputBytes(call, rank, num_ranks) > 0)
    return InvalidArgument(fmt::format("{}: no output", ToText(call)));
  return {};
}

Status CheckMessages(std::span<const Message> messages, int32_t rank, int32_t num_ranks) {
  std::vector<int64_t> own_sends, own_receives;
  for (const Message& message : messages) {
    if (const Status peer = CheckRank(message.peer, "peer", num_ranks); !peer) return peer;
    if (message.bytes < 0 || (message.bytes > 0 && message.data == nullptr))
      return InvalidArgument(fmt::format("a message of {} bytes {} rank {} without data",
                                         message.bytes, message.is_send ? "to" : "from",
                                         message.peer));
    if (message.peer == rank) (message.is_send ? own_sends : own_receives).push_back(message.bytes);
  }
  if (own_sends != own_receives)
    return InvalidArgument(
        fmt::format("rank {} sends itself {} messages of [{}] bytes and receives {} of [{}]", rank,
                    own_sends.size(), fmt::join(own_sends, ", "), own_receives.size(),
                    fmt::join(own_receives, ", ")));
  return {};
}

std::vector<Message> DirectMessages(const CollectiveCall& call, int32_t rank, int32_t num_ranks) {
  const int64_t block = call.block_bytes();
  std::vector<Message> messages;
  const bool is_root = rank == call.root;
  const bool all = call.kind == CollectiveKind::kAllToAll;
  const bool gathers = call.kind == CollectiveKind::kGather;
  const bool scatters = call.kind == CollectiveKind::kScatter;
  for (int32_t i = 0; i < num_ranks; ++i) {
    // Not everybody to rank 0 first.
    const int32_t to = (rank + i) % num_ranks, from = (rank + num_ranks - i) % num_ranks;
    if (all || (scatters ? is_root : to == call.root))
      messages.push_back(SendOf(to, Advanced(call.input, gathers ? 0 : block * to), block));
    if (all || (gathers ? is_root : from == call.root))
      messages.push_back(
          ReceiveOf(from, Advanced(call.output, scatters ? 0 : block * from), block));
  }
  return messages;
}

uint64_t SignatureOfText(const std::string& text) {
  Fnv1a what;
  what.AddBytes(text);
  return what.value();
}

}  // namespace tutti
