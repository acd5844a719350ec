#include "tutti/service/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/status.h"
#include "tutti/coll/collective.h"
#include "tutti/communicator.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/socket.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti::service {
namespace {

using test_support::Succeeded;

using testing::HasSubstr;
using Json = nlohmann::json;

// A daemon in a thread of the test, as one host would have it.
class RunningDaemon {
 public:
  explicit RunningDaemon(const std::string& name, std::vector<TenantOptions> tenants = {},
                         bool anybody = true) {
    folder_ = (std::filesystem::temp_directory_path() /
               ("tutti-" + std::to_string(getpid()) + "-" + name))
                  .string();
    options_.socket = folder_ + "/tuttid.sock";
    options_.admin = folder_ + "/admin.sock";
    options_.listen = "127.0.0.1";
    options_.host = name;
    options_.tenants = std::move(tenants);
    options_.anybody = anybody;
    Result<Daemon> started = Daemon::Start(options_);
    if (!started) ADD_FAILURE() << started.error().message;
    daemon_.emplace(std::move(*started));
    thread_ = std::thread([this] { daemon_->Run(); });
  }
  ~RunningDaemon() {
    End();
    std::filesystem::remove_all(folder_);
  }
  void End() {
    if (!thread_.joinable()) return;
    daemon_->Stop();
    thread_.join();
    daemon_.reset();
  }

  const std::string& socket() const { return options_.socket; }
  Json Ask(const Json& request) const {
    const Result<std::string> answer = AskDaemon(options_.admin, request.dump());
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? Json::parse(*answer) : Json();
  }
  Json Ask(const char* command) const { return Ask(Json{{"command", command}}); }

 private:
  std::string folder_;
  DaemonOptions options_;
  std::optional<Daemon> daemon_;
  std::thread thread_;
};

using RankBody = std::function<void(Communicator&)>;

// Rank r belongs to daemons[r % daemons]; each rank is a thread.
void RunRanks(const std::vector<const RunningDaemon*>& daemons, int32_t num_ranks,
              const RankBody& body, double timeout_s = 60) {
  const Result<UniqueId> id = MakeUniqueId(daemons.front()->socket());
  ASSERT_TRUE(id) << id.error().message;
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < num_ranks; ++rank)
    threads.emplace_back([&, rank] {
      const RunningDaemon& daemon = *daemons[static_cast<size_t>(rank) % daemons.size()];
      Result<Communicator> joined = Communicator::Join(
          *id, num_ranks, rank, {.timeout_s = timeout_s, .service = daemon.socket()});
      ASSERT_TRUE(joined) << joined.error().message;
      body(*joined);
    });
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> Ramp(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Every collective, against what the definitions say, for counts around the number of ranks.
void CheckEveryCollective(Communicator& ranks) {
  const auto n = static_cast<size_t>(ranks.num_ranks());
  const auto r = static_cast<size_t>(ranks.rank());
  for (const size_t count : {size_t{0}, size_t{1}, n - 1, n, n + 1, size_t{1000}, size_t{70001}}) {
    const auto signed_count = static_cast<int64_t>(count);
    // Small whole numbers: sums are exact in any order.
    const auto value = [&](size_t rank, size_t i) {
      return static_cast<float>((rank * 31 + i * 7) % 64);
    };
    std::vector<float> one(count), all(count * n), out(count), out_all(count * n);
    for (size_t i = 0; i < count; ++i) one[i] = value(r, i);
    for (size_t i = 0; i < all.size(); ++i) all[i] = value(r, i);
    const auto sum = [&](size_t i) {
      float total = 0;
      for (size_t rank = 0; rank < n; ++rank) total += value(rank, i);
      return total;
    };
    ASSERT_TRUE(Succeeded(
        ranks.AllReduce(one.data(), out.data(), signed_count, DataType::kFloat32, ReduceOp::kSum)));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], sum(i)) << "all-reduce of " << count;
    ASSERT_TRUE(
        Succeeded(ranks.AllGather(one.data(), out_all.data(), signed_count, DataType::kFloat32)));
    for (size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(out_all[i], value(i / count, i % count)) << "all-gather of " << count;
    ASSERT_TRUE(Succeeded(ranks.ReduceScatter(all.data(), out.data(), signed_count,
                                              DataType::kFloat32, ReduceOp::kSum)));
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(out[i], sum(r * count + i)) << "reduce-scatter of " << count;
    const auto root = static_cast<int32_t>(n - 1);
    ASSERT_TRUE(
        Succeeded(ranks.Broadcast(one.data(), out.data(), signed_count, DataType::kFloat32, root)));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], value(n - 1, i)) << "broadcast";
    ASSERT_TRUE(Succeeded(ranks.Reduce(one.data(), out.data(), signed_count, DataType::kFloat32,
                                       ReduceOp::kSum, root)));
    for (size_t i = 0; i < count && r + 1 == n; ++i) ASSERT_EQ(out[i], sum(i)) << "reduce";
    ASSERT_TRUE(Succeeded(
        ranks.Gather(one.data(), out_all.data(), signed_count, DataType::kFloat32, root)));
    for (size_t i = 0; i < all.size() && r + 1 == n; ++i)
      ASSERT_EQ(out_all[i], value(i / count, i % count)) << "gather";
    ASSERT_TRUE(
        Succeeded(ranks.Scatter(all.data(), out.data(), signed_count, DataType::kFloat32, root)));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], value(n - 1, r * count + i)) << "scatter";
    ASSERT_TRUE(
        Succeeded(ranks.AllToAll(all.data(), out_all.data(), signed_count, DataType::kFloat32)));
    for (size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(out_all[i], value(i / count, r * count + i % count)) << "all-to-all";
    // In place.
    ASSERT_TRUE(Succeeded(
        ranks.AllReduce(one.data(), one.data(), signed_count, DataType::kFloat32, ReduceOp::kSum)));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(one[i], sum(i)) << "all-reduce in place";
  }
  ASSERT_TRUE(Succeeded(ranks.Barrier()));
}

