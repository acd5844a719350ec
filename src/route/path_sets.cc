#include "path_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

// The paths of one source, pair after pair.
struct Listed {
  std::vector<int32_t> paths_to;  // number of paths to each rank
  std::vector<int32_t> num_hops;  // of a path
  std::vector<LinkId> hops;
};

// Finds the paths of the pairs of one source. One a thread.
class Lister {
 public:
  virtual ~Lister() = default;
  virtual void Start(NodeId source) = 0;
  // Appends `paths_limit` paths to `destination`, stops where `max_hops` in all are exceeded.
  virtual void List(NodeId destination, size_t paths_limit, size_t max_hops, Listed& out) = 0;
};

void AppendPath(const std::vector<LinkId>& hops, Listed& out) {
  out.hops.insert(out.hops.end(), hops.begin(), hops.end());
  out.num_hops.push_back(static_cast<int32_t>(hops.size()));
}

// All paths of at most `extra` hops more than the fewest, the shorter first, by depth-first search
// that never leaves the paths that can still arrive in time.
class BoundedLister : public Lister {
 public:
  BoundedLister(const Topology& topology, const std::vector<std::vector<int32_t>>& distance_to,
                int32_t extra)
      : topology_(topology),
        distance_to_(distance_to),
        extra_(extra),
        on_path_(static_cast<size_t>(topology.num_nodes()), false) {}

  void Start(NodeId source) override { source_ = source; }

  void List(NodeId destination, size_t paths_limit, size_t max_hops, Listed& out) override {
    max_paths_ = paths_limit;
    const int32_t fewest = distance_to_[destination.index()][source_.index()];
    if (fewest == kUnreachable) return;
    const int32_t most = std::min(fewest + extra_, topology_.num_nodes() - 1);
    for (int32_t hops = fewest; hops <= most && out.hops.size() <= max_hops && max_paths_ > 0;
         ++hops)
      ListOfLength(destination, hops, max_hops, out);
  }

 private:
  void ListOfLength(NodeId destination, int32_t length, size_t max_hops, Listed& out) {
    const std::vector<int32_t>& distance = distance_to_[destination.index()];
    hops_.clear();
    cursor_.assign(1, 0);
    on_path_[source_.index()] = true;
    NodeId at = source_;
    for (;;) {
      const IdRange<LinkId> links = topology_.OutLinks(at);
      const auto hops = static_cast<int32_t>(hops_.size());
      if (at != destination && cursor_.back() < links.size() && out.hops.size() <= max_hops &&
          max_paths_ > 0) {
        const LinkId link = links[cursor_.back()++];
        const NodeId head = topology_.head(link);
        const int32_t rest = distance[head.index()];
        if (on_path_[head.index()] || rest == kUnreachable || hops + 1 + rest > length) continue;
        hops_.push_back(link);
        cursor_.push_back(0);
        on_path_[head.index()] = true;
        at = head;
        continue;
      }
      if (at == destination && hops == length) {
        AppendPath(hops_, out);
        --max_paths_;
      }
      on_path_[at.index()] = false;
      cursor_.pop_back();
      if (hops_.empty()) return;
      at = topology_.tail(hops_.back());
      hops_.pop_back();
    }
  }

  const Topology& topology_;
  const std::vector<std::vector<int32_t>>& distance_to_;  // [destination][node]
  int32_t extra_;
  size_t max_paths_ = 0;  // that are still to be listed
  NodeId source_{0};
  std::vector<bool> on_path_;
  std::vector<LinkId> hops_;
  std::vector<int32_t> cursor_;  // of each node on the path: the next of its out-links
};

// As many link-disjoint paths as there are, of the fewest hops in total: shortest augmenting paths,
// searched from the destination back to the source. Hops from it are the first potentials, so that
// a search looks at little more than the nodes of the path that it finds. (Searched the other way
// the sets of genkautz(4,30 .. 150) carry up to 2 % less: detours then lie near the source.)
class DisjointLister : public Lister {
 public:
  explicit DisjointLister(const Topology& topology)
      : topology_(topology),
        used_(static_cast<size_t>(topology.num_links()), false),
        state_(static_cast<size_t>(topology.num_nodes())) {}

  void Start(NodeId source) override {
    source_ = source;
    hops_from_source_ = DistancesFrom(topology_.graph(), source);
  }

