// Schedules, flow tables and gates of a daemon, changed while collectives run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "running_daemon.h"
#include "support/status.h"
#include "tutti/coll/collective.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti::service {
namespace {

using test_support::Succeeded;
using testing::HasSubstr;
using Json = nlohmann::json;

std::string ScheduleText(const std::string& network, CollectiveKind kind,
                         std::string_view algorithm) {
  const Result<Topology> topology = ParseTopology(network);
  const Result<Collective> collective = Collective::Make(kind, topology->num_ranks(), {});
  const auto synthesizer = FindSynthesizer(algorithm);
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, {});
  EXPECT_TRUE(schedule) << schedule.error().message;
  return ScheduleToJson(*topology, *schedule);
}

TEST(DaemonTest, ChangesItsStrategyWhileCollectivesRun) {
  RunningDaemon a("a"), b("b");
  const std::string ring = ScheduleText("ring(4)", CollectiveKind::kAllReduce, "ring");
  const std::string bfb = ScheduleText("complete(4)", CollectiveKind::kAllReduce, "bfb");
  constexpr int kChanges = 20;
  std::atomic<bool> over = false;
  std::atomic<int> running = 0;
  std::thread provider([&] {
    while (running < 4) std::this_thread::yield();
    const std::string label = a.Ask("comms")["communicators"][0]["communicator"];
    for (int change = 0; change < kChanges; ++change) {
      const Json answer =
          a.Ask(Json{{"command", "reconfigure"},
                     {"communicator", label},
                     {"schedules", {{{"name", "next"}, {"text", change % 2 == 0 ? ring : bfb}}}}});
      EXPECT_TRUE(answer.contains("hold_s")) << answer.dump();
    }
    const Json comms = a.Ask("comms")["communicators"][0];
    EXPECT_EQ(comms["epoch"], kChanges);
    EXPECT_EQ(comms["strategy"], "next");
    over = true;
  });
  RunRanks({&a, &b}, 4, [&](Communicator& ranks) {
    ++running;
    const auto r = static_cast<int32_t>(ranks.rank());
    std::vector<int32_t> data(5000), out(5000);
    int calls = 0;
    // All stop after the same call.
    for (int32_t last = 0; last == 0; ++calls) {
      for (size_t i = 0; i < data.size(); ++i) data[i] = r + calls + static_cast<int32_t>(i);
      ASSERT_TRUE(Succeeded(
          ranks.AllReduce(data.data(), out.data(), 5000, DataType::kInt32, ReduceOp::kSum)));
      for (size_t i = 0; i < data.size(); ++i)
        ASSERT_EQ(out[i], 6 + 4 * (calls + static_cast<int32_t>(i))) << "call " << calls;
      int32_t mine = r == 0 && over ? 1 : 0;
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &last, 1, DataType::kInt32, ReduceOp::kMax)));
    }
    EXPECT_GT(calls, 0);
  });
  provider.join();
}

// Of the system's table: established connections that leave from a port of [first, end).
int ConnectionsFrom(long first, long end) {
  std::ifstream table("/proc/net/tcp");
  int found = 0;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    constexpr int kHexadecimal = 16;
    if (state != "01" || local.find(':') == std::string::npos) continue;
    const long port = std::strtol(local.substr(local.find(':') + 1).c_str(), nullptr, kHexadecimal);
    if (port >= first && port < end) ++found;
  }
  return found;
}

