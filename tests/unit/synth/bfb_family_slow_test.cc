// What the paper claims of whole families, on all of their members up to a size, by exact cost; and
// the large schedules of its table 6, proven.

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "bfb_testing.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"

namespace tutti {
namespace {

Rational TbOf(const Topology& topology) {
  const Result<BfbCost> cost = ComputeBfbCost(
      topology, MustCollective(CollectiveKind::kAllGather, topology.num_ranks()), {});
  EXPECT_TRUE(cost.has_value());
  return *cost->tb;
}

// Multiplying all ranks by a unit of Z_n turns circulant(n,a,b) into circulant(n,ka,kb): the first
// pair of each class stands for it.
std::set<std::pair<int, int>> CirculantClasses(int n) {
  std::set<std::pair<int, int>> seen, classes;
  for (int b = 2; 2 * b < n; ++b)
    for (int a = 1; a < b; ++a) {
      if (std::gcd(n, std::gcd(a, b)) != 1 || seen.contains({a, b})) continue;
      classes.insert({a, b});
      for (int k = 1; k < n; ++k) {
        if (std::gcd(k, n) != 1) continue;
        const int ka = std::min(k * a % n, n - k * a % n), kb = std::min(k * b % n, n - k * b % n);
        seen.insert({std::min(ka, kb), std::max(ka, kb)});
      }
    }
  return classes;
}

TEST(BfbFamilySlow, AllCirculantsOfDegreeFourUpTo300AreBandwidthOptimal) {
  for (int n = 5; n <= 300; ++n)
    for (const auto& [a, b] : CirculantClasses(n)) {
      const Topology topology = Parse("circulant(" + std::to_string(n) + "," + std::to_string(a) +
                                      "," + std::to_string(b) + ")");
      ASSERT_EQ(TbOf(topology), Rational(n - 1, n)) << topology.name();
    }
}

TEST(BfbFamilySlow, AllSmallToriAreBandwidthOptimal) {
  for (int a = 1; a <= 7; ++a)
    for (int b = a; b <= 7; ++b)
      for (int c = b; c <= 7; ++c) {
        if (a * b * c == 1) continue;
        const Topology topology = Parse("torus(" + std::to_string(a) + "," + std::to_string(b) +
                                        "," + std::to_string(c) + ")");
        ASSERT_EQ(TbOf(topology), Rational(a * b * c - 1, a * b * c)) << topology.name();
      }
}

TEST(BfbFamilySlow, LargeSchedulesAreProven) {
  for (const char* expression : {"hypercube(10)", "torus(50,50)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const int32_t n = topology.num_ranks();
    const Schedule schedule =
        MustSynthesize(topology, MustCollective(CollectiveKind::kAllGather, n));
    EXPECT_EQ(AnalyticCost(topology, schedule).tb, Rational(n - 1, n));
  }
}

}  // namespace
}  // namespace tutti
