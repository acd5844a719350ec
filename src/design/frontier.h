// The candidates of one size and degree that may still win, alone or expanded.
//
// Invariants  Sorted by (tl, tb, recipe). None is dominated: no worse in tl and tb of all-gather
//             and reduce-scatter, and every property is the other's too. By C2 (candidate.h)
//             whatever a dropped one could become, its dominator's expansion is no worse, so the
//             search stays exact in the cost of each collective for every set of properties. Of
//             those equal in all of that, the least diameter stays, then the shortest recipe, then
//             the first in the alphabet: not who came first.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "candidate.h"

namespace tutti::design {

class Frontier {
 public:
  // Whether a candidate like this would stay; its recipe is not looked at where cost and
  // properties decide.
  bool Wants(const DesignCost& all_gather, const DesignCost& reduce_scatter,
             uint32_t properties) const;
  // Keeps it in `arena` if it stays.
  void Offer(Candidate candidate, std::deque<Candidate>& arena);

  const std::vector<const Candidate*>& candidates() const { return candidates_; }

 private:
  std::vector<const Candidate*> candidates_;
};

}  // namespace tutti::design
