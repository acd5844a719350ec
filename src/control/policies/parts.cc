#include "policies/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "tutti/control/flow_assignment.h"

namespace tutti {
namespace {

// What a job draws depends on its own number only, not on who else is there.
Random RandomOf(uint64_t seed, uint64_t job) { return Random(Random(seed).Next() ^ (job * 2 + 1)); }

int32_t SetOf(const PolicyInput& input, int32_t route_set, int32_t reserved_routes,
              std::unordered_map<int32_t, int32_t>& numbers, FlowProblem& problem) {
  const auto [at, is_new] =
      numbers.emplace(route_set, static_cast<int32_t>(problem.route_sets.size()));
  if (!is_new) return at->second;
  std::vector<RouteOption>& options = problem.route_sets.emplace_back();
  const int32_t routes = input.view->NumRoutes(route_set);
  for (int32_t r = 0; r < routes; ++r) {
    const std::span<const LinkId> links = input.view->Route(route_set, r);
    options.push_back({{links.begin(), links.end()},
                       // Where there is no choice nothing can be reserved.
                       routes > 1 && r < reserved_routes ? input.reserved_from : 0});
  }
  return at->second;
}

// By the jobs' weights; with equal ones demands stay as they are.
struct Scale {
  int64_t jobs = 1, sum = 1;
  int64_t Of(int64_t demand, int32_t weight) const {
    return static_cast<int64_t>(static_cast<__int128>(demand) * weight * jobs / sum);
  }
};
Scale ScaleOf(const PolicyInput& input) {
  Scale scale{.jobs = static_cast<int64_t>(input.jobs.size()), .sum = 0};
  for (const PolicyJob& job : input.jobs) scale.sum += job.weight;
  return scale;
}

// What PolicyInput says of no number of channels.
int32_t ChannelsOf(const PolicyInput& input, const PolicyJob& job) {
  if (input.channels > 0) return input.channels;
  int32_t routes = 1, most = 1;
  std::unordered_map<int32_t, int32_t> of_host;
  for (const int32_t rank : job.ranks) {
    most = std::max(most, ++of_host[input.view->place(rank).host]);
    routes = std::max(routes, input.view->NumRoutes(input.view->RouteSet(job.ranks[0], rank)));
  }
  return routes * most;
}

}  // namespace

PolicyOutput WithRings(const PolicyInput& input, RingOrder order) {
  PolicyOutput output;
  output.jobs.reserve(input.jobs.size());
  for (const PolicyJob& job : input.jobs) {
    Random random = RandomOf(input.seed, static_cast<uint64_t>(job.id));
    const int32_t channels = ChannelsOf(input, job);
    JobStrategy& strategy = output.jobs.emplace_back();
    switch (order) {
      case RingOrder::kRandom:
        strategy.rings = RandomRings(job.ranks, channels, random);
        break;
      case RingOrder::kAsNamed:
        strategy.rings = RingsAsNamed(*input.view, job.ranks, channels);
        break;
      case RingOrder::kLocality:
        strategy.rings = LocalityRings(*input.view, job.ranks, channels);
        break;
    }
    strategy.flows = FlowsOf(*input.view, strategy.rings, input.nics, random);
    strategy.routes.assign(strategy.flows.size(), kByEcmp);
  }
  return output;
}

Result<FlowProblem> ProblemOf(const PolicyInput& input, const PinRules& rules,
                              const PolicyOutput& output) {
  const std::span<const int64_t> bandwidths = input.view->bandwidths();
  FlowProblem problem{.capacity = {bandwidths.begin(), bandwidths.end()},
                      .background = input.background,
                      .route_sets = {},
                      .flows = {}};
  const Scale scale = ScaleOf(input);
  std::unordered_map<int32_t, int32_t> numbers;
  for (size_t j = 0; j < input.jobs.size(); ++j) {
    const PolicyJob& job = input.jobs[j];
    const std::vector<RingFlow>& flows = output.jobs[j].flows;
    if (job.running.size() > flows.size())
      return InvalidArgument(fmt::format("{} flows of job {} run, it has {}", job.running.size(),
                                         job.id, flows.size()));
    const std::vector<int64_t> demands = FlowDemands(*input.view, flows);
    for (size_t i = 0; i < flows.size(); ++i) {
      const int32_t set = SetOf(input, input.view->RouteSet(flows[i].from_port, flows[i].to_port),
                                rules.reserved_routes, numbers, problem);
      problem.flows.push_back(
          {.job = job.id,
           .priority = job.priority,
           .demand = rules.weighted ? scale.Of(demands[i], job.weight) : demands[i],
           .route_set = set,
           .running = i < job.running.size() ? job.running[i] : -1,
           .stage = rules.stages.empty() ? 0 : rules.stages[j]});
    }
  }
  return problem;
}

Status PinFlows(const PolicyInput& input, const PinRules& rules, PolicyOutput& output) {
  const Result<FlowProblem> problem = ProblemOf(input, rules, output);
  if (!problem) return tl::unexpected(problem.error());
  const Result<FlowAssignment> assigned = AssignFlows(*problem);
  if (!assigned) return tl::unexpected(assigned.error());
  size_t next = 0;
  for (JobStrategy& strategy : output.jobs)
    for (int32_t& route : strategy.routes) route = assigned->route[next++];
  output.largest_excess = assigned->largest_excess;
  return {};
}

Status LeaveToEcmp(const PolicyInput&, PolicyOutput&) { return {}; }

std::vector<int32_t> StagesBy(const std::vector<std::pair<int64_t, int64_t>>& keys) {
  const std::set<std::pair<int64_t, int64_t>> in_order(keys.begin(), keys.end());
  std::vector<int32_t> stages;
  stages.reserve(keys.size());
  for (const auto& key : keys)
    stages.push_back(static_cast<int32_t>(std::distance(in_order.begin(), in_order.find(key))));
  return stages;
}

}  // namespace tutti
