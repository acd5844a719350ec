// Expanded schedules: worked examples of the paper by hand, every operator over many bases and
// schedules, each proven and of exactly the predicted cost, and recipes of table 7.

#include "expand/expand.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bfb_testing.h"
#include "support/text.h"
#include "tutti/base/random.h"
#include "tutti/sched/cost.h"
#include "tutti/sched/transform.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/json.h"
#include "tutti/topo/operators.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

Expansion Must(Result<Expansion> expansion) {
  if (!expansion) throw std::runtime_error(expansion.error().message);
  return *std::move(expansion);
}

template <class T>
std::string FaultOf(const Result<T>& result) {
  return result ? std::string("none") : result.error().message;
}

void ExpectContains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

void ExpectExpandedProven(const Topology& topology, const Schedule& schedule) {
  const VerifyReport report = Verify(topology, schedule.collective, schedule);
  ASSERT_TRUE(report.verified()) << report.violations.front().message;
  EXPECT_EQ(schedule.topology_fingerprint, topology.Fingerprint());
}

ExpansionCost CostOf(const Topology& topology, const Schedule& schedule) {
  const StepCost cost = AnalyticCost(topology, schedule);
  EXPECT_EQ(cost.tl, schedule.num_steps);
  return {.ranks = topology.num_ranks(),
          .degree = topology.regular_degree().value_or(0),
          .tl = cost.tl,
          .tb = cost.tb};
}

void ExpectCost(const Expansion& made, const ExpansionCost& wanted) {
  ExpectExpandedProven(made.topology, made.schedule);
  const ExpansionCost cost = CostOf(made.topology, made.schedule);
  EXPECT_EQ(cost.ranks, wanted.ranks);
  EXPECT_EQ(cost.degree, wanted.degree);
  EXPECT_EQ(cost.tl, wanted.tl);
  EXPECT_EQ(cost.tb, wanted.tb) << cost.tb.ToString() << " " << wanted.tb.ToString();
}

// (shard, tail, head, begin, end, step)
using Hop = std::tuple<int, int, int, int, int, int>;

Schedule ByHand(const Topology& topology, int32_t units, const std::vector<Hop>& hops) {
  Schedule schedule{.collective = MustCollective(CollectiveKind::kAllGather, topology.num_ranks())};
  schedule.units_per_shard = units;
  schedule.topology_fingerprint = topology.Fingerprint();
  for (const auto& [shard, tail, head, begin, end, step] : hops) {
    schedule.num_steps = std::max(schedule.num_steps, step + 1);
    LinkId found{-1};
    for (LinkId link : topology.OutLinks(NodeId{tail}))
      if (topology.head(link).value == head) found = link;
    schedule.transfers.push_back({ShardId{shard}, found, begin, end, step, TransferOp::kCopy});
  }
  SortBySteps(schedule);
  return schedule;
}

std::set<Hop> HopsOf(const Topology& topology, const Schedule& schedule, int32_t shard) {
  std::set<Hop> hops;
  for (const Transfer& transfer : schedule.transfers)
    if (transfer.shard.value == shard)
      hops.insert({shard, topology.tail(transfer.link).value, topology.head(transfer.link).value,
                   transfer.begin, transfer.end, transfer.step});
  return hops;
}

// Figures 1 and 2. a, b, c, d of the paper are ranks 0, 1, 2, 3.
TEST(ExpandTest, Figure2ByHand) {
  const Topology base = Parse("bipartite(2)");
  std::vector<Hop> hops;
  for (const auto& [from, to, by1, by2] : std::vector<std::tuple<int, int, int, int>>{
           {0, 1, 2, 3}, {1, 0, 2, 3}, {2, 3, 0, 1}, {3, 2, 0, 1}}) {
    hops.push_back({from, from, by1, 0, 2, 0});
    hops.push_back({from, from, by2, 0, 2, 0});
    hops.push_back({from, by1, to, 0, 1, 1});
    hops.push_back({from, by2, to, 1, 2, 1});
  }
  const Schedule schedule = ByHand(base, 2, hops);
  ExpectExpandedProven(base, schedule);
  const Expansion line = Must(ExpandLine(base, schedule));
  ExpectCost(line, {.ranks = 8, .degree = 2, .tl = 3, .tb = Rational(1)});
  // Ranks of the line digraph: ac 0, ad 1, bc 2, bd 3, ca 4, cb 5, da 6, db 7. Broadcast from ca.
  const std::set<Hop> from_ca{
      {4, 4, 0, 0, 2, 0}, {4, 4, 1, 0, 2, 0},  // ca to ac and ad, whole
      {4, 0, 5, 0, 2, 1},                      // a's shard goes to c: ac to cb, not back to ca
      {4, 1, 6, 0, 2, 1}, {4, 1, 7, 0, 2, 1},  // and to d: ad to da, db
      {4, 5, 2, 0, 1, 2}, {4, 5, 3, 0, 1, 2},  // C1 from c to b: cb to bc, bd
      {4, 7, 2, 1, 2, 2}, {4, 7, 3, 1, 2, 2},  // C2 from d to b: db to bc, bd
  };
  EXPECT_EQ(HopsOf(line.topology, line.schedule, 4), from_ca);
}

