// Isomorphisms between two directed multigraphs whose nodes and links may have colours.
//
// Model       An isomorphism maps nodes to nodes and links to links, one to one, keeps the ends of
//             every link, and keeps colours. Parallel links are distinguished by colour only.
// Method      Colour refinement of both graphs at once; where that leaves nodes alike, one node of
//             the first is tried with every node of its class in the second (individualization and
//             refinement). What is found is checked link by link before it is returned, so hash
//             collisions in the refinement cost time, never truth: equal things are never split.
// Complexity  One refinement O(m log n). On vertex-transitive networks about as many as it takes to
//             pin a node down; exponential on adversarial graphs, hence the budget.
// Determinism Same input, same answer; the budget counts links looked at, not seconds.
// Reference   [direct-connect] Definitions 6 and 7 (reverse-symmetry); [McKay, Piperno 2014]
//             "Practical graph isomorphism, II".
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/graph/digraph.h"

namespace tutti {

// One number a node and one a link; an empty list: all alike.
struct GraphColors {
  std::vector<uint64_t> nodes, links;
};

struct Isomorphism {
  std::vector<NodeId> node_map;  // [f] node v of the first graph becomes node_map[v]
  std::vector<LinkId> link_map;  // link l becomes link_map[l]
};

inline constexpr int64_t kIsomorphismBudget = 400'000'000;  // links looked at: a few seconds

struct IsomorphismSearch {
  enum class Outcome {
    kFound,
    kNone,    // proven: there is none
    kGaveUp,  // the budget ended first
  };
  Outcome outcome = Outcome::kNone;
  Isomorphism isomorphism;  // when found
  int64_t work = 0;         // links looked at
};

IsomorphismSearch FindIsomorphism(const Digraph& from, const Digraph& to,
                                  const GraphColors& from_colors = {},
                                  const GraphColors& to_colors = {},
                                  int64_t budget = kIsomorphismBudget);

// Whether `candidate` is an isomorphism, link by link. O(n + m).
bool IsIsomorphism(const Digraph& from, const Digraph& to, const Isomorphism& candidate,
                   const GraphColors& from_colors = {}, const GraphColors& to_colors = {});

}  // namespace tutti
