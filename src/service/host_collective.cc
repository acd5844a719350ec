#include "host_collective.h"

#include <fmt/format.h>

#include "board.h"
#include "kernels.h"
#include "tutti/base/copy.h"

namespace tutti::service {

bool HostCollective::Fits(const CollectiveCall& call, int32_t num_ranks) {
  return BoardOperation::Fits(call, num_ranks);
}

void HostCollective::Enter(int32_t rank, const CollectiveCall& call) {
  calls_[static_cast<size_t>(rank)] = call;
  if (first_ < 0) first_ = rank;
  ++entered_;
  const CollectiveCall& first = CallOf(first_);
  if (health_ && !AreAlike(call, first))
    health_ = MakeError(ErrorCode::kPeerFailed,
                        fmt::format("rank {} runs {}, rank {} {}: the ranks do not run the same",
                                    first_, ToText(first), rank, ToText(call)));
  if (entered_ == num_ranks_ && health_) Execute();
}

void HostCollective::Execute() {
  const CollectiveCall& call = CallOf(0);
  const int64_t block = call.block_bytes();
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      Reduce();
      for (const CollectiveCall& each : calls_) CopyBlock(each.output, sum_.data(), block);
      return;
    case CollectiveKind::kReduceScatter:
      Reduce();
      for (int32_t rank = 0; rank < num_ranks_; ++rank)
        CopyBlock(CallOf(rank).output, sum_.data() + block * rank, block);
      return;
    case CollectiveKind::kReduce:
      Reduce();
      return CopyBlock(CallOf(call.root).output, sum_.data(), block);
    default:
      return CopyBlocks();
  }
}

void HostCollective::Reduce() {
  const CollectiveCall& call = CallOf(0);
  const bool of_blocks = call.kind == CollectiveKind::kReduceScatter;
  const int64_t count = call.count * (of_blocks ? num_ranks_ : 1);
  if (count == 0) return;
  sum_.resize(static_cast<size_t>(count * SizeOf(call.type)));
  CopyMemory(sum_.data(), call.input, sum_.size());
  const ReduceKernel reduce = FindReduceKernel(call.type, call.op);
  for (int32_t rank = 1; rank < num_ranks_; ++rank)
    reduce(sum_.data(), sum_.data(), CallOf(rank).input, count);
  if (call.op == ReduceOp::kAvg) FindDivideKernel(call.type)(sum_.data(), count, num_ranks_);
}

void HostCollective::CopyBlocks() {
  const CollectiveCall& call = CallOf(0);
  const int64_t block = call.block_bytes();
  const CollectiveCall& root = CallOf(call.has_root() ? call.root : 0);
  for (int32_t to = 0; to < num_ranks_; ++to) {
    const CollectiveCall& taker = CallOf(to);
    switch (call.kind) {
      case CollectiveKind::kBroadcast:
        CopyBlock(taker.output, root.input, block);
        break;
      case CollectiveKind::kScatter:
        CopyBlock(taker.output, Advanced(root.input, block * to), block);
        break;
      case CollectiveKind::kGather:
        CopyBlock(Advanced(root.output, block * to), taker.input, block);
        break;
      case CollectiveKind::kAllGather:
        for (int32_t from = 0; from < num_ranks_; ++from)
          CopyBlock(Advanced(taker.output, block * from), CallOf(from).input, block);
        break;
      default:  // all-to-all
        for (int32_t from = 0; from < num_ranks_; ++from)
          CopyBlock(Advanced(taker.output, block * from), Advanced(CallOf(from).input, block * to),
                    block);
    }
  }
}

}  // namespace tutti::service
