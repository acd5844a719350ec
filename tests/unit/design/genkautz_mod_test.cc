// Generalized Kautz digraphs with rewired self-loops against those with idle ports.
// docs/results/beyond-direct-connect.md quotes the counts below.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base.h"
#include "genkautz.h"
#include "search.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {
namespace {

DesignCost ReduceScatterOf(const BaseEntry& entry) {
  return entry.reduce_scatter.value_or(DesignCost{entry.tl, entry.tb});
}

// 0 -> 2 3, 1 -> 0 2, 2 -> 1 3, 3 -> 0 1: every rank hears of two others in step 1 and of the last
// one over both ports in step 2, half of it over each: TB = 2/4 (1 + 1/2), the least of 4 ranks.
// genkautz(2,4) itself takes 3/2.
TEST(GenkautzMod, ByHand) {
  std::vector<BaseEntry> entries;
  ListGenkautzMod(4, 2, entries);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].recipe, "genkautz_mod(2,4)");
  EXPECT_EQ(entries[0].tl, 2);
  EXPECT_EQ(entries[0].tb, Rational(3, 4));
  EXPECT_EQ(ReduceScatterOf(entries[0]).tb, Rational(3, 4));
  EXPECT_EQ(ComputeGenkautzCost(2, 4).tb, Rational(3, 2));
}

TEST(GenkautzMod, ListsOnlyWhatHadSelfLoopsAndIsSmallEnough) {
  std::vector<BaseEntry> entries;
  ListGenkautzMod(12, 2, entries);   // 3 | 12
  ListGenkautzMod(5, 1, entries);    // not connected
  ListGenkautzMod(4, 4, entries);    // no such digraph
  ListGenkautzMod(514, 4, entries);  // measuring would take too long
  ListGenkautzMod(514, 2, entries);
  EXPECT_TRUE(entries.empty());
}

struct Counts {
  int sizes = 0;
  int less_tb = 0;  // in as many steps
  int fewer_steps = 0;
  int reduce_scatter_less_tb = 0;
  int best_tb = 0;
  int new_points = 0;  // sizes whose frontier has one
  friend bool operator==(const Counts&, const Counts&) = default;
};

// The least TB in at most `tl` steps that the finder knows.
bool Reaches(const Frontier& frontier, const Candidate& wanted) {
  return std::any_of(
      frontier.candidates().begin(), frontier.candidates().end(),
      [&](const Candidate* known) { return known->tl <= wanted.tl && known->tb <= wanted.tb; });
}

// Whether the finder has something at this size that it would not have without the family.
bool AddsPoints(int32_t ranks, int32_t degree) {
  Search with, without({}, "genkautz_mod");
  const Frontier& known = without.All(ranks, degree);
  const std::vector<const Candidate*>& candidates = with.All(ranks, degree).candidates();
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Candidate* candidate) { return !Reaches(known, *candidate); });
}

Counts CountBelow200(int32_t degree) {
  Counts counts;
  for (int32_t ranks = degree + 1; ranks < 200; ++ranks) {
    std::vector<BaseEntry> entries;
    ListGenkautzMod(ranks, degree, entries);
    if (entries.empty()) continue;
    SCOPED_TRACE(entries[0].recipe);
    const BaseEntry& rewired = entries[0];
    const GenkautzCost plain = ComputeGenkautzCost(degree, ranks);
    const DesignCost back = ReduceScatterOf(rewired);
    // Never worse, one way or the other.
    EXPECT_LE(rewired.tl, plain.tl);
    EXPECT_LE(back.tl, plain.tl);
    EXPECT_LE(rewired.tb, plain.tb);
    EXPECT_LE(back.tb, plain.reduce_scatter_tb);
    EXPECT_FALSE(rewired.self_loops);
    ++counts.sizes;
    counts.less_tb += rewired.tl == plain.tl && rewired.tb < plain.tb ? 1 : 0;
    counts.fewer_steps += rewired.tl < plain.tl ? 1 : 0;
    counts.reduce_scatter_less_tb += back.tb < plain.reduce_scatter_tb ? 1 : 0;
    counts.best_tb += rewired.tb == BestTb(ranks) ? 1 : 0;
    counts.new_points += AddsPoints(ranks, degree) ? 1 : 0;
  }
  return counts;
}

void PrintTo(const Counts& counts, std::ostream* out) {
  *out << fmt::format(
      "{} sizes: {} less TB in as many steps, {} fewer steps, {} less TB of the reduce-scatter, {} "
      "least TB, {} new points",
      counts.sizes, counts.less_tb, counts.fewer_steps, counts.reduce_scatter_less_tb,
      counts.best_tb, counts.new_points);
}

TEST(GenkautzMod, BeatsGenkautzBelow200Ranks) {
  EXPECT_EQ(CountBelow200(2), (Counts{131, 127, 2, 131, 1, 103}));
  EXPECT_EQ(CountBelow200(4), (Counts{156, 145, 0, 97, 0, 92}));
}

}  // namespace
}  // namespace tutti::design