// Figure 4. a1, a2, b1, .. of the paper are ranks 0, 1, 2, ..
TEST(ExpandTest, Figure4ByHand) {
  const Topology base = Parse("uniring(1,4)");
  std::vector<Hop> hops;
  for (int from = 0; from < 4; ++from)
    for (int step = 0; step < 3; ++step)
      hops.push_back({from, (from + step) % 4, (from + step + 1) % 4, 0, 1, step});
  const Expansion twice = Must(ExpandDegree(base, ByHand(base, 1, hops), 2));
  ExpectCost(twice, {.ranks = 8, .degree = 2, .tl = 4, .tb = Rational(7, 8)});
  const std::set<Hop> from_a1{
      {0, 0, 2, 0, 2, 0}, {0, 0, 3, 0, 2, 0}, {0, 2, 4, 0, 2, 1},
      {0, 2, 5, 0, 2, 1}, {0, 4, 6, 0, 2, 2}, {0, 4, 7, 0, 2, 2},
      {0, 6, 1, 0, 1, 3}, {0, 7, 1, 1, 2, 3},  // d1 and d2 each send a2 half
  };
  EXPECT_EQ(HopsOf(twice.topology, twice.schedule, 0), from_a1);
}

// Definition 14 on the torus of section 5.3: rows first with one half, columns first with the
// other.
TEST(ExpandTest, PowerByHand) {
  const Topology base = Parse("uniring(1,2)");
  const Schedule schedule = ByHand(base, 1, {{0, 0, 1, 0, 1, 0}, {1, 1, 0, 0, 1, 0}});
  const Expansion square = Must(ExpandPower(base, schedule, 2));
  ExpectCost(square, {.ranks = 4, .degree = 2, .tl = 2, .tb = Rational(3, 4)});
  const std::set<Hop> from_0{
      {0, 0, 2, 0, 1, 0}, {0, 0, 1, 0, 1, 1}, {0, 2, 3, 0, 1, 1},  // first half: slow, then fast
      {0, 0, 1, 1, 2, 0}, {0, 0, 2, 1, 2, 1}, {0, 1, 3, 1, 2, 1},  // second half: the other way
  };
  EXPECT_EQ(HopsOf(square.topology, square.schedule, 0), from_0);
}

struct Base {
  std::string text;
  Topology topology;
  Schedule schedule;
  bool breadth_first = false;  // with the best TB of all breadth-first schedules
};

// Regular networks, each with all the all-gathers that there are for it, in various chunks.
std::vector<Base> Bases(const std::vector<const char*>& expressions) {
  std::vector<Base> bases;
  for (const char* expression : expressions) {
    const Topology topology = Parse(expression);
    const Collective all_gather = MustCollective(CollectiveKind::kAllGather, topology.num_ranks());
    for (const Synthesizer& synthesizer : Synthesizers())
      for (int32_t chunks : {0, 2, 3, 5}) {
        if (synthesizer.name == "expand" || synthesizer.on_request_only) continue;
        SynthOptions options;
        options.chunks = chunks;
        Result<Schedule> made = RunSynthesizer(synthesizer, topology, all_gather, options);
        if (!made || made->kind != ScheduleKind::kStep) continue;
        bases.push_back({fmt::format("{} by {}, {} chunks", expression, synthesizer.name, chunks),
                         topology, *std::move(made), synthesizer.name == "bfb" && chunks == 0});
      }
  }
  return bases;
}

const std::vector<const char*> kNoLoops{"uniring(1,2)",
                                        "uniring(1,5)",
                                        "uniring(2,3)",
                                        "uniring(3,4)",
                                        "ring(3)",
                                        "ring(6)",
                                        "biring(4,5)",
                                        "complete(4)",
                                        "bipartite(3)",
                                        "hamming(2,3)",
                                        "hypercube(3)",
                                        "torus(3,4)",
                                        "kautz(2,1)",
                                        "kautz(2,2)",
                                        "kautz(3,1)",
                                        "dircirculant(2)",
                                        "circulant(7,1,2)",
                                        "genkautz(3,8)",
                                        "transpose(genkautz(2,9))"};

