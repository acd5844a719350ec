#include "bfb/delivery.h"

#include <fmt/format.h>

#include <algorithm>

#include "switches.h"

namespace tutti {

Delivery Deliver(const BfbModel& model, const LoadProblem& problem, int64_t units_per_shard) {
  Delivery delivery{SolveInUnits(model, problem, units_per_shard)};
  int64_t offset = 0;  // in the source where the piece begins
  for (const Piece& piece : delivery.pieces) {
    const int64_t end = offset + piece.units;
    delivery.num_transfers += (end + units_per_shard - 1) / units_per_shard;
    offset = end % units_per_shard;
  }
  return delivery;
}

void WriteTransfers(const Delivery& delivery, std::span<const int32_t> shards,
                    std::span<const LinkId> in_links, int32_t step, int32_t units_per_shard,
                    Transfer* out) {
  size_t next = 0;
  int32_t offset = 0;
  for (const Piece& piece : delivery.pieces) {
    const LinkId link = in_links[static_cast<size_t>(piece.link)];
    for (int64_t left = piece.units; left > 0;) {
      const auto take = static_cast<int32_t>(std::min<int64_t>(left, units_per_shard - offset));
      *out++ = {ShardId{shards[next]}, link, offset, offset + take, step, TransferOp::kCopy};
      left -= take;
      offset += take;
      if (offset == units_per_shard) {
        offset = 0;
        ++next;
      }
    }
  }
}

Status CheckBfbInput(const Topology& topology, const Collective& collective,
                     const SynthOptions& options) {
  if (topology.has_switches())
    return NeedsUnwinding("bfb", "works over links between ranks", topology);
  if (options.chunks < 0)
    return InvalidArgument(fmt::format("chunks must be >= 0, got {}", options.chunks));
  if (options.size_bytes < 1)
    return InvalidArgument(fmt::format("the size must be >= 1 byte, got {}", options.size_bytes));
  if (collective.num_ranks() != topology.num_ranks())
    return InvalidArgument(fmt::format("the collective is for {} ranks, the network has {}",
                                       collective.num_ranks(), topology.num_ranks()));
  return {};
}

}  // namespace tutti
