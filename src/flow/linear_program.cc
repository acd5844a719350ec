#include "tutti/lp/linear_program.h"

#include <cstddef>
#include <utility>

#include "tutti/flow/concurrent_flow_lp.h"
#include "tutti/flow/network.h"

namespace tutti {
namespace {

// Adds columns for a flow from `source` and rows by which node v keeps at least f x kept[v]; for
// any other node that is not the source what arrives is at least what leaves.
void AddFlow(const FlowNetwork& network, int32_t source, const std::vector<double>& kept,
             int32_t rate, LinearProgram& lp,
             std::vector<std::vector<LinearProgram::Entry>>& load) {
  const auto nodes = static_cast<size_t>(network.num_nodes);
  std::vector<std::vector<LinearProgram::Entry>> balance(nodes);
  for (size_t e = 0; e < network.num_bundles(); ++e) {
    if (network.head[e] == source) continue;
    const int32_t column = lp.AddColumn(0, LinearProgram::kNoLimit, 0);
    load[e].push_back({column, 1});
    balance[static_cast<size_t>(network.head[e])].push_back({column, 1});
    balance[static_cast<size_t>(network.tail[e])].push_back({column, -1});
  }
  for (size_t v = 0; v < nodes; ++v) {
    if (v == static_cast<size_t>(source)) continue;
    if (kept[v] > 0) balance[v].push_back({rate, -kept[v]});
    lp.AddRow(0, LinearProgram::kNoLimit, balance[v]);
  }
}

}  // namespace

Result<double> SolveConcurrentFlowProgram(const Topology& topology, FlowProgram program,
                                          const std::vector<int64_t>& demand_matrix) {
  const int32_t ranks = topology.num_ranks();
  if (ranks < 2) return InvalidArgument("a concurrent flow needs at least two ranks, got one");
  if (const Status status = CheckDemand(ranks, demand_matrix); !status)
    return tl::unexpected(status.error());
  const FlowNetwork network(topology);
  const DemandTable demand(ranks, demand_matrix);
  const double mean = demand.Mean();

  LinearProgram lp(LinearProgram::Goal::kMaximize);
  const int32_t rate = lp.AddColumn(0, LinearProgram::kNoLimit, 1);
  std::vector<std::vector<LinearProgram::Entry>> load(network.num_bundles());
  for (int32_t source = 0; source < ranks; ++source) {
    std::vector<double> kept(static_cast<size_t>(network.num_nodes), 0);
    for (int32_t to = 0; to < ranks; ++to) {
      const double share = static_cast<double>(demand(source, to)) / mean;
      if (share <= 0) continue;
      kept[static_cast<size_t>(to)] = share;
      if (program == FlowProgram::kPerSource) continue;
      AddFlow(network, source, kept, rate, lp, load);
      kept[static_cast<size_t>(to)] = 0;
    }
    if (program == FlowProgram::kPerSource) AddFlow(network, source, kept, rate, lp, load);
  }
  for (size_t e = 0; e < network.num_bundles(); ++e)
    if (!load[e].empty()) lp.AddRow(-LinearProgram::kNoLimit, network.capacity[e], load[e]);
  const Result<LpSolution> solution = lp.Solve();
  if (!solution) return tl::unexpected(solution.error());
  return solution->objective;
}

Result<ChildFlows> SolveChildProgram(const Topology& topology, const ConcurrentFlow& flow,
                                     NodeId source) {
  const DemandTable demand(topology.num_ranks(), flow.demand);
  const std::vector<BundleFlow>& parts = flow.flow_from[source.index()];
  LinearProgram lp(LinearProgram::Goal::kMinimize);
  std::vector<std::vector<LinearProgram::Entry>> load(parts.size());
  std::vector<int32_t> first_column;  // of a destination
  for (NodeId to : topology.Ranks()) {
    first_column.push_back(lp.num_columns());
    const int64_t wanted = demand(source.value, to.value);
    if (wanted == 0) continue;
    std::vector<std::vector<LinearProgram::Entry>> balance(
        static_cast<size_t>(topology.num_nodes()));
    for (size_t k = 0; k < parts.size(); ++k) {
      const LinkBundle& bundle = flow.bundles[static_cast<size_t>(parts[k].bundle)];
      const int32_t column = lp.AddColumn(0, LinearProgram::kNoLimit, 1);
      load[k].push_back({column, 1});
      balance[bundle.head.index()].push_back({column, 1});
      balance[bundle.tail.index()].push_back({column, -1});
    }
    for (NodeId node : topology.Nodes())
      if (node != source && !balance[node.index()].empty())
        lp.AddRow(node == to ? static_cast<double>(wanted) : 0, LinearProgram::kNoLimit,
                  balance[node.index()]);
  }
  for (size_t k = 0; k < parts.size(); ++k)
    if (!load[k].empty())
      lp.AddRow(-LinearProgram::kNoLimit,
                static_cast<double>(parts[k].units) / static_cast<double>(flow.units_per_demand),
                load[k]);
  const Result<LpSolution> solution = lp.Solve();
  if (!solution) return tl::unexpected(solution.error());
  ChildFlows child{{}, solution->objective};
  for (NodeId to : topology.Ranks()) {
    const auto first = solution->columns.begin() + first_column[to.index()];
    const bool any = demand(source.value, to.value) > 0;
    child.to.emplace_back(first, any ? first + static_cast<std::ptrdiff_t>(parts.size()) : first);
  }
  return child;
}

}  // namespace tutti
