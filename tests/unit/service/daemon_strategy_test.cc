// Schedules, flow tables and gates of a daemon, changed while collectives run.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "running_daemon.h"
#include "schedule_text.h"
#include "support/status.h"
#include "support/word_message.h"
#include "tutti/coll/collective.h"

namespace tutti::service {
namespace {

using test_support::Succeeded;
using testing::HasSubstr;
using Json = nlohmann::json;

// 20 changes while four ranks of two daemons reduce; `between` is called by each rank between two collectives.
void ChangeWhileRanksReduce(const RankBody& between) {
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
      between(ranks);
      int32_t mine = r == 0 && over ? 1 : 0;
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &last, 1, DataType::kInt32, ReduceOp::kMax)));
    }
    EXPECT_GT(calls, 0);
  });
  provider.join();
}

TEST(DaemonTest, ChangesItsStrategyWhileCollectivesRun) {
  ChangeWhileRanksReduce([](Communicator&) {});
}

TEST(DaemonTest, ChangesItsStrategyWhileSomeExchangeMessagesBetweenCollectives) {
  ChangeWhileRanksReduce([](Communicator& ranks) {
    if (ranks.rank() <= 1) test_support::ExchangeWord(ranks, 0);
  });
}

// Commands of some ranks are no measure for others: ranks 2 and 3 have left after one collective, and ranks 0 and 1 have more
// to say to each other.
TEST(DaemonTest, RanksThatHaveLeftAreNoConcernOfMessagesBetweenOthers) {
  RunningDaemon a("left-a"), b("left-b");
  std::atomic<int> there = 4;
  RunRanks({&a, &b}, 4, [&](Communicator& ranks) {
    int32_t mine = 1, sum = 0;
    ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &sum, 1, DataType::kInt32, ReduceOp::kSum)));
    if (ranks.rank() > 1) {
      { const Communicator leaves = std::move(ranks); }
      --there;
      return;
    }
    while (there > 2) std::this_thread::yield();
    for (int32_t round = 0; round < 10; ++round)
      ASSERT_NO_FATAL_FAILURE(test_support::ExchangeWord(ranks, round));
    // Nobody answers these.
    const Message lost{.peer = 3, .data = &mine, .bytes = sizeof(mine), .is_send = true};
    const Status never = ranks.Exchange({&lost, 1});
    ASSERT_FALSE(never);
    EXPECT_THAT(
        never.error().message,
        HasSubstr(fmt::format("rank {} sends its message 1 to rank 3, which received 0 and is "
                              "no longer there",
                              ranks.rank())));
  });
}

// This process's established connections that leave from a port of [first, end).
int ConnectionsFrom(long first, long end) {
  std::set<std::string> mine;  // as /proc/self/fd names them
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    mine.insert(std::filesystem::read_symlink(file.path(), none).string());
  }
  std::ifstream table("/proc/net/tcp");
  int found = 0;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    constexpr int kHexadecimal = 16;
    if (state != "01" || mine.count("socket:[" + inode + "]") == 0) continue;
    const long port = std::strtol(local.substr(local.find(':') + 1).c_str(), nullptr, kHexadecimal);
    if (port >= first && port < end) ++found;
  }
  return found;
}

// Connections between hosts leave from the ports that they are told; what runs there is right.
// As an operator gets it while ranks run: chunks lie within their operations.
TEST(DaemonTest, TracesTheChunksOfAWhile) {
  RunningDaemon a("chunks-a"), b("chunks-b");
  std::atomic<bool> over = false;
  std::atomic<int> running = 0;
  Json trace;
  std::thread operators([&] {
    while (running < 2) std::this_thread::yield();
    const std::string label = a.Ask("comms")["communicators"][0]["communicator"];
    // On a busy machine nothing may end in so short a time.
    for (int tries = 0; tries < 100 && trace.dump().find("\"chunk\"") == std::string::npos; ++tries)
      trace = a.Ask(Json{{"command", "trace"}, {"communicator", label}, {"chunks_ms", 100}});
    over = true;
  });
  RunRanks({&a, &b}, 2, [&](Communicator& ranks) {
    ++running;
    constexpr size_t kCount = 100'000;
    std::vector<float> data(kCount, 1), out(kCount);
    float goes_on = 1, all = 2;
    while (all == 2) {
      ASSERT_TRUE(Succeeded(
          ranks.AllReduce(data.data(), out.data(), kCount, DataType::kFloat32, ReduceOp::kSum)));
      goes_on = over ? 0 : 1;
      ASSERT_TRUE(
          Succeeded(ranks.AllReduce(&goes_on, &all, 1, DataType::kFloat32, ReduceOp::kSum)));
    }
  });
  operators.join();
  std::map<int64_t, std::pair<double, double>> lasted;  // of rank 0's operations
  for (const Json& event : trace["traceEvents"])
    if (event["cat"] == "collective" && event["name"] != "waits for its turn")
      lasted[event["args"]["sequence"]] = {event["ts"],
                                           event["ts"].get<double>() + event["dur"].get<double>()};
  int64_t within = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["cat"] != "chunk") continue;
    EXPECT_EQ(event["pid"], "chunks-a rank 0");
    EXPECT_THAT(event["name"].get<std::string>(),
                testing::AnyOf("send to 1", "receive from 1", "reduce from 1", "copy"));
    const auto operation = lasted.find(event["args"]["operation"]);
    if (operation == lasted.end()) continue;  // it runs yet
    // It begins a little before its launch is noted, but never before the one before it is over.
    if (operation != lasted.begin()) {
      EXPECT_GE(event["ts"].get<double>(), std::prev(operation)->second.second);
    }
    EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(), operation->second.second);
    ++within;
  }
  EXPECT_GT(within, 0);
}

