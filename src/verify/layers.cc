#include "tutti/verify/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tutti {
namespace {

struct Dependency {
  int32_t layer, before, after;
  friend auto operator<=>(const Dependency&, const Dependency&) = default;
};

std::vector<Dependency> DependenciesOf(const Routing& routing) {
  std::vector<Dependency> all;
  for (const PathId path : IdRange<PathId>(0, static_cast<int32_t>(routing.num_paths()))) {
    const std::span<const LinkId> hops = routing.Hops(path);
    for (size_t i = 1; i < hops.size(); ++i)
      all.push_back({routing.layer[path.index()], hops[i - 1].value, hops[i].value});
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string LinkText(const Topology& topology, LinkId link) {
  return fmt::format("{}->{}", topology.node_name(topology.tail(link)),
                     topology.node_name(topology.head(link)));
}

// Takes away links that depend on nothing any more until none or only cycles (and what hangs
// behind them) are left.
Status CheckLayer(const Topology& topology, std::span<const Dependency> dependencies) {
  const auto links = static_cast<size_t>(topology.num_links());
  std::vector<int32_t> waits_for(links);
  std::vector<int32_t> first(links + 1);
  for (const Dependency& dependency : dependencies) {
    ++waits_for[static_cast<size_t>(dependency.after)];
    ++first[static_cast<size_t>(dependency.before) + 1];
  }
  for (size_t i = 0; i < links; ++i) first[i + 1] += first[i];
  std::vector<int32_t> free;
  for (size_t i = 0; i < links; ++i)
    if (waits_for[i] == 0) free.push_back(static_cast<int32_t>(i));
  size_t settled = 0;
  while (!free.empty()) {
    const auto link = static_cast<size_t>(free.back());
    free.pop_back();
    ++settled;
    for (int32_t i = first[link]; i < first[link + 1]; ++i) {
      const int32_t after = dependencies[static_cast<size_t>(i)].after;
      if (--waits_for[static_cast<size_t>(after)] == 0) free.push_back(after);
    }
  }
  if (settled == links) return {};

  // Every link left waits for another one left: going back from one of them meets a cycle.
  std::vector<int32_t> waiting_for(links, -1);
  for (const Dependency& dependency : dependencies)
    if (waits_for[static_cast<size_t>(dependency.before)] > 0)
      waiting_for[static_cast<size_t>(dependency.after)] = dependency.before;
  size_t link = 0;
  while (waits_for[link] == 0) ++link;
  std::vector<bool> seen(links);
  while (!seen[link]) {
    seen[link] = true;
    link = static_cast<size_t>(waiting_for[link]);
  }
  std::string cycle = LinkText(topology, LinkId{static_cast<int32_t>(link)});
  for (auto on = static_cast<size_t>(waiting_for[link]);;
       on = static_cast<size_t>(waiting_for[on])) {
    cycle = LinkText(topology, LinkId{static_cast<int32_t>(on)}) + ", " + cycle;
    if (on == link) break;
  }
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("layer {}: packets can wait for each other in a circle of links: {}",
                               dependencies.front().layer, cycle));
}

}  // namespace

Status CheckLayers(const Topology& topology, const Routing& routing) {
  if (routing.layer.size() != static_cast<size_t>(routing.num_paths()))
    return InvalidArgument(
        fmt::format("{} paths have {} layers", routing.num_paths(), routing.layer.size()));
  for (size_t i = 0; i < routing.layer.size(); ++i)
    if (routing.layer[i] < 0 || routing.layer[i] >= routing.num_layers)
      return InvalidArgument(
          fmt::format("path {} is in layer {} of {}", i, routing.layer[i], routing.num_layers));
  const std::vector<Dependency> all = DependenciesOf(routing);
  for (size_t begin = 0, end; begin < all.size(); begin = end) {
    end = begin;
    while (end < all.size() && all[end].layer == all[begin].layer) ++end;
    if (const Status acyclic = CheckLayer(topology, std::span(all).subspan(begin, end - begin));
        !acyclic)
      return acyclic;
  }
  return {};
}

}  // namespace tutti
