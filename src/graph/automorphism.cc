#include "tutti/graph/automorphism.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "search.h"

namespace tutti {
namespace {

// Union-find whose roots are the smallest members.
class Forest {
 public:
  explicit Forest(int32_t size) : parent_(static_cast<size_t>(size)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int32_t Root(int32_t x) {
    while (parent_[static_cast<size_t>(x)] != x) {
      int32_t& parent = parent_[static_cast<size_t>(x)];
      parent = parent_[static_cast<size_t>(parent)];
      x = parent;
    }
    return x;
  }
  void Join(int32_t a, int32_t b) {
    a = Root(a);
    b = Root(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

// Numbers that nodes of one orbit share: traces of the refinement with the node singled out, ended
// ever later. Most nodes of networks without symmetry differ after a few links.
class Fingerprints {
 public:
  static constexpr std::array<int64_t, 3> kLinks{1024, 16384, std::numeric_limits<int64_t>::max()};

  Fingerprints(const Digraph& graph, const GraphColors& colors) : refinement_(graph, colors, 0) {
    refinement_.Refine();
  }
  int64_t work() const { return refinement_.work(); }
  int32_t cell_of(NodeId node) const { return refinement_.cell_of(node); }

  // Looks at about kLinks[level] links.
  uint64_t Of(NodeId node, size_t level) {
    const int32_t cell = refinement_.cell_of(node);
    if (refinement_.NodesOf(cell).size() == 1) return 0;
    const size_t mark = refinement_.Mark();
    refinement_.ResetTrace(0);
    refinement_.Individualize(std::array{node});
    refinement_.Refine(kLinks[level]);
    refinement_.Undo(mark);
    return refinement_.trace();
  }

 private:
  graph::Refinement refinement_;
};

// Nodes of different orbits, told apart by cell and then by one fingerprint after the other, each
// taken only where two nodes agree in all before it.
class ApartNodes {
 public:
  explicit ApartNodes(Fingerprints& fingerprints) : fingerprints_(fingerprints) {}

  // The nodes that may be of the orbit of `node`, which the caller adds where it is of none.
  std::vector<NodeId>& LikelyOrbitMates(NodeId node) {
    Group* group = &cells_[fingerprints_.cell_of(node)];
    for (size_t level = 0; level < Fingerprints::kLinks.size() && !group->IsEmpty(); ++level) {
      for (NodeId member : group->members)
        group->parts[fingerprints_.Of(member, level)].members.push_back(member);
      group->members.clear();
      group = &group->parts[fingerprints_.Of(node, level)];
    }
    return group->members;
  }

 private:
  struct Group {
    std::vector<NodeId> members;      // as long as there are no parts
    std::map<uint64_t, Group> parts;  // by the fingerprint of the next level
    bool IsEmpty() const { return members.empty() && parts.empty(); }
  };

  Fingerprints& fingerprints_;
  std::map<int32_t, Group> cells_;
};

}  // namespace

NodeOrbits FindNodeOrbits(const Digraph& graph, const GraphColors& colors, int64_t budget) {
  NodeOrbits result;
  Forest forest(graph.num_nodes());
  graph::PairedSearch search(graph, graph, colors, colors);
  Fingerprints fingerprints(graph, colors);
  ApartNodes apart(fingerprints);
  const auto try_to_join = [&](NodeId root, NodeId node) {
    const int64_t limit = budget - fingerprints.work();
    IsomorphismSearch found = search.Find(std::pair(root, node), limit);
    if (found.outcome == IsomorphismSearch::Outcome::kGaveUp) result.proven = false;
    if (found.outcome != IsomorphismSearch::Outcome::kFound) return false;
    for (NodeId x : graph.Nodes())
      forest.Join(x.value, found.isomorphism.node_map[x.index()].value);
    result.generators.push_back(std::move(found.isomorphism));
    return true;
  };
  for (NodeId node : graph.Nodes()) {
    if (forest.Root(node.value) != node.value) continue;
    if (search.work() + fingerprints.work() > budget) {
      result.proven = false;
      break;
    }
    std::vector<NodeId>& roots = apart.LikelyOrbitMates(node);
    bool joined = false;
    for (size_t i = 0; i < roots.size() && !joined; ++i) joined = try_to_join(roots[i], node);
    if (!joined) roots.push_back(node);
  }
  result.orbit.resize(static_cast<size_t>(graph.num_nodes()));
  for (NodeId node : graph.Nodes()) {
    const int32_t root = forest.Root(node.value);
    if (root == node.value) {
      result.orbit[node.index()] = result.num_orbits();
      result.representatives.push_back(node);
    } else {
      result.orbit[node.index()] = result.orbit[static_cast<size_t>(root)];
    }
  }
  return result;
}

Verdict IsVertexTransitive(const Digraph& graph, const GraphColors& colors, int64_t budget) {
  const NodeOrbits orbits = FindNodeOrbits(graph, colors, budget);
  if (orbits.num_orbits() <= 1) return Verdict::kYes;
  return orbits.proven ? Verdict::kNo : Verdict::kUnknown;
}

}  // namespace tutti
