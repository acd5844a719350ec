#include "frontier.h"

#include <algorithm>
#include <tuple>

namespace tutti::design {
namespace {

bool NoWorse(const Candidate& a, int32_t tl, const Rational& tb, const DesignCost& reduce_scatter,
             uint32_t properties) {
  return a.tl <= tl && a.reduce_scatter.tl <= reduce_scatter.tl && a.has(properties) &&
         a.tb <= tb && a.reduce_scatter.tb <= reduce_scatter.tb;
}

bool NoWorse(const Candidate& a, const Candidate& b) {
  return NoWorse(a, b.tl, b.tb, b.reduce_scatter, b.properties);
}

bool Same(const Candidate& a, const Candidate& b) {
  return a.tl == b.tl && a.properties == b.properties && a.tb == b.tb &&
         a.reduce_scatter == b.reduce_scatter;
}

bool TieBreakLess(const Candidate& a, const Candidate& b) {
  if (a.diameter != b.diameter) return a.diameter < b.diameter;
  if (a.recipe.size() != b.recipe.size()) return a.recipe.size() < b.recipe.size();
  return a.recipe < b.recipe;
}

}  // namespace

bool Frontier::Wants(const DesignCost& all_gather, const DesignCost& reduce_scatter,
                     uint32_t properties) const {
  for (const Candidate* kept : candidates_)
    if (NoWorse(*kept, all_gather.tl, all_gather.tb, reduce_scatter, properties))
      return DesignCost{kept->tl, kept->tb} == all_gather &&
             kept->reduce_scatter == reduce_scatter && kept->properties == properties;
  return true;
}

void Frontier::Offer(Candidate candidate, std::deque<Candidate>& arena) {
  for (const Candidate* kept : candidates_)
    if (NoWorse(*kept, candidate) && !(Same(*kept, candidate) && TieBreakLess(candidate, *kept)))
      return;
  candidates_.erase(
      std::remove_if(candidates_.begin(), candidates_.end(),
                     [&](const Candidate* kept) { return NoWorse(candidate, *kept); }),
      candidates_.end());
  arena.push_back(std::move(candidate));
  const Candidate* added = &arena.back();
  candidates_.insert(std::upper_bound(candidates_.begin(), candidates_.end(), added,
                                      [](const Candidate* a, const Candidate* b) {
                                        return std::tie(a->tl, a->tb, a->recipe) <
                                               std::tie(b->tl, b->tb, b->recipe);
                                      }),
                     added);
}

}  // namespace tutti::design