  void List(NodeId destination, size_t paths_limit, size_t /*max_hops*/, Listed& out) override {
    if (hops_from_source_[destination.index()] == kUnreachable) return;
    ++pair_;
    flow_.clear();
    // No more paths leave the source, or arrive, than there are links.
    size_t most = std::min({static_cast<size_t>(topology_.OutLinks(source_).size()),
                            topology_.InLinks(destination).size(), paths_limit});
    while (most > 0 && Search(destination)) {
      Augment(destination);
      --most;
    }
    Decompose(destination, out);
    for (const LinkId link : flow_) used_[link.index()] = false;
  }

 private:
  struct NodeState {
    int64_t pair = 0;       // to which `potential` belongs
    int64_t search = 0;     // to which the rest belongs
    int32_t potential = 0;  // less what it is at first
    int32_t distance = 0;
    bool settled = false;
    LinkId came_by{-1};
  };

  int32_t Potential(NodeId node) const {
    const NodeState& state = state_[node.index()];
    return (state.pair == pair_ ? state.potential : 0) - hops_from_source_[node.index()];
  }

  // Shortest distances back from the destination in links that cost 1 + the potential of the head -
  // that of the tail, >= 0; links with flow lead the other way and cost the opposite. Ends once the
  // source is settled.
  bool Search(NodeId destination) {
    ++search_;
    for (std::vector<NodeId>& bucket : buckets_) bucket.clear();
    settled_.clear();
    Reach(destination, 0, LinkId{-1});
    for (size_t level = 0; level < buckets_.size(); ++level)
      for (size_t i = 0; i < buckets_[level].size(); ++i) {
        const NodeId at = buckets_[level][i];
        NodeState& state = state_[at.index()];
        if (state.settled) continue;
        state.settled = true;
        settled_.push_back(at);
        const auto distance = static_cast<int32_t>(level);
        if (at == source_) return Finish(distance);
        const int32_t potential = Potential(at);
        for (const LinkId link : topology_.InLinks(at)) {
          const NodeId tail = topology_.tail(link);
          if (!used_[link.index()] && hops_from_source_[tail.index()] != kUnreachable)
            Reach(tail, distance + 1 + potential - Potential(tail), link);
        }
        for (const LinkId link : topology_.OutLinks(at))
          if (used_[link.index()])
            Reach(topology_.head(link), distance - 1 + potential - Potential(topology_.head(link)),
                  link);
      }
    return false;
  }

  void Reach(NodeId node, int32_t distance, LinkId link) {
    NodeState& state = state_[node.index()];
    if (state.search == search_ && state.distance <= distance) return;
    if (state.search != search_) state.settled = false;
    state.search = search_;
    state.distance = distance;
    state.came_by = link;
    if (buckets_.size() <= static_cast<size_t>(distance))
      buckets_.resize(static_cast<size_t>(distance) + 1);
    buckets_[static_cast<size_t>(distance)].push_back(node);
  }
  // Potentials grow by the distance, by that of the source where it is larger; less that of the
  // source, which is the same for all, only settled nodes change.
  bool Finish(int32_t distance) {
    for (const NodeId node : settled_) {
      NodeState& state = state_[node.index()];
      if (state.pair != pair_) state.potential = 0;
      state.pair = pair_;
      state.potential += state.distance - distance;
    }
    return true;
  }

  void Augment(NodeId destination) {
    for (NodeId at = source_; at != destination;) {
      const LinkId link = state_[at.index()].came_by;
      if (topology_.tail(link) == at) {
        used_[link.index()] = true;
        flow_.push_back(link);
        at = topology_.head(link);
      } else {
        used_[link.index()] = false;
        flow_.erase(std::find(flow_.begin(), flow_.end(), link));
        at = topology_.tail(link);
      }
    }
  }

