#include "search.h"

#include <algorithm>
#include <set>
#include <string>

#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {
namespace {

// The whole n-th root, or 0.
int32_t Root(int32_t number, int32_t n) {
  for (int32_t root = 2;; ++root) {
    int64_t power = 1;
    for (int32_t i = 0; i < n && power <= number; ++i) power *= root;
    if (power == number) return root;
    if (power > number) return 0;
  }
}

// A base, and its transpose where the two directions cost something else. Those of expansions are
// expansions of these (C3).
void AddBothWays(const BaseEntry& entry, std::string_view reference, uint32_t properties,
                 std::vector<Candidate>& listed) {
  listed.push_back(MakeBase(entry, reference));
  listed.back().properties |= properties;
  if (!entry.reduce_scatter) return;
  listed.push_back(MakeBase(TransposeOf(entry), reference));
  listed.back().properties |= properties;
}

}  // namespace

void Search::List(Size size, bool factors, Bases& bases) const {
  const auto [ranks, degree] = size;
  std::vector<Candidate>& listed = factors ? bases.factors : bases.others;
  std::vector<BaseEntry> entries;
  for (const BaseFamily& family : BaseFamilies()) {
    if (family.factors != factors || family.name == without_) continue;
    entries.clear();
    family.list(ranks, degree, entries);
    for (const BaseEntry& entry : entries) AddBothWays(entry, family.reference, 0, listed);
  }
  if (factors)
    for (const BaseEntry& entry : own_)
      if (entry.ranks == ranks && entry.degree == degree)
        AddBothWays(entry, "from a file, measured", kOwn, listed);
  (factors ? bases.has_factors : bases.has_others) = true;
}

const Search::Bases& Search::BasesOf(Size size, bool others_too) {
  Bases& bases = bases_[size];
  if (!bases.has_factors) List(size, true, bases);
  if (others_too && !bases.has_others) List(size, false, bases);
  return bases;
}

const Frontier& Search::Factors(int32_t ranks, int32_t degree) {
  const Size size{ranks, degree};
  if (const auto found = factors_.find(size); found != factors_.end()) return found->second;
  Frontier frontier;
  for (const Candidate& base : BasesOf(size, false).factors)
    if (base.has(kFactor)) frontier.Offer(base, arena_);
  for (int32_t n = 2; n <= degree; ++n)
    if (degree % n == 0 && ranks % n == 0 && ranks / n >= 2)
      for (const Candidate* base : Factors(ranks / n, degree / n).candidates())
        if (base->has(kBidirectional)) frontier.Offer(MakeDegree(*base, n), arena_);
  OfferProducts(size, frontier);
  return factors_.emplace(size, std::move(frontier)).first->second;
}

void Search::OfferProducts(Size size, Frontier& frontier) {
  const auto [ranks, degree] = size;
  const Rational tb = BestTb(ranks);
  for (int32_t first = 2; int64_t{first} * first <= ranks; ++first) {
    if (ranks % first != 0) continue;
    const int32_t second = ranks / first;
    for (int32_t ports = 1; ports < degree; ++ports) {
      const std::vector<const Candidate*>& left = Factors(first, ports).candidates();
      if (left.empty()) continue;
      for (const Candidate* a : left)
        for (const Candidate* b : Factors(second, degree - ports).candidates())
          if (const DesignCost cost{a->tl + b->tl, tb};
              frontier.Wants(cost, cost, PropertiesOfProduct(*a, *b)))
            frontier.Offer(MakeProduct(*a, *b), arena_);
    }
  }
}

const Frontier& Search::All(int32_t ranks, int32_t degree) {
  const Size size{ranks, degree};
  if (const auto found = all_.find(size); found != all_.end()) return found->second;
  Frontier frontier;
  OfferAll(size, [&](Candidate candidate) { frontier.Offer(std::move(candidate), arena_); });
  return all_.emplace(size, std::move(frontier)).first->second;
}

std::vector<const Candidate*> Search::Every(int32_t ranks, int32_t degree) {
  std::map<std::string, const Candidate*> by_recipe;
  OfferAll({ranks, degree}, [&](Candidate candidate) {
    const auto [place, is_new] = by_recipe.try_emplace(candidate.recipe, nullptr);
    if (!is_new) return;
    arena_.push_back(std::move(candidate));
    place->second = &arena_.back();
  });
  std::vector<const Candidate*> every;
  for (const auto& [recipe, candidate] : by_recipe) every.push_back(candidate);
  return every;
}

void Search::OfferAll(Size size, const std::function<void(Candidate)>& offer) {
  const auto [ranks, degree] = size;
  const Bases& bases = BasesOf(size, true);
  for (const Candidate& base : bases.factors) offer(base);
  for (const Candidate& base : bases.others) offer(base);
  for (const Candidate* factor : Factors(ranks, degree).candidates()) offer(*factor);
  if (degree >= 2 && ranks % degree == 0 && ranks / degree >= 2)
    for (const Candidate* base : All(ranks / degree, degree).candidates())
      if (CanLine(*base)) offer(MakeLine(*base));
  for (int32_t n = 2; n <= degree; ++n) {
    if (degree % n != 0) continue;
    if (ranks % n == 0 && ranks / n >= 2)
      for (const Candidate* base : All(ranks / n, degree / n).candidates())
        if (CanDegree(*base)) offer(MakeDegree(*base, n));
    if (const int32_t root = Root(ranks, n); root >= 2)
      for (const Candidate* base : All(root, degree / n).candidates())
        if (base->has(kByExpand)) offer(MakePower(*base, n));
  }
  if (degree % 2 == 0)
    for (const Candidate* base : All(ranks, degree / 2).candidates())
      if (CanBidirectional(*base)) offer(MakeBidirectional(*base));
}

void Search::Prefetch(const std::vector<int32_t>& degrees, int32_t max_ranks) {
  std::map<Size, bool> wanted;  // whether others than factors too
  for (int32_t degree : degrees)
    for (int32_t ranks = 2; ranks <= max_ranks; ++ranks) {
      for (int32_t part = 1; part < degree; ++part)
        if (ranks <= max_ranks / 2) wanted[{ranks, part}];
      for (int32_t n = 1; n <= degree; ++n)
        if (degree % n == 0 && (n <= 2 || ranks <= max_ranks / n))
          wanted[{ranks, degree / n}] = true;
    }
  std::vector<std::pair<Size, bool>> missing;
  for (const auto& [size, others] : wanted)
    if (bases_.find(size) == bases_.end()) missing.emplace_back(size, others);
  std::vector<Bases> listed(missing.size());
  ProgressScope progress("bases", static_cast<int64_t>(missing.size()));
  ParallelFor(static_cast<int64_t>(missing.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !CancelRequested(); ++i) {
      const auto at = static_cast<size_t>(i);
      List(missing[at].first, true, listed[at]);
      if (missing[at].second) List(missing[at].first, false, listed[at]);
    }
    progress.Add(end - begin);
  });
  for (size_t i = 0; i < missing.size(); ++i)
    bases_.emplace(missing[i].first, std::move(listed[i]));
}

}  // namespace tutti::design
