// What every synthesizer makes, on networks of all kinds: no schedule beats its bound, the barrier
// costs what the formula says, and without it nothing is later.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/sim/simulator.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

void CheckTimes(const Topology& topology, const Schedule& schedule, const Bounds& bounds) {
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  for (int64_t size : {int64_t{1000}, int64_t{1} << 20, int64_t{1} << 30})
    for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
      const Result<SimReport> eager = Simulate(topology, schedule, {size, model, StepMode::kEager});
      ASSERT_TRUE(eager.has_value()) << eager.error().message;
      EXPECT_GE(eager->time_s, bounds.Seconds(size) * (1 - 1e-9)) << size;
      if (timed) continue;
      const Result<SimReport> barrier =
          Simulate(topology, schedule, {size, model, StepMode::kBarrier});
      ASSERT_TRUE(barrier.has_value()) << barrier.error().message;
      const double analytic = AnalyticSeconds(topology, schedule, size).ToDouble();
      EXPECT_NEAR(barrier->time_s, analytic, 1e-9 * analytic) << size;
      EXPECT_GE(barrier->time_s, bounds.StepLimit(size).ToDouble() * (1 - 1e-9)) << size;
      EXPECT_LE(eager->time_s, barrier->time_s) << size;
    }
}

TEST(SynthesizedSchedules, AreCorrectAndBeatNoBound) {
  int schedules = 0;
  for (const char* expression :
       {"ring(5)", "uniring(1,6)", "complete(6)", "dgx1", "torus(3,4)", "hypercube(3)",
        "genkautz(3,10)", "mesh(3,3,bw=[35,80]GiB/s,alpha=[1,2]us)", "kautz(2,2)", "switch(4)",
        "without(torus(3,3),links=2,seed=7)"}) {
    const Result<Topology> topology = ParseTopology(expression);
    ASSERT_TRUE(topology.has_value()) << topology.error().message;
    for (const Synthesizer& synthesizer : Synthesizers())
      for (CollectiveKind kind : synthesizer.collectives) {
        if (synthesizer.on_request_only) continue;  // may take minutes
        SCOPED_TRACE(fmt::format("{} {} {}", expression, Name(kind), synthesizer.name));
        Collective::Options options;
        if (kind == CollectiveKind::kAllToAllV) continue;  // needs a demand
        if (kind == CollectiveKind::kAllReduce)
          options.all_reduce_shards = synthesizer.one_shard_all_reduce ? 1 : 0;
        const Collective collective =
            Collective::Make(kind, topology->num_ranks(), options).value();
        const Result<Schedule> schedule = RunSynthesizer(synthesizer, *topology, collective, {});
        if (!schedule) {
          EXPECT_EQ(schedule.error().code, ErrorCode::kInfeasible) << schedule.error().message;
          continue;
        }
        ++schedules;
        const VerifyReport verdict = Verify(*topology, collective, *schedule);
        ASSERT_TRUE(verdict.verified()) << verdict.violations[0].message;
        CheckTimes(*topology, *schedule, ComputeBounds(*topology, collective).value());
      }
  }
  EXPECT_GT(schedules, 150);
}

}  // namespace
}  // namespace tutti