TEST(DaemonTest, EveryCollectiveOnOneHost) {
  RunningDaemon daemon("one");
  for (const int32_t ranks : {2, 3, 5}) RunRanks({&daemon}, ranks, CheckEveryCollective);
}

TEST(DaemonTest, EveryCollectiveBetweenHosts) {
  RunningDaemon a("a"), b("b"), c("c");
  RunRanks({&a, &b}, 2, CheckEveryCollective);
  RunRanks({&a, &b}, 4, CheckEveryCollective);
  RunRanks({&a, &b, &c}, 5, CheckEveryCollective);
}

TEST(DaemonTest, MessagesAndSplits) {
  RunningDaemon a("a"), b("b");
  RunRanks({&a, &b}, 4, [](Communicator& ranks) {
    const int32_t n = ranks.num_ranks(), r = ranks.rank();
    std::vector<float> out(1000, static_cast<float>(r)), in(1000);
    const std::vector<Message> messages = {
        {.peer = (r + 1) % n, .data = out.data(), .bytes = 4000, .is_send = true},
        {.peer = (r + n - 1) % n, .data = in.data(), .bytes = 4000, .is_send = false}};
    ASSERT_TRUE(Succeeded(ranks.Exchange(messages)));
    EXPECT_EQ(in, std::vector<float>(1000, static_cast<float>((r + n - 1) % n)));
    const auto part = ranks.Split(r % 2, r);
    ASSERT_TRUE(part) << part.error().message;
    float mine = static_cast<float>(r), sum = 0;
    ASSERT_TRUE(Succeeded((*part)->AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_EQ(sum, r % 2 == 0 ? 2 : 4);
  });
}

TEST(DaemonTest, CommunicatorsOfOneHostDoNotWaitForEachOther) {
  RunningDaemon daemon("one");
  // Two communicators over the same ranks, called in opposite orders from two threads each.
  const auto one = MakeUniqueId(daemon.socket()), two = MakeUniqueId(daemon.socket());
  ASSERT_TRUE(one && two);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 2; ++rank)
    for (const bool first : {true, false})
      threads.emplace_back([&, rank, first] {
        Result<Communicator> ranks = Communicator::Join(
            first ? *one : *two, 2, rank, {.timeout_s = 60, .service = daemon.socket()});
        ASSERT_TRUE(ranks) << ranks.error().message;
        for (int i = 0; i < 200; ++i) {
          float mine = 1, sum = 0;
          ASSERT_TRUE(
              Succeeded(ranks->AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
          ASSERT_EQ(sum, 2);
        }
      });
  for (std::thread& thread : threads) thread.join();
}

TEST(DaemonTest, DifferentCallsFailBothAndSayWhat) {
  RunningDaemon a("a"), b("b");
  for (const auto& daemons : {std::vector<const RunningDaemon*>{&a}, {&a, &b}})
    RunRanks(daemons, 2, [&daemons](Communicator& ranks) {
      std::vector<float> data(8);
      const Status done = ranks.AllReduce(data.data(), data.data(), ranks.rank() == 0 ? 8 : 4,
                                          DataType::kFloat32, ReduceOp::kSum);
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().message, HasSubstr("all-reduce of"));
      if (daemons.size() == 1) {
        EXPECT_THAT(done.error().message, testing::AllOf(HasSubstr("all-reduce of 8 float (sum)"),
                                                         HasSubstr("all-reduce of 4 float (sum)")));
      }
      EXPECT_FALSE(ranks.health());
    });
}

TEST(DaemonTest, WhoLeavesIsNamed) {
  RunningDaemon a("a"), b("b");
  for (const auto& daemons : {std::vector<const RunningDaemon*>{&a}, {&a, &b}})
    RunRanks(daemons, 3, [](Communicator& ranks) {
      float mine = 1, sum = 0;
      Status done = ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
      if (ranks.rank() == 2) {
        ASSERT_TRUE(Succeeded(done));
        return;
      }
      // Who comes second may hear of it before its first operation has ended.
      if (done) done = ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().message, HasSubstr("2 completed 1 and is no longer there"));
    });
}

TEST(DaemonTest, AbortAndTimeOutEndAll) {
  RunningDaemon a("a"), b("b");
  RunRanks({&a, &b}, 2, [](Communicator& ranks) {
    float mine = 1, sum = 0;
    if (ranks.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ranks.Abort();
      return;
    }
    const Status done = ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("rank 0: aborted"));
  });
  RunRanks(
      {&a, &b}, 2,
      [](Communicator& ranks) {
        if (ranks.rank() == 1) {
          while (ranks.health()) {
            // Its rank 0 gives up.
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            std::array<int32_t, 2> mine{}, sum{};
            if (!ranks.AllReduce(mine.data(), sum.data(), 2, DataType::kInt32, ReduceOp::kSum))
              return;
          }
          return;
        }
        float mine = 1, sum = 0;
        const Status done = ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
        EXPECT_FALSE(done);
      },
      0.5);
}

