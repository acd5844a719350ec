#include "tutti/training/schedule_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

TEST(ScheduleTimesTest, TakesWhatTheSimulatorSaysOfEachSize) {
  const Topology ring = ParseTopology("ring(4)").value();
  const Collective collective = Collective::Make(CollectiveKind::kAllReduce, 4).value();
  const Schedule schedule = RunSynthesizer(**FindSynthesizer("ring"), ring, collective, {}).value();
  ASSERT_TRUE(Verify(ring, collective, schedule).verified());
  ScheduleTimes times(ring, schedule, {});
  // Six steps of 0.5 us and an eighth of the size at 50 GB/s.
  EXPECT_EQ(times.ps(8'000'000), 6 * (500'000 + 20'000'000));
  EXPECT_EQ(times.ps(8), 6 * (500'000 + 20));
  EXPECT_EQ(times.ps(8'000'000), 6 * (500'000 + 20'000'000));
  EXPECT_FALSE(times.fault());
}

TEST(ScheduleTimesTest, KeepsTheFirstFault) {
  const Topology ring = ParseTopology("ring(4)").value();
  Schedule schedule{.collective = Collective::Make(CollectiveKind::kAllReduce, 4).value()};
  schedule.topology_fingerprint = 1;
  ScheduleTimes times(ring, schedule, {});
  EXPECT_EQ(times.ps(8), 0);
  ASSERT_TRUE(times.fault());
  EXPECT_EQ(times.fault()->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(times.ps(9), 0);
}

}  // namespace
}  // namespace tutti
