// Tenants of a daemon: who may come, what ends a hostile or a wrong one, what operators are told of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "running_daemon.h"
#include "support/raw_tenant.h"
#include "support/status.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {
namespace {

using test_support::Succeeded;
using testing::HasSubstr;
using Json = nlohmann::json;

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
  // The second rank is one too many for red, wherever the first is on its way.
  const test_support::RawTenant first(daemon.socket());
  ASSERT_TRUE(first.is_welcome());
  const std::string text = first.AskOf({.kind = ipc::Kind::kMakeId}).text;
  ASSERT_TRUE(first.Send({.kind = ipc::Kind::kJoin, .request = 2, .words = {2, 0}, .text = text}));
  const auto ranks_of_red = [&] { return daemon.Ask("tenants")["tenants"][1]["ranks"]; };
  for (int look = 0; look < 6000 && ranks_of_red() != 1; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  UniqueId id;
  ASSERT_EQ(text.size(), id.bytes.size());
  std::memcpy(id.bytes.data(), text.data(), text.size());
  const auto joined = Communicator::Join(id, 2, 1, {.timeout_s = 60, .service = daemon.socket()});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message, HasSubstr("red has 1 ranks here, its quota"));
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
    for (int look = 0; look < 6000; ++look) {
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

// Rank 2 has called less than the others, and nobody waits for it.
TEST(DaemonTest, SaysWhoseMessagesHaveNotCome) {
  RunningDaemon a("words-a"), b("words-b");
  std::atomic<bool> asked = false;
  RunRanks({&a, &b}, 3, [&](Communicator& ranks) {
    int32_t word = 0;
    const Message message{.peer = 1 - ranks.rank(),
                          .data = &word,
                          .bytes = sizeof(word),
                          .is_send = ranks.rank() == 1};
    const auto exchange = [&] { ASSERT_TRUE(Succeeded(ranks.Exchange({&message, 1}))); };
    for (int sent = 0; ranks.rank() < 2 && sent < 3; ++sent) exchange();
    if (ranks.rank() == 2) {
      Json pending;
      Until([&] {
        pending = a.Ask("pending")["pending"];
        return !pending.empty() && pending[0]["waiting"].size() == 1;
      });
      asked = true;
      ASSERT_EQ(pending[0]["waiting"].size(), 1u) << pending.dump();
      EXPECT_EQ(pending[0]["waiting"][0]["rank"], 0);
      ASSERT_EQ(pending[0]["missing"].size(), 1u) << pending.dump();
      EXPECT_EQ(pending[0]["missing"][0]["rank"], 1);
      EXPECT_EQ(pending[0]["missing"][0]["why"],
                "has not called the messages that rank 0 waits for");
    }
    while (ranks.rank() == 1 && !asked) std::this_thread::yield();
    if (ranks.rank() < 2) exchange();
  });
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
      const auto chunks = [&daemon](const Json& label, const Json& ms) {
        return daemon.Ask(Json{{"command", "trace"}, {"communicator", label}, {"chunks_ms", ms}});
      };
      for (const Json& none : {Json(0), Json(60'001), Json("1"), Json(UINT64_MAX)})
        EXPECT_THAT(chunks(comm["communicator"], none).dump(), HasSubstr("wanted 1 to 60000"));
      EXPECT_THAT(chunks("c-0", 1).dump(), HasSubstr("no communicator 'c-0'"));
      const Json quiet = chunks(comm["communicator"], 1);
      EXPECT_EQ(quiet["chunks_left_out"], 0) << quiet;
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
  for (int look = 0; look < 6000 && daemon.Ask("status")["communicators"] != 0; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(daemon.Ask("status")["communicators"], 0);
}

TEST(DaemonOptionsTest, RuntimesAreAQuarterOfTheCoresUpToFour) {
  const std::vector<std::pair<int32_t, int32_t>> runtimes_of_cores = {
      {0, 1}, {1, 1},  {2, 1},  {7, 1},
      {8, 2}, {15, 3}, {16, 4}, {256, 4}};  // 0: the system does not say
  for (const auto& [cores, runtimes] : runtimes_of_cores)
    EXPECT_EQ(DefaultRuntimes(cores), runtimes) << cores;
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
           {R"({"runtimes": 0})", "runtimes: got 0, wanted 1 to 64"},
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
