#include "tutti/control/flow_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tutti {
namespace {

// Flows in turn: passes from low to high, in them stages, in these rounds of one flow a job.
class Fitter {
 public:
  explicit Fitter(const FlowProblem& problem) : problem_(problem) {
    load_ = problem.background;
    load_.resize(problem.capacity.size());
    route_.assign(problem.flows.size(), -1);
    SetReservations();
    OrderFlows();
    FindGroups();
  }

  // With `keep`, flows that run stay where that is open to them.
  Result<FlowAssignment> Fit(bool keep) {
    if (keep)
      for (size_t i = 0; i < problem_.flows.size(); ++i) {
        const FlowRequest& flow = problem_.flows[i];
        if (flow.running >= 0 && IsOpen(flow, OptionsOf(flow)[static_cast<size_t>(flow.running)]))
          Take(i, flow.running);
      }
    for (const size_t i : order_) {
      if (route_[i] >= 0) continue;
      const int32_t best = Best(i);
      if (best < 0)
        return MakeError(ErrorCode::kInfeasible,
                         fmt::format("class {} of job {} is left without a route: all {} are "
                                     "reserved for higher classes",
                                     problem_.flows[i].priority, problem_.flows[i].job,
                                     OptionsOf(problem_.flows[i]).size()));
      Take(i, best);
    }
    return Finish();
  }

 private:
  const std::vector<RouteOption>& OptionsOf(const FlowRequest& flow) const {
    return problem_.route_sets[static_cast<size_t>(flow.route_set)];
  }
  static bool IsOpen(const FlowRequest& flow, const RouteOption& route) {
    return route.reserved_from <= 0 || flow.priority >= route.reserved_from;
  }

  // The lowest class that some route is reserved for; those below are fitted first.
  void SetReservations() {
    for (const std::vector<RouteOption>& options : problem_.route_sets)
      for (const RouteOption& route : options)
        if (route.reserved_from > 0)
          lowest_reserved_ = std::min(lowest_reserved_, route.reserved_from);
  }

  void OrderFlows() {
    std::unordered_map<int32_t, int32_t> taken;  // flows of a job so far
    std::vector<std::tuple<int64_t, int32_t, int32_t, int32_t, size_t>> keys;
    keys.reserve(problem_.flows.size());
    for (size_t i = 0; i < problem_.flows.size(); ++i) {
      const FlowRequest& flow = problem_.flows[i];
      const int64_t pass = flow.priority < lowest_reserved_ ? std::numeric_limits<int64_t>::min()
                                                            : -static_cast<int64_t>(flow.priority);
      keys.emplace_back(pass, flow.stage, taken[flow.job]++, flow.job, i);
    }
    std::sort(keys.begin(), keys.end());
    for (const auto& key : keys) order_.push_back(std::get<4>(key));
  }

  // Flows of one job with one set of routes are counted together, a number a route.
  void FindGroups() {
    std::unordered_map<uint64_t, size_t> groups;
    size_t counters = 0;
    for (const FlowRequest& flow : problem_.flows) {
      const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(flow.job)) << 32 |
                           static_cast<uint32_t>(flow.route_set);
      const auto [at, is_new] = groups.emplace(key, counters);
      if (is_new) counters += OptionsOf(flow).size();
      first_count_.push_back(at->second);
    }
    count_.resize(counters);
  }

  int32_t Best(size_t i) const {
    const FlowRequest& flow = problem_.flows[i];
    const std::vector<RouteOption>& options = OptionsOf(flow);
    int32_t best = -1, best_flows = 0;
    int64_t best_excess = 0;
    for (size_t r = 0; r < options.size(); ++r) {
      if (!IsOpen(flow, options[r])) continue;
      int64_t excess = std::numeric_limits<int64_t>::min();
      for (const LinkId link : options[r].links)
        excess =
            std::max(excess, load_[link.index()] + flow.demand - problem_.capacity[link.index()]);
      const int32_t flows = count_[first_count_[i] + r];
      if (best < 0 || std::tie(excess, flows) < std::tie(best_excess, best_flows)) {
        best = static_cast<int32_t>(r);
        best_excess = excess;
        best_flows = flows;
      }
    }
    return best;
  }

  void Take(size_t i, int32_t route) {
    route_[i] = route;
    ++count_[first_count_[i] + static_cast<size_t>(route)];
    for (const LinkId link : OptionsOf(problem_.flows[i])[static_cast<size_t>(route)].links)
      load_[link.index()] += problem_.flows[i].demand;
  }

