// What hostile tenants and strangers try (docs/testing.md lists the attacks): each ends alone.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory_returns.h"
#include "running_daemon.h"
#include "support/raw_tenant.h"
#include "support/status.h"
#include "tutti/ipc/layout.h"

namespace tutti::service {
namespace {

using test_support::RawTenant;
using test_support::Succeeded;
using testing::HasSubstr;

constexpr uint8_t kAllReduceCode = static_cast<uint8_t>(CollectiveKind::kAllReduce);

ipc::Packet JoinOf(const std::string& id, uint64_t ranks, uint64_t rank) {
  return {.kind = ipc::Kind::kJoin, .request = rank + 1, .words = {ranks, rank}, .text = id};
}

// An all-reduce in place of the first `count` floats of buffer 1.
ipc::Slot AllReduceOf(uint64_t sequence, uint64_t count, uint32_t line) {
  return {.sequence = sequence,
          .opcode = ipc::Opcode::kCollective,
          .kind = kAllReduceCode,
          .type = static_cast<uint8_t>(DataType::kFloat32),
          .line = line,
          .input = 1,
          .output = 1,
          .count = count};
}

// What an honest tenant's ranks do meanwhile, with every element checked.
void AllReduceRightly(RunningDaemon& daemon, int times) {
  RunRanks({&daemon}, 2, [times](Communicator& ranks) {
    std::vector<float> data = Ramp(1000, 1), out(1000);
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(Succeeded(
          ranks.AllReduce(data.data(), out.data(), 1000, DataType::kFloat32, ReduceOp::kSum)));
      for (size_t k = 0; k < data.size(); ++k) ASSERT_EQ(out[k], 2 * data[k]);
    }
  });
}

TEST(DaemonAttacks, JoinsByGuessAndOfOthersAreRefusedAndTheFirstRankKeepsItsPlace) {
  RunningDaemon daemon("joins", {{.name = "blue", .token = "b"}, {.name = "red", .token = "r"}},
                       false);
  const RawTenant first(daemon.socket(), "b"), second(daemon.socket(), "b"),
      red(daemon.socket(), "r");
  ASSERT_TRUE(first.is_welcome() && second.is_welcome() && red.is_welcome());
  const std::string id = first.AskOf({.kind = ipc::Kind::kMakeId}).text;
  std::string guessed = id;
  for (char& byte : guessed) byte = static_cast<char>(byte == 0 ? 0 : byte ^ 1);
  EXPECT_EQ(red.AskOf(JoinOf(guessed, 2, 0)).kind, ipc::Kind::kRefused);
  ASSERT_TRUE(first.Send(JoinOf(id, 2, 0)));
  // It may be anywhere on its way: until the daemon knows of it, others may come first.
  Until([&] { return daemon.Ask("comms")["communicators"].size() == 1; });
  EXPECT_THAT(red.AskOf(JoinOf(id, 2, 1)).text, HasSubstr("this unique id is another tenant's"));
  EXPECT_THAT(second.AskOf(JoinOf(id, 2, 0)).text, HasSubstr("rank 0 has joined already"));
  EXPECT_THAT(second.AskOf(JoinOf(id, 3, 1)).text, HasSubstr("rank 1 counts 3 ranks, others 2"));
  EXPECT_EQ(second.AskOf(JoinOf(id, 2, 2)).kind, ipc::Kind::kRefused);
  EXPECT_EQ(second.AskOf(JoinOf(id, 2, 1)).kind, ipc::Kind::kJoined);
  const auto joined = first.Receive();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->packet.kind, ipc::Kind::kJoined);
  // Another one's id is of no use later, either.
  EXPECT_THAT(red.AskOf(JoinOf(id, 2, 1)).text, HasSubstr("another tenant's"));
}