TEST(DaemonTest, ADaemonThatEndsIsNamed) {
  RunningDaemon a("a");
  auto b = std::make_unique<RunningDaemon>("b");
  std::atomic<int> ready = 0;
  std::thread ender([&] {
    while (ready < 2) std::this_thread::yield();
    b->End();
  });
  RunRanks({&a, b.get()}, 2, [&](Communicator& ranks) {
    float mine = 1, sum = 0;
    ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
    ++ready;
    if (ranks.rank() == 1) {
      int64_t other = 1, others = 0;
      while (ranks.AllReduce(&other, &others, 1, DataType::kInt64, ReduceOp::kSum)) {
      }
      return;
    }
    const Status done = ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
    ASSERT_FALSE(done);
  });
  ender.join();
}

// --- Strategies ----------------------------------------------------------------------------------

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

// --- Tenants -------------------------------------------------------------------------------------

TEST(DaemonTest, KnowsItsTenants) {
  const uint32_t user = getuid();
  RunningDaemon daemon("one",
                       {{.name = "blue", .token = "sesame", .memory_bytes = 1 << 20},
                        {.name = "red", .users = {user}, .ranks = 1}},
                       false);
  const auto hello = [&](const std::string& token) -> ipc::Packet {
    const auto socket = ipc::Connect(daemon.socket(), ipc::SocketKind::kPackets);
    EXPECT_TRUE(socket);
    EXPECT_TRUE(ipc::Send(socket->fd(), {.kind = ipc::Kind::kHello, .request = 1, .text = token}));
    auto answer = ipc::Receive(socket->fd(), true, true);
    EXPECT_TRUE(answer && *answer);
    return (*answer)->packet;
  };
  EXPECT_EQ(hello("sesame").text, "blue");
  EXPECT_EQ(hello("").text, "red");
  const ipc::Packet refused = hello("guess");
  EXPECT_EQ(refused.kind, ipc::Kind::kRefused);
  EXPECT_THAT(refused.text, HasSubstr("with this token is no tenant"));
  // The second rank is one too many for red, and its rank 0 hears that it cannot come.
  const auto id = MakeUniqueId(daemon.socket());
  ASSERT_TRUE(id);
  std::vector<std::thread> threads;
  std::atomic<int> refusals = 0;
  for (int32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      const auto joined =
          Communicator::Join(*id, 2, rank, {.timeout_s = 1, .service = daemon.socket()});
      ASSERT_FALSE(joined);
      if (joined.error().message.find("red has 1 ranks here, its quota") != std::string::npos)
        ++refusals;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refusals, 1);
}

