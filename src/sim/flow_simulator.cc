#include "tutti/sim/flow_simulator.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/sched/routing_chunks.h"

namespace tutti {
namespace {

// Times closer than this to each other are one event, and rates one level: what rounding leaves.
constexpr double kSame = 1e-12;

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

class FairSharing {
 public:
  FairSharing(const Resources& resources, const Routing& routing)
      : resources_(resources), routing_(routing) {
    const auto paths = static_cast<size_t>(routing.num_paths());
    rate_.resize(paths);
    std::vector<int32_t> users(resources.size() + 1);
    ForPaths([&](size_t, size_t resource) { ++users[resource + 1]; });
    first_.assign(users.begin(), users.end());
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    path_.resize(static_cast<size_t>(first_.back()));
    std::vector<int64_t> next(first_.begin(), first_.end() - 1);
    ForPaths([&](size_t path, size_t resource) {
      path_[static_cast<size_t>(next[resource]++)] = static_cast<int32_t>(path);
    });
    alive_.assign(paths, true);
    left_.resize(resources.size());
    chunks_.resize(resources.size());
    open_paths_.resize(resources.size());
  }

  void End(size_t path) { alive_[path] = false; }

  // The rate of one chunk of each path that has not ended [bytes/s].
  const std::vector<double>& Rates() {
    for (size_t resource = 0; resource < resources_.size(); ++resource) {
      left_[resource] = resources_.capacity(resource);
      chunks_[resource] = 0;
      open_paths_[resource] = 0;
    }
    open_ = alive_;
    for (size_t path = 0; path < alive_.size(); ++path)
      if (alive_[path])
        resources_.ForPath(Hops(path), [&](size_t resource) {
          chunks_[resource] += Chunks(path);
          ++open_paths_[resource];
        });
    // The level at which a resource is full only rises when chunks are settled below it, so an old
    // entry of the queue is at most too low and is put back.
    using Entry = std::pair<double, size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> full;
    for (size_t resource = 0; resource < resources_.size(); ++resource)
      if (open_paths_[resource] > 0) full.emplace(LevelOf(resource), resource);
    while (!full.empty()) {
      const auto [level, resource] = full.top();
      full.pop();
      if (open_paths_[resource] == 0) continue;
      const double now = LevelOf(resource);
      if (now > level * (1 + kSame)) {
        full.emplace(now, resource);
        continue;
      }
      Settle(resource, now);
    }
    return rate_;
  }

 private:
  std::span<const LinkId> Hops(size_t path) const {
    return routing_.Hops(PathId{static_cast<int32_t>(path)});
  }
  double Chunks(size_t path) const { return static_cast<double>(routing_.weight[path]); }
  double LevelOf(size_t resource) const {
    return std::max(left_[resource], 0.0) / chunks_[resource];
  }

  template <class Visit>  // (path, resource)
  void ForPaths(const Visit& visit) const {
    for (size_t path = 0; path < rate_.size(); ++path)
      resources_.ForPath(Hops(path), [&](size_t resource) { visit(path, resource); });
  }

  void Settle(size_t resource, double level) {
    for (int64_t i = first_[resource]; i < first_[resource + 1]; ++i) {
      const auto path = static_cast<size_t>(path_[static_cast<size_t>(i)]);
      if (!open_[path]) continue;
      open_[path] = false;
      rate_[path] = level;
      resources_.ForPath(Hops(path), [&](size_t used) {
        left_[used] -= level * Chunks(path);
        chunks_[used] -= Chunks(path);
        --open_paths_[used];
      });
    }
  }

  const Resources& resources_;
  const Routing& routing_;
  std::vector<int64_t> first_;  // paths of a resource: path_[first_[r], first_[r + 1])
  std::vector<int32_t> path_;
  std::vector<int32_t> open_paths_;
  std::vector<bool> alive_, open_;
  std::vector<double> rate_, left_, chunks_;
};

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
  Routing routing = wanted;
  DivideByCommonFactor(routing);

  FlowSimReport report;
  report.link_bytes.resize(static_cast<size_t>(topology.num_links()));
  const double ranks = topology.num_ranks();
  const double pair_bytes = static_cast<double>(options.size_bytes) / ranks;
  const double chunk_bytes =
      pair_bytes / (MeanDemand(routing).ToDouble() * static_cast<double>(routing.units_per_demand));
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

  FairSharing sharing(resources, routing);
  std::vector<double> left(paths, chunk_bytes);
  std::vector<size_t> alive(paths);
  for (size_t path = 0; path < paths; ++path) alive[path] = path;
  while (!alive.empty()) {
    if (CancelRequested()) return MakeError(ErrorCode::kCancelled, "interrupted");
    const std::vector<double>& rate = sharing.Rates();
    ++report.events;
    double step_s = std::numeric_limits<double>::infinity();
    for (const size_t path : alive) step_s = std::min(step_s, left[path] / rate[path]);
    report.busy_s += step_s;
    std::erase_if(alive, [&](size_t path) {
      left[path] -= rate[path] * step_s;
      if (left[path] > chunk_bytes * 1e-9) return false;
      sharing.End(path);
      report.time_s =
          std::max(report.time_s, report.busy_s + LongestAlpha(topology, hops_of(path)));
      return true;
    });
  }
  if (report.time_s > 0) {
    report.algbw = static_cast<double>(options.size_bytes) / report.time_s;
    report.busbw = report.algbw * (ranks - 1) / ranks;
  }
  return report;
}

}  // namespace tutti
