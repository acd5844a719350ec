#include "tutti/sched/schedule.h"

#include <gtest/gtest.h>

#include <limits>

#include "sched_testing.h"

namespace tutti {
namespace {

TEST(ScheduleTest, SortByStepsIsStable) {
  Schedule schedule = EmptySchedule(Ring(3, false), CollectiveKind::kAllGather);
  schedule.num_steps = 3;
  for (int32_t i = 0; i < 9; ++i)
    schedule.transfers.push_back({ShardId{i}, LinkId{0}, 0, 1, (i * 2) % 3, TransferOp::kCopy});
  SortBySteps(schedule);
  std::vector<int32_t> shards;
  for (const Transfer& transfer : schedule.transfers) shards.push_back(transfer.shard.value);
  EXPECT_EQ(shards, (std::vector<int32_t>{0, 3, 6, 2, 5, 8, 1, 4, 7}));
}

TEST(ScheduleTest, SortByStepsEqualsTheStableSort) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const Topology topology = RandomTopology(random);
    Schedule schedule = RandomSchedule(random, topology, 50);
    if (schedule.kind != ScheduleKind::kStep) continue;
    for (size_t i = schedule.transfers.size(); i > 1; --i)
      std::swap(schedule.transfers[i - 1], schedule.transfers[random.Below(i)]);
    Schedule expected = schedule;
    std::stable_sort(expected.transfers.begin(), expected.transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.step < b.step; });
    SortBySteps(schedule);
    EXPECT_EQ(schedule, expected) << seed;
  }
}

TEST(ScheduleTest, BandwidthTimeIsRoundedUpToThePicosecond) {
  EXPECT_EQ(BandwidthPs(0, 1), 0);
  EXPECT_EQ(BandwidthPs(50, 50'000'000'000), 1000);
  EXPECT_EQ(BandwidthPs(1, 3'000'000'000'000), 1);
  EXPECT_EQ(BandwidthPs(Rational(10, 3), 1'000'000'000'000), 4);
  EXPECT_EQ(BandwidthPs(int64_t{1} << 62, 1), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace tutti
