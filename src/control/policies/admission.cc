// No job that takes from a tenant what is guaranteed to it.
//
// Model       Flows that run stay where they are. The jobs that have others ask one after the other,
//             in the order of their numbers. Each such flow takes the route with the smallest excess
//             (demands by weight, as in `weighted`; ties as in `ffa`) among those open to its class
//             on whose links, NICs included, every tenant keeps its guarantee once the job is there.
//             A flow without such a route: its job is refused, and the link named that says no on
//             the route that the flow would have taken.
// Exactness   A job's weight counts once on a link, whatever the number of its flows there, so
//             whether it may use a link does not depend on its other flows: a job is refused only if
//             no choice of routes at all would do, what runs staying where it is. Whether a guarantee
//             holds is decided by exact fractions.
// Complexity  O(flows x routes x hops x tenants of a link).
// Example     Two routes of 100, tenants 0 and 1 with a flow on each; tenant 0 is guaranteed 60. The
//             job of tenant 2 may not join 0 (100 x 1 / 2 < 60), so it joins 1. With 60 guaranteed to
//             1 as well it is refused.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/parts.h"
#include "policies/registry.h"
#include "tutti/base/rational.h"
#include "tutti/control/isolation.h"

namespace tutti {
namespace {

class Admission {
 public:
  Admission(const PolicyInput& input, PolicyOutput& output, const FlowProblem& problem)
      : input_(input),
        view_(*input.view),
        output_(output),
        problem_(problem),
        load_(problem.background) {
    load_.resize(problem.capacity.size());
    on_link_.resize(problem.capacity.size());
    size_t first = 0;
    for (size_t j = 0; j < input.jobs.size(); ++j) {
      first_flow_.push_back(first);
      order_.push_back(j);
      first += output.jobs[j].flows.size();
    }
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return input.jobs[a].id < input.jobs[b].id; });
  }

  Status Run() {
    for (const size_t j : order_) PlaceRunning(j);
    for (const size_t j : order_)
      if (Status status = PlaceOthers(j); !status) return status;
    SetExcess();
    return {};
  }

 private:
  struct Present {
    TenantKey tenant;
    int64_t weight = 0;
  };
  struct Link {
    std::vector<Present> tenants;
    std::vector<int32_t> jobs;
    int64_t weights = 0;
  };

  const FlowRequest& FlowOf(size_t j, size_t i) const { return problem_.flows[first_flow_[j] + i]; }
  const std::vector<RouteOption>& OptionsOf(const FlowRequest& flow) const {
    return problem_.route_sets[static_cast<size_t>(flow.route_set)];
  }
  std::vector<LinkId> PathOf(size_t j, size_t i, int32_t route) const {
    const RingFlow& flow = output_.jobs[j].flows[i];
    return view_.Path(flow.from_port, flow.to_port, route);
  }
  int64_t GuaranteeOf(const TenantKey& tenant) const {
    const auto at = guaranteed_.find(tenant);
    return at == guaranteed_.end() ? 0 : at->second;
  }

  void PlaceRunning(size_t j) {
    const PolicyJob& job = input_.jobs[j];
    bool any = false;
    for (size_t i = 0; i < output_.jobs[j].flows.size(); ++i)
      if (const int32_t route = FlowOf(j, i).running; route >= 0) {
        Take(j, i, route);
        any = true;
      }
    if (any) Guarantee(job);
  }

  void Guarantee(const PolicyJob& job) {
    int64_t& guaranteed = guaranteed_[KeyOfTenant(job)];
    guaranteed = std::max(guaranteed, job.guaranteed);
  }

  Status PlaceOthers(size_t j) {
    const PolicyJob& job = input_.jobs[j];
    const std::vector<int32_t>& routes = output_.jobs[j].routes;
    if (std::count(routes.begin(), routes.end(), kByEcmp) == 0) return {};
    Guarantee(job);
    // What it asks for its tenant has to hold where the tenant is already.
    if (job.guaranteed > 0)
      for (int32_t link = 0; link < view_.num_links(); ++link)
        if (const std::vector<Present>& here = on_link_[static_cast<size_t>(link)].tenants;
            std::any_of(here.begin(), here.end(),
                        [&](const Present& one) { return one.tenant == KeyOfTenant(job); }))
          if (const auto broken = BrokenBy(job, LinkId{link}))
            return tl::unexpected(Refusal(job, *broken));
    for (size_t i = 0; i < output_.jobs[j].flows.size(); ++i) {
      if (routes[i] != kByEcmp) continue;
      const Result<int32_t> route = RouteFor(j, i);
      if (!route) return tl::unexpected(route.error());
      Take(j, i, *route);
    }
    return {};
  }