std::vector<const char*> AllBases() {
  std::vector<const char*> all = kNoLoops;
  for (const char* looped : {"debruijn(2,2)", "debruijn(3,1)", "debruijn(2,3)", "genkautz(2,5)",
                             "genkautz(2,7)", "genkautz(3,11)", "transpose(genkautz(2,5))"})
    all.push_back(looped);
  return all;
}

bool HasTwoNeighbours(const Topology& topology) {
  for (NodeId node : topology.Nodes()) {
    std::set<NodeId> heads;
    for (LinkId link : topology.OutLinks(node)) heads.insert(topology.head(link));
    if (heads.size() < 2) return false;
  }
  return true;
}

// Theorems 7 and 10.
TEST(ExpandTest, LineOfEveryBase) {
  int64_t below = 0, equal = 0;
  for (const Base& base : Bases(AllBases())) {
    SCOPED_TRACE(base.text);
    const Expansion line = Must(ExpandLine(base.topology, base.schedule));
    ExpectExpandedProven(line.topology, line.schedule);
    const ExpansionCost before = CostOf(base.topology, base.schedule);
    const ExpansionCost cost = CostOf(line.topology, line.schedule), most = LineCost(before);
    EXPECT_EQ(cost.ranks, most.ranks);
    EXPECT_EQ(cost.degree, most.degree);
    EXPECT_LE(cost.tl, most.tl);
    if (before.degree > 1) {
      EXPECT_EQ(cost.tl, most.tl);
    }
    EXPECT_LE(cost.tb, most.tb);
    if (base.breadth_first && HasTwoNeighbours(base.topology)) {
      EXPECT_EQ(cost.tb, most.tb);
    }
    ++(cost.tb == most.tb ? equal : below);
  }
  EXPECT_GT(equal, 100);
  EXPECT_GT(below, 0);
}

// Theorem 11.
TEST(ExpandTest, DegreeOfEveryBase) {
  for (const Base& base : Bases(kNoLoops))
    for (int32_t n : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{}, n {}", base.text, n));
      ExpectCost(Must(ExpandDegree(base.topology, base.schedule, n)),
                 DegreeCost(CostOf(base.topology, base.schedule), n));
    }
}

// Theorem 12, also with self-loops, and on networks that are not regular.
TEST(ExpandTest, PowerOfEveryBase) {
  std::vector<const char*> bases = AllBases();
  for (const char* irregular : {"mesh(2,3)", "without(kautz(2,2),links=3)"})
    bases.push_back(irregular);
  for (const Base& base : Bases(bases))
    for (int32_t n : {1, 2, 3}) {
      if (n == 3 && base.topology.num_ranks() > 4) continue;
      SCOPED_TRACE(fmt::format("{}, n {}", base.text, n));
      ExpansionCost before = CostOf(base.topology, base.schedule);
      ExpansionCost after = PowerCost({before.ranks, 1, before.tl, before.tb}, n);
      after.degree = n * before.degree;
      ExpectCost(Must(ExpandPower(base.topology, base.schedule, n)), after);
    }
}

