#include "tutti/control/isolation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tutti {
namespace {

// By link, the lowest class that some route through it is open to.
std::vector<int32_t> OpenFrom(const PolicyInput& input) {
  const ClusterView& view = *input.view;
  std::vector<int32_t> from(static_cast<size_t>(view.num_links()),
                            std::numeric_limits<int32_t>::max());
  const int32_t sets = view.num_racks() * view.num_racks();
  for (int32_t set = 0; set < sets; ++set)
    for (int32_t r = 0; r < view.NumRoutes(set); ++r) {
      const bool reserved = view.NumRoutes(set) > 1 && r < input.reserved_routes;
      for (const LinkId link : view.Route(set, r))
        from[link.index()] = std::min(from[link.index()], reserved ? input.reserved_from : 0);
    }
  // Links of no route, such as NICs, are open.
  for (int32_t& least : from)
    if (least == std::numeric_limits<int32_t>::max()) least = 0;
  return from;
}

class Certifier {
 public:
  Certifier(const PolicyInput& input, const PolicyOutput& installed)
      : input_(input), view_(*input.view), installed_(installed), open_from_(OpenFrom(input)) {}

  IsolationCertificate Certify() {
    if (installed_.jobs.size() != input_.jobs.size())
      Fault(fmt::format("{} strategies of {} jobs", installed_.jobs.size(), input_.jobs.size()));
    const size_t jobs = std::min(input_.jobs.size(), installed_.jobs.size());
    for (size_t j = 0; j < jobs; ++j) Judge(input_.jobs[j], installed_.jobs[j]);
    AddShares();
    return std::move(certificate_);
  }

 private:
  void Fault(std::string message) { certificate_.faults.push_back(std::move(message)); }

  void Judge(const PolicyJob& job, const JobStrategy& strategy) {
    const TenantKey tenant = KeyOfTenant(job);
    guaranteed_[tenant] = std::max(guaranteed_[tenant], job.guaranteed);
    JudgeRings(job, strategy);
    if (strategy.routes.size() != strategy.flows.size()) {
      Fault(fmt::format("job {} has {} flows and {} routes", job.id, strategy.flows.size(),
                        strategy.routes.size()));
      return;
    }
    std::set<LinkId> used;
    for (size_t i = 0; i < strategy.flows.size(); ++i)
      AddLinks(job, i, strategy.flows[i], strategy.routes[i], used);
    for (const LinkId link : used) {
      weights_[link][tenant] += job.weight;
      if (job.priority < open_from_[link.index()])
        Fault(fmt::format("link {} ({}) is for classes from {} on, job {} of class {} may pass it",
                          link.value, view_.link_name(link), open_from_[link.index()], job.id,
                          job.priority));
    }
  }

  // Rings are of the job's ranks, and every edge between hosts is one flow.
  void JudgeRings(const PolicyJob& job, const JobStrategy& strategy) {
    std::multiset<std::tuple<int32_t, int32_t, int32_t>> edges;
    for (size_t c = 0; c < strategy.rings.size(); ++c) {
      const std::vector<int32_t>& ring = strategy.rings[c];
      if (!std::is_permutation(ring.begin(), ring.end(), job.ranks.begin(), job.ranks.end())) {
        Fault(fmt::format("ring {} of job {} is not of its ranks", c, job.id));
        continue;
      }
      for (size_t i = 0; i < ring.size(); ++i)
        if (const int32_t to = ring[(i + 1) % ring.size()];
            view_.place(ring[i]).host != view_.place(to).host)
          edges.emplace(static_cast<int32_t>(c), ring[i], to);
    }
    for (const RingFlow& flow : strategy.flows) {
      const auto at = edges.find({flow.channel, flow.from, flow.to});
      if (at == edges.end())
        Fault(fmt::format("job {} has a flow from rank {} to {} in ring {}, which has no such edge",
                          job.id, flow.from, flow.to, flow.channel));
      else
        edges.erase(at);
    }
    for (const auto& [channel, from, to] : edges)
      Fault(fmt::format("job {} has no flow for the edge from rank {} to {} of ring {}", job.id,
                        from, to, channel));
  }

  bool IsPort(int32_t port, int32_t rank) const {
    const int32_t ranks = view_.num_ranks();
    return port >= 0 && port < ranks && rank >= 0 && rank < ranks &&
           view_.place(port).host == view_.place(rank).host;
  }

