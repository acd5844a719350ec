// Collectives of groups of ranks, executed by processes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/build.h"
#include "support/parse.h"
#include "tutti/coll/slots.h"
#include "tutti/lower/lowering.h"
#include "tutti/runtime/executor.h"
#include "tutti/sched/group_text.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::runtime_groups_test {
namespace {

using Kind = CollectiveKind;
using test_support::MustMake;
using test_support::Parse;

Plan PlanOf(const Topology& topology, Kind kind, std::string_view groups, std::string_view name) {
  const Collective collective =
      MustMake(kind, topology.num_ranks(),
               {.root = kind == Kind::kBroadcast || kind == Kind::kReduce ? 1 : 0,
                .groups = *ParseGroups(groups, topology, topology.num_ranks())});
  const Result<Schedule> schedule =
      RunSynthesizer(**FindSynthesizer(name), topology, collective, {.size_bytes = 1 << 16});
  EXPECT_TRUE(schedule.has_value()) << schedule.error().message;
  Result<Plan> plan = Lower(topology, *schedule);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return *std::move(plan);
}

TEST(RunGroupsTest, EveryCollectiveOfGroupsEndsWithWhatItsTableSays) {
  const Topology torus = Parse("torus(2,3)");
  for (const Kind kind :
       {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast, Kind::kReduce,
        Kind::kGather, Kind::kScatter, Kind::kAllToAll})
    // One group, two apart, of unlike sizes, and ranks in two of them.
    for (const char* groups : {"0,5,1", "every=2", "0-3;4,5", "0-2;2-5"}) {
      SCOPED_TRACE(std::string(Name(kind)) + " of " + groups);
      const Plan plan = PlanOf(torus, kind, groups, "direct");
      for (const int64_t size : {int64_t{4}, int64_t{4100}}) {
        const Result<RunReport> report =
            RunPlan(plan, {.size_bytes = size, .warmup = 0, .iterations = 2});
        ASSERT_TRUE(report.has_value()) << report.error().message;
        EXPECT_EQ(report->wrong, 0);
        if (!HasInPlaceForm(plan.collective)) continue;
        const Result<RunReport> in_place =
            RunPlan(plan, {.size_bytes = size, .in_place = true, .warmup = 0, .iterations = 2});
        ASSERT_TRUE(in_place.has_value()) << in_place.error().message;
        EXPECT_EQ(in_place->wrong, 0);
      }
      const Result<RunReport> product = RunPlan(plan, {.size_bytes = 512,
                                                       .type = DataType::kInt32,
                                                       .op = ReduceOp::kProd,
                                                       .warmup = 0,
                                                       .iterations = 1});
      ASSERT_TRUE(product.has_value()) << product.error().message;
      EXPECT_EQ(product->wrong, 0);
    }
}

TEST(RunGroupsTest, AveragesOfGroupsAreRefused) {
  const Plan plan = PlanOf(Parse("torus(2,3)"), Kind::kAllReduce, "0-2", "direct");
  const Result<RunReport> report = RunPlan(plan, {.size_bytes = 64, .op = ReduceOp::kAvg});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti::runtime_groups_test
