// Flows that start from an earlier answer, and the files that keep one.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "concurrent_flow_testing.h"
#include "tutti/base/parallel.h"
#include "tutti/flow/flow_file.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

// The flow on `after`, started from that on `before`; checked.
ConcurrentFlow Replan(const std::string& before, const std::string& after, double gap,
                      const std::vector<int64_t>& demand = {}) {
  const Topology old = Parse(before);
  const ConcurrentFlow flow = MustSolve(old, {});
  const std::vector<std::string> names = NodeNamesOf(old);
  ConcurrentFlowOptions options;
  options.gap = gap;
  options.demand = demand;
  options.start = FlowStart{names, &flow};
  return MustSolve(Parse(after), options);
}

TEST(FlowStart, OfTheSameNetworkIsTheAnswer) {
  for (const char* expression : {"genkautz(4,60)", "torus(4,5)", "rfs(2,3,4)", "mesh(3,4)"})
    EXPECT_LE(Replan(expression, expression, 2e-4).passes, 1) << expression;
}

TEST(FlowStart, PathAroundARingByHand) {
  // Of the ring 0 - 1 - 2 - 3 a path stays, whichever cable goes: 2 x 2 pairs cross its middle.
  for (int seed = 1; seed <= 8; ++seed) {
    const ConcurrentFlow flow =
        Replan("ring(4)", fmt::format("without(ring(4),links=1,seed={})", seed), 1e-6);
    EXPECT_LE(flow.f_lower, Rational(1, 4));
    EXPECT_GE(flow.f_upper, Rational(1, 4));
  }
}

TEST(FlowStart, FindsTheSameOptimumAsAFreshRun) {
  const std::pair<const char*, const char*> changes[] = {
      {"genkautz(4,40)", "without(genkautz(4,40),links=1,seed={})"},
      {"torus(5,5)", "without(torus(5,5),links=3,seed={})"},
      {"torus(4,4)", "without(torus(4,4),nodes=2,links=2,seed={})"},
      {"rfs(2,3,4)", "without(rfs(2,3,4),links=2,seed={})"},
      {"switch2d(3,4)", "without(switch2d(3,4),nodes=1,seed={})"},
      // What was lost comes back; another bandwidth; another network altogether.
      {"without(torus(5,5),links=4)", "without(torus(5,5),links=1,seed={})"},
      {"without(torus(4,4),nodes=3)", "without(torus(4,4),links=1,seed={})"},
      {"torus(3,4,bw=[10,30]GB/s)", "without(torus(3,4,bw=[30,10]GB/s),links=1,seed={})"},
      {"genkautz(2,9)", "random_regular(4,20,seed={})"},
      {"random_regular(3,20)", "random_regular(3,12,seed={})"},
  };
  for (const auto& [before, after] : changes)
    for (int seed = 1; seed <= 4; ++seed) {
      const std::string expression = fmt::format(fmt::runtime(after), seed);
      const ConcurrentFlow warm = Replan(before, expression, 1e-4);
      const ConcurrentFlow cold = MustSolve(expression, 1e-4);
      EXPECT_LE(warm.f_lower, cold.f_upper) << expression;
      EXPECT_LE(cold.f_lower, warm.f_upper) << expression;
    }
}

TEST(FlowStart, AFewRepairsMendTheLossOfALink) {
  for (int seed = 1; seed <= 4; ++seed)
    EXPECT_LE(Replan("random_regular(4,300)",
                     fmt::format("without(random_regular(4,300),links=1,seed={})", seed), 1e-2)
                  .passes,
              6)
        << seed;
}

TEST(FlowStart, WorksWithOtherDemands) {
  Random random(3);
  for (int i = 0; i < 10; ++i) {
    const std::vector<int64_t> demand = RandomDemand(random, 12);
    const ConcurrentFlow warm = Replan("mesh(3,4)", "mesh(3,4)", 1e-4, demand);
    ConcurrentFlowOptions options;
    options.demand = demand;
    const ConcurrentFlow cold = MustSolve(Parse("mesh(3,4)"), options);
    EXPECT_LE(warm.f_lower, cold.f_upper);
    EXPECT_LE(cold.f_lower, warm.f_upper);
  }
}

TEST(FlowStart, SameBytesForAnyNumberOfThreads) {
  const auto run = [](int threads) {
    const int before = NumThreads();
    SetNumThreads(threads);
    const ConcurrentFlow flow = Replan("genkautz(4,60)", "without(genkautz(4,60),links=1)", 1e-3);
    SetNumThreads(before);
    return flow;
  };
  const ConcurrentFlow one = run(1), four = run(4);
  EXPECT_EQ(one.flow_from, four.flow_from);
  EXPECT_EQ(one.lengths, four.lengths);
}

