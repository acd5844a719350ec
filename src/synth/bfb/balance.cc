#include "bfb/balance.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

Load Reduced(int64_t num, int64_t den) {
  const int64_t common = std::gcd(num, den);
  return {num / common, den / common};
}

template <class Num>
std::vector<int32_t> BlockingLinks(const GroupFlow<Num>& flow, const GroupLinks& shape) {
  std::vector<int32_t> links;
  for (int32_t link = 0; link < shape.num_links; ++link)
    if (flow.IsBlocking(link)) links.push_back(link);
  return links;
}

// Sources that only links of the blocking set of a failed flow may serve.
template <class Num>
int64_t BlockedSources(const GroupFlow<Num>& flow, const GroupLinks& shape,
                       const std::vector<int32_t>& counts) {
  int64_t total = 0;
  for (size_t g = 0; g < shape.num_groups(); ++g) {
    const auto first = shape.links.begin() + shape.first[g];
    const auto last = shape.links.begin() + shape.first[g + 1];
    if (std::all_of(first, last, [&flow](int32_t link) { return flow.IsBlocking(link); }))
      total += counts[g];
  }
  return total;
}

// Links that some group may use.
std::vector<int32_t> UsableLinks(const GroupLinks& shape) {
  std::vector<int32_t> links(shape.links);
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

int64_t TotalSources(const std::vector<int32_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

std::vector<int64_t> DemandOf(const LoadProblem& problem, int64_t units_per_shard) {
  std::vector<int64_t> demand;
  demand.reserve(problem.num_groups());
  for (int32_t count : problem.counts) demand.push_back(count * units_per_shard);
  return demand;
}

const LinkCost& CostOf(const LoadProblem& problem, const std::vector<LinkCost>& costs,
                       int32_t link) {
  return costs[static_cast<size_t>(problem.link_class[static_cast<size_t>(link)])];
}

// The time at which `links` have together just carried `sources` shards, each from its alpha on:
// links join in order of alpha, as long as theirs is below the time reached without them.
Rational FillTime(const LoadProblem& problem, const std::vector<LinkCost>& costs,
                  std::vector<int32_t> links, int64_t sources) {
  std::stable_sort(links.begin(), links.end(), [&](int32_t a, int32_t b) {
    return CostOf(problem, costs, a).alpha < CostOf(problem, costs, b).alpha;
  });
  Rational needed(sources), rate(0), time;
  for (size_t i = 0; i < links.size(); ++i) {
    const LinkCost& cost = CostOf(problem, costs, links[i]);
    if (i > 0 && cost.alpha >= time) break;
    needed += cost.alpha / cost.shard;
    rate += Rational(1) / cost.shard;
    time = needed / rate;
  }
  return time;
}

// What a link carries in `time`, in shards.
Rational LoadWithin(const LinkCost& cost, const Rational& time) {
  return time > cost.alpha ? (time - cost.alpha) / cost.shard : Rational(0);
}

// 0 stands for "too large" and stays.
int64_t LcmOrZero(int64_t a, std::optional<int64_t> b) {
  int64_t product = 0;
  if (a == 0 || !b || __builtin_mul_overflow(a / std::gcd(a, *b), *b, &product)) return 0;
  return product;
}

}  // namespace

GroupLinks LoadProblem::Links() const {
  GroupLinks shape;
  shape.num_links = num_links;
  shape.first.reserve(num_groups() + 1);
  for (size_t g = 0; g < num_groups(); ++g) {
    for (size_t word = 0; word < num_words(); ++word)
      for (uint64_t rest = masks[g * num_words() + word]; rest != 0; rest &= rest - 1)
        shape.links.push_back(static_cast<int32_t>(64 * word) + std::countr_zero(rest));
    shape.first.push_back(static_cast<int32_t>(shape.links.size()));
  }
  return shape;
}

Load MinMaxLoadBySubsets(const LoadProblem& problem) {
  TUTTI_CHECK(problem.num_links <= kMaxSubsetLinks);
  const size_t num_sets = size_t{1} << problem.num_links;
  std::array<int32_t, size_t{1} << kMaxSubsetLinks> within;  // sources served only within the set
  std::fill_n(within.begin(), num_sets, 0);
  for (size_t g = 0; g < problem.num_groups(); ++g) within[problem.masks[g]] = problem.counts[g];
  for (size_t bit = 1; bit < num_sets; bit <<= 1)
    for (size_t block = 0; block < num_sets; block += 2 * bit)
      for (size_t set = block; set < block + bit; ++set) within[set + bit] += within[set];
  std::array<int32_t, kMaxSubsetLinks + 1> most{};  // over sets of this many links
  for (size_t set = 1; set < num_sets; ++set) {
    int32_t& best = most[static_cast<size_t>(std::popcount(set))];
    best = std::max(best, within[set]);
  }
  Load worst;
  for (int32_t size = 1; size <= problem.num_links; ++size)
    worst = std::max(worst, Load{most[static_cast<size_t>(size)], size});
  return Reduced(worst.num, worst.den);
}

Load MinMaxLoadByFlow(const LoadProblem& problem) {
  const GroupLinks shape = problem.Links();
  GroupFlow<int64_t> flow(shape);
  Load load{TotalSources(problem.counts), static_cast<int64_t>(UsableLinks(shape).size())};
  if (load.num == 0) return {};
  const auto num_links = static_cast<size_t>(problem.num_links);
  while (!flow.Route(DemandOf(problem, load.den), std::vector<int64_t>(num_links, load.num)))
    // The set that blocks has a larger ratio: Newton's step.
    load = {BlockedSources(flow, shape, problem.counts),
            static_cast<int64_t>(BlockingLinks(flow, shape).size())};
  return Reduced(load.num, load.den);
}

Load MinMaxLoad(const LoadProblem& problem) {
  return problem.num_links <= kMaxSubsetLinks ? MinMaxLoadBySubsets(problem)
                                              : MinMaxLoadByFlow(problem);
}

MinMaxTime SolveMinMaxTime(const LoadProblem& problem, const std::vector<LinkCost>& costs) {
  const GroupLinks shape = problem.Links();
  GroupFlow<Rational> flow(shape);
  std::vector<int32_t> tight = UsableLinks(shape);
  MinMaxTime result;
  result.time = FillTime(problem, costs, tight, TotalSources(problem.counts));
  for (;;) {
    std::vector<Rational> demand(problem.counts.begin(), problem.counts.end());
    std::vector<Rational> capacity;
    capacity.reserve(static_cast<size_t>(problem.num_links));
    for (int32_t link = 0; link < problem.num_links; ++link)
      capacity.push_back(LoadWithin(CostOf(problem, costs, link), result.time));
    if (flow.Route(std::move(demand), std::move(capacity))) break;
    tight = BlockingLinks(flow, shape);
    result.time = FillTime(problem, costs, tight, BlockedSources(flow, shape, problem.counts));
  }
  for (int32_t link : tight)
    result.tight_denominator = LcmOrZero(
        result.tight_denominator, LoadWithin(CostOf(problem, costs, link), result.time).Den64());
  return result;
}

WholeLoads MinMaxUnits(const LoadProblem& problem, const Load& exact, int64_t units_per_shard) {
  // The largest of ceil(P count(S) / |S|) over S is that of the largest ratio.
  const int64_t capacity = (units_per_shard * exact.num + exact.den - 1) / exact.den;
  return {std::vector<int64_t>(static_cast<size_t>(problem.num_links), capacity), {}};
}

WholeLoads MinMaxUnits(const LoadProblem& problem, const std::vector<LinkCost>& costs,
                       const Rational& exact, int64_t units_per_shard) {
  const GroupLinks shape = problem.Links();
  GroupFlow<int64_t> flow(shape);
  const int64_t all = TotalSources(problem.counts) * units_per_shard;
  const auto whole_units = [&](int32_t link, const Rational& time) {
    const Rational load = LoadWithin(CostOf(problem, costs, link), time);
    return std::min((load * Rational(units_per_shard)).Floor().Num64().value_or(all), all);
  };
  WholeLoads result{{}, exact};
  for (;;) {
    result.capacity.clear();
    for (int32_t link = 0; link < problem.num_links; ++link)
      result.capacity.push_back(whole_units(link, result.time));
    if (flow.Route(DemandOf(problem, units_per_shard), result.capacity)) return result;
    // Wait until the blocking set carries one unit more, over whichever of its links is first.
    std::optional<Rational> first;
    for (int32_t link : BlockingLinks(flow, shape)) {
      const LinkCost& cost = CostOf(problem, costs, link);
      const int64_t next = result.capacity[static_cast<size_t>(link)] + 1;
      const Rational time = cost.alpha + cost.shard * Rational(next, units_per_shard);
      if (!first || time < *first) first = time;
    }
    result.time = *first;
  }
}

std::vector<Piece> Allocate(const LoadProblem& problem, const std::vector<int64_t>& capacity,
                            int64_t units_per_shard) {
  const GroupLinks shape = problem.Links();
  GroupFlow<int64_t> flow(shape);
  const bool fits = flow.Route(DemandOf(problem, units_per_shard), capacity);
  TUTTI_CHECK(fits);
  std::vector<Piece> pieces;
  for (size_t g = 0; g < shape.num_groups(); ++g)
    for (auto e = static_cast<size_t>(shape.first[g]); e < static_cast<size_t>(shape.first[g + 1]);
         ++e)
      if (flow.amounts()[e] > 0)
        pieces.push_back({static_cast<int32_t>(g), shape.links[e], flow.amounts()[e]});
  return pieces;
}

}  // namespace tutti
