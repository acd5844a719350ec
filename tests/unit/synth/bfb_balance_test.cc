#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "bfb/balance.h"
#include "tutti/base/random.h"
#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

LoadProblem Problem(int32_t num_links, std::vector<uint64_t> masks, std::vector<int32_t> counts) {
  return {num_links, std::move(masks), std::move(counts), {}};
}

LoadProblem RandomProblem(Random& random, int32_t max_links) {
  const auto num_links = static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(max_links)));
  std::map<uint64_t, int32_t> groups;
  for (uint64_t left = 1 + random.Below(8); left > 0; --left) {
    // Few bits, so that some links are contested.
    const uint64_t all = (uint64_t{1} << num_links) - 1;
    const uint64_t mask = random.Next() & random.Next() & all;
    groups[mask == 0 ? uint64_t{1} << random.Below(static_cast<uint64_t>(num_links)) : mask] +=
        static_cast<int32_t>(1 + random.Below(5));
  }
  LoadProblem problem;
  problem.num_links = num_links;
  for (const auto& [mask, count] : groups) {
    problem.masks.push_back(mask);
    problem.counts.push_back(count);
  }
  return problem;
}

int64_t SourcesWithin(const LoadProblem& problem, uint64_t set) {
  int64_t sources = 0;
  for (size_t g = 0; g < problem.num_groups(); ++g)
    if ((problem.masks[g] & ~set) == 0) sources += problem.counts[g];
  return sources;
}

// Over all sets of links, straight from the definition.
Rational LoadByDefinition(const LoadProblem& problem) {
  Rational worst;
  for (uint64_t set = 1; set < uint64_t{1} << problem.num_links; ++set)
    worst = std::max(worst, Rational(SourcesWithin(problem, set), std::popcount(set)));
  return worst;
}

// Of every set of links the best choice of those it uses, over all subsets: no order by alpha.
Rational TimeByDefinition(const LoadProblem& problem, const std::vector<LinkCost>& costs) {
  Rational worst;
  for (uint64_t set = 1; set < uint64_t{1} << problem.num_links; ++set) {
    const int64_t sources = SourcesWithin(problem, set);
    if (sources == 0) continue;
    std::optional<Rational> best;
    for (uint64_t used = set; used != 0; used = (used - 1) & set) {
      Rational needed(sources), rate;
      for (int32_t link = 0; link < problem.num_links; ++link) {
        if ((used >> link & 1) == 0) continue;
        const LinkCost& cost =
            costs[static_cast<size_t>(problem.link_class[static_cast<size_t>(link)])];
        needed += cost.alpha / cost.shard;
        rate += Rational(1) / cost.shard;
      }
      if (const Rational time = needed / rate; !best || time < *best) best = time;
    }
    worst = std::max(worst, *best);
  }
  return worst;
}

// Loads of the links under `pieces`, after checking that they fill every group over its own links.
std::vector<int64_t> LoadsOf(const LoadProblem& problem, const std::vector<Piece>& pieces,
                             int64_t units) {
  std::vector<int64_t> loads(static_cast<size_t>(problem.num_links), 0);
  std::vector<int64_t> filled(problem.num_groups(), 0);
  int32_t last_group = 0;
  for (const Piece& piece : pieces) {
    EXPECT_GE(piece.group, last_group);
    last_group = piece.group;
    const auto g = static_cast<size_t>(piece.group);
    EXPECT_NE(problem.masks[g] >> piece.link & 1, 0u);
    EXPECT_GE(piece.units, 1);
    filled[g] += piece.units;
    loads[static_cast<size_t>(piece.link)] += piece.units;
  }
  for (size_t g = 0; g < problem.num_groups(); ++g) EXPECT_EQ(filled[g], problem.counts[g] * units);
  return loads;
}

// --- Worked examples
// -------------------------------------------------------------------------------

TEST(BfbBalanceTest, FigureFiveHasLoadOneAndTwoThirds) {
  // u1 has w1, w2; v1 may come over both, v2 over w2 only.
  const LoadProblem u1 = Problem(2, {0b10, 0b11}, {1, 1});
  EXPECT_EQ(MinMaxLoad(u1), (Load{1, 1}));
  // u2 has w1, w2, w3; v1 over w1, w2 and v2 over w2, w3.
  const LoadProblem u2 = Problem(3, {0b011, 0b110}, {1, 1});
  EXPECT_EQ(MinMaxLoad(u2), (Load{2, 3}));
  EXPECT_EQ(MinMaxLoadByFlow(u2), (Load{2, 3}));
  // A third of a shard is the unit, and each link carries two.
  const std::vector<int64_t> capacity = MinMaxUnits(u2, Load{2, 3}, 3).capacity;
  EXPECT_EQ(LoadsOf(u2, Allocate(u2, capacity, 3), 3), (std::vector<int64_t>{2, 2, 2}));
}

