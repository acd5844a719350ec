#include "tutti/lp/linear_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "alltoall/step_network.h"
#include "alltoall/time_stepped_lp.h"
#include "tutti/flow/network.h"

namespace tutti {
namespace tsmcf {
namespace {

using Entries = std::vector<LinearProgram::Entry>;
constexpr double kNoLimit = LinearProgram::kNoLimit;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
// Scale of an integer price for one in the linear program.
constexpr double kPriceUnits = int64_t{1} << 40;

struct FlowProblem {
  const Topology& topology;
  const Collective& collective;
  StepNetwork network;
  size_t steps;

  int64_t Weight(NodeId source, NodeId destination) const {
    if (source == destination || !topology.is_rank(destination)) return 0;
    return collective.weight(ShardId{source.value * collective.num_ranks() + destination.value});
  }
  // The largest, which is 1 in the linear program.
  double Scale() const {
    int64_t most = 1;
    for (NodeId source : topology.Ranks())
      for (NodeId destination : topology.Ranks())
        most = std::max(most, Weight(source, destination));
    return static_cast<double>(most);
  }
  // TB of a sum over steps of busiest carriers, in weight on the slowest link.
  Rational TbOf(const Rational& value) const {
    return value / Rational(collective.weight_of_size()) *
           Rational(topology.max_in_bandwidth(), topology.min_bandwidth());
  }
};

// A flow from `source` through the steps: what is at a node after a step goes on or waits.
void AddFlow(const FlowProblem& problem, NodeId source, double scale, LinearProgram& lp,
             std::vector<Entries>& load) {
  const Topology& topology = problem.topology;
  const size_t nodes = static_cast<size_t>(topology.num_nodes()), steps = problem.steps;
  const std::vector<int32_t>& hops = problem.network.hops_from[source.index()];
  const size_t carriers = problem.network.carriers.size();
  std::vector<Entries> balance((steps + 1) * nodes);
  const auto add = [&](size_t step, NodeId tail, NodeId head) {
    const int32_t column = lp.AddColumn(0, kNoLimit, 0);
    if (tail != source) balance[step * nodes + tail.index()].push_back({column, -1});
    balance[(step + 1) * nodes + head.index()].push_back({column, 1});
    return column;
  };
  const auto is_there = [&](NodeId node, size_t step) {
    return hops[node.index()] >= 0 && hops[node.index()] <= static_cast<int32_t>(step);
  };
  for (size_t step = 0; step < steps; ++step) {
    for (LinkId link : topology.Links()) {
      const NodeId tail = topology.tail(link), head = topology.head(link);
      if (head == source || !is_there(tail, step)) continue;
      const int32_t column = add(step, tail, head);
      for (int32_t carrier : problem.network.of_link[link.index()])
        if (carrier != kNoCarrier)
          load[step * carriers + static_cast<size_t>(carrier)].push_back(
              {column, problem.network.carriers[static_cast<size_t>(carrier)].unit_time});
    }
    for (NodeId node : topology.Nodes())
      if (node != source && is_there(node, step)) add(step, node, node);
  }
  for (size_t step = 1; step <= steps; ++step)
    for (NodeId node : topology.Nodes()) {
      const Entries& entries = balance[step * nodes + node.index()];
      if (node == source || entries.empty()) continue;
      const double kept =
          step == steps ? static_cast<double>(problem.Weight(source, node)) / scale : 0;
      lp.AddRow(kept, kept, entries);
    }
}

// The cheapest path of each block through the steps, with `price` by [step][link].
Rational DemandTimesDistance(const FlowProblem& problem,
                             const std::vector<std::vector<int64_t>>& price) {
  const Topology& topology = problem.topology;
  Rational sum;
  for (NodeId source : problem.network.sources) {
    std::vector<int64_t> at(static_cast<size_t>(topology.num_nodes()), kFar);
    at[source.index()] = 0;
    for (const std::vector<int64_t>& of_link : price) {
      std::vector<int64_t> next = at;
      for (LinkId link : topology.Links())
        next[topology.head(link).index()] =
            std::min(next[topology.head(link).index()],
                     at[topology.tail(link).index()] + of_link[link.index()]);
      at = std::move(next);
    }
    WideInteger from_source = 0;
    for (NodeId destination : topology.Ranks())
      from_source +=
          static_cast<WideInteger>(problem.Weight(source, destination)) * at[destination.index()];
    sum += ToRational(from_source);
  }
  return sum;
}

// What the prices of carriers in steps prove, with `prices` by [step][carrier].
Rational LimitOf(const FlowProblem& problem, const std::vector<double>& prices) {
  const Topology& topology = problem.topology;
  const std::vector<Carrier>& carriers = problem.network.carriers;
  std::vector<std::vector<int64_t>> of_link(problem.steps);
  Rational most;  // that all carriers of a step have to give
  for (size_t step = 0; step < problem.steps; ++step) {
    std::vector<int64_t> length(carriers.size());
    Rational given;
    for (size_t c = 0; c < carriers.size(); ++c) {
      const double price = std::max(0.0, prices[step * carriers.size() + c]);
      length[c] = std::llround(price * carriers[c].unit_time * kPriceUnits);
      given += Rational(length[c]) * Rational(carriers[c].bandwidth, carriers[c].repeats) /
               Rational(topology.min_bandwidth());
    }
    most = std::max(most, given);
    for (LinkId link : topology.Links()) {
      int64_t sum = 0;
      for (int32_t carrier : problem.network.of_link[link.index()])
        if (carrier != kNoCarrier) sum += length[static_cast<size_t>(carrier)];
      of_link[step].push_back(sum);
    }
  }
  if (most.is_zero()) return {};
  return problem.TbOf(DemandTimesDistance(problem, of_link) / most);
}

}  // namespace
}  // namespace tsmcf

Result<TimeSteppedLimit> SolveTimeSteppedProgram(const Topology& topology,
                                                 const Collective& collective, int32_t steps) {
  const tsmcf::FlowProblem problem{topology, collective,
                                   tsmcf::StepNetwork(topology, collective.demand().empty()),
                                   static_cast<size_t>(std::max(steps, 0))};
  const int32_t fewest = tsmcf::FewestSteps(problem.network, collective);
  if (steps < fewest)
    return InvalidArgument(
        fmt::format("{} steps are too few: {} have to be gone from a rank to "
                    "another",
                    steps, fewest));
  const double scale = problem.Scale();
  LinearProgram lp(LinearProgram::Goal::kMinimize);
  const size_t carriers = problem.network.carriers.size();
  std::vector<tsmcf::Entries> load(problem.steps * carriers);
  for (size_t step = 0; step < problem.steps; ++step) {
    const int32_t busiest = lp.AddColumn(0, tsmcf::kNoLimit, 1);
    for (size_t c = 0; c < carriers; ++c) load[step * carriers + c].push_back({busiest, -1});
  }
  for (NodeId source : problem.network.sources) tsmcf::AddFlow(problem, source, scale, lp, load);
  const int32_t first_row = lp.num_rows();
  for (const tsmcf::Entries& entries : load) lp.AddRow(-tsmcf::kNoLimit, 0, entries);
  const Result<LpSolution> solution = lp.Solve();
  if (!solution) return tl::unexpected(solution.error());
  std::vector<double> prices;
  for (size_t i = 0; i < load.size(); ++i)
    prices.push_back(-solution->row_prices[static_cast<size_t>(first_row) + i]);
  TimeSteppedLimit limit;
  limit.tb = solution->objective * scale * problem.TbOf(1).ToDouble();
  limit.tb_limit = LimitOf(problem, prices);
  limit.columns = lp.num_columns();
  return limit;
}

}  // namespace tutti
