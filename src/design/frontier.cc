#include "frontier.h"

#include <algorithm>
#include <tuple>

namespace tutti::design {
namespace {

bool NoWorse(const Candidate& a, int32_t tl, const Rational& tb, uint32_t properties) {
  return a.tl <= tl && a.has(properties) && a.tb <= tb;
}

bool Same(const Candidate& a, const Candidate& b) {
  return a.tl == b.tl && a.properties == b.properties && a.tb == b.tb;
}

bool Nicer(const Candidate& a, const Candidate& b) {
  if (a.diameter != b.diameter) return a.diameter < b.diameter;
  if (a.recipe.size() != b.recipe.size()) return a.recipe.size() < b.recipe.size();
  return a.recipe < b.recipe;
}

}  // namespace

bool Frontier::Wants(int32_t tl, const Rational& tb, uint32_t properties) const {
  for (const Candidate* kept : candidates_)
    if (NoWorse(*kept, tl, tb, properties))
      return kept->tl == tl && kept->properties == properties && kept->tb == tb;
  return true;
}

void Frontier::Offer(Candidate candidate, std::deque<Candidate>& arena) {
  for (const Candidate* kept : candidates_)
    if (NoWorse(*kept, candidate.tl, candidate.tb, candidate.properties) &&
        !(Same(*kept, candidate) && Nicer(candidate, *kept)))
      return;
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                   [&](const Candidate* kept) {
                                     return NoWorse(candidate, kept->tl, kept->tb,
                                                    kept->properties);
                                   }),
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
