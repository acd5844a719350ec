// A group of permutations of the ranks, its members, each rank being the image of exactly one of the
// first ranks by exactly one member: what trees of all roots follow by from those of the first.
//
// Either every rank r becomes r + k g modulo N, as equal boxes of g ranks allow, or the members are
// translations (topo/translations.h), of which exactly one takes rank 0 to each rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "forest/tree_network.h"
#include "tutti/topo/topology.h"

namespace tutti::forest {

class RankShifts {
 public:
  // By multiples of `shift`, which divides `ranks`.
  static RankShifts By(int32_t ranks, int32_t shift);
  // Translations of the topology that the lanes are the links of, where they leave lanes and trees
  // as they are; nullopt: none are known. O(N^2) memory.
  static std::optional<RankShifts> Translating(const Topology& topology,
                                               const TreeNetwork& network);

  int32_t num_ranks() const { return ranks_; }
  int32_t first() const { return first_; }  // so many first ranks
  int32_t members() const { return ranks_ / first_; }
  bool are_boxes() const { return images_.empty(); }
  int32_t FirstOf(int32_t rank) const { return rank % first_; }
  // The member that takes FirstOf(rank) to `rank`.
  int32_t MemberTo(int32_t rank) const { return rank / first_; }
  int32_t Image(int32_t member, int32_t rank) const {
    if (are_boxes()) return (rank + member * first_) % ranks_;
    return images_[static_cast<size_t>(rank) * static_cast<size_t>(ranks_) +
                   static_cast<size_t>(member)];
  }

 private:
  RankShifts(int32_t ranks, int32_t first) : ranks_(ranks), first_(first) {}
  bool Keep(const TreeNetwork& network) const;

  int32_t ranks_, first_;
  std::vector<int32_t> images_;  // of each rank, by member; empty: boxes
};

}  // namespace tutti::forest