// What no library would send, one after the other.
void SendNonsense(RunningDaemon& daemon) {
  const auto connect = [&] {
    auto socket = ipc::Connect(daemon.socket(), ipc::SocketKind::kPackets);
    EXPECT_TRUE(socket);
    return std::move(*socket);
  };
  const auto ask = [](int fd, const ipc::Packet& packet) {
    EXPECT_TRUE(ipc::Send(fd, packet));
    auto answer = ipc::Receive(fd, true, true);
    return answer && *answer ? std::optional(std::move(**answer)) : std::nullopt;
  };
  // No packet at all; a packet before the hello; two hellos; an answer.
  {
    const auto socket = connect();
    EXPECT_EQ(send(socket.fd(), "nonsense", 8, 0), 8);
    EXPECT_FALSE(ipc::Receive(socket.fd(), true, true));
  }
  EXPECT_FALSE(ask(connect().fd(), {.kind = ipc::Kind::kAllocate, .words = {100}}));
  {
    const auto socket = connect();
    EXPECT_TRUE(ask(socket.fd(), {.kind = ipc::Kind::kHello}));
    EXPECT_FALSE(ask(socket.fd(), {.kind = ipc::Kind::kHello}));
  }
  struct Case {
    const char* what;
    std::function<void(ipc::CommandArea&)> attack;
  };
  const std::vector<Case> cases = {
      {"a wild tail", [](ipc::CommandArea& area) { area.page.tail = 1ull << 40; }},
      {"a line that is not there",
       [](ipc::CommandArea& area) {
         area.slots[0] = {.sequence = 1, .opcode = ipc::Opcode::kCollective, .line = 7};
         area.page.tail = 1;
       }},
      {"a line beyond all",
       [](ipc::CommandArea& area) {
         area.slots[0] = {.sequence = 1, .opcode = ipc::Opcode::kExchange, .line = ~0u};
         area.page.tail = 1;
       }},
  };
  for (const Case& attack : cases) {
    const auto socket = connect();
    auto welcome = ask(socket.fd(), {.kind = ipc::Kind::kHello});
    ASSERT_TRUE(welcome) << attack.what;
    auto memory = ipc::Memory::Map(welcome->descriptors[0].fd(), sizeof(ipc::CommandArea), true);
    ASSERT_TRUE(memory);
    // The status is not theirs to write, nor anything's size to change.
    EXPECT_FALSE(ipc::Memory::Map(welcome->descriptors[1].fd(), sizeof(ipc::StatusArea), true));
    EXPECT_NE(ftruncate(welcome->descriptors[0].fd(), 0), 0);
    attack.attack(*reinterpret_cast<ipc::CommandArea*>(memory->data()));
    const uint64_t one = 1;
    EXPECT_EQ(write(welcome->descriptors[2].fd(), &one, sizeof(one)), 8);
    EXPECT_FALSE(ipc::Receive(socket.fd(), true, true)) << attack.what;
  }
  {
    const auto socket = connect();
    EXPECT_TRUE(ask(socket.fd(), {.kind = ipc::Kind::kHello}));
    for (const auto& [kind, word, why] : std::vector<std::tuple<ipc::Kind, uint64_t, const char*>>{
             {ipc::Kind::kAllocate, ~uint64_t{0}, "quota"},
             {ipc::Kind::kFree, 99, "no buffer 99"},
             {ipc::Kind::kLeave, 5, "no line 5"},
             {ipc::Kind::kJoin, 2, "unique id"}}) {
      const auto answer = ask(socket.fd(), {.kind = kind, .words = {word}});
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->packet.kind, ipc::Kind::kRefused);
      EXPECT_THAT(answer->packet.text, HasSubstr(why));
    }
  }
}