  // The flow has no cycle, for it has the fewest hops: every walk along it is a path.
  void Decompose(NodeId destination, Listed& out) {
    paths_.clear();
    for (const LinkId first : topology_.OutLinks(source_)) {
      if (!used_[first.index()]) continue;
      std::vector<LinkId>& hops = paths_.emplace_back(1, first);
      used_[first.index()] = false;
      while (topology_.head(hops.back()) != destination)
        for (const LinkId link : topology_.OutLinks(topology_.head(hops.back())))
          if (used_[link.index()]) {
            used_[link.index()] = false;
            hops.push_back(link);
            break;
          }
    }
    std::stable_sort(paths_.begin(), paths_.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (const std::vector<LinkId>& hops : paths_) AppendPath(hops, out);
  }

  const Topology& topology_;
  NodeId source_{0};
  std::vector<int32_t> hops_from_source_;
  std::vector<bool> used_;    // of a link: carries a path
  std::vector<LinkId> flow_;  // the used links
  int64_t pair_ = 0, search_ = 0;
  std::vector<NodeState> state_;
  std::vector<std::vector<NodeId>> buckets_;  // by distance
  std::vector<NodeId> settled_;
  std::vector<std::vector<LinkId>> paths_;
};

std::string SetText(PathSet set, int32_t extra_hops) {
  switch (set) {
    case PathSet::kDisjoint:
      return "link-disjoint paths";
    case PathSet::kShortest:
      return "shortest paths";
    case PathSet::kBounded:
      break;
  }
  return fmt::format("paths of at most {} hops more than the shortest", extra_hops);
}

}  // namespace

Result<Routing> ListPaths(const Topology& topology, const DemandTable& demand, PathSet set,
                          int32_t extra_hops, const Deadline& deadline) {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  const auto ranks = static_cast<size_t>(topology.num_ranks());
  std::vector<std::vector<int32_t>> distance_to;
  if (set != PathSet::kDisjoint)
    for (const NodeId destination : topology.Ranks())
      distance_to.push_back(DistancesTo(topology.graph(), destination));
  // Both the lists and the routing made from them.
  const auto max_hops = static_cast<size_t>(AvailableMemoryBytes()) / (4 * sizeof(LinkId));
  std::vector<Listed> listed(ranks);
  std::atomic<size_t> all_hops = 0;
  ParallelFor(topology.num_ranks(), 1, [&](int64_t begin, int64_t end) {
    std::unique_ptr<Lister> lister;
    if (set == PathSet::kDisjoint)
      lister = std::make_unique<DisjointLister>(topology);
    else
      lister = std::make_unique<BoundedLister>(topology, distance_to,
                                               set == PathSet::kShortest ? 0 : extra_hops);
    for (int64_t s = begin; s < end; ++s) {
      const NodeId source{static_cast<int32_t>(s)};
      Listed& out = listed[source.index()];
      lister->Start(source);
      for (const NodeId destination : topology.Ranks()) {
        const size_t before = out.num_hops.size();
        if (CancelRequested() || all_hops + out.hops.size() > max_hops) break;
        if (demand(source.value, destination.value) > 0)
          lister->List(destination, deadline.HasPassed() ? 1 : kAll, max_hops, out);
        out.paths_to.push_back(static_cast<int32_t>(out.num_hops.size() - before));
      }
      all_hops += out.hops.size();
    }
  });
  if (CancelRequested()) return tl::unexpected(CancelledError());
  size_t num_paths = 0;
  for (const Listed& paths : listed) num_paths += paths.num_hops.size();
  if (all_hops > max_hops || num_paths > std::numeric_limits<int32_t>::max())
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("'{}' has more {} than memory holds; mcf-extp needs no list",
                                 topology.name(), SetText(set, extra_hops)));

  RoutingBuilder builder(topology.num_ranks(), 1);
  for (const NodeId source : topology.Ranks()) {
    Listed& paths = listed[source.index()];
    size_t path = 0, hop = 0;
    for (const NodeId destination : topology.Ranks()) {
      const int32_t count = paths.paths_to[destination.index()];
      if (count == 0 && demand(source.value, destination.value) > 0)
        return MakeError(ErrorCode::kInfeasible,
                         fmt::format("no way leads from rank {} to rank {}",
                                     topology.node_name(source), topology.node_name(destination)));
      for (int32_t i = 0; i < count; ++i) {
        const auto hops = static_cast<size_t>(paths.num_hops[path++]);
        builder.AddPath(std::span(paths.hops).subspan(hop, hops), 1);
        hop += hops;
      }
      builder.EndPair();
    }
    paths = {};
  }
  return std::move(builder).Finish();
}

}  // namespace tutti
