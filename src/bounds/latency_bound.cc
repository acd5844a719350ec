#include "latency_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "shortest_paths.h"
#include "tutti/base/parallel.h"

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

// The largest distance from a source to a rank that needs something from it.
int64_t Farthest(const Task& task, const std::vector<int64_t>& lengths,
                 const Collective& collective, const std::vector<Source>& sources) {
  std::vector<int64_t> of_source(sources.size(), 0);
  const auto count = static_cast<int64_t>(sources.size());
  ParallelFor(count, 16, [&](int64_t begin, int64_t end) {
    ShortestPaths paths(task.graph, lengths);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const NodeId source = sources[i].rank;
      paths.Run(source);
      for (NodeId rank{0}; rank.value < collective.num_ranks(); ++rank.value) {
        const ShardId pair{source.value * collective.num_ranks() + rank.value};
        if (collective.kind() == Kind::kAllToAllV && collective.weight(pair) == 0) continue;
        of_source[i] = std::max(of_source[i], paths.distance(rank));
      }
    }
  });
  return *std::max_element(of_source.begin(), of_source.end());
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