// Links of different bandwidths keep their own: the formula holds for them too.
TEST(ExpandTest, PowerOfUnlikeLinks) {
  for (const char* expression : {"mesh(2,3,bw=[35,80]GiB/s)", "dgx1", "torus(3,3,bw=[1,3]GB/s)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Collective all_gather = MustCollective(CollectiveKind::kAllGather, topology.num_ranks());
    const Schedule schedule = *MakeBfb(topology, all_gather, {});
    const Expansion square = Must(ExpandPower(topology, schedule, 2));
    ExpectExpandedProven(square.topology, square.schedule);
    const StepCost before = AnalyticCost(topology, schedule);
    const StepCost after = AnalyticCost(square.topology, square.schedule);
    EXPECT_EQ(after.tl, 2 * before.tl);
    EXPECT_EQ(after.tb, before.tb / BestTb(topology.num_ranks()) *
                            BestTb(int64_t{topology.num_ranks()} * topology.num_ranks()));
  }
}

// A.6: nothing is lost.
TEST(ExpandTest, BidirectionalOfEveryBase) {
  for (const Base& base :
       Bases({"uniring(1,5)", "uniring(2,3)", "kautz(2,1)", "kautz(2,2)", "kautz(3,1)",
              "dircirculant(2)", "debruijn(2,3)", "debruijn(3,2)", "line(hamming(2,3))"})) {
    SCOPED_TRACE(base.text);
    const Expansion both = Must(ExpandBidirectional(base.topology, base.schedule));
    EXPECT_TRUE(IsBidirectional(both.topology));
    ExpectCost(both, BidirectionalCost(CostOf(base.topology, base.schedule)));
  }
}

TEST(ExpandTest, BidirectionalKeepsWhatIsBidirectional) {
  for (const Base& base : Bases({"torus(3,4)", "ring(5)", "biring(4,3)"})) {
    SCOPED_TRACE(base.text);
    const Expansion both = Must(ExpandBidirectional(base.topology, base.schedule));
    EXPECT_EQ(both.schedule.transfers, base.schedule.transfers);
    ExpectCost(both, CostOf(base.topology, base.schedule));
  }
}

// Where the network is not its own reverse the way back has a schedule of its own; a step costs
// what the worse of the two does.
TEST(ExpandTest, BidirectionalWithTwoSchedules) {
  for (const char* expression : {"genkautz(2,9)", "genkautz(3,20)", "genkautz(2,5)"}) {
    SCOPED_TRACE(expression);
    const Topology base = Parse(expression);
    const Collective all_gather = MustCollective(CollectiveKind::kAllGather, base.num_ranks());
    const Schedule there = *MakeBfb(base, all_gather, {});
    const Topology transpose = TransposeTopology(base);
    const Schedule back = *MakeBfb(transpose, all_gather, {});
    const Expansion both = Must(ExpandBidirectional(base, there, back));
    ExpectExpandedProven(both.topology, both.schedule);
    const StepCost cost = AnalyticCost(both.topology, both.schedule);
    const Rational forth_tb = AnalyticCost(base, there).tb,
                   back_tb = AnalyticCost(transpose, back).tb;
    EXPECT_GE(cost.tb, std::max(forth_tb, back_tb));
    EXPECT_LE(cost.tb, forth_tb + back_tb);
  }
}

TEST(ExpandTest, ParallelLinksCostNothing) {
  for (const Base& base : Bases({"uniring(1,4)", "kautz(2,1)", "debruijn(2,2)", "biring(4,3)"}))
    for (int32_t k : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{}, k {}", base.text, k));
      ExpansionCost cost = CostOf(base.topology, base.schedule);
      cost.degree *= k;
      ExpectCost(Must(ExpandParallel(base.topology, base.schedule, k)), cost);
    }
}

// Theorem 13: in closed form, and breadth-first broadcast on the product as the oracle.
TEST(ExpandTest, ProductsOfOptimalFactors) {
  const std::vector<std::vector<const char*>> products{
      {"uniring(1,4)", "uniring(1,8)"},
      {"ring(3)", "ring(4)", "complete(3)"},
      {"ring(5)", "ring(7)"},
      {"complete(4)", "ring(5)", "uniring(1,3)"},
      {"dircirculant(3)", "bipartite(3)"},
      {"hypercube(2)", "circulant(16,3,4)"},
      {"dircirculant(2)", "complete(2)", "uniring(1,3)", "ring(3)"},
      {"complete(5)"},
      {"torus(3,4)", "uniring(1,2)"},
  };
  for (const std::vector<const char*>& names : products) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(names, " x ")));
    std::vector<Topology> factors;
    std::vector<ExpansionCost> costs;
    for (const char* name : names) {
      factors.push_back(Parse(name));
      const int32_t n = factors.back().num_ranks();
      costs.push_back({n, *factors.back().regular_degree(), Diameter(factors.back()), BestTb(n)});
    }
    const Expansion product = Must(ExpandProduct(factors));
    ExpectCost(product, ProductCost(costs));
    const Collective all_gather =
        MustCollective(CollectiveKind::kAllGather, product.topology.num_ranks());
    const BfbCost oracle = *ComputeBfbCost(product.topology, all_gather, {});
    EXPECT_EQ(oracle.tl, product.schedule.num_steps);
    EXPECT_EQ(*oracle.tb, BestTb(product.topology.num_ranks()));
    EXPECT_LE(oracle.units_per_shard, *product.topology.regular_degree());
  }
}

// A schedule cut at random, and with transfers of one step in another order, expands as well.
TEST(ExpandTest, AnyCutsAndOrderAreFine) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::vector<const char*> names{"kautz(2,1)", "ring(4)", "uniring(2,3)", "complete(3)"};
    const Topology base = Parse(names[random.Below(names.size())]);
    const Collective all_gather = MustCollective(CollectiveKind::kAllGather, base.num_ranks());
    Schedule schedule =
        *Refine(*MakeBfb(base, all_gather, {}), 2 + static_cast<int32_t>(random.Below(4)));
    std::vector<Transfer> cut;
    for (Transfer transfer : schedule.transfers) {
      const auto at = static_cast<int32_t>(random.Below(static_cast<uint64_t>(transfer.units())));
      Transfer rest = transfer;
      transfer.end = rest.begin = transfer.begin + at;
      if (at > 0) cut.push_back(transfer);
      cut.push_back(rest);
    }
    for (size_t i = cut.size(); i-- > 1;) std::swap(cut[i], cut[random.Below(i + 1)]);
    schedule.transfers = std::move(cut);
    SortBySteps(schedule);
    ExpectExpandedProven(base, schedule);
    const ExpansionCost cost = CostOf(base, schedule);
    const Expansion line = Must(ExpandLine(base, schedule));
    ExpectExpandedProven(line.topology, line.schedule);
    EXPECT_LE(CostOf(line.topology, line.schedule).tb, LineCost(cost).tb);
    ExpectCost(Must(ExpandDegree(base, schedule, 2)), DegreeCost(cost, 2));
    ExpectCost(Must(ExpandPower(base, schedule, 2)), PowerCost(cost, 2));
  }
}

