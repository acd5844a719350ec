// Definition 1: the schedule of a line digraph.
#include <utility>
#include <vector>

#include "expand/common.h"
#include "expand/expand.h"
#include "tutti/topo/operators.h"

namespace tutti {
Result<Expansion> ExpandLine(const Topology& base, const Schedule& schedule) {
  if (const Status status = expand::CheckBase("line", base, schedule); !status)
    return tl::unexpected(status.error());
  const Result<int32_t> degree = expand::RegularDegree("line", base);
  if (!degree) return tl::unexpected(degree.error());
  Result<Topology> line = LineDigraph(base);
  if (!line) return tl::unexpected(line.error());
  const int64_t most =
      SaturatingMul(static_cast<int64_t>(schedule.transfers.size()), int64_t{*degree} * *degree);
  Result<Schedule> made =
      expand::Start(*line, schedule.units_per_shard, schedule.seed, most + line->num_links());
  if (!made) return tl::unexpected(made.error());

  // The rank that each link of the base is, and the ranks v'v of each v.
  std::vector<NodeId> port_of(static_cast<size_t>(base.num_links()));
  std::vector<std::vector<int32_t>> into(static_cast<size_t>(base.num_nodes()));
  int32_t rank = 0;
  for (const LinePort& port : LinePorts(base)) {
    if (port.link) port_of[port.link->index()] = NodeId{rank};
    into[port.head.index()].push_back(rank++);
  }

  std::vector<Transfer>& out = made->transfers;
  for (NodeId port : line->Ranks())
    for (LinkId link : line->OutLinks(port))
      out.push_back({ShardId{port.value}, link, 0, schedule.units_per_shard, 0, TransferOp::kCopy});
  for (const Transfer& transfer : schedule.transfers)
    for (int32_t shard : into[transfer.shard.index()])
      for (LinkId link : line->OutLinks(port_of[transfer.link.index()])) {
        if (line->head(link).value == shard) continue;  // it has its own
        out.push_back({ShardId{shard}, link, transfer.begin, transfer.end, transfer.step + 1,
                       TransferOp::kCopy});
      }
  made->num_steps = expand::UsedSteps(*made);
  return Expansion{*std::move(line), *std::move(made)};
}

}  // namespace tutti