// Beside a tenant whose bytes are right.
TEST(DaemonTest, HostileProcessesEndAlone) {
  RunningDaemon daemon("one");
  std::atomic<bool> over = false;
  std::thread hostile([&] {
    SendNonsense(daemon);
    over = true;
  });
  RunRanks({&daemon}, 2, [&](Communicator& ranks) {
    for (int32_t last = 0; last == 0;) {
      std::vector<float> data = Ramp(1000, 1), out(1000);
      ASSERT_TRUE(Succeeded(
          ranks.AllReduce(data.data(), out.data(), 1000, DataType::kFloat32, ReduceOp::kSum)));
      for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(out[i], 2 * data[i]);
      int32_t mine = ranks.rank() == 0 && over ? 1 : 0;
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &last, 1, DataType::kInt32, ReduceOp::kMax)));
    }
  });
  hostile.join();
}

// Commands that a tenant's own program may get wrong fail its communicator and say the numbers.
TEST(DaemonTest, WrongCommandsSayTheNumbers) {
  RunningDaemon daemon("one");
  const auto id = MakeUniqueId(daemon.socket());
  ASSERT_TRUE(id);
  using Slot = ipc::Slot;
  const Slot right{.sequence = 1, .opcode = ipc::Opcode::kCollective, .kind = 2, .count = 16};
  struct Case {
    const char* why;
    std::function<void(Slot&)> change;
  };
  const std::vector<Case> cases = {
      {"there is no buffer 9", [](Slot& slot) { slot.input = 9; }},
      {"bytes from byte 4090 of buffer 1, which has 4096",
       [](Slot& slot) { slot.input_offset = 4090; }},
      {"which has 4096", [](Slot& slot) { slot.output_offset = ~uint64_t{0} - 2; }},
      {"is no multiple of 4", [](Slot& slot) { slot.input_offset = 2; }},
      {"a count of", [](Slot& slot) { slot.count = uint64_t{1} << 62; }},
      {"count ", [](Slot& slot) { slot.count = ~uint64_t{0}; }},
      {"root 5: there are ranks 0 to 0", [](Slot& slot) { slot.root = 5; }},
      {"type 200", [](Slot& slot) { slot.type = 200; }},
      {"collective 99", [](Slot& slot) { slot.kind = 99; }},
  };
  for (const Case& wrong : cases) {
    auto socket = ipc::Connect(daemon.socket(), ipc::SocketKind::kPackets);
    ASSERT_TRUE(socket);
    const auto ask = [&](const ipc::Packet& packet) {
      EXPECT_TRUE(ipc::Send(socket->fd(), packet));
      auto answer = ipc::Receive(socket->fd(), true, true);
      EXPECT_TRUE(answer && *answer);
      return std::move(**answer);
    };
    auto welcome = ask({.kind = ipc::Kind::kHello});
    auto memory = ipc::Memory::Map(welcome.descriptors[0].fd(), sizeof(ipc::CommandArea), true);
    ASSERT_TRUE(memory);
    EXPECT_EQ(ask({.kind = ipc::Kind::kAllocate, .words = {4096}}).packet.words[0], 1u);
    const std::string own = ask({.kind = ipc::Kind::kMakeId}).packet.text;
    const auto joined = ask({.kind = ipc::Kind::kJoin, .words = {1, 0}, .text = own});
    ASSERT_EQ(joined.packet.kind, ipc::Kind::kJoined) << joined.packet.text;
    auto& area = *reinterpret_cast<ipc::CommandArea*>(memory->data());
    area.slots[0] = right;
    area.slots[0].line = static_cast<uint32_t>(joined.packet.words[0]);
    area.slots[0].input = area.slots[0].output = 1;
    wrong.change(area.slots[0]);
    area.page.tail = 1;
    const uint64_t one = 1;
    EXPECT_EQ(write(welcome.descriptors[2].fd(), &one, sizeof(one)), 8);
    const auto status =
        ipc::Memory::Map(welcome.descriptors[1].fd(), sizeof(ipc::StatusArea), false);
    ASSERT_TRUE(status);
    const auto& line =
        reinterpret_cast<const ipc::StatusArea*>(status->data())->lines[joined.packet.words[0]];
    while (line.state.load() == ipc::LineState::kActive) std::this_thread::yield();
    const auto because = ask({.kind = ipc::Kind::kWhy, .words = {joined.packet.words[0]}});
    EXPECT_THAT(because.packet.text, HasSubstr(wrong.why));
  }
}

