#include "tutti/graph/automorphism.h"

#include <algorithm>
#include <array>
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

// A number that nodes of one orbit share: the trace of the refinement with the node singled out.
class Fingerprints {
 public:
  Fingerprints(const Digraph& graph, const GraphColors& colors) : graph_(graph), colors_(colors) {
    base_.emplace(graph_, colors_, 0);
    base_->Refine();
  }
  int64_t work() const { return base_->work(); }
  uint64_t Of(NodeId node) {
    const size_t mark = base_->Mark();
    const uint64_t before = base_->trace();
    const int32_t cell = base_->cell_of(node);
    if (base_->NodesOf(cell).size() > 1) {
      base_->ResetTrace(static_cast<uint64_t>(cell));
      base_->Individualize(std::array{node});
      base_->Refine();
    }
    const uint64_t fingerprint = base_->trace();
    base_->Undo(mark);
    base_->ResetTrace(before);
    return fingerprint;
  }

 private:
  const Digraph& graph_;
  const GraphColors& colors_;
  std::optional<graph::Refinement> base_;
};

}  // namespace

NodeOrbits FindNodeOrbits(const Digraph& graph, const GraphColors& colors, int64_t budget) {
  NodeOrbits result;
  Forest forest(graph.num_nodes());
  graph::PairedSearch search(graph, graph, colors, colors);
  Fingerprints fingerprints(graph, colors);
  // Roots that are proven (or assumed) apart, by what can tell them apart cheaply.
  std::map<std::pair<int32_t, uint64_t>, std::vector<NodeId>> apart;
  // The first root of each cell; most cells of symmetric graphs are one orbit, found without
  // fingerprints.
  std::map<int32_t, NodeId> first_of_cell;
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
    const int32_t cell = search.cell_of(node);
    if (first_of_cell.emplace(cell, node).second) continue;
    if (search.work() + fingerprints.work() > budget) {
      result.proven = false;
      break;
    }
    const NodeId first = first_of_cell.at(cell);
    const uint64_t fingerprint = fingerprints.Of(node);
    auto& firsts = apart[{cell, fingerprints.Of(first)}];
    if (firsts.empty()) firsts.push_back(first);
    std::vector<NodeId>& roots = apart[{cell, fingerprint}];
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