TEST(DaemonAttacks, FloodsOfBellsCommandsAndSizesAndAlteredDataHurtNobodyElse) {
  RunningDaemon daemon("flood");
  std::atomic<bool> over = false;
  std::atomic<uint64_t> sent = 0;
  std::thread flood([&] {
    RawTenant tenant(daemon.socket());
    ASSERT_TRUE(tenant.is_welcome());
    auto given = tenant.Ask({.kind = ipc::Kind::kAllocate, .words = {1 << 16}});
    ASSERT_TRUE(given);
    const auto memory = ipc::Memory::Map(given->descriptors.at(0).fd(), 1 << 16, true);
    ASSERT_TRUE(memory);
    const std::string id = tenant.AskOf({.kind = ipc::Kind::kMakeId}).text;
    const auto line = static_cast<uint32_t>(tenant.AskOf(JoinOf(id, 1, 0)).words[0]);
    // Completions are never looked at; sizes are new each time; data changes while it is reduced.
    for (uint64_t sequence = 1; !over; tenant.Ring()) {
      memory->data()[sent % (1 << 16)] ^= std::byte{0xff};
      if (!tenant.has_room()) continue;
      tenant.Submit(AllReduceOf(sequence, 1 + sequence % 16384, line));
      sent = sequence++;
    }
  });
  AllReduceRightly(daemon, 300);
  Until([&] { return sent > 1000; });
  over = true;
  flood.join();
}

