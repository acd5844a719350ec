#include "tutti/flow/concurrent_flow.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "concurrent_flow_testing.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/bounds/bounds.h"
#include "tutti/flow/concurrent_flow_lp.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConcurrentFlow, PathOfThreeByHand) {
  // 0 - 1 - 2: the link 0 -> 1 carries what 0 sends to 1 and to 2, so f = 1/2.
  const ConcurrentFlow flow = MustSolve("mesh(3)", 0);
  EXPECT_EQ(flow.f_lower, Rational(1, 2));
  EXPECT_EQ(flow.f_upper, Rational(1, 2));
  const int64_t u = flow.units_per_demand;
  // Bundles by head, then tail: 1 -> 0, 0 -> 1, 2 -> 1, 1 -> 2.
  ASSERT_EQ(flow.bundles.size(), 4u);
  EXPECT_EQ(flow.bundles[2], (LinkBundle{NodeId{2}, NodeId{1}, 50'000'000'000}));
  EXPECT_THAT(flow.flow_from[0], ElementsAre(BundleFlow{1, 2 * u}, BundleFlow{3, u}));
  EXPECT_THAT(flow.flow_from[1], testing::UnorderedElementsAre(BundleFlow{0, u}, BundleFlow{3, u}));
  EXPECT_THAT(flow.flow_from[2], ElementsAre(BundleFlow{2, 2 * u}, BundleFlow{0, u}));
}

TEST(ConcurrentFlow, ParallelLinksCountTogetherInUnitsOfTheSmallest) {
  // uniring(2,4): two links to the next rank. Each carries 6 of the 12 pairs' hops' shares.
  const ConcurrentFlow flow = MustSolve("uniring(2,4)", 0);
  EXPECT_EQ(flow.bundles.size(), 4u);
  EXPECT_EQ(flow.f_lower, Rational(2, 6));
}

struct ClosedForm {
  const char* expression;
  Rational f;
};

TEST(ConcurrentFlow, SymmetricNetworksReachLinksOverDistancesExactly) {
  const ClosedForm forms[] = {
      {"complete(6)", Rational(1)},      {"uniring(1,7)", Rational(1, 21)},
      {"ring(7)", Rational(1, 6)},       {"ring(8)", Rational(1, 8)},
      {"hypercube(5)", Rational(1, 16)}, {"torus(3,3,3)", Rational(1, 9)},
      {"torus(8,8)", Rational(1, 64)},   {"torus(16,16)", Rational(1, 512)},
      {"switch(9)", Rational(1, 8)},     {"bipartite(4)", Rational(2, 5)},
      {"torus(4,4,4)", Rational(1, 32)}, {"hamming(2,4)", Rational(1, 4)},
  };
  for (const auto& [expression, f] : forms) {
    const Topology topology = Parse(expression);
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, {});
    ASSERT_TRUE(flow.has_value());
    EXPECT_TRUE(CheckConcurrentFlow(topology, *flow).has_value()) << expression;
    EXPECT_EQ(flow->f_upper, f) << expression << " " << flow->f_upper.ToString();
    EXPECT_EQ(flow->f_lower, f) << expression;
  }
}

// Links over the sum of all distances: what lengths 1 prove on any network of equal links.
Rational LinksOverDistances(const Topology& topology) {
  int64_t sum = 0;
  for (NodeId from : topology.Ranks())
    for (int32_t distance : DistancesFrom(topology.graph(), from)) sum += distance;
  return {topology.num_links(), sum};
}

TEST(ConcurrentFlow, VertexAndArcTransitiveFamiliesReachLinksOverDistancesExactly) {
  std::vector<std::string> expressions = {"hypercube(1)", "complete(2)"};
  for (int n = 3; n <= 9; ++n)
    for (const char* family : {"complete({})", "bipartite({})", "ring({})", "uniring(1,{})",
                               "uniring(3,{})", "torus({0},{0})", "degree(uniring(1,{}),2)",
                               "power(complete({}),2)", "degree(complete({}),2)"})
      expressions.push_back(fmt::format(fmt::runtime(family), n));
  for (const char* expression :
       {"hypercube(3)", "hypercube(6)", "torus(4,4,4)", "torus(5,5,5)", "hamming(3,3)",
        "hamming(2,5)", "power(ring(5),3)", "power(uniring(1,4),2)", "distreg(octahedron)",
        "distreg(paley9)", "distreg(k55minus)", "distreg(heawood3)", "distreg(line_petersen)",
        "distreg(pg23)", "distreg(odd4)", "distreg(line_tutte8)", "distreg(doubled_odd4)",
        "distreg(gq33)"})
    expressions.emplace_back(expression);
  for (const std::string& expression : expressions) {
    const Topology topology = Parse(expression);
    const ConcurrentFlow flow = MustSolve(topology, {});
    EXPECT_EQ(flow.f_lower, LinksOverDistances(topology)) << expression;
    EXPECT_EQ(flow.f_upper, LinksOverDistances(topology)) << expression;
  }
}

TEST(ConcurrentFlow, NoNetworkOfEqualLinksCarriesMoreThanLinksOverDistancesAndTheTheorem) {
  for (int seed = 1; seed <= 6; ++seed)
    for (const char* family : {"random_regular(3,14,seed={})", "xpander(4,5,seed={})",
                               "without(torus(4,4),links=3,seed={})"}) {
      const Topology topology = Parse(fmt::format(fmt::runtime(family), seed));
      const ConcurrentFlow flow = MustSolve(topology, {});
      EXPECT_LE(flow.f_upper, LinksOverDistances(topology)) << topology.name();
      const auto degree = topology.regular_degree();
      if (!degree) continue;
      EXPECT_LE(flow.f_upper, MooreFlow(topology.num_ranks(), *degree)) << topology.name();
    }
}

TEST(ConcurrentFlow, KnownValuesLieBetweenTheLimits) {
  const ClosedForm forms[] = {
      {"mesh(9)", Rational(1, 20)},  // the cut in the middle: 4 x 5 pairs over one link
      {"mesh(4,4)", Rational(1, 16)},
      {"genkautz(4,50)", Rational(47, 1524)},
      {"genkautz(4,100)", Rational(14, 1133)},
      {"torus(2,4,bw=[10,20]GB/s)", Rational(1, 4)},
      {"dgx1", Rational(3, 8)},
  };
  for (const auto& [expression, f] : forms) {
    const ConcurrentFlow flow = MustSolve(expression, 1e-6);
    EXPECT_LE(flow.f_lower, f) << expression;
    EXPECT_GE(flow.f_upper, f) << expression;
  }
}

// The linear programs are certified to 1e-6 relative to 1 + f.
constexpr double kLpTolerance = 3e-6;

void ExpectAsTheProgramSays(const Topology& topology, const ConcurrentFlow& flow,
                            FlowProgram program) {
  const Result<double> f = SolveConcurrentFlowProgram(topology, program, flow.demand);
  ASSERT_TRUE(f.has_value()) << f.error().message << topology.ToText();
  EXPECT_LE(flow.f_lower.ToDouble(), *f + kLpTolerance) << topology.ToText();
  EXPECT_GE(flow.f_upper.ToDouble(), *f - kLpTolerance) << topology.ToText();
}

TEST(ConcurrentFlow, ProductIsTheWorseFactorOverTheSizeOfTheOther) {
  // Dimension by dimension each factor carries its own all-to-all once for every pair of the
  // other's nodes in a copy; and lengths of one factor alone prove that nothing is better.
  const char* factors[] = {"mesh(3)", "ring(5)", "genkautz(2,6)", "debruijn(2,3)"};
  for (const char* left : factors)
    for (const char* right : factors) {
      const Topology a = Parse(left), b = Parse(right);
      const ConcurrentFlow fa = MustSolve(left, 1e-5), fb = MustSolve(right, 1e-5);
      const Rational na(a.num_ranks()), nb(b.num_ranks());
      const std::string product = std::string("product(") + left + "," + right + ")";
      const ConcurrentFlow flow = MustSolve(product, 1e-5);
      EXPECT_LE(flow.f_lower, std::min(fa.f_upper / nb, fb.f_upper / na)) << product;
      EXPECT_GE(flow.f_upper, std::min(fa.f_lower / nb, fb.f_lower / na)) << product;
    }
}

TEST(ConcurrentFlow, WithAndWithoutSymmetryTheSame) {
  for (const char* expression :
       {"genkautz(4,50)", "genkautz(3,28)", "kautz(3,2)", "circulant(30,4,7)", "debruijn(2,5)",
        "line(circulant(16,3,4))", "twisted_torus(8,4)", "product(ring(5),genkautz(2,9))",
        "switch2d(3,4)", "rfs(2,3,4)", "uniring(2,6)", "without(torus(4,4),links=1)",
        "mesh(3,5,bw=[3,5]GB/s)", "distreg(ag24minus)", "dgx1"}) {
    const Topology topology = Parse(expression);
    ConcurrentFlowOptions options;
    options.gap = 1e-6;
    options.max_passes = 5000;
    const ConcurrentFlow with = MustSolve(topology, options);
    options.symmetry = false;
    const ConcurrentFlow without = MustSolve(topology, options);
    EXPECT_LE(with.f_lower, without.f_upper) << expression;
    EXPECT_LE(without.f_lower, with.f_upper) << expression;
  }
}

TEST(ConcurrentFlow, TurningAllLinksAroundChangesNothing) {
  for (const char* expression : {"genkautz(3,20)", "debruijn(2,4)"}) {
    const ConcurrentFlow there = MustSolve(expression, 1e-5);
    const ConcurrentFlow back = MustSolve(std::string("transpose(") + expression + ")", 1e-5);
    EXPECT_LE(there.f_lower, back.f_upper);
    EXPECT_LE(back.f_lower, there.f_upper);
  }
}

TEST(ConcurrentFlow, AgreesWithTheLinearProgramsOnRandomNetworks) {
  Random random(20260);
  for (int i = 0; i < 60; ++i) {
    const auto ranks = static_cast<int32_t>(2 + random.Below(5));
    const auto switches = static_cast<int32_t>(random.Below(3));
    const Topology topology = RandomNetwork(random, ranks, switches, i % 2 == 0 ? 1 : 9);
    ConcurrentFlowOptions options;
    options.gap = 1e-5;
    if (i % 3 == 0) options.demand = RandomDemand(random, ranks);
    const ConcurrentFlow flow = MustSolve(topology, options);
    ExpectAsTheProgramSays(topology, flow, FlowProgram::kPerSource);
    if (i % 4 == 0) ExpectAsTheProgramSays(topology, flow, FlowProgram::kPerPair);
  }
}

TEST(ConcurrentFlow, ChildProgramsPartAFlowOfASource) {
  Random random(5);
  for (int i = 0; i < 12; ++i) {
    const auto ranks = static_cast<int32_t>(3 + random.Below(4));
    const Topology topology = RandomNetwork(random, ranks, i % 3, 4);
    ConcurrentFlowOptions options;
    if (i % 2 == 0) options.demand = RandomDemand(random, ranks);
    const ConcurrentFlow flow = MustSolve(topology, options);
    for (NodeId source : topology.Ranks()) {
      const std::vector<BundleFlow>& parts = flow.flow_from[source.index()];
      if (parts.empty()) continue;
      const Result<ChildFlows> child = SolveChildProgram(topology, flow, source);
      ASSERT_TRUE(child.has_value()) << child.error().message;
      // Nothing of an acyclic flow is left over, so that the least total is all of it.
      double all = 0;
      for (size_t k = 0; k < parts.size(); ++k) {
        double sum = 0;
        for (const auto& to : child->to) sum += to.empty() ? 0 : to[k];
        const double of_flow =
            static_cast<double>(parts[k].units) / static_cast<double>(flow.units_per_demand);
        EXPECT_NEAR(sum, of_flow, 1e-4 * (1 + of_flow));
        all += of_flow;
      }
      EXPECT_NEAR(child->total, all, 1e-5 * (1 + all));
      EXPECT_TRUE(child->to[source.index()].empty());
      // Each destination gets what it is sent.
      for (NodeId to : topology.Ranks()) {
        double kept = 0;
        const std::vector<double>& mine = child->to[to.index()];
        for (size_t k = 0; k < mine.size(); ++k) {
          const LinkBundle& bundle = flow.bundles[static_cast<size_t>(parts[k].bundle)];
          kept += (bundle.head == to ? mine[k] : 0) - (bundle.tail == to ? mine[k] : 0);
        }
        const double wanted =
            to == source ? 0
            : flow.demand.empty()
                ? 1
                : static_cast<double>(
                      flow.demand[source.index() * static_cast<size_t>(ranks) + to.index()]);
        EXPECT_NEAR(kept, wanted, 1e-4 * (1 + wanted));
      }
    }
  }
}

TEST(ConcurrentFlow, DemandsAreScaledToMeanOne) {
  const Topology topology = Parse("genkautz(2,9)");
  ConcurrentFlowOptions options;
  const ConcurrentFlow plain = MustSolve(topology, options);
  options.demand.assign(81, 12'345'678'901);
  const ConcurrentFlow weighted = MustSolve(topology, options);
  EXPECT_LE(plain.f_lower, weighted.f_upper);
  EXPECT_LE(weighted.f_lower, plain.f_upper);
}

TEST(ConcurrentFlow, DemandsThatAreNothingBesideOthersArriveAsWell) {
  // 1 beside 2^59: doubles lose it on the way.
  Random random(3);
  ConcurrentFlowOptions options;
  options.demand = RandomDemand(random, 6);
  for (int64_t& demand : options.demand) demand = (demand << 52) + 1;
  MustSolve(Parse("genkautz(2,6)"), options);
}

TEST(ConcurrentFlow, OneDemandAloneIsAMaximumFlow) {
  // 0 reaches 3 of hypercube(2) over two ways of one link each; 1 of 12 pairs, so its demand is 12.
  ConcurrentFlowOptions options;
  options.demand.assign(16, 0);
  options.demand[3] = 5;
  const ConcurrentFlow flow = MustSolve(Parse("hypercube(2)"), options);
  EXPECT_LE(flow.f_lower, Rational(2, 12));
  EXPECT_GE(flow.f_upper, Rational(2, 12));
  EXPECT_TRUE(flow.flow_from[1].empty());
}

TEST(ConcurrentFlow, SameBytesForAnyNumberOfThreads) {
  const Topology topology = Parse("genkautz(4,60)");
  const int before = NumThreads();
  SetNumThreads(1);
  const ConcurrentFlow one = MustSolve(topology, {});
  SetNumThreads(4);
  const ConcurrentFlow four = MustSolve(topology, {});
  SetNumThreads(before);
  EXPECT_EQ(one.flow_from, four.flow_from);
  EXPECT_EQ(one.lengths, four.lengths);
  EXPECT_EQ(one.f_lower, four.f_lower);
  EXPECT_EQ(one.f_upper, four.f_upper);
}

TEST(ConcurrentFlow, EveryNumberOfPassesGivesAProvenAnswer) {
  const Topology topology = Parse("without(torus(6,6),links=3,seed=4)");
  for (int32_t passes : {0, 1, 2, 5, 20}) {
    ConcurrentFlowOptions options;
    options.gap = 0;
    options.max_passes = passes;
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
    ASSERT_TRUE(flow.has_value());
    EXPECT_EQ(flow->passes, passes);
    EXPECT_TRUE(CheckConcurrentFlow(topology, *flow).has_value());
    EXPECT_LE(flow->f_lower, flow->f_upper);
  }
}

TEST(ConcurrentFlow, BadInputIsNamed) {
  const Topology two = Parse("complete(2)");
  const auto message = [](const Topology& topology, const ConcurrentFlowOptions& options) {
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
    return flow ? std::string("accepted") : flow.error().message;
  };
  ConcurrentFlowOptions options;
  EXPECT_THAT(message(*Topology::Builder(1).Build(), options), HasSubstr("two ranks"));
  options.gap = -1;
  EXPECT_THAT(message(two, options), HasSubstr("the gap must be >= 0 and < 1, got -1"));
  options.gap = std::nan("");
  EXPECT_THAT(message(two, options), HasSubstr("the gap must be"));
  options = {};
  options.max_passes = -3;
  EXPECT_THAT(message(two, options), HasSubstr("got -3"));
  options = {};
  options.max_seconds = -1;
  EXPECT_THAT(message(two, options), HasSubstr("seconds must be"));
  options = {};
  options.demand = {0, 1, 1};
  EXPECT_THAT(message(two, options), HasSubstr("4 entries, got 3"));
  options.demand = {0, 1, -1, 0};
  EXPECT_THAT(message(two, options), HasSubstr("got -1 from rank 1 to rank 0"));
  options.demand = {5, 0, 0, 5};
  EXPECT_THAT(message(two, options), HasSubstr("no demand"));
  options.demand = {0, int64_t{1} << 62, 1, 0};
  EXPECT_THAT(message(two, options), HasSubstr("less than 2^62"));
}

TEST(ConcurrentFlow, Interrupted) {
  const Topology topology = Parse("genkautz(4,50)");
  RequestCancel();
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, {});
  ResetCancel();
  ASSERT_FALSE(flow.has_value());
  EXPECT_EQ(flow.error().code, ErrorCode::kCancelled);
}

TEST(CheckConcurrentFlow, NamesEverySingleFault) {
  const Topology topology = Parse("genkautz(2,6)");
  const ConcurrentFlow good = MustSolve(topology, {});
  struct Fault {
    const char* message;
    std::function<void(ConcurrentFlow&)> corrupt;
  };
  const Fault faults[] = {
      {"bundles of links", [](ConcurrentFlow& f) { f.bundles.pop_back(); }},
      {"bundle 1 is not", [](ConcurrentFlow& f) { ++f.bundles[1].bandwidth; }},
      {"bundle 0 is not", [](ConcurrentFlow& f) { std::swap(f.bundles[0], f.bundles[1]); }},
      {"sources", [](ConcurrentFlow& f) { f.flow_from.pop_back(); }},
      {"units per demand", [](ConcurrentFlow& f) { f.units_per_demand = 0; }},
      {"from rank 0", [](ConcurrentFlow& f) { ++f.units_per_demand; }},
      {"demand matrix",
       [](ConcurrentFlow& f) {
         f.demand = {0, 1};
       }},
      {"negative", [](ConcurrentFlow& f) { f.demand.assign(36, -1); }},
      {"no demand", [](ConcurrentFlow& f) { f.demand.assign(36, 0); }},
      {"62 bits", [](ConcurrentFlow& f) { f.demand.assign(36, int64_t{1} << 61); }},
      {"no bundle 99", [](ConcurrentFlow& f) { f.flow_from[2][0].bundle = 99; }},
      {"no bundle -1", [](ConcurrentFlow& f) { f.flow_from[2][0].bundle = -1; }},
      {"carries 0 units", [](ConcurrentFlow& f) { f.flow_from[2][0].units = 0; }},
      {"from rank 2: node", [](ConcurrentFlow& f) { ++f.flow_from[2][0].units; }},
      {"from rank 3: node", [](ConcurrentFlow& f) { f.flow_from[3].pop_back(); }},
      {"named twice", [](ConcurrentFlow& f) { f.flow_from[1].push_back(f.flow_from[1].back()); }},
      {"not acyclic",
       [](ConcurrentFlow& f) { std::reverse(f.flow_from[0].begin(), f.flow_from[0].end()); }},
      {"f_lower is said", [](ConcurrentFlow& f) { f.f_lower += Rational(1, 1'000'000'000); }},
      {"f_lower is said", [](ConcurrentFlow& f) { f.f_lower = f.f_upper; }},
      {"f_upper is said", [](ConcurrentFlow& f) { f.f_upper -= Rational(1, 1'000'000'000); }},
      {"f_upper is said", [](ConcurrentFlow& f) { f.lengths[3] /= 2; }},
      {"lengths for", [](ConcurrentFlow& f) { f.lengths.pop_back(); }},
      {"lengths must be", [](ConcurrentFlow& f) { f.lengths[0] = -1; }},
      {"lengths must be", [](ConcurrentFlow& f) { f.lengths[0] = int64_t{1} << 60; }},
      {"prove no limit", [](ConcurrentFlow& f) { f.lengths.assign(f.lengths.size(), 0); }},
  };
  for (const Fault& fault : faults) {
    ConcurrentFlow bad = good;
    fault.corrupt(bad);
    const Status status = CheckConcurrentFlow(topology, bad);
    ASSERT_FALSE(status.has_value()) << fault.message;
    EXPECT_THAT(status.error().message, HasSubstr(fault.message));
  }
  EXPECT_FALSE(CheckConcurrentFlow(Parse("genkautz(2,7)"), good).has_value());
}

}  // namespace
}  // namespace tutti