  FlowAssignment Finish() {
    FlowAssignment result;
    bool any = false;
    for (size_t i = 0; i < route_.size(); ++i)
      for (const LinkId link : OptionsOf(problem_.flows[i])[static_cast<size_t>(route_[i])].links) {
        const int64_t excess = load_[link.index()] - problem_.capacity[link.index()];
        if (!any || excess > result.largest_excess) result.largest_excess = excess;
        any = true;
      }
    result.route = std::move(route_);
    result.load = std::move(load_);
    return result;
  }

  const FlowProblem& problem_;
  int32_t lowest_reserved_ = std::numeric_limits<int32_t>::max();
  std::vector<size_t> order_;
  std::vector<size_t> first_count_;  // by flow: its group's counters begin there
  std::vector<int32_t> count_;
  std::vector<int64_t> load_;
  std::vector<int32_t> route_;
};

// Capacity of a link that flows use and that has the largest excess.
int64_t CapacityOfFullest(const FlowProblem& problem, const FlowAssignment& assignment) {
  for (size_t i = 0; i < problem.flows.size(); ++i) {
    const FlowRequest& flow = problem.flows[i];
    for (const LinkId link : problem
                                 .route_sets[static_cast<size_t>(flow.route_set)]
                                            [static_cast<size_t>(assignment.route[i])]
                                 .links)
      if (assignment.load[link.index()] - problem.capacity[link.index()] ==
          assignment.largest_excess)
        return problem.capacity[link.index()];
  }
  return 0;
}

}  // namespace

Status CheckFlowProblem(const FlowProblem& problem) {
  if (!problem.background.empty() && problem.background.size() != problem.capacity.size())
    return InvalidArgument(fmt::format("background of {} links, wanted {}",
                                       problem.background.size(), problem.capacity.size()));
  for (size_t set = 0; set < problem.route_sets.size(); ++set)
    for (const RouteOption& route : problem.route_sets[set])
      for (const LinkId link : route.links)
        if (link.value < 0 || link.index() >= problem.capacity.size())
          return InvalidArgument(fmt::format("a route of set {} passes link {}, wanted 0 to {}",
                                             set, link.value, problem.capacity.size() - 1));
  for (size_t i = 0; i < problem.flows.size(); ++i) {
    const FlowRequest& flow = problem.flows[i];
    if (flow.demand < 0)
      return InvalidArgument(fmt::format("flow {} wants {} bytes/s", i, flow.demand));
    if (flow.route_set < 0 || static_cast<size_t>(flow.route_set) >= problem.route_sets.size() ||
        problem.route_sets[static_cast<size_t>(flow.route_set)].empty())
      return InvalidArgument(
          fmt::format("flow {} names route set {}, which has no routes", i, flow.route_set));
    const auto routes =
        static_cast<int32_t>(problem.route_sets[static_cast<size_t>(flow.route_set)].size());
    if (flow.running < -1 || flow.running >= routes)
      return InvalidArgument(
          fmt::format("flow {} runs on route {} of {}", i, flow.running, routes));
  }
  return {};
}

Result<FlowAssignment> AssignFlows(const FlowProblem& problem) {
  if (Status status = CheckFlowProblem(problem); !status) return tl::unexpected(status.error());
  Result<FlowAssignment> fresh = Fitter(problem).Fit(false);
  const bool any_running = std::any_of(problem.flows.begin(), problem.flows.end(),
                                       [](const FlowRequest& flow) { return flow.running >= 0; });
  if (!fresh || !any_running) return fresh;
  Result<FlowAssignment> kept = Fitter(problem).Fit(true);
  if (!kept) return kept;
  const int64_t gain = kept->largest_excess - fresh->largest_excess;
  const int64_t capacity = CapacityOfFullest(problem, *kept);
  return gain > 0 && gain >= (capacity + 19) / 20 ? fresh : kept;
}

std::vector<int64_t> FlowDemands(std::span<const int32_t> from, std::span<const int32_t> to,
                                 std::span<const int64_t> port_bandwidth) {
  std::vector<int64_t> out(port_bandwidth.size()), in(port_bandwidth.size());
  for (const int32_t port : from) ++out[static_cast<size_t>(port)];
  for (const int32_t port : to) ++in[static_cast<size_t>(port)];
  std::vector<int64_t> demand;
  demand.reserve(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const auto a = static_cast<size_t>(from[i]), b = static_cast<size_t>(to[i]);
    demand.push_back(std::min(port_bandwidth[a] / out[a], port_bandwidth[b] / in[b]));
  }
  return demand;
}

}  // namespace tutti
