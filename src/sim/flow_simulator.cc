#include "tutti/sim/flow_simulator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/sched/routing_chunks.h"
#include "tutti/sim/fair_sharing.h"

namespace tutti {
namespace {

// Links, then what ranks send, then what they receive.
class Resources {
 public:
  Resources(const Topology& topology, ForwardingPlace forwarding)
      : topology_(topology), forwarding_(forwarding) {
    for (const LinkId link : topology.Links())
      capacity_.push_back(static_cast<double>(topology.bandwidth(link)));
    for (int side = 0; side < 2; ++side)
      for (const NodeId rank : topology.Ranks())
        capacity_.push_back(topology.host_bandwidth(rank)
                                ? static_cast<double>(*topology.host_bandwidth(rank))
                                : std::numeric_limits<double>::infinity());
  }

  size_t size() const { return capacity_.size(); }
  double capacity(size_t resource) const { return capacity_[resource]; }

  template <class Visit>  // (resource)
  void ForPath(std::span<const LinkId> hops, const Visit& visit) const {
    for (const LinkId link : hops) visit(link.index());
    if (!topology_.has_host_limits()) return;
    for (const LinkId link : hops) {
      const NodeId tail = topology_.tail(link);
      const NodeId head = topology_.head(link);
      const bool all = forwarding_ == ForwardingPlace::kHost;
      if (topology_.is_rank(tail) && (all || link == hops.front())) visit(Sends(tail));
      if (topology_.is_rank(head) && (all || link == hops.back())) visit(Receives(head));
    }
  }

 private:
  size_t Links() const { return static_cast<size_t>(topology_.num_links()); }
  size_t Sends(NodeId rank) const { return Links() + rank.index(); }
  size_t Receives(NodeId rank) const {
    return Links() + static_cast<size_t>(topology_.num_ranks()) + rank.index();
  }

  const Topology& topology_;
  ForwardingPlace forwarding_;
  std::vector<double> capacity_;
};

// Every path is a user that takes its chunks' share of what it passes.
FairSharing SharingOf(const Resources& resources, const Routing& routing) {
  std::vector<double> capacity;
  for (size_t i = 0; i < resources.size(); ++i) capacity.push_back(resources.capacity(i));
  FairSharing sharing(std::move(capacity));
  std::vector<ResourceUse> uses;
  for (size_t path = 0; path < static_cast<size_t>(routing.num_paths()); ++path) {
    uses.clear();
    resources.ForPath(routing.Hops(PathId{static_cast<int32_t>(path)}), [&](size_t resource) {
      uses.push_back({static_cast<int32_t>(resource), static_cast<double>(routing.weight[path])});
    });
    sharing.Add(uses);
  }
  return sharing;
}

double LongestAlpha(const Topology& topology, std::span<const LinkId> hops) {
  int64_t alpha_ps = 0;
  for (const LinkId link : hops) alpha_ps += topology.alpha_ps(link);
  return static_cast<double>(alpha_ps) * 1e-12;
}

}  // namespace

Result<FlowSimReport> SimulateRouting(const Topology& topology, const Routing& wanted,
                                      const FlowSimOptions& options) {
  if (options.size_bytes < 1) return InvalidArgument("the size must be at least 1 byte");
  if (wanted.topology_fingerprint != topology.Fingerprint())
    return InvalidArgument("the routing was made for another network than " + topology.name());
  const Result<Collective> collective = CollectiveOf(wanted);
  if (!collective) return tl::unexpected(collective.error());
  Routing routing = wanted;
  DivideByCommonFactor(routing);

  FlowSimReport report;
  report.link_bytes.resize(static_cast<size_t>(topology.num_links()));
  const double chunk_bytes = static_cast<double>(options.size_bytes) /
                             static_cast<double>(collective->weight_of_size()) /
                             static_cast<double>(routing.units_per_demand);
  const Resources resources(topology, options.forwarding);
  std::vector<double> resource_bytes(resources.size());
  const auto paths = static_cast<size_t>(routing.num_paths());
  const auto hops_of = [&](size_t path) {
    return routing.Hops(PathId{static_cast<int32_t>(path)});
  };
  for (size_t path = 0; path < paths; ++path)
    resources.ForPath(hops_of(path), [&](size_t resource) {
      resource_bytes[resource] += chunk_bytes * static_cast<double>(routing.weight[path]);
    });
  for (size_t resource = 0; resource < resources.size(); ++resource)
    report.bound_s =
        std::max(report.bound_s, resource_bytes[resource] / resources.capacity(resource));
  std::copy_n(resource_bytes.begin(), report.link_bytes.size(), report.link_bytes.begin());

  FairSharing sharing = SharingOf(resources, routing);
  std::vector<double> left(paths, chunk_bytes);
  std::vector<size_t> alive(paths);
  for (size_t path = 0; path < paths; ++path) alive[path] = path;
  while (!alive.empty()) {
    if (CancelRequested()) return MakeError(ErrorCode::kCancelled, "interrupted");
    sharing.Update();
    ++report.events;
    double step_s = std::numeric_limits<double>::infinity();
    for (const size_t path : alive)
      step_s = std::min(step_s, left[path] / sharing.rate(static_cast<int32_t>(path)));
    report.busy_s += step_s;
    std::erase_if(alive, [&](size_t path) {
      left[path] -= sharing.rate(static_cast<int32_t>(path)) * step_s;
      if (left[path] > chunk_bytes * 1e-9) return false;
      sharing.Remove(static_cast<int32_t>(path));
      report.time_s =
          std::max(report.time_s, report.busy_s + LongestAlpha(topology, hops_of(path)));
      return true;
    });
  }
  if (report.time_s > 0) {
    report.algbw = static_cast<double>(options.size_bytes) / report.time_s;
    report.busbw = report.algbw * collective->BusFactor().ToDouble();
  }
  return report;
}

}  // namespace tutti
