// LASH [Skeie, Lysne, Theiss 2002]: each pair of ranks, in order, gets the first layer that its
// paths close no cycle in. LASH-sequential, which [alltoall-mcf] names and does not define, is here
// the same path by path: the paths of a pair may lie in different layers. Both take the shortest
// first: a path of few links brings few dependencies, and a long one refused late costs no other.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "layers/acyclic_dependencies.h"
#include "layers/registry.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

constexpr size_t kBetweenLashChecks = 4096;

// Paths that must share a layer: [first, last).
struct Group {
  int32_t first, last;
};

int64_t HopsOf(const Routing& routing, const Group& group) {
  return routing.first_hop[static_cast<size_t>(group.last)] -
         routing.first_hop[static_cast<size_t>(group.first)];
}

Status AssignGroups(const Topology& topology, std::vector<Group> groups, Routing& routing) {
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return HopsOf(routing, a) < HopsOf(routing, b);
  });
  std::vector<std::unique_ptr<AcyclicDependencies>> layers;
  std::vector<int16_t> layer_of(static_cast<size_t>(routing.num_paths()));
  std::vector<std::span<const LinkId>> paths;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i % kBetweenLashChecks == 0 && CancelRequested())
      return MakeError(ErrorCode::kCancelled, "interrupted");
    paths.clear();
    for (const PathId path : IdRange<PathId>(groups[i].first, groups[i].last))
      paths.push_back(routing.Hops(path));
    size_t layer = 0;
    while (layer < layers.size() && !layers[layer]->Admit(paths)) ++layer;
    if (layer == layers.size()) {
      if (layer == static_cast<size_t>(kMaxRoutingLayers))
        return MakeError(ErrorCode::kInfeasible, "needs more layers than can be counted");
      layers.push_back(std::make_unique<AcyclicDependencies>(topology.graph()));
      if (!layers.back()->Admit(paths))
        return MakeError(ErrorCode::kInfeasible,
                         "the paths of one pair of ranks close a cycle among themselves: lash "
                         "gives a pair one layer, lash-sequential does not");
    }
    for (int32_t path = groups[i].first; path < groups[i].last; ++path)
      layer_of[static_cast<size_t>(path)] = static_cast<int16_t>(layer);
  }
  routing.layer = std::move(layer_of);
  routing.num_layers = static_cast<int32_t>(layers.size());
  return {};
}

Status AssignLash(const Topology& topology, Routing& routing) {
  std::vector<Group> groups;
  for (size_t pair = 0; pair + 1 < routing.first_path.size(); ++pair)
    if (routing.first_path[pair] < routing.first_path[pair + 1])
      groups.push_back({static_cast<int32_t>(routing.first_path[pair]),
                        static_cast<int32_t>(routing.first_path[pair + 1])});
  return AssignGroups(topology, std::move(groups), routing);
}

Status AssignLashSequential(const Topology& topology, Routing& routing) {
  std::vector<Group> groups;
  for (int32_t path = 0; path < routing.num_paths(); ++path) groups.push_back({path, path + 1});
  return AssignGroups(topology, std::move(groups), routing);
}

}  // namespace

Layering LashLayering() {
  return {"lash", "each pair of ranks in the first layer where it closes no cycle", AssignLash};
}

Layering LashSequentialLayering() {
  return {"lash-sequential", "each path in the first layer where it closes no cycle",
          AssignLashSequential};
}

}  // namespace tutti
