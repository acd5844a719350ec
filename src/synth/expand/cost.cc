#include "tutti/base/check.h"
#include "tutti/synth/expand_cost.h"

namespace tutti {
namespace {

constexpr int64_t kMaxCostRanks = int64_t{1} << 62;

int64_t Ranks(int64_t a, int64_t b) {
  int64_t product = 0;
  TUTTI_CHECK(!__builtin_mul_overflow(a, b, &product) && product < kMaxCostRanks);
  return product;
}

int32_t Product(int32_t a, int32_t b) {
  int32_t product = 0;
  TUTTI_CHECK(!__builtin_mul_overflow(a, b, &product));
  return product;
}

int32_t Sum(int32_t a, int32_t b) {
  int32_t sum = 0;
  TUTTI_CHECK(!__builtin_add_overflow(a, b, &sum));
  return sum;
}

}  // namespace

Rational BestTb(int64_t ranks) { return Rational(ranks - 1, ranks); }

ExpansionCost LineCost(const ExpansionCost& base, int32_t times) {
  TUTTI_CHECK(times >= 1);
  ExpansionCost cost = base;
  cost.tl = Sum(base.tl, times);
  for (int32_t time = 0; time < times; ++time) {
    cost.tb += Rational(1, cost.ranks);
    cost.ranks = Ranks(cost.ranks, base.degree);
  }
  return cost;
}

ExpansionCost DegreeCost(const ExpansionCost& base, int32_t n) {
  TUTTI_CHECK(n >= 1);
  if (n == 1) return base;
  ExpansionCost cost;
  cost.ranks = Ranks(base.ranks, n);
  cost.degree = Product(base.degree, n);
  cost.tl = Sum(base.tl, 1);
  cost.tb = base.tb + Rational(n - 1, cost.ranks);
  return cost;
}

ExpansionCost PowerCost(const ExpansionCost& base, int32_t n) {
  TUTTI_CHECK(n >= 1 && base.ranks >= 2);
  ExpansionCost cost;
  for (int32_t factor = 0; factor < n; ++factor) cost.ranks = Ranks(cost.ranks, base.ranks);
  cost.degree = Product(base.degree, n);
  cost.tl = Product(base.tl, n);
  cost.tb = base.tb / BestTb(base.ranks) * BestTb(cost.ranks);
  return cost;
}

ExpansionCost ProductCost(std::span<const ExpansionCost> factors) {
  TUTTI_CHECK(!factors.empty());
  ExpansionCost cost = factors.front();
  for (const ExpansionCost& factor : factors.subspan(1)) {
    cost.ranks = Ranks(cost.ranks, factor.ranks);
    cost.degree = Sum(cost.degree, factor.degree);
    cost.tl = Sum(cost.tl, factor.tl);
  }
  cost.tb = BestTb(cost.ranks);
  return cost;
}

ExpansionCost BidirectionalCost(const ExpansionCost& base) {
  ExpansionCost cost = base;
  cost.degree = Product(base.degree, 2);
  return cost;
}

}  // namespace tutti
