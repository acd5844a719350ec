// Translations: a group of symmetries in which exactly one takes rank 0 to each rank, as the shifts
// of a torus do. What one rank does then tells what every rank does, and how loaded every link is.
//
// Model       Generators are permutations of the ranks. A network that has such a group is a Cayley
//             digraph: ranks are the elements of the group, a translation multiplies from the left.
//             Translations move every rank or none, so each class of links (an orbit) has one link
//             out of every rank and one into every rank. Of parallel links with equal parameters
//             the k-th goes to the k-th.
// Invariants  R1  Every generator is a permutation of the ranks that takes links to links of the
//                 same bandwidth and alpha, and ports without a link to such.
//             R2  The generators together take rank 0 to every rank.
//             R3  No translation but the one that moves nothing leaves a rank in its place.
//             R4  Class c is the class of the c-th link out of rank 0.
// Complexity  n ranks, m links, k generators. Make: O(k m log(degree) + k^2 n), ImagesOf O(n).
//             About 8 m + 4 (k + 4) n bytes.
// Threads     Immutable: share freely.
// Reference   A permutation group with a transitive centraliser has R3: what fixes one rank fixes
//             its images under all that commutes with it. Given R2, the maps c_i that continue
//             rank 0 -> g_i(0) along the generators are the only ones that may commute with all
//             generators, and when they do they reach every rank, as the generators do.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

using NodePermutation = std::vector<NodeId>;  // node v becomes [v]

class Translations {
 public:
  // kInfeasible: not R1 .. R3, naming the generator and where it fails; switches.
  static Result<Translations> Make(const Topology& topology,
                                   std::vector<NodePermutation> generators);

  const std::vector<NodePermutation>& generators() const { return generators_; }
  int32_t num_ranks() const { return static_cast<int32_t>(order_.size()); }
  int32_t num_classes() const { return num_classes_; }
  int32_t LinkClass(LinkId link) const { return class_[link.index()]; }
  LinkId InLink(NodeId head, int32_t link_class) const {
    return in_link_[head.index() * static_cast<size_t>(num_classes_) +
                    static_cast<size_t>(link_class)];
  }

  // [u] is where the translation that takes rank 0 to u takes `node`.
  NodePermutation ImagesOf(NodeId node) const;
  // [v] is where the translation that takes v to rank 0 takes rank 0.
  NodePermutation Inverses() const;

 private:
  Translations() = default;
  Status GrowTree();
  Status CheckLinks(const Topology& topology) const;
  Status CheckCommuting() const;
  void ClassifyLinks(const Topology& topology);

  std::vector<NodePermutation> generators_;
  // Rank x is the image of parent_[x] under generator by_[x]; parents come first in order_.
  std::vector<NodeId> order_, parent_;
  std::vector<int32_t> by_;
  int32_t num_classes_ = 0;
  std::vector<int32_t> class_;
  std::vector<LinkId> in_link_;
};

// Looks for translations: those that the topology's expression or grid suggests, a rotation of all
// ranks, and on small networks a search among the symmetries. kInfeasible when there are none or
// none is found; a vertex-transitive network need not have any (the Petersen graph).
Result<Translations> FindTranslations(const Topology& topology);

}  // namespace tutti