TEST(BfbBalanceTest, LinkWithDominatingAlphaIsDropped) {
  // Two sources over two links; the second alone waits longer than the first needs for both.
  LoadProblem problem = Problem(2, {0b11}, {2});
  problem.link_class = {0, 1};
  const std::vector<LinkCost> slow = {{Rational(1), Rational(3)}, {Rational(10), Rational(1)}};
  EXPECT_EQ(SolveMinMaxTime(problem, slow).time, Rational(7));
  EXPECT_EQ(MinMaxUnits(problem, slow, Rational(7), 1).capacity, (std::vector<int64_t>{2, 0}));
  // With alpha 4 it helps: 1 + 3x = 4 + (2 - x) at x = 5/4.
  const std::vector<LinkCost> fast = {{Rational(1), Rational(3)}, {Rational(4), Rational(1)}};
  const MinMaxTime best = SolveMinMaxTime(problem, fast);
  EXPECT_EQ(best.time, Rational(19, 4));
  EXPECT_EQ(best.tight_denominator, 4);
  EXPECT_EQ(MinMaxUnits(problem, fast, best.time, 4).capacity, (std::vector<int64_t>{5, 3}));
  // In whole shards: one over each link (4 and 5), better than both over either (7 and 6).
  EXPECT_EQ(MinMaxUnits(problem, fast, best.time, 1).time, Rational(5));
}

TEST(BfbBalanceTest, ManyLinksGoThroughTheFlow) {
  // 70 links in two words: a source for each, and one more that only link 69 may serve.
  LoadProblem problem;
  problem.num_links = 70;
  problem.masks = {0, uint64_t{1} << 5, ~uint64_t{0}, (uint64_t{1} << 6) - 1};
  problem.counts = {2, 69};
  EXPECT_EQ(MinMaxLoad(problem), (Load{2, 1}));
  problem.counts = {1, 70};
  EXPECT_EQ(MinMaxLoad(problem), (Load{71, 70}));
}

// --- Properties and oracles
// ------------------------------------------------------------------------

TEST(BfbBalanceTest, SubsetsAndFlowAgreeWithTheDefinition) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const LoadProblem problem = RandomProblem(random, 6);
    const Rational expected = LoadByDefinition(problem);
    for (const Load& load : {MinMaxLoadBySubsets(problem), MinMaxLoadByFlow(problem)}) {
      EXPECT_EQ(Rational(load.num, load.den), expected);
      EXPECT_EQ(std::gcd(load.num, load.den), 1);
    }
  }
}

// The linear program (14) of the paper as it stands there, solved by a simplex.
double TimeByLinearProgram(const LoadProblem& problem, const std::vector<LinkCost>& costs) {
  LinearProgram lp(LinearProgram::Goal::kMinimize);
  const double none = LinearProgram::kNoLimit;
  const int32_t time = lp.AddColumn(0, none, 1);
  std::vector<std::vector<LinearProgram::Entry>> load(static_cast<size_t>(problem.num_links));
  for (size_t g = 0; g < problem.num_groups(); ++g) {
    std::vector<LinearProgram::Entry> parts;
    for (int32_t link = 0; link < problem.num_links; ++link) {
      if ((problem.masks[g] >> link & 1) == 0) continue;
      const int32_t part = lp.AddColumn(0, none, 0);
      parts.push_back({part, 1});
      const LinkCost& cost =
          costs[static_cast<size_t>(problem.link_class[static_cast<size_t>(link)])];
      load[static_cast<size_t>(link)].push_back({part, cost.shard.ToDouble()});
    }
    lp.AddRow(problem.counts[g], problem.counts[g], parts);
  }
  for (size_t link = 0; link < load.size(); ++link) {
    const LinkCost& cost = costs[static_cast<size_t>(problem.link_class[link])];
    load[link].push_back({time, -1});
    lp.AddRow(-none, -cost.alpha.ToDouble(), load[link]);
  }
  const Result<LpSolution> solution = lp.Solve();
  EXPECT_TRUE(solution.has_value());
  return solution->objective;
}

TEST(BfbBalanceTest, AgreesWithTheLinearProgram) {
  Random random(5);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    LoadProblem problem = RandomProblem(random, 6);
    // Equal links first; then unequal ones whose alphas are so small that none dominates.
    problem.link_class.assign(static_cast<size_t>(problem.num_links), 0);
    std::vector<LinkCost> costs = {{Rational(0), Rational(1)}};
    const Load load = MinMaxLoad(problem);
    EXPECT_NEAR(Rational(load.num, load.den).ToDouble(), TimeByLinearProgram(problem, costs), 1e-6);
    costs.push_back({Rational(1, 100), Rational(3, 2)});
    for (int32_t& link_class : problem.link_class)
      link_class = static_cast<int32_t>(random.Below(2));
    EXPECT_NEAR(SolveMinMaxTime(problem, costs).time.ToDouble(),
                TimeByLinearProgram(problem, costs), 1e-6);
  }
}

