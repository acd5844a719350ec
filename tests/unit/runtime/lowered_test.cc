// Every synthesizer's schedules, lowered and executed: the result is judged by what the collective
// means, so that a fault of any room on the way shows here.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "hand_plans.h"
#include "run.h"
#include "tutti/base/random.h"
#include "tutti/lower/lowering.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

constexpr int kTypes = 7, kOps = 5;

// Demands from nothing to much, with a rank that sends nothing at all.
std::vector<int64_t> UnevenDemand(int32_t n) {
  Random random(3);
  std::vector<int64_t> demand(static_cast<size_t>(n) * static_cast<size_t>(n));
  for (size_t i = 0; i < demand.size(); ++i)
    demand[i] = i / static_cast<size_t>(n) == 1 || i % 3 == 0
                    ? 0
                    : static_cast<int64_t>(random.Below(1000));
  demand[1] = 12345;
  return demand;
}

std::optional<Plan> PlanFor(const Synthesizer& synthesizer, const Topology& topology,
                            CollectiveKind kind, int32_t channels) {
  const int32_t n = topology.num_ranks();
  Collective::Options options;
  options.root = n > 2 ? 2 : 0;
  options.all_reduce_shards = synthesizer.one_shard_all_reduce ? 1 : 0;
  if (kind == CollectiveKind::kAllToAllV) options.demand = UnevenDemand(n);
  const Result<Schedule> schedule =
      synthesizer.synthesize(topology, MakeCollective(kind, n, std::move(options)), SynthOptions());
  if (!schedule && schedule.error().code == ErrorCode::kInfeasible) return std::nullopt;
  EXPECT_TRUE(schedule.has_value()) << schedule.error().message;
  if (!schedule) return std::nullopt;
  LowerOptions lower_options;
  lower_options.channels = channels;
  Result<Plan> plan = Lower(topology, *schedule, lower_options);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  if (!plan) return std::nullopt;
  return *std::move(plan);
}

void ExpectLoweredRight(const Plan& plan, const RunOptions& options, const RunMode& mode) {
  SCOPED_TRACE(testing::Message() << options.size_bytes << " bytes " << Name(options.type) << " "
                                  << Name(options.op) << (options.in_place ? " in place" : ""));
  const Result<RunReport> report = RunPlanAs(plan, options, mode);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->wrong, 0);
}

// Calls run(plan, options) for every synthesizer, collective and way to place the buffers.
template <class Run>
int ForEachPlan(const char* network, Run run) {
  const Topology topology = ParseTopology(network).value();
  int plans = 0;
  for (const Synthesizer& synthesizer : Synthesizers())
    for (const CollectiveKind kind : synthesizer.collectives) {
      if (synthesizer.on_request_only) continue;  // may take minutes
      SCOPED_TRACE(testing::Message() << network << " " << synthesizer.name << " " << Name(kind));
      const std::optional<Plan> plan = PlanFor(synthesizer, topology, kind, 1 + plans % 2);
      if (!plan) continue;
      for (const bool in_place : {false, true}) {
        if (in_place && !HasInPlaceForm(plan->collective)) continue;
        RunOptions options;
        options.warmup = 0;
        options.iterations = 1;
        options.in_place = in_place;
        run(*plan, options);
        ++plans;
      }
    }
  return plans;
}

// Sizes (nothing, which is one element a shard; a prime number of bytes; many tiles), types,
// operations, and whether ranks are processes take turns, so that the plans of a network meet all of them.
TEST(LoweredPlanTest, EverySynthesizerAndCollectiveRunsRight) {
  RunMode mode;
  mode.tuning.piece_bytes = 2048;
  int turn = 0;
  for (const char* network :
       {"ring(2)", "ring(5)", "torus(3,2)", "hypercube(3)", "complete(4)", "circulant(7,1,2)"}) {
    const int plans = ForEachPlan(network, [&](const Plan& plan, RunOptions options) {
      constexpr int64_t kSizes[] = {0, 10'007, 300'000};
      options.size_bytes = kSizes[turn % 3];
      options.type = static_cast<DataType>(turn % kTypes);
      options.op = static_cast<ReduceOp>(turn % kOps);
      mode.in_threads = turn % 4 != 0;
      ++turn;
      ExpectLoweredRight(plan, options, mode);
    });
    EXPECT_GE(plans, 20) << network;
  }
}

TEST(LoweredPlanTest, SchedulesThroughSwitchesRunRight) {
  for (const char* network : {"switch(4)", "switch2d(2,3)"}) {
    const int plans = ForEachPlan(network, [](const Plan& plan, RunOptions options) {
      options.size_bytes = 10'007;
      ExpectLoweredRight(plan, options, RunMode());
    });
    EXPECT_GE(plans, 1) << network;
  }
}

// On the smaller network every pair of type and operation; on the larger one every type of each
// plan, the operations in turn. Ranks are threads: what differs here is what they compute, and processes take five times as long.
TEST(LoweredPlanSlow, EveryTypeAndOperationOnEveryPlan) {
  RunMode mode;
  mode.tuning.piece_bytes = 1024;
  mode.in_threads = true;
  const auto run = [&](const Plan& plan, RunOptions options, int type, int op) {
    options.size_bytes = 40'009;
    options.type = static_cast<DataType>(type);
    options.op = static_cast<ReduceOp>(op);
    ExpectLoweredRight(plan, options, mode);
  };
  ForEachPlan("uniring(1,6)", [&](const Plan& plan, const RunOptions& options) {
    for (int type = 0; type < kTypes; ++type)
      for (int op = 0; op < (plan.collective.reduces() ? kOps : 1); ++op)
        run(plan, options, type, op);
  });
  int turn = 0;
  ForEachPlan("hypercube(4)", [&](const Plan& plan, const RunOptions& options) {
    for (int type = 0; type < kTypes; ++type) run(plan, options, type, (type + turn) % kOps);
    ++turn;
  });
}

}  // namespace
}  // namespace tutti
