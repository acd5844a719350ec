// Optima of concurrent flows as fractions, each proven by the independent check.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "concurrent_flow_testing.h"
#include "tutti/base/cancel.h"
#include "tutti/flow/concurrent_flow_lp.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

ConcurrentFlow MustProve(const Topology& topology, std::vector<int64_t> demand = {}) {
  ConcurrentFlowOptions options;
  options.exact = true;
  options.demand = std::move(demand);
  Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
  if (!flow) {
    ADD_FAILURE() << flow.error().message;
    return {};
  }
  const Status checked = CheckConcurrentFlow(topology, *flow);
  EXPECT_TRUE(checked.has_value()) << topology.name() << ": " << checked.error().message;
  EXPECT_EQ(flow->f_lower, flow->f_upper) << topology.name() << ": " << flow->no_proof;
  return *std::move(flow);
}

TEST(ExactFlow, KnownOptima) {
  const std::pair<const char*, Rational> known[] = {
      {"mesh(4,4)", Rational(1, 16)},
      {"genkautz(4,48)", Rational(16, 595)},
      {"genkautz(4,50)", Rational(47, 1524)},
      {"dgx1", Rational(3, 8)},
      {"genkautz(4,100)", Rational(14, 1133)},
      {"diamond", Rational(3, 20)},
      {"torus(2,4,bw=[10,20]GB/s)", Rational(1, 4)},
      {"kautz(2,3)", Rational(10, 389)},
      {"without(torus(3,3,3),links=3)", Rational(8, 81)},
      {"debruijn(2,4)", Rational(3, 77)},
      {"torus(3,3,3)", Rational(1, 9)},
      {"genkautz(2,6)", Rational(3, 13)},
      {"switch2d(3,4)", Rational(1, 9)},
      {"circulant(16,3,4)", Rational(1, 8)}};
  for (const auto& [expression, f] : known) {
    const ConcurrentFlow flow = MustProve(Parse(expression));
    EXPECT_EQ(flow.f_lower, f) << expression << " " << flow.f_lower.ToString();
    EXPECT_FALSE(flow.wide.has_value()) << expression;
  }
}

void ExpectAsTheProgramSays(const Topology& topology, const ConcurrentFlow& flow) {
  const Result<double> f =
      SolveConcurrentFlowProgram(topology, FlowProgram::kPerSource, flow.demand);
  ASSERT_TRUE(f.has_value()) << f.error().message;
  EXPECT_NEAR(flow.f_lower.ToDouble() / *f, 1, 1e-6) << topology.ToText();
}

TEST(ExactFlow, RandomNetworksHaveTheOptimumOfTheLinearProgram) {
  Random random(77);
  for (int32_t i = 0; i < 60; ++i) {
    const auto ranks = static_cast<int32_t>(3 + random.Below(6));
    // Equal links, some kinds, and bandwidths without a common measure.
    const uint64_t most = i % 3 == 0 ? 1 : i % 3 == 1 ? 5 : 1'000'003;
    const Topology topology = RandomNetwork(random, ranks, i % 4 == 0 ? 2 : 0, most);
    std::vector<int64_t> demand;
    if (i % 5 == 0) demand = RandomDemand(random, ranks);
    ExpectAsTheProgramSays(topology, MustProve(topology, std::move(demand)));
  }
}

TEST(ExactFlow, SmallKautzGraphsHaveTheOptimumOfTheLinearProgram) {
  for (const int32_t degree : {2, 3, 4})
    for (int32_t ranks = 6; ranks <= 18; ++ranks) {
      const Topology topology = Parse(fmt::format("genkautz({},{})", degree, ranks));
      ExpectAsTheProgramSays(topology, MustProve(topology));
    }
}

TEST(ExactFlow, RelabellingAndScalingChangeNothing) {
  // The same network from turned links has the same optimum; doubled bandwidths, too, which are
  // the units of f.
  for (const char* expression : {"genkautz(3,20)", "without(torus(4,4),links=2)"}) {
    const Rational f = MustProve(Parse(expression)).f_lower;
    EXPECT_EQ(MustProve(Parse(fmt::format("transpose({})", expression))).f_lower, f);
  }
  EXPECT_EQ(MustProve(Parse("mesh(3,4,bw=7GB/s)")).f_lower,
            MustProve(Parse("mesh(3,4,bw=21GB/s)")).f_lower);
}

TEST(ExactFlow, NumbersThatNeedMoreThan62BitsAreProvenAsWell) {
  const Topology topology = Parse("random_regular(4,60)");
  const ConcurrentFlow flow = MustProve(topology);
  ASSERT_TRUE(flow.wide.has_value());
  // The flow beside it is one of doubles, close to the optimum.
  EXPECT_EQ(flow.flow_from.size(), 60u);
  ConcurrentFlow rounded = flow;
  rounded.wide.reset();
  EXPECT_FALSE(CheckConcurrentFlow(topology, rounded).has_value());
}

// A proof in whole numbers of any size, of a network small enough to corrupt by hand.
ConcurrentFlow InWideNumbers(const ConcurrentFlow& flow) {
  ConcurrentFlow result = flow;
  WideFlow wide{Rational(flow.units_per_demand), {}, {}};
  for (const auto& parts : flow.flow_from) {
    auto& from = wide.flow_from.emplace_back();
    for (const auto& [bundle, units] : parts) from.push_back({bundle, Rational(units)});
  }
  for (const int64_t length : flow.lengths) wide.lengths.emplace_back(length);
  result.wide = std::move(wide);
  return result;
}