  // The open routes, the best first.
  std::vector<int32_t> RoutesInOrder(size_t j, size_t i) const {
    const FlowRequest& flow = FlowOf(j, i);
    const std::vector<RouteOption>& options = OptionsOf(flow);
    std::vector<std::tuple<int64_t, int32_t, int32_t>> keys;
    for (size_t r = 0; r < options.size(); ++r) {
      if (options[r].reserved_from > 0 && flow.priority < options[r].reserved_from) continue;
      int64_t excess = std::numeric_limits<int64_t>::min();
      for (const LinkId link : options[r].links)
        excess =
            std::max(excess, load_[link.index()] + flow.demand - problem_.capacity[link.index()]);
      const auto route = static_cast<int32_t>(r);
      const auto own = own_flows_.find({j, flow.route_set, route});
      keys.emplace_back(excess, own == own_flows_.end() ? 0 : own->second, route);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<int32_t> routes;
    for (const auto& key : keys) routes.push_back(std::get<2>(key));
    return routes;
  }

  Result<int32_t> RouteFor(size_t j, size_t i) const {
    const PolicyJob& job = input_.jobs[j];
    std::optional<TenantShare> first_broken;
    const std::vector<int32_t> routes = RoutesInOrder(j, i);
    if (routes.empty())
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("class {} of job {} is left without a route: all {} are "
                                   "reserved for higher classes",
                                   job.priority, job.id, OptionsOf(FlowOf(j, i)).size()));
    for (const int32_t route : routes) {
      std::optional<TenantShare> broken;
      for (const LinkId link : PathOf(j, i, route))
        if (!broken) broken = BrokenBy(job, link);
      if (!broken) return route;
      if (!first_broken) first_broken = broken;
    }
    return tl::unexpected(Refusal(job, *first_broken));
  }

  // The first tenant that has less than its guarantee of a link once the job is there.
  std::optional<TenantShare> BrokenBy(const PolicyJob& job, LinkId link) const {
    Link now = on_link_[link.index()];
    Add(job, now);
    for (const Present& one : now.tenants) {
      const int64_t capacity = view_.bandwidth(link), guaranteed = GuaranteeOf(one.tenant);
      const Rational share = Rational(capacity) * Rational(one.weight, now.weights);
      if (share < Rational(guaranteed))
        return TenantShare{.tenant = one.tenant,
                           .link = link,
                           .share = share,
                           .capacity = capacity,
                           .weight = one.weight,
                           .weights = now.weights,
                           .guaranteed = guaranteed};
    }
    return std::nullopt;
  }

  Error Refusal(const PolicyJob& asks, const TenantShare& broken) const {
    return {ErrorCode::kInfeasible,
            fmt::format("job {} is refused: with it {} has {} bytes/s of link {} ({}): {} x {} / "
                        "{}, guaranteed {}",
                        asks.id, NameOf(broken.tenant), broken.share.ToString(), broken.link.value,
                        view_.link_name(broken.link), broken.capacity, broken.weight,
                        broken.weights, broken.guaranteed)};
  }

  static void Add(const PolicyJob& job, Link& link) {
    if (std::find(link.jobs.begin(), link.jobs.end(), job.id) != link.jobs.end()) return;
    link.jobs.push_back(job.id);
    link.weights += job.weight;
    const TenantKey tenant = KeyOfTenant(job);
    const auto at = std::find_if(link.tenants.begin(), link.tenants.end(),
                                 [&](const Present& one) { return one.tenant == tenant; });
    if (at == link.tenants.end())
      link.tenants.push_back({tenant, job.weight});
    else
      at->weight += job.weight;
  }

  void Take(size_t j, size_t i, int32_t route) {
    const FlowRequest& flow = FlowOf(j, i);
    output_.jobs[j].routes[i] = route;
    ++own_flows_[{j, flow.route_set, route}];
    for (const LinkId link : OptionsOf(flow)[static_cast<size_t>(route)].links)
      load_[link.index()] += flow.demand;
    for (const LinkId link : PathOf(j, i, route)) Add(input_.jobs[j], on_link_[link.index()]);
  }

  void SetExcess() {
    bool any = false;
    for (size_t j = 0; j < input_.jobs.size(); ++j)
      for (size_t i = 0; i < output_.jobs[j].flows.size(); ++i) {
        const auto route = static_cast<size_t>(output_.jobs[j].routes[i]);
        for (const LinkId link : OptionsOf(FlowOf(j, i))[route].links) {
          const int64_t excess = load_[link.index()] - problem_.capacity[link.index()];
          if (!any || excess > output_.largest_excess) output_.largest_excess = excess;
          any = true;
        }
      }
  }

  const PolicyInput& input_;
  const ClusterView& view_;
  PolicyOutput& output_;
  const FlowProblem& problem_;
  std::vector<size_t> order_, first_flow_;  // jobs by number; by job its first flow
  std::vector<int64_t> load_;
  std::vector<Link> on_link_;
  std::map<TenantKey, int64_t> guaranteed_;
  std::map<std::tuple<size_t, int32_t, int32_t>, int32_t> own_flows_;  // by job, set, route
};

Status Admit(const PolicyInput& input, PolicyOutput& output) {
  const PinRules rules{.reserved_routes = input.reserved_routes, .weighted = true};
  const Result<FlowProblem> problem = ProblemOf(input, rules, output);
  if (!problem) return tl::unexpected(problem.error());
  if (Status status = CheckFlowProblem(*problem); !status) return status;
  return Admission(input, output, *problem).Run();
}

}  // namespace

Policy AdmissionPolicy() {
  return {"admission", "running flows stay; a job that breaks a guaranteed share is refused",
          RingOrder::kLocality, Admit, true};
}

}  // namespace tutti