TEST(BfbBalanceTest, WholeUnitsAreTheOptimumOfTheIntegerProgram) {
  Random random(2);
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    const LoadProblem problem = RandomProblem(random, 6);
    const Load exact = MinMaxLoad(problem);
    const auto units = static_cast<int64_t>(1 + random.Below(7));
    const std::vector<int64_t> capacity = MinMaxUnits(problem, exact, units).capacity;
    const std::vector<int64_t> loads = LoadsOf(problem, Allocate(problem, capacity, units), units);
    const int64_t most = *std::max_element(loads.begin(), loads.end());
    // No whole number below the bound of the linear program, and it is reached.
    EXPECT_EQ(Rational(most), (LoadByDefinition(problem) * Rational(units)).Ceil());
  }
}

TEST(BfbBalanceTest, UnequalLinksAgreeWithTheDefinition) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    LoadProblem problem = RandomProblem(random, 5);
    std::vector<LinkCost> costs;
    for (int i = 0; i < 3; ++i)
      costs.push_back({Rational(static_cast<int64_t>(random.Below(12))),
                       Rational(static_cast<int64_t>(1 + random.Below(6)), 2)});
    for (int32_t link = 0; link < problem.num_links; ++link)
      problem.link_class.push_back(static_cast<int32_t>(random.Below(3)));
    const MinMaxTime best = SolveMinMaxTime(problem, costs);
    EXPECT_EQ(best.time, TimeByDefinition(problem, costs));
    const auto units = static_cast<int64_t>(1 + random.Below(6));
    const WholeLoads whole = MinMaxUnits(problem, costs, best.time, units);
    EXPECT_GE(whole.time, best.time);
    const auto loads = LoadsOf(problem, Allocate(problem, whole.capacity, units), units);
    Rational reached;
    for (size_t link = 0; link < loads.size(); ++link) {
      if (loads[link] == 0) continue;
      const LinkCost& cost = costs[static_cast<size_t>(problem.link_class[link])];
      reached = std::max(reached, cost.alpha + cost.shard * Rational(loads[link], units));
    }
    EXPECT_EQ(reached, whole.time);
  }
}

// The least time over all ways to deal whole units out, by trying all of them.
void TryAll(const LoadProblem& problem, const std::vector<LinkCost>& costs, int64_t units,
            std::vector<int64_t>& loads, size_t group, int64_t left, int32_t link,
            std::optional<Rational>& best) {
  if (group == problem.num_groups()) {
    Rational time;
    for (size_t l = 0; l < loads.size(); ++l) {
      const LinkCost& cost = costs[static_cast<size_t>(problem.link_class[l])];
      if (loads[l] > 0) time = std::max(time, cost.alpha + cost.shard * Rational(loads[l], units));
    }
    if (!best || time < *best) best = time;
    return;
  }
  if (link == problem.num_links) {
    if (left > 0) return;
    const int64_t next = group + 1 < problem.num_groups() ? problem.counts[group + 1] * units : 0;
    return TryAll(problem, costs, units, loads, group + 1, next, 0, best);
  }
  const int64_t most = problem.masks[group] >> link & 1 ? left : 0;
  for (int64_t take = 0; take <= most; ++take) {
    loads[static_cast<size_t>(link)] += take;
    TryAll(problem, costs, units, loads, group, left - take, link + 1, best);
    loads[static_cast<size_t>(link)] -= take;
  }
}

TEST(BfbBalanceTest, WholeUnitsOnUnequalLinksAreOptimal) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    LoadProblem problem = RandomProblem(random, 3);
    for (int32_t& count : problem.counts) count = std::min(count, 2);
    const std::vector<LinkCost> costs = {
        {Rational(0), Rational(3)}, {Rational(2), Rational(2)}, {Rational(5), Rational(1)}};
    for (int32_t link = 0; link < problem.num_links; ++link)
      problem.link_class.push_back(static_cast<int32_t>(random.Below(3)));
    const auto units = static_cast<int64_t>(1 + random.Below(2));
    std::optional<Rational> best;
    std::vector<int64_t> loads(static_cast<size_t>(problem.num_links), 0);
    TryAll(problem, costs, units, loads, 0, problem.counts[0] * units, 0, best);
    EXPECT_EQ(MinMaxUnits(problem, costs, SolveMinMaxTime(problem, costs).time, units).time, *best);
  }
}

}  // namespace
}  // namespace tutti
