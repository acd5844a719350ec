#include "interval_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "tutti/base/random.h"
#include "unit/verify/hand_schedules.h"

namespace tutti::sim {
namespace {

// Against one number a unit, on grids and on lists.
TEST(IntervalTimesProperty, AgreesWithOneNumberAUnit) {
  int grids = 0, lists = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto below = [&random](int32_t bound) {
      return static_cast<int32_t>(random.Below(static_cast<uint64_t>(bound)));
    };
    const Topology topology = hand::Complete(2 + below(5));
    Schedule schedule = hand::Empty(
        topology, hand::MustMake(CollectiveKind::kAllGather, topology.num_ranks()), 1, 24);
    const int32_t grid = std::vector<int32_t>{1, 6, 8, 24}[random.Below(4)];
    for (int32_t i = below(60); i > 0; --i) {
      const int32_t begin = below(24 / grid);
      const int32_t end = begin + 1 + below(24 / grid - begin);
      schedule.transfers.push_back({ShardId{below(topology.num_ranks())},
                                    LinkId{below(topology.num_links())}, begin * grid, end * grid,
                                    0});
    }
    const ShardLayouts layouts(topology, schedule);
    for (ShardId shard : schedule.collective.Shards())
      ++(layouts.of(shard).cell_units > 0 ? grids : lists);
    for (IntervalTimes::Side side : {IntervalTimes::Side::kTail, IntervalTimes::Side::kHead}) {
      IntervalTimes times(topology, schedule, layouts, side);
      std::map<std::tuple<NodeId, ShardId, int32_t>, double> units;
      for (const Transfer& t : schedule.transfers) {
        const NodeId node =
            side == IntervalTimes::Side::kTail ? topology.tail(t.link) : topology.head(t.link);
        const Place place{node, t.shard, t.begin, t.end};
        double time = 1 + below(100);
        const uint32_t handle = times.Add(place, time);
        if (below(3) == 0) times.Raise(place, handle, time += 30);
        for (int32_t unit = t.begin; unit < t.end; ++unit) {
          double& known = units[{node, t.shard, unit}];
          known = std::max(known, time);
        }
        for (const Transfer& other : schedule.transfers)
          for (NodeId asked : topology.Nodes()) {
            double latest = 0;
            for (int32_t unit = other.begin; unit < other.end; ++unit)
              latest = std::max(latest, units[{asked, other.shard, unit}]);
            ASSERT_EQ(times.Latest({asked, other.shard, other.begin, other.end}), latest);
          }
      }
    }
  }
  EXPECT_GT(grids, 100);
  EXPECT_GT(lists, 100);
}

}  // namespace
}  // namespace tutti::sim