TEST(ExpandTest, SingleFaultsAreNamed) {
  const auto bfb = [](const Topology& topology) {
    return *MakeBfb(topology, MustCollective(CollectiveKind::kAllGather, topology.num_ranks()), {});
  };
  const Topology mesh = Parse("mesh(2,3)");
  const Result<Expansion> irregular = ExpandLine(mesh, bfb(mesh));
  ASSERT_FALSE(irregular);
  EXPECT_EQ(irregular.error().code, ErrorCode::kInfeasible);
  ExpectContains(irregular.error().message, "not regular: '0' has 2 ports, '1' has 3");
  ExpectContains(FaultOf(ExpandDegree(mesh, bfb(mesh), 2)),
                 "degree of a schedule: the base is not "
                 "regular");
  // As many ports in all, but not in and out.
  const Topology uneven = Parse("transpose(without(kautz(2,2),links=1,seed=3))");
  ExpectContains(FaultOf(ExpandLine(uneven, bfb(uneven))), "not regular");
  const Topology looped = Parse("debruijn(2,2)");
  ExpectContains(FaultOf(ExpandDegree(looped, bfb(looped), 2)), "the network has self-loops");
  const Topology unlike = Parse("torus(3,3,bw=[1,2]GB/s)");
  ExpectContains(FaultOf(ExpandLine(unlike, bfb(unlike))), "differ in bandwidth or alpha");
  ExpectContains(FaultOf(ExpandDegree(unlike, bfb(unlike), 2)), "differ in bandwidth or alpha");
  const Topology ring = Parse("ring(4)");
  ExpectContains(FaultOf(ExpandLine(Parse("ring(5)"), bfb(ring))),
                 "for 4 ranks, the network has 5");
  ExpectContains(FaultOf(ExpandLine(Parse("uniring(1,4)"), bfb(ring))), "another network");
  Schedule timed = bfb(ring);
  timed.kind = ScheduleKind::kTimed;
  ExpectContains(FaultOf(ExpandPower(ring, timed, 2)), "the schedule is timed");
  const Schedule scattered =
      MustSynthesize(ring, MustCollective(CollectiveKind::kReduceScatter, 4));
  ExpectContains(FaultOf(ExpandLine(ring, scattered)), "one of reduce-scatter, wanted all-gather");
  ExpectContains(FaultOf(ExpandDegree(ring, bfb(ring), 0)), "wanted at least 1");
  ExpectContains(FaultOf(ExpandPower(ring, bfb(ring), 65)), "wanted at most 64");
  ExpectContains(FaultOf(ExpandParallel(ring, bfb(ring), 0)), "wanted at least 1");
  Schedule fine = bfb(ring);
  fine.units_per_shard = 2'000'000'000;
  ExpectContains(FaultOf(ExpandPower(ring, fine, 2)), "2000000000 times 2 units");
  const Topology one_way = Parse("genkautz(2,9)");
  ExpectContains(FaultOf(ExpandBidirectional(one_way, bfb(one_way))),
                 "there is not an isomorphism from the network to its transpose");
  ExpectContains(FaultOf(ExpandBidirectional(one_way, bfb(one_way), bfb(one_way))),
                 "the way back, of a schedule: it was made for another network");
  const auto product = [](const std::vector<const char*>& names) {
    std::vector<Topology> factors;
    for (const char* name : names) factors.push_back(Parse(name));
    return FaultOf(ExpandProduct(factors));
  };
  ExpectContains(product({"ring(3)", "uniring(2,3)"}),
                 "factor 2, 'uniring(2,3)', has parallel links");
  ExpectContains(product({"debruijn(2,2)", "ring(3)"}),
                 "factor 1, 'debruijn(2,2)', has self-loops");
  ExpectContains(product({"ring(3)", "complete(1)"}), "has one rank");
  ExpectContains(product({"kautz(2,1)", "ring(3)"}),
                 "has a breadth-first schedule of TB 1, wanted 5/6");
  ExpectContains(product({"ring(3)", "ring(4,bw=1GB/s)"}), "differ in bandwidth or alpha");
  ExpectContains(product({"switch(3)"}), "switches");
}