TEST(ExactFlow, EveryFaultOfAWideProofIsNamed) {
  const Topology topology = Parse("genkautz(2,6)");
  const ConcurrentFlow good = InWideNumbers(MustProve(topology));
  ASSERT_TRUE(CheckConcurrentFlow(topology, good).has_value());
  struct Fault {
    const char* message;
    std::function<void(ConcurrentFlow&)> corrupt;
  };
  const Fault faults[] = {
      {"units per demand must be above 0", [](ConcurrentFlow& f) { f.wide->units_per_demand = 0; }},
      {"the wide flow has 5 sources", [](ConcurrentFlow& f) { f.wide->flow_from.pop_back(); }},
      {"wide flow from rank 0: node",
       [](ConcurrentFlow& f) { f.wide->units_per_demand += Rational(1); }},
      {"wide flow from rank 2: there is no bundle 99",
       [](ConcurrentFlow& f) { f.wide->flow_from[2][0].bundle = 99; }},
      {"bundle 0 carries",
       [](ConcurrentFlow& f) {
         f.wide->flow_from[2][0] = {0, Rational(0)};
       }},
      {"from rank 2: node",
       [](ConcurrentFlow& f) { f.wide->flow_from[2][0].units += Rational(1, 1'000'000'007); }},
      {"named twice",
       [](ConcurrentFlow& f) { f.wide->flow_from[1].push_back(f.wide->flow_from[1].back()); }},
      {"not acyclic",
       [](ConcurrentFlow& f) {
         std::reverse(f.wide->flow_from[0].begin(), f.wide->flow_from[0].end());
       }},
      {"f_lower is said", [](ConcurrentFlow& f) { f.f_lower -= Rational(1, 1'000'000'007); }},
      {"f_upper is said", [](ConcurrentFlow& f) { f.f_upper += Rational(1, 1'000'000'007); }},
      {"f_upper is said", [](ConcurrentFlow& f) { f.wide->lengths[3] += Rational(1, 7); }},
      {"wide lengths for", [](ConcurrentFlow& f) { f.wide->lengths.pop_back(); }},
      {"wide lengths must be", [](ConcurrentFlow& f) { f.wide->lengths[0] = Rational(-1); }},
      {"prove no limit",
       [](ConcurrentFlow& f) { f.wide->lengths.assign(f.wide->lengths.size(), Rational(0)); }},
      // The flow beside it must be one, too.
      {"flow from rank 0: node", [](ConcurrentFlow& f) { ++f.units_per_demand; }},
  };
  for (const Fault& fault : faults) {
    ConcurrentFlow bad = good;
    fault.corrupt(bad);
    const Status status = CheckConcurrentFlow(topology, bad);
    ASSERT_FALSE(status.has_value()) << fault.message;
    EXPECT_THAT(status.error().message, HasSubstr(fault.message));
  }
}

TEST(ExactFlow, WhatTheProofWouldNeedIsSaid) {
  // Demands beyond what doubles hold exactly.
  ConcurrentFlowOptions options;
  options.exact = true;
  Random random(3);
  options.demand = RandomDemand(random, 6);
  for (int64_t& demand : options.demand) demand = (demand << 48) + 1;
  const Topology six = Parse("genkautz(2,6)");
  const Result<ConcurrentFlow> large = SolveConcurrentFlow(six, options);
  ASSERT_TRUE(large.has_value());
  const Status checked = CheckConcurrentFlow(six, *large);
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_LT(large->f_lower, large->f_upper);
  EXPECT_THAT(large->no_proof, HasSubstr("less than 2^53"));
  // More kinds of links than a basis may have rows.
  options.demand.clear();
  options.max_passes = 0;
  const Result<ConcurrentFlow> wide = SolveConcurrentFlow(Parse("random_regular(40,110)"), options);
  ASSERT_TRUE(wide.has_value());
  EXPECT_LT(wide->f_lower, wide->f_upper);
  EXPECT_THAT(wide->no_proof, HasSubstr("at least 4400 rows"));
}

TEST(ExactFlow, AProofThatIsCancelledEnds) {
  const Topology topology = Parse("genkautz(4,48)");
  RequestCancel();
  ConcurrentFlowOptions options;
  options.exact = true;
  options.max_passes = 0;  // at once
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
  ResetCancel();
  ASSERT_FALSE(flow.has_value());
  EXPECT_EQ(flow.error().code, ErrorCode::kCancelled);
}

TEST(ExactFlowSlow, EveryKautzGraphOfAHundredRanks) {
  for (const int32_t degree : {2, 3, 4})
    for (int32_t ranks = 6; ranks <= 100; ++ranks)
      MustProve(Parse(fmt::format("genkautz({},{})", degree, ranks)));
}

TEST(ExactFlowSlow, NetworksWithoutSymmetry) {
  for (const char* expression :
       {"random_regular(4,100)", "xpander(4,20)", "without(torus(4,4,4),links=3)",
        "without(mesh(8,8),links=4)", "without(torus(8,8),nodes=3)"})
    MustProve(Parse(expression));
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    const int32_t ranks = 40 + static_cast<int32_t>(random.Below(60));
    const Topology topology =
        RandomNetwork(random, ranks, seed % 3 == 0 ? 5 : 0, seed % 2 == 0 ? 9 : 1);
    MustProve(topology, seed % 3 == 1 ? RandomDemand(random, ranks) : std::vector<int64_t>());
  }
}

}  // namespace
}  // namespace tutti