TEST(FlowStart, ContradictionsAreNamed) {
  const Topology topology = Parse("ring(4)");
  const ConcurrentFlow good = MustSolve(topology, {});
  struct Fault {
    const char* message;
    std::function<void(ConcurrentFlow&, std::vector<std::string>&)> corrupt;
  };
  const Fault faults[] = {
      {"4 sources and 3 nodes", [](auto&, auto& names) { names.pop_back(); }},
      {"7 lengths of 8 bundles", [](auto& flow, auto&) { flow.lengths.pop_back(); }},
      {"at node 9 of 4", [](auto& flow, auto&) { flow.bundles[2].head = NodeId{9}; }},
      {"at node -1 of 4", [](auto& flow, auto&) { flow.bundles[2].tail = NodeId{-1}; }},
      {"bundle 8 of 8", [](auto& flow, auto&) { flow.flow_from[1][0].bundle = 8; }},
      {"bundle -1 of 8", [](auto& flow, auto&) { flow.flow_from[1][0].bundle = -1; }},
  };
  for (const Fault& fault : faults) {
    ConcurrentFlow flow = good;
    std::vector<std::string> names = NodeNamesOf(topology);
    fault.corrupt(flow, names);
    ConcurrentFlowOptions options;
    options.start = FlowStart{names, &flow};
    const Result<ConcurrentFlow> result = SolveConcurrentFlow(topology, options);
    ASSERT_FALSE(result.has_value()) << fault.message;
    EXPECT_THAT(result.error().message, HasSubstr(fault.message));
  }
}

TEST(FlowStart, CyclesAndNonsenseInItAreOnlyABadStart) {
  const Topology topology = Parse("genkautz(2,9)");
  const std::vector<std::string> names = NodeNamesOf(topology);
  Random random(11);
  for (int i = 0; i < 30; ++i) {
    ConcurrentFlow flow = MustSolve(topology, {});
    for (auto& from : flow.flow_from)
      for (BundleFlow& part : from) {
        if (random.Below(3) == 0)
          part.bundle = static_cast<int32_t>(random.Below(flow.bundles.size()));
        part.units = static_cast<int64_t>(random.Next() >> 1);
      }
    for (int64_t& length : flow.lengths)
      length = i % 3 == 0 ? 0 : static_cast<int64_t>(random.Next() >> 1);
    ConcurrentFlowOptions options;
    options.start = FlowStart{names, &flow};
    MustSolve(topology, options);
  }
}

TEST(FlowFile, KeepsWhatAStartNeeds) {
  for (const char* expression : {"without(torus(4,4),nodes=1)", "rfs(2,3,4)"}) {
    const Topology topology = Parse(expression);
    ConcurrentFlowOptions options;
    options.demand.assign(
        static_cast<size_t>(topology.num_ranks()) * static_cast<size_t>(topology.num_ranks()), 3);
    const ConcurrentFlow flow = MustSolve(topology, options);
    const Result<StoredFlow> stored = FlowFromJson(FlowToJson(topology, flow));
    ASSERT_TRUE(stored.has_value()) << stored.error().message;
    EXPECT_EQ(stored->node_names, NodeNamesOf(topology));
    EXPECT_EQ(stored->flow.bundles, flow.bundles);
    EXPECT_EQ(stored->flow.flow_from, flow.flow_from);
    EXPECT_EQ(stored->flow.lengths, flow.lengths);
    EXPECT_EQ(stored->flow.demand, flow.demand);
    EXPECT_EQ(stored->flow.units_per_demand, flow.units_per_demand);
  }
}

TEST(FlowFile, NamesEverySingleFault) {
  const std::string good =
      R"({"format":"tutti-flow","version":1,"units_per_demand":2,"nodes":["a","b"],)"
      R"("bundles":[[1,0,5],[0,1,5]],"lengths":[1,1],"flow_from":[[[1,2]],[[0,2]]]})";
  ASSERT_TRUE(FlowFromJson(good).has_value());
  struct Fault {
    const char *from, *to, *message;
  };
  const Fault faults[] = {
      {good.c_str(), "[]", "the whole: wanted an object"},
      {good.c_str(), "{", "the whole: wanted JSON"},
      {"tutti-flow", "tutti", "format"},
      {"\"version\":1", "\"version\":2", "version: wanted 1"},
      {"demand\":2", "demand\":0", "units_per_demand"},
      {"demand\":2", "demand\":99999999999999999999", "units_per_demand"},
      {"demand\":2", "demand\":18446744073709551615", "units_per_demand"},
      {"\"a\"", "7", "nodes: wanted names"},
      {"\"a\"", "\"b\"", "no name twice"},
      {"[\"a\",\"b\"]", "[]", "nodes: wanted a list"},
      {"[1,0,5]", "[1,2,5]", "bundles/0: wanted two nodes of 0 to 1"},
      {"[1,0,5]", "[1,0,0]", "bundles/0"},
      {"[1,0,5]", "[1,0]", "bundles/0: wanted [tail, head, bandwidth]"},
      {"[1,1]", "[1,-1]", "lengths/1"},
      {"[1,1]", "[1,1.5]", "lengths/1"},
      {"[1,1]", "3", "lengths: wanted a list"},
      {"\"lengths\"", "\"demand\":[-1],\"lengths\"", "demand/0"},
      {"[[0,2]]", "[[2,2]]", "flow_from/1/0: wanted [a bundle of 0 to 1"},
      {"[[0,2]]", "[[0,0]]", "flow_from/1/0"},
      {"[[0,2]]", "[0,2]", "flow_from/1/0"},
      {"[[0,2]]", "5", "flow_from/1: wanted a list"},
      {"flow_from", "flows", "flow_from: wanted a list"},
  };
  for (const Fault& fault : faults) {
    std::string text = good;
    const std::string from = fault.from;
    text.replace(text.find(from), from.size(), fault.to);
    const Result<StoredFlow> stored = FlowFromJson(text);
    ASSERT_FALSE(stored.has_value()) << fault.to;
    EXPECT_THAT(stored.error().message, HasSubstr(fault.message)) << fault.to;
  }
  EXPECT_FALSE(ReadFlowFile("no such file").has_value());
}

}  // namespace
}  // namespace tutti