Schedule MustExpand(const Topology& topology, CollectiveKind kind = CollectiveKind::kAllGather,
                    const SynthOptions& options = {}, int32_t root = 0) {
  const Collective collective = MustCollective(kind, topology.num_ranks(), root);
  Result<Schedule> schedule =
      RunSynthesizer(**FindSynthesizer("expand"), topology, collective, options);
  EXPECT_TRUE(schedule.has_value()) << (schedule ? "" : schedule.error().message);
  ExpectExpandedProven(topology, *schedule);
  EXPECT_EQ(schedule->algorithm, "expand");
  return *std::move(schedule);
}

struct Recipe {
  const char* expression;
  int32_t tl;
  int64_t thousandths;  // of TB, as printed
};

void ExpectRecipe(const Recipe& recipe) {
  SCOPED_TRACE(recipe.expression);
  const Topology topology = Parse(recipe.expression);
  const StepCost cost = AnalyticCost(topology, MustExpand(topology));
  EXPECT_EQ(cost.tl, recipe.tl);
  EXPECT_EQ(*(cost.tb * Rational(1000) + Rational(1, 2)).Floor().Num64(), recipe.thousandths);
}

// Table 7, but for the rows that take seconds.
TEST(ExpandRecipeTest, Table7) {
  for (const Recipe& recipe : std::vector<Recipe>{
           {"line(bipartite(4))", 3, 1000},
           {"line(distreg(ag24minus))", 5, 1000},
           {"distreg(ag24minus)", 4, 969},
           {"line(debruijn_mod(4,2))", 4, 1000},
           {"line(debruijn_mod(4,2),2)", 5, 1016},
           {"power(diamond,2)", 6, 984},
           {"line(power(diamond,2))", 7, 1000},
           {"line(distreg(ag24minus),2)", 6, 1008},
           {"power(debruijn_mod(2,4),2)", 10, 996},
           {"genkautz(4,64)", 3, 1313},  // 21/16, which the paper prints as 1.312
           {"line(bipartite(4),2)", 4, 1031},
           {"product(biring(2,8),power(uniring(1,4),2))", 10, 992},
           {"debruijn(4,4)", 4, 1328},
           {"line(bipartite(4),3)", 5, 1039},
           {"line(product(power(uniring(1,4),3),uniring(1,2)))", 11, 1000},
           {"line(circulant(16,3,4),3)", 6, 1020},
       })
    ExpectRecipe(recipe);
}

TEST(ExpandRecipeSlow, Table7) {
  for (const Recipe& recipe : std::vector<Recipe>{
           {"product(power(uniring(1,4),3),uniring(1,8))", 16, 998},
           {"line(power(diamond,2),2)", 8, 1004},
           {"line(power(debruijn_mod(2,4),2))", 11, 1000},
           {"power(product(uniring(1,4),uniring(1,8)),2)", 20, 999},
           {"genkautz(4,1024)", 5, 1332},
       })
    ExpectRecipe(recipe);
}

// What the recipe says is what the formulas say, step by step.
TEST(ExpandRecipeTest, CostsFollowTheTree) {
  const ExpansionCost ring{.ranks = 4, .degree = 1, .tl = 3, .tb = BestTb(4)};
  const ExpansionCost k33{.ranks = 6, .degree = 3, .tl = 2, .tb = BestTb(6)};
  const ExpansionCost kautz{.ranks = 3, .degree = 2, .tl = 1, .tb = BestTb(3)};
  const ExpansionCost diamond{.ranks = 8, .degree = 2, .tl = 3, .tb = BestTb(8)};
  const ExpansionCost debruijn_mod{.ranks = 16, .degree = 2, .tl = 5, .tb = BestTb(16)};
  const std::vector<std::pair<const char*, ExpansionCost>> table{
      {"line(power(uniring(1,4),2),k=2)", LineCost(PowerCost(ring, 2), 2)},
      {"line(diamond,3)", LineCost(diamond, 3)},
      {"degree(power(diamond,2),2)", DegreeCost(PowerCost(diamond, 2), 2)},
      {"line(debruijn_mod(2,4),2)", LineCost(debruijn_mod, 2)},
      {"bidirectional(debruijn_mod(2,4))", BidirectionalCost(debruijn_mod)},
      {"bidirectional(power(transpose(diamond),2))", BidirectionalCost(PowerCost(diamond, 2))},
      {"degree(line(bipartite(3)),2)", DegreeCost(LineCost(k33), 2)},
      {"power(degree(uniring(1,4),2),2)", PowerCost(DegreeCost(ring, 2), 2)},
      {"line(degree(power(line(kautz(2,0)),2),2))",
       LineCost(DegreeCost(PowerCost(LineCost(kautz), 2), 2))},
      {"bidirectional(line(bipartite(3)))", BidirectionalCost(LineCost(k33))},
      {"bidirectional(line(line(kautz(2,0)),2))", BidirectionalCost(LineCost(kautz, 3))},
      {"transpose(transpose(line(bipartite(3))))", LineCost(k33)},
      {"line(transpose(line(kautz(2,0))))", LineCost(kautz, 2)},
      {"degree(power(uniring(1,4),2,bw=3GB/s),2,alpha=2us)", DegreeCost(PowerCost(ring, 2), 2)},
  };
  for (const auto& [expression, cost] : table) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    ExpectCost({topology, MustExpand(topology)}, cost);
    // Reduce-scatter costs the same: these networks are their own reverse.
    EXPECT_EQ(CostOf(topology, MustExpand(topology, CollectiveKind::kReduceScatter)).tb, cost.tb);
    const StepCost both = AnalyticCost(topology, MustExpand(topology, CollectiveKind::kAllReduce));
    EXPECT_EQ(both.tl, 2 * cost.tl);
    EXPECT_EQ(both.tb, cost.tb + cost.tb);
  }
}

