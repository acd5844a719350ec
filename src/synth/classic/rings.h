// Rings through all ranks of a network, for the ring algorithms.
//
// Model       A *Hamiltonian ring* follows links from rank to rank. FindRings() looks for many that
//             share no link: closed forms first (rank order and other strides, Gray code, grids),
//             then backtracking search with a budget, then a cycle cover whose cycles are joined by
//             exchanging two links. After each ring found its reverse is tried.
// Complexity  Bounded search: O(budget * degree), the budget some tens of thousands of nodes plus a
//             small multiple of N. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::classic {

struct Ring {
  std::vector<NodeId> order;  // every rank once
  // links[i] runs from order[i] to the next, cyclically; empty: neighbours need not be adjacent.
  std::vector<LinkId> links;
};

// At most `most` rings that share no link; empty when none was found.
std::vector<Ring> FindRings(const Topology& topology, int32_t most, uint64_t seed);

// A ring order that follows links as far as it is known to: a grid's lines back and forth, else
// rank order.
std::vector<NodeId> FallbackOrder(const Topology& topology);

// Hamiltonian cycle of the grid, if it is a torus or an even mesh; empty if not.
std::vector<NodeId> GridCycle(const GridShape& grid);

}  // namespace tutti::classic
