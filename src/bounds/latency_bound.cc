#include "latency_bound.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "shortest_paths.h"
#include "tutti/graph/farthest.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

// Distances along the traffic or, for what runs towards a root, against it.
struct Task {
  Digraph graph;
  std::vector<int64_t> hops, alpha_ps;  // of a link
};

Task MakeTask(const Topology& topology, const Collective& collective, Switches switches) {
  Task task;
  const auto add = [&](LinkId link) {
    const bool counts = switches == Switches::kCount || topology.is_rank(topology.head(link));
    task.hops.push_back(counts ? 1 : 0);
    task.alpha_ps.push_back(counts ? topology.alpha_ps(link) : 0);
  };
  const bool towards_root =
      collective.kind() == Kind::kReduce || collective.kind() == Kind::kGather;
  if (towards_root) {
    std::vector<LinkId> link_map;
    task.graph = Transpose(topology.graph(), &link_map);
    for (LinkId link : link_map) add(link);
  } else {
    task.graph = topology.graph();
    for (LinkId link : topology.Links()) add(link);
  }
  return task;
}

// The largest distance from a source to a rank that needs something from it; where there are very
// many unlike ranks the largest that was found, which a way must be as long as, too.
int64_t Farthest(const Task& task, const std::vector<int64_t>& lengths,
                 const Collective& collective, const std::vector<Source>& sources) {
  constexpr int64_t kMaxVisits = 2'000'000'000;  // seconds
  const bool needs_all = collective.kind() != Kind::kAllToAllV;
  const auto make_farthest_from = [&] {
    const auto paths = std::make_shared<ShortestPaths>(task.graph, lengths);
    return [&collective, needs_all, paths](NodeId source) {
      paths->Run(source);
      int64_t farthest = 0;
      for (NodeId rank{0}; rank.value < collective.num_ranks(); ++rank.value) {
        const ShardId pair{source.value * collective.num_ranks() + rank.value};
        if (needs_all || collective.weight(pair) > 0)
          farthest = std::max(farthest, paths->distance(rank));
      }
      return farthest;
    };
  };
  std::vector<LinkId> link_map;
  const Digraph transposed = Transpose(task.graph, &link_map);
  std::vector<int64_t> back_lengths;
  for (LinkId link : link_map) back_lengths.push_back(lengths[link.index()]);
  ShortestPaths back(transposed, back_lengths);
  const auto distances_to = [&](NodeId target) {
    back.Run(target);
    std::vector<int64_t> distances;
    for (NodeId node : transposed.Nodes()) distances.push_back(back.distance(node));
    return distances;
  };
  std::vector<NodeId> ranks;
  for (const Source& source : sources) ranks.push_back(source.rank);
  DistanceSearches searches{.make_farthest_from = make_farthest_from, .distances_to = {}};
  // Who needs nothing from a source may be the farthest from it, which limits nothing.
  if (needs_all) searches.distances_to = distances_to;
  const int64_t visits = int64_t{task.graph.num_nodes()} + task.graph.num_links();
  return FindFarthest(ranks, searches, kMaxVisits / visits).least;
}

}  // namespace

LatencyBound ComputeLatencyBound(const Topology& topology, const Collective& collective,
                                 const std::vector<Source>& sources, Switches switches) {
  if (topology.num_links() == 0) return {};
  const Task task = MakeTask(topology, collective, switches);
  LatencyBound bound;
  bound.steps = static_cast<int32_t>(Farthest(task, task.hops, collective, sources));
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
  for (size_t link = 0; link < task.hops.size(); ++link) {
    if (task.hops[link] == 0) continue;
    least = std::min(least, task.alpha_ps[link]);
    most = std::max(most, task.alpha_ps[link]);
  }
  bound.min_alpha_ps = least;
  // With one alpha the hops decide; saturates like ShortestPaths.
  bound.alpha_ps =
      least == most
          ? std::min(least, (ShortestPaths::kFar - 1) / std::max(bound.steps, 1)) * bound.steps
          : Farthest(task, task.alpha_ps, collective, sources);
  return bound;
}

}  // namespace tutti
