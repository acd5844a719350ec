// Demands of any numbers: what a demand file may hold goes through every maker and judge without
// an overflow, and bad ones are refused by name.
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "concurrent_flow_testing.h"
#include "tutti/bounds/bounds.h"
#include "tutti/route/router.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/verify/routing.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr const char* kNetworks[] = {
    "complete(2)", "ring(3)",   "uniring(1,3)", "complete(3)", "ring(4)",
    "switch(3)",   "mesh(2,2)", "complete(4)",  "torus(2,2)",  "mesh(3,bw=33333333333B/s)",
};

// Around the limits of 15, 31, 32 and 53 bits, and what a row may just hold.
constexpr int64_t kNumbers[] = {0,
                                0,
                                1,
                                3,
                                255,
                                32767,
                                32768,
                                65535,
                                2147483647,
                                2147483648,
                                2147483649,
                                4294967295,
                                4294967297,
                                999999999999,
                                9007199254740991,
                                9007199254740992,
                                9007199254740993,
                                int64_t{1} << 60,
                                (int64_t{1} << 61) - 1};

std::vector<int64_t> AnyDemand(Random& random, int32_t ranks) {
  std::vector<int64_t> demand;
  const bool sparse = random.Below(2) == 0;
  for (int32_t i = 0; i < ranks * ranks; ++i)
    demand.push_back(sparse && random.Below(3) > 0 ? 0
                                                   : kNumbers[random.Below(std::size(kNumbers))]);
  return demand;
}

void ExpectRouted(std::string_view name, const Topology& topology,
                  const std::vector<int64_t>& demand) {
  RouterOptions options;
  options.demand = demand;
  const Result<Routed> routed = RunRouter(*FindRouter(name), topology, options);
  ASSERT_TRUE(routed.has_value()) << name << ": " << routed.error().message;
  const RoutingReport report = CheckRouting(topology, routed->routing);
  EXPECT_TRUE(report.verified()) << name << " on " << topology.name() << ": "
                                 << report.violations.front().message;
}

TEST(DemandNumbers, EveryMatrixIsScheduledRoutedAndBounded) {
  Random random(1);
  int32_t made = 0;
  for (int32_t round = 0; round < 250; ++round) {
    const Topology topology = Parse(kNetworks[random.Below(std::size(kNetworks))]);
    const std::vector<int64_t> demand = AnyDemand(random, topology.num_ranks());
    Collective::Options options;
    options.demand = demand;
    const Result<Collective> collective =
        Collective::Make(CollectiveKind::kAllToAllV, topology.num_ranks(), std::move(options));
    if (!collective) continue;  // a row of 2^62 or more, or nothing to send
    ++made;
    const Result<Schedule> schedule =
        RunSynthesizer(**FindSynthesizer("direct"), topology, *collective, {});
    ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
    EXPECT_TRUE(Verify(topology, *collective, *schedule).verified());
    const Result<Bounds> bounds = ComputeBounds(topology, *collective);
    ASSERT_TRUE(bounds.has_value()) << bounds.error().message;
    const double seconds = PredictedSeconds(topology, *schedule, 1 << 20).ToDouble();
    EXPECT_LE(bounds->Seconds(1 << 20), seconds * (1 + 1e-9)) << topology.name();

    ConcurrentFlowOptions flow_options;
    flow_options.demand = demand;
    flow_options.max_passes = 200;
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, flow_options);
    ASSERT_TRUE(flow.has_value()) << flow.error().message;
    const Status checked = CheckConcurrentFlow(topology, *flow);
    EXPECT_TRUE(checked.has_value()) << topology.name() << ": " << checked.error().message;
    for (const char* router : {"mcf", "pmcf", "sssp", "ewsp"})
      ExpectRouted(router, topology, demand);
  }
  EXPECT_GE(made, 150);
}

TEST(DemandNumbers, ADemandThatVanishesBesideOthersIsRoutedAllTheSame) {
  // Of 1 beside 2^61 doubles keep nothing.
  const Topology torus = Parse("torus(2,2)");
  ExpectRouted("pmcf", torus,
               {0, 0, 0, 0, 0, 0, (int64_t{1} << 61) - 1, 0, 0, 0, 0, 0, 4294967297, 0, 0, 0});
}

TEST(DemandNumbers, RowsThatOverflowAreNamed) {
  const auto fault = [](std::vector<int64_t> demand) {
    Collective::Options options;
    options.demand = std::move(demand);
    const Result<Collective> made =
        Collective::Make(CollectiveKind::kAllToAllV, 2, std::move(options));
    return made ? std::string("accepted") : made.error().message;
  };
  EXPECT_THAT(fault({0, 1, int64_t{1} << 62, 0}),
              HasSubstr("the demand of rank 1 adds up to 2^62"));
  EXPECT_THAT(fault({0, std::numeric_limits<int64_t>::max(), 1, 0}), HasSubstr("rank 0"));
  EXPECT_THAT(fault({5, 0, 0, 5}), HasSubstr("no traffic"));
}

}  // namespace
}  // namespace tutti