TEST(DaemonTest, SaysWhoHasNotCome) {
  RunningDaemon a("a"), b("b");
  std::atomic<int> running = 0;
  std::atomic<bool> asked = false;
  std::thread operator_thread([&] {
    while (running < 3) std::this_thread::yield();
    Json pending;
    for (int look = 0; look < 200; ++look) {
      pending = a.Ask("pending")["pending"];
      if (!pending.empty() && pending[0]["waiting"].size() == 2) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_FALSE(pending.empty());
    EXPECT_EQ(pending[0]["waiting"][0]["rank"], 0);
    EXPECT_EQ(pending[0]["waiting"][1]["rank"], 2);
    EXPECT_EQ(pending[0]["waiting"][0]["call"], "all-reduce of 1 float (sum)");
    ASSERT_EQ(pending[0]["missing"].size(), 1u);
    EXPECT_EQ(pending[0]["missing"][0]["rank"], 1);
    EXPECT_EQ(pending[0]["missing"][0]["host"], "b");
    asked = true;
  });
  RunRanks({&a, &b}, 3, [&](Communicator& ranks) {
    ++running;
    float mine = 1, sum = 0;
    if (ranks.rank() == 1)
      while (!asked) std::this_thread::yield();
    ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_EQ(sum, 3);
  });
  operator_thread.join();
}

TEST(DaemonTest, ReportsAndQuotas) {
  RunningDaemon daemon("one");
  RunRanks({&daemon}, 2, [&](Communicator& ranks) {
    float mine = 1, sum = 0;
    ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
    if (ranks.rank() == 0) {
      const Json status = daemon.Ask("status");
      EXPECT_EQ(status["host"], "one");
      EXPECT_EQ(status["communicators"], 1);
      const Json comm = daemon.Ask("comms")["communicators"][0];
      EXPECT_EQ(comm["state"], "active");
      EXPECT_EQ(comm["strategy"], "built-in");
      const Json trace =
          daemon.Ask(Json{{"command", "trace"}, {"communicator", comm["communicator"]}});
      const std::string events = trace["traceEvents"].dump();
      EXPECT_THAT(events, HasSubstr("all-reduce of 1 float (sum)"));
      EXPECT_THAT(daemon.Ask(Json{{"command", "trace"}, {"communicator", "c-0"}}).dump(),
                  HasSubstr("no communicator 'c-0'"));
      const std::string tenant = daemon.Ask("tenants")["tenants"][0]["tenant"];
      const Json quota =
          daemon.Ask(Json{{"command", "quota"}, {"tenant", tenant}, {"weight", 3}, {"ranks", 7}});
      EXPECT_EQ(quota["tenants"][0]["weight"], 3);
      EXPECT_EQ(quota["tenants"][0]["ranks_quota"], 7);
      EXPECT_THAT(daemon.Ask(Json{{"command", "quota"}, {"tenant", tenant}, {"weight", 0}}).dump(),
                  HasSubstr("weight: got 0, wanted 1 to 64"));
      EXPECT_THAT(daemon.Ask(Json{{"command", "dance"}}).dump(), HasSubstr("command 'dance'"));
    }
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
  });
  // All have left: nothing stays.
  for (int look = 0; look < 100 && daemon.Ask("status")["communicators"] != 0; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(daemon.Ask("status")["communicators"], 0);
}

TEST(DaemonOptionsTest, SayWhatIsWrong) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tuttid-" + std::to_string(getpid()) + ".json"))
          .string();
  const auto read = [&](const std::string& text) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
    return ReadDaemonOptions(path);
  };
  const auto right =
      read(R"({"port": 7600, "tenants": [{"name": "blue", "token": "t", "weight": 2}]})");
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_EQ(right->port, 7600);
  EXPECT_EQ(right->tenants[0].weight, 2);
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "is no JSON object"},
           {"{", "is no JSON"},
           {R"({"prot": 1})", "prot: is no field"},
           {R"({"port": 70000})", "port: got 70000, wanted 0 to 65535"},
           {R"({"socket": 5})", "socket: got 5"},
           {R"({"tenants": [{"token": "t"}]})", "tenants[0].name: is missing"},
           {R"({"tenants": [{"name": "x"}]})", "tenants[0].needs a token, users, or both"},
           {R"({"tenants": [{"name": "x", "token": "t"}, {"name": "x", "token": "u"}]})",
            "tenants[1].name: 'x' is there twice"},
           {R"({"tenants": [{"name": "x", "token": "t", "weight": 0}]})",
            "tenants[0].weight: got 0, wanted 1 to 64"}}) {
    const auto wrong = read(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_THAT(wrong.error().message, HasSubstr(why));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tutti::service
