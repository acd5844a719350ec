#include "tutti/controller/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fake_cluster.h"

namespace tutti::controller {
namespace {

using testing::HasSubstr;

TEST(RequestsTest, HostileRequestsAreAnsweredAndChangeNothing) {
  FakeCluster cluster = ThirdSetUp();
  Requests requests(ControllerOf(cluster));
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "no JSON object"},
      {"[]", "no JSON object"},
      {"{", "no JSON object"},
      {R"({"command": 7})", "command ''"},
      {R"({"command": "reboot"})", "command 'reboot'"},
      {R"({"command": "apply", "policy": "fairest"})", "unknown policy 'fairest'"},
      {R"({"command": "apply", "policy": 3})", "policy: got 3"},
      {R"({"command": "apply", "channels": -1})", "channels: got -1"},
      {R"({"command": "apply", "channels": 1e300})", "channels: got 1e+300"},
      {R"({"command": "apply", "reserved_from": 0})", "reserved_from: got 0"},
      {R"({"command": "apply", "dry_run": "yes"})", "dry_run: wanted"},
      {R"({"command": "apply", "extra": 1})", "extra: is no field"},
      {R"({"command": "apply", "background": []})", "background: is no object"},
      {R"({"command": "apply", "background": {"leaf0 -> leaf1": 1}})",
       "background.leaf0 -> leaf1: is no link"},
      {R"({"command": "apply", "background": {"leaf0 -> spine1": -1}})",
       "background.leaf0 -> spine1: got -1"},
      {R"({"command": "explain"})", "communicator: wanted"},
      {R"({"command": "explain", "communicator": "c-x"})", "no communicator 'c-x'"},
      {R"({"command": "install", "communicator": "c-b", "rings": []})", "neither rings nor routes"},
      {R"({"command": "install", "communicator": "c-b", "routes": {}})", "routes: is no list"},
      {R"({"command": "install", "communicator": "c-b", "routes": [7]})", "routes[0].is no object"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 1}]})",
       "routes[0].needs from, to and route"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 1, "route": 2}]})",
       "routes[0]: route 2, there are 2 from rank 0 to rank 1"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 7, "route": 0}]})",
       "routes[0]: no flow of its rings goes from rank 0 to rank 7 on channel 0"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 1, "route": 0, "by": 1}]})",
       "routes[0].by: is no field"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0, 2]]})",
       "rank 2, wanted 0 to 1"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0, 0]]})",
       "each of the 2 ranks once"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0]]})",
       "each of the 2 ranks once"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0, 1]], "route": 2})",
       "route 2"},
      {R"({"command": "install", "communicator": "c-b", "rings": "all"})", "rings: got"},
      {R"({"command": "windows", "victims": []})", "victims: is empty"},
      {R"({"command": "windows", "victims": ["c-x"], "preferred": "c-b"})",
       "no communicator 'c-x'"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b"})", "wanted at least 3"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "holds": "bytes"})",
       "holds: got 'bytes', wanted sends or launches"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "follow": 1})",
       "follow: got"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "patience_ns": 0})",
       "patience_ns"},
  };
  for (const auto& [request, error] : table) {
    const Json answer = Json::parse(requests.Answer(request));
    ASSERT_TRUE(answer.contains("error")) << request << " -> " << answer;
    EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr(error)) << request;
  }
  EXPECT_EQ(cluster.reconfigured, 0);
  // A daemon of another version.
  cluster.jobs["c-b"].flows = Json::array({{{"from", "x"}}});
  EXPECT_NE(requests.Answer(R"({"command": "show"})"), "");
}

TEST(RequestsTest, FollowsWhoComesAndGoes) {
  FakeCluster cluster = ThirdSetUp();
  cluster.jobs.erase("c-c");
  Requests requests(ControllerOf(cluster));
  EXPECT_EQ(requests.FollowChanges().size(), 2u);
  EXPECT_EQ(requests.FollowChanges().size(), 0u);
  EXPECT_EQ(cluster.reconfigured, 2);
  cluster.jobs["c-c"] = {"c-c", "C", {{1, 1}, {3, 1}}};
  const std::vector<std::string> lines = requests.FollowChanges();
  EXPECT_THAT(lines, testing::Contains(HasSubstr("c-c: ffa in force")));
  EXPECT_EQ(requests.FollowChanges().size(), 0u);
  const Json applied = Json::parse(
      requests.Answer(R"({"command": "apply", "policy": "locality-ring", "dry_run": true})"));
  EXPECT_EQ(applied["strategies"].size(), 3u);
  EXPECT_TRUE(applied["applied"].empty());
  EXPECT_EQ(Json::parse(requests.Answer(R"({"command": "show"})"))["policy"], "ffa");
}

}  // namespace
}  // namespace tutti::controller
