// `parallel=k` of an operator, for its schedule.
#include <fmt/format.h>

#include <utility>

#include "expand/common.h"
#include "expand/expand.h"

namespace tutti {
namespace {

Result<Topology> MultiplyLinks(const Topology& base, int64_t k) {
  Topology::Builder builder(base.num_ranks(), base.num_nodes() - base.num_ranks());
  for (NodeId node : base.Nodes())
    for (const LinkSpec& loop : base.self_loops(node))
      for (int64_t copy = 0; copy < k; ++copy) builder.AddLink(node, node, loop);
  for (LinkId link : base.Links())
    for (int64_t copy = 0; copy < k; ++copy)
      builder.AddLink(base.tail(link), base.head(link), base.spec(link));
  return std::move(builder).Build();
}

}  // namespace

Result<Expansion> ExpandParallel(const Topology& base, const Schedule& schedule, int64_t k) {
  if (const Status status = expand::CheckBase("parallel links", base, schedule); !status)
    return tl::unexpected(status.error());
  if (k < 1 || SaturatingMul(base.num_links(), k) > kMaxLinks)
    return InvalidArgument(fmt::format(
        "parallel links: got {} in place of each of {}, wanted at least 1 and at most {} together",
        k, base.num_links(), kMaxLinks));
  Result<Topology> multiplied = MultiplyLinks(base, k);
  if (!multiplied) return tl::unexpected(multiplied.error());
  const Result<int32_t> units = expand::MultiplyUnits(schedule.units_per_shard, k);
  if (!units) return tl::unexpected(units.error());
  const auto size = static_cast<int64_t>(schedule.transfers.size());
  Result<Schedule> made = expand::Start(*multiplied, *units, schedule.seed, SaturatingMul(size, k));
  if (!made) return tl::unexpected(made.error());
  // Links keep their order, each standing k times: link l becomes k l, .., k l + k - 1.
  const auto copies = static_cast<int32_t>(k);
  for (const Transfer& transfer : schedule.transfers)
    for (int32_t copy = 0; copy < copies; ++copy) {
      const int32_t begin = transfer.begin * copies + copy * transfer.units();
      made->transfers.push_back({transfer.shard, LinkId{transfer.link.value * copies + copy}, begin,
                                 begin + transfer.units(), transfer.step, TransferOp::kCopy});
    }
  made->num_steps = expand::UsedSteps(*made);
  return Expansion{*std::move(multiplied), *std::move(made)};
}

}  // namespace tutti