// parallel= on an operator doubles its links, for nothing; and every collective of networks that
// are not their own reverse, where the reversed half is expanded on the transpose.
TEST(ExpandRecipeTest, EveryCollectiveOnEveryKindOfTree) {
  for (const char* expression : {"line(genkautz(2,5),2)",
                                 "line(genkautz(3,11),parallel=2)",
                                 "line(debruijn(2,2))",
                                 "degree(genkautz(2,9),2)",
                                 "power(genkautz(2,5),2)",
                                 "transpose(line(genkautz(2,9)))",
                                 "line(transpose(genkautz(2,7)),2)",
                                 "bidirectional(genkautz(2,9))",
                                 "bidirectional(line(genkautz(2,5)))",
                                 "line(bidirectional(genkautz(2,5)))",
                                 "line(uniring(2,3))",
                                 "line(line(biring(4,3)),parallel=3)",
                                 "line(uniring(1,5),3)",
                                 "degree(product(ring(3),uniring(2,2)),2)",
                                 "power(mesh(2,2),2)",
                                 "product(genkautz(2,5),ring(3))",
                                 "line(power(uniring(1,3,parallel=2),2,parallel=2))",
                                 "power(torus(3,2,bw=[1,2]GB/s),2)",
                                 "transpose(power(genkautz(2,5),2),parallel=2)",
                                 "line(product(ring(3,bw=1GB/s),complete(3),bw=2GB/s))"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    for (CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
      SCOPED_TRACE(Name(kind));
      MustExpand(topology, kind);
    }
    for (CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce})
      for (int32_t root : {0, topology.num_ranks() - 1}) {
        SCOPED_TRACE(fmt::format("{} root {}", Name(kind), root));
        MustExpand(topology, kind, {}, root);
      }
  }
}