  void AddLinks(const PolicyJob& job, size_t number, const RingFlow& flow, int32_t route,
                std::set<LinkId>& used) {
    if (!IsPort(flow.from_port, flow.from) || !IsPort(flow.to_port, flow.to)) {
      Fault(
          fmt::format("flow {} of job {} goes from port {} to port {}, which are not on the hosts "
                      "of ranks {} and {}",
                      number, job.id, flow.from_port, flow.to_port, flow.from, flow.to));
      return;
    }
    const int32_t set = view_.RouteSet(flow.from_port, flow.to_port);
    const int32_t routes = view_.NumRoutes(set);
    if (route < kByEcmp || route >= routes) {
      Fault(fmt::format("flow {} of job {} takes route {} of {}", number, job.id, route, routes));
      return;
    }
    const int32_t first = route == kByEcmp ? 0 : route,
                  last = route == kByEcmp ? routes - 1 : route;
    for (int32_t r = first; r <= last; ++r) {
      const std::vector<LinkId> path = view_.Path(flow.from_port, flow.to_port, r);
      used.insert(path.begin(), path.end());
      JudgeRoute(job, number, set, r);
    }
  }

  // Where links are shared with open routes the route alone says that it is reserved.
  void JudgeRoute(const PolicyJob& job, size_t number, int32_t set, int32_t route) {
    if (view_.NumRoutes(set) < 2 || route >= input_.reserved_routes ||
        job.priority >= input_.reserved_from)
      return;
    for (const LinkId link : view_.Route(set, route))
      if (job.priority < open_from_[link.index()]) return;  // said of the link
    Fault(
        fmt::format("route {} is for classes from {} on, flow {} of job {} of class {} may take it",
                    route, input_.reserved_from, number, job.id, job.priority));
  }

  void AddShares() {
    std::map<TenantKey, TenantShare> shares;
    for (const auto& [tenant, guaranteed] : guaranteed_)
      shares[tenant] = {.tenant = tenant, .guaranteed = guaranteed};
    for (const auto& [link, tenants] : weights_) {
      int64_t all = 0;
      for (const auto& [tenant, weight] : tenants) all += weight;
      for (const auto& [tenant, weight] : tenants) {
        const Rational share = Rational(view_.bandwidth(link)) * Rational(weight, all);
        TenantShare& least = shares[tenant];
        if (least.link.value >= 0 && least.share <= share) continue;
        least.link = link;
        least.share = share;
        least.capacity = view_.bandwidth(link);
        least.weight = weight;
        least.weights = all;
      }
    }
    for (auto& [tenant, share] : shares) {
      if (share.link.value >= 0 && share.share < Rational(share.guaranteed))
        Fault(fmt::format("{} has {} bytes/s on link {} ({}), guaranteed {}", NameOf(share.tenant),
                          share.share.ToString(), share.link.value, view_.link_name(share.link),
                          share.guaranteed));
      certificate_.tenants.push_back(std::move(share));
    }
  }

  const PolicyInput& input_;
  const ClusterView& view_;
  const PolicyOutput& installed_;
  std::vector<int32_t> open_from_;
  std::map<TenantKey, int64_t> guaranteed_;
  std::map<LinkId, std::map<TenantKey, int64_t>> weights_;
  IsolationCertificate certificate_;
};

}  // namespace

TenantKey KeyOfTenant(const PolicyJob& job) {
  return job.tenant < 0 ? TenantKey{-1, job.id} : TenantKey{job.tenant, -1};
}

std::string NameOf(const TenantKey& tenant) {
  return tenant.tenant < 0 ? fmt::format("job {}", tenant.job)
                           : fmt::format("tenant {}", tenant.tenant);
}

IsolationCertificate CertifyIsolation(const PolicyInput& input, const PolicyOutput& installed) {
  return Certifier(input, installed).Certify();
}

std::string ToText(const IsolationCertificate& certificate, const ClusterView& view) {
  std::string text;
  for (const TenantShare& one : certificate.tenants) {
    if (one.link.value < 0)
      text += fmt::format("{}: uses no link between hosts\n", NameOf(one.tenant));
    else
      text += fmt::format("{}: at least {} bytes/s, on link {} ({}): {} x {} / {}{}\n",
                          NameOf(one.tenant), one.share.ToString(), one.link.value,
                          view.link_name(one.link), one.capacity, one.weight, one.weights,
                          one.guaranteed > 0 ? fmt::format("; guaranteed {}", one.guaranteed) : "");
  }
  if (certificate.holds()) return text + "no link carries a class that its reservation excludes\n";
  for (const std::string& fault : certificate.faults) text += "fault: " + fault + "\n";
  return text;
}

}  // namespace tutti
