#include "step_lp/step_trees.h"

#include <algorithm>
#include <limits>

#include "tutti/base/check.h"

namespace tutti::step_lp {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max();

uint32_t BitOf(NodeId rank) { return uint32_t{1} << static_cast<uint32_t>(rank.value); }

}  // namespace

StepTrees::StepTrees(const Topology& topology, int32_t steps)
    : topology_(topology),
      ranks_(topology.num_ranks()),
      steps_(steps),
      heads_(static_cast<size_t>(ranks_), 0),
      cost_((static_cast<size_t>(steps) + 1) << static_cast<uint32_t>(ranks_), kFar),
      before_(cost_.size(), 0),
      open_(static_cast<size_t>(steps) + 1) {
  TUTTI_CHECK(ranks_ <= kMaxTreeRanks && !topology.has_switches());
  for (LinkId link : topology.Links())
    heads_[topology.tail(link).index()] |= BitOf(topology.head(link));
  within_.emplace_back();
  for (NodeId rank : topology.Ranks()) within_.back().push_back(BitOf(rank));
  for (int32_t k = 0; k < steps; ++k) {
    std::vector<Set> next = within_.back();
    for (LinkId link : topology.Links())
      next[topology.tail(link).index()] |= within_.back()[topology.head(link).index()];
    within_.push_back(std::move(next));
  }
}

LinkId StepTrees::LinkInto(NodeId rank, Set known, std::span<const int64_t> lengths,
                           int32_t step) const {
  const size_t first = static_cast<size_t>(step) * static_cast<size_t>(topology_.num_links());
  LinkId best{-1};
  for (LinkId link : topology_.InLinks(rank))
    if ((known & BitOf(topology_.tail(link))) != 0 &&
        (best.value < 0 || lengths[first + link.index()] < lengths[first + best.index()]))
      best = link;
  return best;
}

// All sets that may come after `known`.
void StepTrees::Follow(int32_t step, Set known, std::span<const int64_t> lengths) {
  const auto& last = within_[static_cast<size_t>(steps_ - step - 1)];
  const Set everyone = (Set{1} << static_cast<uint32_t>(ranks_)) - 1;
  Set reach = 0, told = 0;
  for (NodeId rank : topology_.Ranks()) {
    if ((known & BitOf(rank)) == 0) continue;
    reach |= heads_[rank.index()];
    told |= last[rank.index()];
  }
  reach &= ~known;
  added_.assign(1, 0);
  added_cost_.assign(1, CostOf(step, known));
  // Whoever only this step can still reach in time must be among the new ones, but some other new
  // one may do as well: all subsets are looked at, those that leave somebody out of reach dropped.
  for (NodeId rank : topology_.Ranks()) {
    if ((reach & BitOf(rank)) == 0) continue;
    const size_t first = static_cast<size_t>(step) * static_cast<size_t>(topology_.num_links());
    const int64_t length = lengths[first + LinkInto(rank, known, lengths, step).index()];
    const size_t count = added_.size();
    const bool must = step + 1 == steps_;
    for (size_t i = 0; i < count; ++i) {
      if (must) {
        added_[i] |= BitOf(rank);
        added_cost_[i] += length;
      } else {
        added_.push_back(added_[i] | BitOf(rank));
        added_cost_.push_back(added_cost_[i] + length);
      }
    }
  }
  for (size_t i = 0; i < added_.size(); ++i) {
    const Set next = known | added_[i];
    int64_t& cost = CostOf(step + 1, next);
    if (added_cost_[i] >= cost) continue;
    if (cost == kFar) {
      Set covered = told;
      for (Set rest = added_[i]; rest != 0; rest &= rest - 1)
        covered |= last[static_cast<size_t>(__builtin_ctz(rest))];
      if (covered != everyone) continue;
      open_[static_cast<size_t>(step) + 1].push_back(next);
    }
    cost = added_cost_[i];
    BeforeOf(step + 1, next) = known;
  }
}

std::optional<StepTrees::Found> StepTrees::Cheapest(NodeId source, std::span<const int64_t> lengths,
                                                    size_t beam) {
  for (int32_t step = 0; step <= steps_; ++step) {
    for (const Set set : open_[static_cast<size_t>(step)]) CostOf(step, set) = kFar;
    open_[static_cast<size_t>(step)].clear();
  }
  open_[0].push_back(BitOf(source));
  CostOf(0, BitOf(source)) = 0;
  for (int32_t step = 0; step < steps_; ++step) {
    std::vector<Set> sets = open_[static_cast<size_t>(step)];
    if (beam > 0 && sets.size() > beam) {
      const auto cheaper = [&](Set a, Set b) {
        return std::pair(CostOf(step, a), a) < std::pair(CostOf(step, b), b);
      };
      std::nth_element(sets.begin(), sets.begin() + static_cast<ptrdiff_t>(beam), sets.end(),
                       cheaper);
      sets.resize(beam);
    }
    for (const Set set : sets) Follow(step, set, lengths);
  }
  const Set everyone = (Set{1} << static_cast<uint32_t>(ranks_)) - 1;
  if (CostOf(steps_, everyone) == kFar) return std::nullopt;
  Found found{CostOf(steps_, everyone), {}};
  Set set = everyone;
  for (int32_t step = steps_; step > 0; --step) {
    const Set before = BeforeOf(step, set);
    for (Set added = set & ~before; added != 0; added &= added - 1)
      found.tree.push_back(
          {LinkInto(NodeId{__builtin_ctz(added)}, before, lengths, step - 1), step - 1});
    set = before;
  }
  std::reverse(found.tree.begin(), found.tree.end());
  return found;
}

}  // namespace tutti::step_lp