TEST(DaemonAttacks, ABufferThatIsFreedInUseLivesUntilTheLastOperationOnIt) {
  RunningDaemon daemon("frees");
  constexpr uint64_t kBytes = uint64_t{2} << 20, kCount = kBytes / 4;
  {
    RawTenant one(daemon.socket()), two(daemon.socket());
    ipc::Memory memory[2];
    int32_t at = 0;
    for (const RawTenant* tenant : {&one, &two}) {
      const auto given = tenant->Ask({.kind = ipc::Kind::kAllocate, .words = {kBytes}});
      ASSERT_TRUE(given);
      auto mapped = ipc::Memory::Map(given->descriptors.at(0).fd(), kBytes, true);
      ASSERT_TRUE(mapped);
      memory[at] = std::move(*mapped);
      std::fill_n(reinterpret_cast<float*>(memory[at].data()), kCount, static_cast<float>(at + 1));
      ++at;
    }
    const std::string id = one.AskOf({.kind = ipc::Kind::kMakeId}).text;
    ASSERT_TRUE(one.Send(JoinOf(id, 2, 0)));
    EXPECT_EQ(two.AskOf(JoinOf(id, 2, 1)).kind, ipc::Kind::kJoined);
    ASSERT_TRUE(one.Receive());
    one.Submit(AllReduceOf(1, kCount, 0));
    Until([&] { return one.status().head.load() == 1; });
    EXPECT_EQ(one.AskOf({.kind = ipc::Kind::kFree, .words = {1}}).kind, ipc::Kind::kFreed);
    EXPECT_EQ(one.AskOf({.kind = ipc::Kind::kFree, .words = {1}}).kind, ipc::Kind::kRefused);
    EXPECT_EQ(daemon.Ask("tenants")["tenants"][0]["memory_bytes"], 2 * kBytes);
    two.Submit(AllReduceOf(1, kCount, 0));
    Until([&] {
      return two.status().lines[0].completed.load() == 1 &&
             one.status().lines[0].completed.load() == 1;
    });
    for (const ipc::Memory& part : memory)
      for (uint64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(reinterpret_cast<const float*>(part.data())[i], 3) << i;
    Until([&] { return daemon.Ask("tenants")["tenants"][0]["memory_bytes"] == kBytes; });
  }
  Until([&] { return daemon.Ask("tenants")["tenants"][0]["memory_bytes"] == 0; });
}

// Its line may be another rank's next: what it issued must not be taken for that one's, nor end the process.
TEST(DaemonAttacks, CommandsOfARankThatLeavesAreTakenBeforeItLeaves) {
  RunningDaemon daemon("leaves");
  for (int turn = 0; turn < 20; ++turn) {
    RawTenant one(daemon.socket()), two(daemon.socket());
    const std::string id = one.AskOf({.kind = ipc::Kind::kMakeId}).text;
    ASSERT_TRUE(one.Send(JoinOf(id, 2, 0)));
    EXPECT_EQ(two.AskOf(JoinOf(id, 2, 1)).kind, ipc::Kind::kJoined);
    ASSERT_TRUE(one.Receive());
    Until([&] { return one.status().daemon_sleeps.load() == 1; });
    // Without the bell: the daemon finds the packet first.
    one.SubmitSilently(AllReduceOf(1, 0, 0));
    EXPECT_EQ(one.AskOf({.kind = ipc::Kind::kLeave, .request = 9, .words = {0}}).kind,
              ipc::Kind::kLeft);
    EXPECT_EQ(one.status().head.load(), 1u);
    EXPECT_EQ(one.AskOf({.kind = ipc::Kind::kMakeId}).kind, ipc::Kind::kIdMade);
    // It left in the middle of an operation, and is named.
    Until([&] { return two.status().lines[0].state.load() == ipc::LineState::kFailed; });
    EXPECT_EQ(two.AskOf({.kind = ipc::Kind::kWhy, .words = {0}}).text,
              "rank 0: it left with operations unfinished");
  }
}

TEST(DaemonAttacks, LargeMemoryIsGivenBackBesideTheThreadAndAllOfItAtTheEnd) {
  std::atomic<int64_t> counted = 0;
  {
    MemoryReturns returns;
    for (const int64_t bytes :
         {int64_t{4096}, MemoryReturns::kLargeBytes, 4 * MemoryReturns::kLargeBytes}) {
      ipc::Descriptor file;
      auto memory = ipc::Memory::Make("test", bytes, false, file);
      ASSERT_TRUE(memory);
      counted += bytes;
      returns.Take(std::make_shared<ipc::Memory>(std::move(*memory)), counted, bytes);
    }
  }
  EXPECT_EQ(counted, 0);
}

// More within a tick than strangers may wait to be heard.
TEST(DaemonAttacks, AsManyAsComeAtOnceJoin) {
  constexpr int kThreads = 4, kJoins = 100;
  RunningDaemon daemon("burst");
  std::atomic<int> joined = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&] {
      RawTenant tenant(daemon.socket());
      ASSERT_TRUE(tenant.is_welcome());
      for (int join = 0; join < kJoins; ++join) {
        const std::string id = tenant.AskOf({.kind = ipc::Kind::kMakeId}).text;
        const ipc::Packet answer = tenant.AskOf(JoinOf(id, 1, 0));
        ASSERT_EQ(answer.kind, ipc::Kind::kJoined) << join << ": " << answer.text;
        ++joined;
        tenant.Send({.kind = ipc::Kind::kLeave, .words = {answer.words[0]}});
        ASSERT_TRUE(tenant.Receive());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(joined, kThreads * kJoins);
}

TEST(DaemonAttacks, StrangersAtTheControlPortAreClosed) {
  RunningDaemon daemon("control");
  const std::string address = daemon.Ask("status")["address"];
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  const auto connected = [&to] {
    ipc::Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(made.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return made;
  };
  // More than may be half open, all silent: they are closed, and others come again.
  std::vector<ipc::Descriptor> silent;
  for (int i = 0; i < 80; ++i) silent.push_back(connected());
  std::array<char, 16> answer;
  for (const ipc::Descriptor& one : silent)
    EXPECT_LE(recv(one.fd(), answer.data(), answer.size(), 0), 0);
  const ipc::Descriptor nonsense = connected();
  const std::string bytes(64, '\xee');
  EXPECT_EQ(send(nonsense.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 64);
  EXPECT_LE(recv(nonsense.fd(), answer.data(), answer.size(), 0), 0);
  AllReduceRightly(daemon, 1);
}

TEST(DaemonAttacks, DescriptorsThatAreSentAreClosedUnread) {
  RunningDaemon daemon("descriptors");
  const RawTenant tenant(daemon.socket());
  ASSERT_TRUE(tenant.is_welcome());
  const auto held = [] {
    std::error_code ignored;
    const std::filesystem::directory_iterator all("/proc/self/fd", ignored);
    return std::distance(begin(all), end(all));
  };
  const ipc::Descriptor mine(open("/dev/null", O_RDONLY | O_CLOEXEC));
  // What the welcome held goes when its answer has been sent: the next answer comes after that.
  ASSERT_EQ(tenant.AskOf({.kind = ipc::Kind::kMakeId}).kind, ipc::Kind::kIdMade);
  const auto before = held();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        tenant.Send({.kind = ipc::Kind::kMakeId}, {mine.fd(), mine.fd(), mine.fd(), mine.fd()}));
    ASSERT_TRUE(tenant.Receive());
  }
  Until([&] { return held() == before; });
}

}  // namespace
}  // namespace tutti::service
