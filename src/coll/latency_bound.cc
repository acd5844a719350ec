#include "latency_bound.h"

#include <algorithm>
#include <vector>

#include "shortest_paths.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

// Distances along the traffic or, for what runs towards a root, against it.
struct Task {
  Digraph graph;
  std::vector<int64_t> alpha_ps;
};

Task MakeTask(const Topology& topology, const Collective& collective) {
  Task task;
  const bool towards_root =
      collective.kind() == Kind::kReduce || collective.kind() == Kind::kGather;
  if (towards_root) {
    std::vector<LinkId> link_map;
    task.graph = Transpose(topology.graph(), &link_map);
    for (LinkId link : link_map) task.alpha_ps.push_back(topology.alpha_ps(link));
  } else {
    task.graph = topology.graph();
    for (LinkId link : topology.Links()) task.alpha_ps.push_back(topology.alpha_ps(link));
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
                                 const std::vector<Source>& sources) {
  if (topology.num_links() == 0) return {};
  const Task task = MakeTask(topology, collective);
  const std::vector<int64_t> hops(task.alpha_ps.size(), 1);
  LatencyBound bound;
  bound.steps = static_cast<int32_t>(Farthest(task, hops, collective, sources));
  const auto [least, most] = std::minmax_element(task.alpha_ps.begin(), task.alpha_ps.end());
  // With one alpha the hops decide; saturates like ShortestPaths.
  bound.alpha_ps =
      *least == *most
          ? std::min(*least, (ShortestPaths::kFar - 1) / std::max(bound.steps, 1)) * bound.steps
          : Farthest(task, task.alpha_ps, collective, sources);
  return bound;
}

}  // namespace tutti