TEST(DaemonTest, FlowsLeaveFromTheirPorts) {
  RunningDaemon a("a"), b("b");
  const std::string ring = ScheduleText("uniring(1,4)", CollectiveKind::kAllReduce, "uniring");
  // None that the system gives.
  constexpr int kCount = 100;
  const int kFirst = 20'500 + kCount * (getpid() % 100);
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
    // Connections are made on first use: the calls above may all have run before the change.
    std::vector<float> data(10'000);
    ASSERT_TRUE(Succeeded(
        ranks.AllReduce(data.data(), data.data(), 10'000, DataType::kFloat32, ReduceOp::kSum)));
    // Every edge of the ring crosses: ranks belong to the daemons in turn. On a busy machine a flow that seemed silent has a
    // second connection until the first is closed.
    if (ranks.rank() == 0) {
      int found = 0;
      for (int looks = 0; looks < 500; ++looks) {
        found = ConnectionsFrom(kFirst, kFirst + kCount);
        if (found == 4) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      EXPECT_EQ(found, 4);
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

// Shut for much longer than the test: what has begun on both hosts ends, what has not waits until it is opened.
TEST(DaemonTest, GatesThatHoldLaunchesLetEndWhatHasBegun) {
  RunningDaemon a("a"), b("b");
  constexpr int64_t kHour_ns = 3'600'000'000'000;
  const auto state = [](const RunningDaemon& daemon) {
    return daemon.Ask("comms")["communicators"][0];
  };
  const auto gates = [&](int64_t period_ns, const char* holds) {
    return a.Ask({{"command", "gates"},
                  {"communicator", state(a)["communicator"]},
                  {"period_ns", period_ns},
                  {"phase_ns", 0},
                  {"length_ns", period_ns == 0 ? 0 : 1},
                  {"holds", holds}});
  };
  const auto on_both = [&](const auto& condition) {
    while (!condition(state(a)) || !condition(state(b))) std::this_thread::yield();
  };
  std::atomic<bool> joined = false, first_ended = false;
  std::thread operator_([&] {
    while (!joined) std::this_thread::yield();
    on_both([](const Json& of) {
      const Json& rank = of["local_ranks"][0];
      return rank["running"] != "" || rank["completed"] >= 2;
    });
    EXPECT_EQ(gates(kHour_ns, "bytes").value("error", ""), "holds: wanted sends or launches");
    EXPECT_EQ(gates(kHour_ns, "launches").value("error", ""), "");
    on_both([](const Json& of) { return of["gates"].is_object(); });
    while (!first_ended) std::this_thread::yield();
    on_both([](const Json& of) { return of["local_ranks"][0]["issued"] == 3; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (const RunningDaemon* daemon : {&a, &b}) {
      const Json now = state(*daemon);
      EXPECT_EQ(now["local_ranks"][0]["running"], "");
      EXPECT_EQ(now["local_ranks"][0]["completed"], 2);
      EXPECT_EQ(now["gates"]["holds"], "launches");
    }
    EXPECT_EQ(gates(0, "sends").value("error", ""), "");
  });
  RunRanks({&a, &b}, 2, [&](Communicator& ranks) {
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
    constexpr int64_t kCount = 8 << 20;
    std::vector<float> data(kCount, 1);
    joined = true;
    ASSERT_TRUE(Succeeded(
        ranks.AllReduce(data.data(), data.data(), kCount, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_EQ(std::count(data.begin(), data.end(), 2), kCount);
    on_both([](const Json& of) { return of["gates"].is_object(); });
    first_ended = true;
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
  });
  operator_.join();
}

// Of the preferred one only rank 0 has called: it communicates, and the other one is silent on both hosts until rank 1 has called,
// too; or until its patience ends.
TEST(DaemonTest, OneCommunicatorMakesWayForAnother) {
  RunningDaemon a("a"), b("b");
  // They differ in their numbers of ranks.
  constexpr size_t kPreferred = 2, kOther = 3;
  const auto state = [](const RunningDaemon& daemon, size_t ranks) {
    const Json comms = daemon.Ask("comms");
    for (const Json& each : comms["communicators"])
      if (each["ranks"] == ranks) return each;
    return Json();
  };
  const auto is_busy = [&](const RunningDaemon& daemon) {
    const Json other = state(daemon, kOther);
    return other["gates"].is_object() && other["gates"]["busy"] == true;
  };
  const auto follow = [&](int64_t patience_ns) {
    const Json follower = a.Ask({{"command", "follow"},
                                 {"communicator", state(a, kOther)["communicator"]},
                                 {"patience_ns", patience_ns}});
    ASSERT_EQ(follower.value("error", ""), "");
    EXPECT_EQ(follower["daemons"].size(), 2u);
    const Json announced = a.Ask({{"command", "announce"},
                                  {"communicator", state(a, kPreferred)["communicator"]},
                                  {"followers", {follower}}});
    ASSERT_EQ(announced.value("error", ""), "");
    EXPECT_EQ(announced["followers"], 2);
  };
  const auto until = [](const auto& condition) {
    while (!condition()) std::this_thread::yield();
  };
  std::atomic<int> joined = 0, calls = 0, done = 0;
  const auto add = [](Communicator& ranks) {
    float one = 1, sum = 0;
    ASSERT_TRUE(Succeeded(ranks.AllReduce(&one, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
    ASSERT_EQ(sum, static_cast<float>(ranks.num_ranks()));
  };
  std::thread preferred([&] {
    RunRanks({&a, &b}, kPreferred, [&](Communicator& ranks) {
      ASSERT_TRUE(Succeeded(ranks.Barrier()));
      ++joined;
      until([&] { return calls >= 1; });
      if (ranks.rank() == 1) {
        // The other one has called and stays where it is.
        const auto other_waits = [&] {
          const Json rank = state(b, kOther)["local_ranks"][0];
          return rank["issued"] == 2 && rank["completed"] == 1;
        };
        until(other_waits);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        EXPECT_TRUE(other_waits());
      }
      add(ranks);
      ++done;
      until([&] { return calls >= 2; });
      if (ranks.rank() == 1) until([&] { return done >= 2 + static_cast<int>(kOther); });
      add(ranks);
    });
  });
  RunRanks({&a, &b}, kOther, [&](Communicator& ranks) {
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
    const auto begin = [&](int64_t patience_ns) {
      if (ranks.rank() == 0) {
        follow(patience_ns);
        ++calls;
        until([&] { return is_busy(a) && is_busy(b); });
        ++joined;
      }
    };
    until([&] { return joined >= 2; });
    begin(3'600'000'000'000);
    until([&] { return joined >= 3; });
    add(ranks);
    until([&] { return done >= 2; });
    begin(1);
    until([&] { return joined >= 4; });
    add(ranks);
    ++done;
    until([&] { return done >= 2 + static_cast<int>(kOther); });
    if (ranks.rank() != 0) return;
    const Json label = state(a, kOther)["communicator"];
    EXPECT_EQ(a.Ask({{"command", "gates"}, {"communicator", label}}).value("error", ""), "");
    until([&] { return state(b, kOther)["gates"].is_null(); });
  });
  preferred.join();
}

TEST(DaemonTest, WhoIsToBeFollowedIsAskedForRightly) {
  RunningDaemon a("a"), b("b");
  RunRanks({&a, &b}, 2, [&](Communicator& ranks) {
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
    if (ranks.rank() == 0) {
      const Json label = a.Ask("comms")["communicators"][0]["communicator"];
      const auto error = [&](const RunningDaemon& daemon, Json request) {
        if (!request.contains("communicator")) request["communicator"] = label;
        return daemon.Ask(request).value("error", "");
      };
      for (const Json& patience : {Json(0), Json(-1), Json("1s"), Json(1.5), Json()})
        EXPECT_THAT(error(a, {{"command", "follow"}, {"patience_ns", patience}}),
                    HasSubstr("patience_ns: wanted"));
      EXPECT_THAT(error(b, {{"command", "follow"}, {"patience_ns", 1}}), HasSubstr("ask there"));
      EXPECT_THAT(error(a, {{"command", "announce"}, {"communicator", "c-0"}}),
                  HasSubstr("no communicator 'c-0'"));
      for (const char* followers :
           {"7", "{}", "[7]", R"([{"key": [1, 2]}])", R"([{"key": [1], "daemons": []}])",
            R"([{"key": [1, -2], "daemons": []}])", R"([{"key": [1, 2], "daemons": [[1, 70000]]}])",
            R"([{"key": [1, 2], "daemons": [[4294967296, 7]]}])"})
        EXPECT_THAT(error(a, {{"command", "announce"}, {"followers", Json::parse(followers)}}),
                    HasSubstr("followers: wanted a list"))
            << followers;
      EXPECT_EQ(error(a, {{"command", "announce"}, {"followers", Json::array()}}), "");
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
