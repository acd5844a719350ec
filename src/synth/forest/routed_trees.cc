#include "forest/routed_trees.h"

#include <algorithm>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::forest {
namespace {

// Comes back to no node: what goes round a circle is left out.
std::vector<LinkId> WithoutCircles(const Topology& topology, const std::vector<LinkId>& links) {
  std::vector<LinkId> plain;
  for (const LinkId link : links) {
    const NodeId head = topology.head(link);
    const auto again = std::find_if(plain.begin(), plain.end(),
                                    [&](LinkId before) { return topology.tail(before) == head; });
    if (again != plain.end()) {
      plain.erase(again, plain.end());
    } else {
      plain.push_back(link);
    }
  }
  return plain;
}

// A path for the next `copies` of a tree, as many as it serves.
struct Stretch {
  int64_t end;
  std::vector<LinkId> links;
};

std::vector<Stretch> TakePaths(Lane& lane, int64_t copies) {
  std::vector<Stretch> stretches;
  for (int64_t taken = 0; taken < copies;) {
    TUTTI_CHECK(!lane.paths.empty());
    // One path for all where there is one.
    const auto whole =
        std::find_if(lane.paths.begin(), lane.paths.end(),
                     [&](const LanePath& path) { return path.trees >= copies - taken; });
    const auto path = whole != lane.paths.end() ? whole : std::prev(lane.paths.end());
    const int64_t amount = std::min(path->trees, copies - taken);
    taken += amount;
    stretches.push_back({taken, path->links});
    if ((path->trees -= amount) == 0) lane.paths.erase(path);
  }
  return stretches;
}

}  // namespace

std::vector<RoutedTree> RouteTrees(const Topology& topology, TreeNetwork network,
                                   const std::vector<PackedTree>& packed) {
  std::vector<int64_t> next(static_cast<size_t>(network.num_ranks), 0);
  std::vector<RoutedTree> routed;
  for (const PackedTree& tree : packed) {
    std::vector<std::vector<Stretch>> paths;
    std::vector<int64_t> ends;
    for (const TreeBranch& branch : tree.branches) {
      paths.push_back(TakePaths(network.lanes.at({branch.tail, branch.head}), tree.copies));
      for (const Stretch& stretch : paths.back()) ends.push_back(stretch.end);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    int64_t begin = 0;
    for (const int64_t end : ends) {
      RoutedTree part{.root = tree.root,
                      .first = next[tree.root.index()],
                      .copies = end - begin,
                      .branches = {}};
      for (size_t b = 0; b < tree.branches.size(); ++b) {
        const auto stretch = std::find_if(paths[b].begin(), paths[b].end(),
                                          [&](const Stretch& each) { return each.end >= end; });
        part.branches.push_back({NodeId{tree.branches[b].tail}, NodeId{tree.branches[b].head},
                                 WithoutCircles(topology, stretch->links)});
      }
      next[tree.root.index()] += part.copies;
      begin = end;
      routed.push_back(std::move(part));
    }
  }
  return routed;
}

std::vector<RoutedTree> Turned(std::vector<RoutedTree> trees, const std::vector<LinkId>& link_map) {
  for (RoutedTree& tree : trees)
    for (RoutedBranch& branch : tree.branches) {
      for (LinkId& link : branch.links) link = link_map[link.index()];
      std::reverse(branch.links.begin(), branch.links.end());
    }
  return trees;
}

}  // namespace tutti::forest
