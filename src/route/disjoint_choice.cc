#include "disjoint_choice.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "path_weights.h"

namespace tutti {
namespace {

bool Same(std::span<const LinkId> a, std::span<const LinkId> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool HasPath(const Routing& routing, IdRange<PathId> paths, std::span<const LinkId> hops) {
  for (const PathId path : paths)
    if (Same(routing.Hops(path), hops)) return true;
  return false;
}

template <class Visit>
void ForEachPair(int32_t num_ranks, const Visit& visit) {
  for (int32_t source = 0; source < num_ranks; ++source)
    for (int32_t to = 0; to < num_ranks; ++to) visit(NodeId{source}, NodeId{to});
}

// Thins out one pool, round after round.
class Chooser {
 public:
  explicit Chooser(const Topology& topology)
      : taken_(static_cast<size_t>(topology.num_links()), -1) {}

  // Keeps for each pair its `count` best paths that do not cross, by weights in `split` (which
  // holds those of the pool's paths that carry something), and of the others those that cross none
  // of them. True where paths that cross are left.
  bool Thin(Routing& pool, const Routing& split, size_t count) {
    bool any_cross = false;
    RoutingBuilder builder(pool.num_ranks, 1);
    ForEachPair(pool.num_ranks, [&](NodeId source, NodeId to) {
      Rank(pool, pool.Paths(source, to), split, split.Paths(source, to));
      ++pair_;
      size_t chosen = 0;
      for (const auto& [weight, path] : ranked_) {
        const std::span<const LinkId> hops = pool.Hops(path);
        if (!IsFree(hops)) continue;
        builder.AddPath(hops, 1);
        if (chosen < count) {
          ++chosen;
          Take(hops);
        } else {
          rest_.push_back(path);
        }
      }
      builder.EndPair();
      for (const PathId path : rest_) {
        any_cross = any_cross || !IsFree(pool.Hops(path));
        Take(pool.Hops(path));
      }
    });
    pool = std::move(builder).Finish();
    return any_cross;
  }

 private:
  // The heaviest first; of equals the shorter, then the one before.
  void Rank(const Routing& pool, IdRange<PathId> paths, const Routing& split,
            IdRange<PathId> weighed) {
    ranked_.clear();
    rest_.clear();
    int32_t at = 0;
    for (const PathId path : paths) {
      int64_t weight = 0;
      if (at < weighed.size() && Same(pool.Hops(path), split.Hops(weighed[at])))
        weight = split.weight[weighed[at++].index()];
      ranked_.emplace_back(weight, path);
    }
    std::stable_sort(ranked_.begin(), ranked_.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first
                                : pool.Hops(a.second).size() < pool.Hops(b.second).size();
    });
  }
  bool IsFree(std::span<const LinkId> hops) const {
    return std::none_of(hops.begin(), hops.end(),
                        [this](LinkId link) { return taken_[link.index()] == pair_; });
  }
  void Take(std::span<const LinkId> hops) {
    for (const LinkId link : hops) taken_[link.index()] = pair_;
  }

  std::vector<int64_t> taken_;  // of a link: the last pair of which a path took it
  int64_t pair_ = 0;
  std::vector<std::pair<int64_t, PathId>> ranked_;
  std::vector<PathId> rest_;  // of the pair: kept, but not chosen yet
};

}  // namespace

Routing MergePaths(const Routing& a, const Routing& b) {
  RoutingBuilder builder(a.num_ranks, 1);
  ForEachPair(a.num_ranks, [&](NodeId source, NodeId to) {
    const IdRange<PathId> first = a.Paths(source, to);
    for (const PathId path : first) builder.AddPath(a.Hops(path), 1);
    for (const PathId path : b.Paths(source, to))
      if (!HasPath(a, first, b.Hops(path))) builder.AddPath(b.Hops(path), 1);
    builder.EndPair();
  });
  return std::move(builder).Finish();
}

Result<Routing> ChooseDisjoint(const Topology& topology, const DemandTable& demand, Routing pool,
                               double gap, const Deadline& deadline) {
  Chooser chooser(topology);
  for (size_t count = 1;; ++count) {
    PathWeightOptions options;
    options.gap = gap;
    options.max_seconds = deadline.Left();
    const Result<WeightedPaths> split = WeighPaths(topology, demand, pool, options);
    if (!split) return tl::unexpected(split.error());
    const size_t now = deadline.HasPassed() ? std::numeric_limits<size_t>::max() : count;
    if (!chooser.Thin(pool, split->routing, now)) return pool;
  }
}

}  // namespace tutti