// Connections between hosts leave from the ports that they are told; what runs there is right.
TEST(DaemonTest, FlowsLeaveFromTheirPorts) {
  RunningDaemon a("a"), b("b");
  const std::string ring = ScheduleText("uniring(1,4)", CollectiveKind::kAllReduce, "uniring");
  constexpr int kFirst = 20'500, kCount = 100;  // none that the system gives
  Json flows = Json::array();
  for (int rank = 0; rank < 4; ++rank)
    flows.push_back({{"from", rank},
                     {"to", (rank + 1) % 4},
                     {"source", "127.0.0.1"},
                     {"target", "127.0.0.1"},
                     {"ports", {kFirst, kCount}}});
  std::atomic<int> running = 0;
  std::atomic<bool> over = false;
  std::thread provider([&] {
    while (running < 4) std::this_thread::yield();
    const std::string label = a.Ask("comms")["communicators"][0]["communicator"];
    const Json done = a.Ask({{"command", "reconfigure"},
                             {"communicator", label},
                             {"schedules", {{{"name", "ring"}, {"text", ring}}}},
                             {"flows", flows}});
    EXPECT_FALSE(done.contains("error")) << done;
    EXPECT_EQ(a.Ask("comms")["communicators"][0]["flows"], flows);
    const Json refused = a.Ask({{"command", "reconfigure"},
                                {"communicator", label},
                                {"flows", {{{"from", 0}, {"to", 9}}}}});
    EXPECT_THAT(refused.value("error", ""), HasSubstr("flows[0]: from and to"));
    over = true;
  });
  RunRanks({&a, &b}, 4, [&](Communicator& ranks) {
    ++running;
    for (int32_t last = 0, calls = 0; last == 0; ++calls) {
      std::vector<float> data = Ramp(10'000, static_cast<float>(ranks.rank()));
      ASSERT_TRUE(Succeeded(
          ranks.AllReduce(data.data(), data.data(), 10'000, DataType::kFloat32, ReduceOp::kSum)));
      for (size_t i = 0; i < data.size(); ++i)
        ASSERT_EQ(data[i], 4 * static_cast<float>(i) + 6) << "call " << calls;
      int32_t mine = ranks.rank() == 0 && over ? 1 : 0;
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &last, 1, DataType::kInt32, ReduceOp::kMax)));
    }
    // Every edge of the ring crosses: ranks belong to the daemons in turn.
    if (ranks.rank() == 0) {
      EXPECT_EQ(ConnectionsFrom(kFirst, kFirst + kCount), 4);
    }
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
  });
  provider.join();
}

TEST(DaemonTest, GatesHoldWhatRanksSendAndNothingWaitsForEver) {
  RunningDaemon a("a"), b("b");
  RunRanks({&a, &b}, 2, [&](Communicator& ranks) {
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
    const auto gates = [&](int64_t period_ns, int64_t length_ns) {
      const std::string label = a.Ask("comms")["communicators"][0]["communicator"];
      return a.Ask({{"command", "gates"},
                    {"communicator", label},
                    {"period_ns", period_ns},
                    {"phase_ns", 0},
                    {"length_ns", length_ns}});
    };
    if (ranks.rank() == 0) {
      EXPECT_THAT(gates(100, 200).value("error", ""), HasSubstr("wanted a period of 0"));
      EXPECT_THAT(a.Ask({{"command", "gates"}, {"communicator", "c-0"}}).value("error", ""),
                  HasSubstr("no communicator 'c-0'"));
      // Open for half of each 20 ms.
      EXPECT_FALSE(gates(20'000'000, 10'000'000).contains("error"));
    }
    float one = 1, sum = 0;
    for (int call = 0; call < 50; ++call) {
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&one, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
      ASSERT_EQ(sum, 2);
    }
    if (ranks.rank() == 0) {
      EXPECT_EQ(a.Ask("comms")["communicators"][0]["gates"]["period_ns"], 20'000'000);
      // All but closed: within two periods the clock counts as wrong, and all goes on.
      EXPECT_FALSE(gates(200'000'000, 1).contains("error"));
    }
    for (int call = 0; call < 20; ++call)
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&one, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
    if (ranks.rank() == 0) {
      EXPECT_FALSE(gates(0, 0).contains("error"));
    }
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
  });
}

TEST(DaemonTest, RefusesStrategiesThatAreNone) {
  RunningDaemon a("a"), b("b");
  std::string wrong = ScheduleText("ring(2)", CollectiveKind::kAllReduce, "ring");
  const std::string other = ScheduleText("ring(3)", CollectiveKind::kAllReduce, "ring");
  std::atomic<int> running = 0;
  std::atomic<bool> over = false;
  std::thread provider([&] {
    while (running < 2) std::this_thread::yield();
    const std::string label = a.Ask("comms")["communicators"][0]["communicator"];
    const auto change = [&](const Json& schedules) {
      return a
          .Ask(Json{{"command", "reconfigure"}, {"communicator", label}, {"schedules", schedules}})
          .value("error", "");
    };
    EXPECT_THAT(change({{{"name", "x"}, {"text", "no schedule"}}}), HasSubstr("x: "));
    EXPECT_THAT(change({{{"name", "x"}, {"text", other}}}), HasSubstr("is for 3 ranks, wanted 2"));
    Json broken = Json::parse(wrong);
    broken["transfers"].erase(broken["transfers"].begin());
    EXPECT_THAT(change({{{"name", "x"}, {"text", broken.dump()}}}), HasSubstr("x: "));
    EXPECT_THAT(b.Ask(Json{{"command", "reconfigure"}, {"communicator", label}}).value("error", ""),
                HasSubstr("ask there"));
    EXPECT_EQ(a.Ask("comms")["communicators"][0]["epoch"], 0);
    over = true;
  });
  RunRanks({&a, &b}, 2, [&](Communicator& ranks) {
    ++running;
    for (int32_t last = 0; last == 0;) {
      int32_t mine = ranks.rank() == 0 && over ? 1 : 0;
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &last, 1, DataType::kInt32, ReduceOp::kMax)));
    }
  });
  provider.join();
}

}  // namespace
}  // namespace tutti::service