TEST(ExpandRecipeTest, BaseNetworksAreBreadthFirst) {
  for (const char* expression : {"torus(3,4)", "genkautz(3,11)", "product(ring(3),uniring(2,2))",
                                 "without(torus(3,3),links=2,seed=7)", "dgx1"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Collective all_gather = MustCollective(CollectiveKind::kAllGather, topology.num_ranks());
    EXPECT_EQ(MustExpand(topology).transfers, MakeBfb(topology, all_gather, {})->transfers);
  }
}

TEST(ExpandRecipeTest, ChunksAreMultiplesOfWhatIsNeeded) {
  const Topology topology = Parse("degree(uniring(1,4),2)");
  SynthOptions options;
  options.chunks = 6;
  const Schedule six = MustExpand(topology, CollectiveKind::kAllGather, options);
  EXPECT_EQ(six.units_per_shard, 6);
  EXPECT_EQ(CostOf(topology, six).tb, BestTb(8));
  options.chunks = 3;
  const Collective all_gather = MustCollective(CollectiveKind::kAllGather, 8);
  ExpectContains(FaultOf(MakeExpanded(topology, all_gather, options)), "a multiple of 2 chunks");
  options.chunks = -1;
  ExpectContains(FaultOf(MakeExpanded(topology, all_gather, options)), "chunks must be >= 0");
}

// What a file keeps of a network is enough, also when its links got other numbers or, all alike,
// another bandwidth; where it is another network than its name says, the answer is no.
TEST(ExpandRecipeTest, NetworksFromFiles) {
  const Topology line = Parse("line(genkautz(2,5),2)");
  const auto read_back = [](std::string json, const std::string& from, const std::string& to) {
    for (size_t at = 0; !from.empty() && (at = json.find(from, at)) != json.npos; at += to.size())
      json.replace(at, from.size(), to);
    Result<Topology> topology = TopologyFromJson(json);
    EXPECT_TRUE(topology) << (topology ? "" : topology.error().message);
    return *std::move(topology);
  };
  const std::string json = TopologyToJson(line);
  EXPECT_EQ(MustExpand(read_back(json, "", "")).transfers, MustExpand(line).transfers);
  const Topology faster = read_back(json, "50GB/s", "100GB/s");
  EXPECT_NE(faster.Fingerprint(), line.Fingerprint());
  EXPECT_EQ(CostOf(faster, MustExpand(faster)), CostOf(line, MustExpand(line)));

  Topology::Builder shuffled(line.num_ranks());
  for (int32_t link = line.num_links(); link-- > 0;)
    shuffled.AddLink(line.tail(LinkId{link}), line.head(LinkId{link}), line.spec(LinkId{link}));
  for (NodeId node : line.Nodes())
    for (const LinkSpec& loop : line.self_loops(node)) shuffled.AddLink(node, node, loop);
  shuffled.SetExpression(line.name());
  const Topology turned = *std::move(shuffled).Build();
  EXPECT_NE(turned.Fingerprint(), line.Fingerprint());
  for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
    MustExpand(turned, kind);

  const Collective all_gather = MustCollective(CollectiveKind::kAllGather, line.num_ranks());
  const auto fault = [&all_gather](const Topology& topology) {
    const Result<Schedule> made = MakeExpanded(topology, all_gather, {});
    EXPECT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kInfeasible);
    return FaultOf(made);
  };
  ExpectContains(fault(read_back(json, "line(genkautz(2,5),2)", "rack 7")),
                 "no expression of its links comes with 'rack 7'");
  ExpectContains(fault(read_back(json, "line(genkautz(2,5),2)", "nosuch.json")),
                 "'nosuch.json' stands for no network");
  ExpectContains(fault(read_back(json, "line(genkautz(2,5),2)", "line(kautz(2,1),2)")),
                 "no expression of its links comes with 'modified from line(kautz(2,1),2)'");
  // One link faster than the others.
  Topology::Builder builder(line.num_ranks());
  for (LinkId link : line.Links())
    builder.AddLink(line.tail(link), line.head(link),
                    {.bandwidth = link.value == 3 ? 1'000'000 : 50'000'000'000});
  for (NodeId node : line.Nodes())
    for (const LinkSpec& loop : line.self_loops(node)) builder.AddLink(node, node, loop);
  builder.SetExpression(line.name());
  ExpectContains(fault(*std::move(builder).Build()), "and other bandwidths or alphas");
}

// A file as a base: its own recipe is followed, in whatever order it has its links.
TEST(ExpandRecipeTest, FilesAsBases) {
  const std::string path = test_support::OwnPath("expand_base.topo.json");
  const Topology base = Parse("line(uniring(2,3))");
  Topology::Builder shuffled(base.num_ranks());
  for (int32_t link = base.num_links(); link-- > 0;)
    shuffled.AddLink(base.tail(LinkId{link}), base.head(LinkId{link}), base.spec(LinkId{link}));
  shuffled.SetExpression(base.name());
  ASSERT_TRUE(WriteTopologyFile(path, *std::move(shuffled).Build()));
  for (const char* format : {"line({})", "line(transpose({}),2)", "degree({},2)", "power({},2)",
                             "transpose(line({}))", "bidirectional({})"}) {
    const Topology topology = Parse(fmt::format(fmt::runtime(format), path));
    SCOPED_TRACE(topology.name());
    for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
      MustExpand(topology, kind);
  }
}

TEST(ExpandRecipeTest, FaultsAreNamed) {
  const auto fault = [](const char* expression) {
    const Topology topology = Parse(expression);
    const Result<Schedule> made = MakeExpanded(
        topology, MustCollective(CollectiveKind::kAllGather, topology.num_ranks()), {});
    EXPECT_FALSE(made) << expression;
    EXPECT_EQ(made ? ErrorCode::kIo : made.error().code, ErrorCode::kInfeasible);
    return FaultOf(made);
  };
  ExpectContains(fault("line(mesh(2,3))"), "not regular: '0' has 2 ports, '1' has 3");
  ExpectContains(fault("degree(mesh(2,3),2)"), "not regular");
  ExpectContains(fault("power(ring(3),2,bw=[1,2]GB/s)"), "its dimensions have different links");
}

}  // namespace
}  // namespace tutti
