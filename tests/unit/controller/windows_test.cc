#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "fake_cluster.h"
#include "tutti/base/random.h"
#include "tutti/controller/requests.h"

namespace tutti::controller {
namespace {

using testing::HasSubstr;

// Collectives of 4 ms every 20 ms: others may send for 16 ms less twice the guard.
TEST(ControllerTest, WindowsFollowTheTraceOfThePreferred) {
  FakeCluster cluster = ThirdSetUp();
  const auto trace = [](double period_us, double jitter_us) {
    Json events = Json::array();
    Random random(7);
    for (int i = 0; i < 40; ++i)
      events.push_back(
          {{"name", "all-reduce"},
           {"ts", 1e6 + i * period_us + static_cast<double>(random.Below(100)) / 100 * jitter_us},
           {"dur", 4000},
           {"args", {{"sequence", i}}}});
    return events;
  };
  cluster.jobs["c-b"].trace = trace(20'000, 0);
  Controller controller = ControllerOf(cluster);
  const Inventory inventory = controller.Look();
  const auto windows = controller.SetWindows(inventory, "c-b", {"c-c"}, 100'000, 1'000'000);
  ASSERT_TRUE(windows) << windows.error().message;
  EXPECT_EQ(windows->period_ns, 20'000'000);
  EXPECT_EQ(windows->length_ns, 4'000'000);
  EXPECT_EQ(windows->guard_ns, 100'000);  // it keeps its windows: nothing drifts
  // Silent, then windows beside those of the preferred one.
  const std::vector<Json>& others = cluster.jobs["c-c"].gates;
  const std::vector<Json>& own = cluster.jobs["c-b"].gates;
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0]["length_ns"], 1);
  EXPECT_EQ(others[1]["length_ns"], 15'800'000);
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0]["period_ns"], 0);
  EXPECT_EQ(own[1]["length_ns"], 4'200'000);
  EXPECT_EQ((own[1]["phase_ns"].get<int64_t>() + 4'200'000) % 20'000'000, others[1]["phase_ns"]);
  EXPECT_TRUE(cluster.jobs["c-a"].gates.empty());
  ASSERT_TRUE(controller.ClearWindows(inventory, {"c-c"}));
  EXPECT_EQ(others[2]["period_ns"], 0);
  // What is shut holds launches only; while the trace is taken every byte.
  ASSERT_TRUE(controller.SetWindows(inventory, "c-b", {"c-c"}, 100'000, 1'000'000,
                                    service::GateHolds::kLaunches));
  EXPECT_EQ(others[3]["holds"], "sends");
  EXPECT_EQ(others[4]["holds"], "launches");
  EXPECT_EQ(own.back()["holds"], "launches");
  // Without a period all may always send.
  cluster.jobs["c-b"].trace = trace(20'000, 9'000);
  EXPECT_FALSE(controller.SetWindows(inventory, "c-b", {"c-c"}, 100'000, 1'000'000));
  EXPECT_EQ(others.back()["period_ns"], 0);
  EXPECT_FALSE(controller.SetWindows(inventory, "c-b", {"c-b"}, 0, 1'000'000));
}

TEST(ControllerTest, DaemonsOfThePreferredAreToldWhoFollows) {
  FakeCluster cluster = ThirdSetUp();
  Controller controller = ControllerOf(cluster);
  const Inventory inventory = controller.Look();
  ASSERT_TRUE(controller.Follow(inventory, "c-b", {"c-c", "c-a"}, 5'000));
  EXPECT_EQ(cluster.jobs["c-b"].gates.back()["period_ns"], 0);
  EXPECT_EQ(cluster.jobs["c-a"].patience_ns, 5'000);
  EXPECT_EQ(cluster.jobs["c-c"].patience_ns, 5'000);
  EXPECT_EQ(cluster.jobs["c-c"].holds, "sends");
  const Json& followers = cluster.jobs["c-b"].followers;
  ASSERT_EQ(followers.size(), 2u);
  EXPECT_EQ(followers[0],
            Json({{"key", {17, cluster.jobs["c-c"].ranks[0].first}}, {"daemons", {{1, 2}}}}));
  EXPECT_TRUE(cluster.jobs["c-a"].followers.is_null());
  const Status same = controller.Follow(inventory, "c-b", {"c-b"}, 5'000);
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("is to be preferred and to keep silent"));
  EXPECT_FALSE(controller.Follow(inventory, "c-x", {"c-b"}, 5'000));
  EXPECT_FALSE(controller.Follow(inventory, "c-b", {"c-x"}, 5'000));
  // As operators ask.
  Requests requests(std::move(controller));
  const Json answer = Json::parse(requests.Answer(
      R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "follow": true, "holds": "launches"})"));
  EXPECT_EQ(cluster.jobs["c-c"].holds, "launches");
  EXPECT_EQ(answer, Json({{"period_ns", 0}, {"follows", "c-b"}, {"patience_ns", 1'000'000'000}}));
}

}  // namespace
}  // namespace tutti::controller
