// Ranks that are killed at any moment, in every way that their data may go: all others end and name one, and nothing
// of them stays behind. And what a process runs out of, or finds taken.
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap.h"
#include "endpoint.h"
#include "support/quiet_fork.h"
#include "support/sanitizers.h"
#include "support/shared_memory.h"
#include "tutti/base/random.h"
#include "tutti/communicator.h"

namespace tutti {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// A rank that runs collectives of many sizes until one fails: exit code 0 where that names `victim`.
[[noreturn]] void RunUntilKilled(const UniqueId& id, int32_t num_ranks, int32_t rank,
                                 int32_t victim, const CommunicatorOptions& options) {
  alarm(120);
  Result<Communicator> ranks = Communicator::Join(id, num_ranks, rank, options);
  if (!ranks) _exit(ranks.error().message.find("rank") != std::string::npos ? 0 : 2);
  std::vector<float> in(100'000, 1), out(in.size() * static_cast<size_t>(num_ranks));
  Status ran;
  for (int64_t turn = 0; ran; ++turn) {
    const int64_t count = turn % 3 == 0 ? 10 : turn % 3 == 1 ? 5000 : 100'000;
    ran = turn % 2 == 0
              ? ranks->AllReduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum)
              : ranks->AllGather(in.data(), out.data(), count, DataType::kFloat32);
  }
  const std::string named = "rank " + std::to_string(victim);
  if (ran.error().message.find(named) != std::string::npos) _exit(0);
  fprintf(stderr, "rank %d: %s\n", rank, ran.error().message.c_str());
  _exit(3);
}

void KillAtRandom(int points, bool shared_memory) {
  constexpr int32_t kRanks = 3;
  const std::set<std::string> files = SharedMemoryNames();
  size_t descriptors = 0;
  for (int point = 0; point < points; ++point) {
    SCOPED_TRACE(testing::Message() << "point " << point << " shared memory " << shared_memory);
    // While joining, in the first collectives, or later.
    const bool while_joining = point % 4 == 0;
    const uint64_t longest_us = while_joining ? 3'000 : 60'000;
    // Who is killed before it has connected to anybody is known by the time-out only.
    const double timeout_s = while_joining ? 5 : 60;
    Random random(static_cast<uint64_t>(point));
    const auto victim = static_cast<int32_t>(random.Below(kRanks));
    const UniqueId id = MakeUniqueId().value();
    std::vector<pid_t> children;
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      const pid_t child = test_support::QuietFork();
      if (child == 0)
        RunUntilKilled(id, kRanks, rank, victim,
                       {.timeout_s = timeout_s, .silence_s = 30, .shared_memory = shared_memory});
      children.push_back(child);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(longest_us)));
    kill(children[static_cast<size_t>(victim)], SIGKILL);
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      int status = 0;
      ASSERT_EQ(waitpid(children[static_cast<size_t>(rank)], &status, 0),
                children[static_cast<size_t>(rank)]);
      if (rank == victim) {
        EXPECT_TRUE(WIFSIGNALED(status));
      } else {
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank;
      }
    }
    // The root of one round ends when the next is begun.
    if (point == 1) descriptors = OpenDescriptors();
    if (point > 1) {
      EXPECT_LE(OpenDescriptors(), descriptors + 8);
    }
  }
  EXPECT_THAT(LeftInSharedMemory(files), testing::IsEmpty());
}

TEST(CommunicatorFaultsTest, KilledAtAFewPoints) {
  for (const bool shared_memory : {true, false}) KillAtRandom(6, shared_memory);
}
TEST(CommunicatorFaultsByHand, KilledAtTwoHundredPoints) {
  for (const bool shared_memory : {true, false}) KillAtRandom(200, shared_memory);
}

// In a child that has so many descriptors beside its standard streams and the way out: what `body` says of its end.
// Threads of earlier tests may still close some of this process's, and the child has neither.
std::string InChild(rlim_t descriptors, const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = test_support::QuietFork();
  if (child == 0) {
    alarm(120);
    constexpr int kOut = 3, kMostOpen = 4096;
    dup2(ends[1], kOut);
    for (int fd = 0; fd < kOut; ++fd)
      if (fcntl(fd, F_GETFD) < 0) dup2(kOut, fd);
    for (int fd = kOut + 1; fd < kMostOpen; ++fd) close(fd);
    const rlimit limit{kOut + 1 + descriptors, kOut + 1 + descriptors};
    setrlimit(RLIMIT_NOFILE, &limit);
    const std::string text = body();
    if (write(kOut, text.data(), text.size()) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t bytes = read(ends[0], text.data(), text.size());
  text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  close(ends[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return text;
}

TEST(CommunicatorFaultsTest, DescriptorsThatRunOutAreNamed) {
  // One to look for an interface, none for the root.
  EXPECT_THAT(InChild(1,
                      [] {
                        const Result<UniqueId> id = MakeUniqueId();
                        return id ? std::string("made") : id.error().message;
                      }),
              HasSubstr("Too many open files"));
  // Enough for the root and the link, not for what listens.
  for (rlim_t descriptors = 4; descriptors < 8; ++descriptors)
    EXPECT_THAT(InChild(descriptors,
                        [] {
                          const Result<UniqueId> id = MakeUniqueId();
                          if (!id) return id.error().message;
                          const auto joined = Communicator::Join(*id, 1, 0, {.timeout_s = 60});
                          return joined ? std::string("joined") : joined.error().message;
                        }),
                AnyOf(HasSubstr("Too many open files"), HasSubstr("joined")));
}

// Bytes of address space that this process has.
rlim_t AddressSpace() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Of four ranks one, in a process of its own, has no memory for its part of a reduction. How many of the four were not told.
int WhoWereNotToldOfMemory(bool shared_memory) {
  constexpr int64_t kCount = int64_t{64} << 20;
  constexpr rlim_t kLeft = rlim_t{2} << 20;
  constexpr int32_t kRanks = 4,
                    kPoor = 1;  // below the root, so that it adds up in memory of its own
  const UniqueId id = MakeUniqueId().value();
  const CommunicatorOptions options{.timeout_s = 60, .shared_memory = shared_memory};
  const auto is_told = [&](int32_t rank) {
    Communicator ranks = Communicator::Join(id, kRanks, rank, options).value();
    // Pages that nobody writes take none.
    const std::unique_ptr<std::byte, decltype(&std::free)> data(
        static_cast<std::byte*>(std::calloc(kCount, 1)), &std::free);
    const rlimit limit{AddressSpace() + kLeft, RLIM_INFINITY};
    if (rank == kPoor) setrlimit(RLIMIT_AS, &limit);
    const Status ran = ranks.Reduce(data.get(), rank == 0 ? data.get() : nullptr, kCount,
                                    DataType::kUint8, ReduceOp::kSum, 0);
    const std::string text = ran ? "it ran" : ran.error().message;
    fprintf(stderr, "rank %d: %s\n", rank, text.c_str());
    const bool names_it = rank == kPoor || text.find("rank 1: ") != std::string::npos;
    return names_it && text.find("out of memory") != std::string::npos;
  };
  const pid_t child = test_support::QuietFork();
  if (child == 0) {
    alarm(120);
    _exit(is_told(kPoor) ? 0 : 1);
  }
  std::atomic<int> missing = 0;
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < kRanks; ++rank)
    if (rank != kPoor) threads.emplace_back([&, rank] { missing += is_told(rank) ? 0 : 1; });
  for (std::thread& thread : threads) thread.join();
  int status = -1;
  waitpid(child, &status, 0);
  return missing + (status == 0 ? 0 : 1);
}

// In a new process: what earlier tests have freed an allocator may keep.
TEST(CommunicatorFaultsTest, MemoryThatRunsOutIsNamedToAll) {
  if (test_support::kHasAddressSanitizer || test_support::kHasThreadSanitizer)
    GTEST_SKIP() << "a sanitizer ends a process without memory";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const bool shared_memory : {true, false})
    EXPECT_EXIT(_exit(WhoWereNotToldOfMemory(shared_memory)), testing::ExitedWithCode(0), "");
}

// Who connects to the root and says anything but the hello of a rank is closed, and disturbs nobody.
TEST(CommunicatorFaultsTest, GarbageAndSilenceAtTheRootDisturbNobody) {
  const UniqueId id = MakeUniqueId().value();
  const Endpoint root = bootstrap::Decode(id).value().root;
  Random random(5);
  std::vector<int> strangers;
  for (int i = 0; i < 40; ++i) {
    const int fd = TcpSocket(root);
    ASSERT_EQ(ConnectTo(fd, root), 0);
    std::string bytes(random.Below(100), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    if (i % 3 != 0) send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);  // others stay half open
    strangers.push_back(fd);
  }
  bootstrap::Address wrong = bootstrap::Decode(id).value();
  wrong.secret[1] ^= 1;
  const auto refused = Communicator::Join(bootstrap::Encode(wrong), 2, 0, {.timeout_s = 60});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("or does not know this id"));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&id, rank] {
      Result<Communicator> ranks = Communicator::Join(id, 2, rank, {.timeout_s = 60});
      ASSERT_TRUE(ranks) << ranks.error().message;
      ASSERT_TRUE(ranks->Barrier());
    });
  for (std::thread& thread : threads) thread.join();
  for (const int fd : strangers) close(fd);
}

// A rank of three comes, fails and goes: nobody is there.
void ComeFailAndGo(const bootstrap::Address& root) {
  Result<bootstrap::Link> link = bootstrap::Link::Join(root, 3, 0, 0, Deadline(60));
  ASSERT_TRUE(link) << link.error().message;
  link->Fail({ErrorCode::kIo, "no disk"}, 0);
}

// A collective whose bytes are there may succeed after another rank has failed; the next one must not wait for that rank.
TEST(RootTest, AFaultThatWasHeardIsSaidAgain) {
  const bootstrap::Address root = bootstrap::StartRoot(INADDR_LOOPBACK).value();
  Result<bootstrap::Link> hears = bootstrap::Link::Join(root, 3, 1, 0, Deadline(60));
  ASSERT_TRUE(hears) << hears.error().message;
  std::thread fails([&root] { ComeFailAndGo(root); });
  Status heard;
  for (const Deadline deadline(60); heard && !deadline.HasPassed();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    heard = hears->Check();
  }
  fails.join();
  for (const Status& again : {heard, hears->Check(), hears->Check()}) {
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message, "rank 0: no disk");
  }
  const std::atomic<bool> never = false;
  EXPECT_EQ(hears->Share("here", Deadline(60), never).error().message, "rank 0: no disk");
}

TEST(RootTest, WhoComesAfterAllHaveGoneHearsWhy) {
  const bootstrap::Address root = bootstrap::StartRoot(INADDR_LOOPBACK).value();
  ComeFailAndGo(root);
  Result<bootstrap::Link> late = bootstrap::Link::Join(root, 3, 2, 0, Deadline(60));
  ASSERT_TRUE(late) << late.error().message;
  const std::atomic<bool> never = false;
  const auto shares = late->Share("here", Deadline(60), never);
  ASSERT_FALSE(shares);
  EXPECT_EQ(shares.error().message, "rank 0: no disk");
}

// It may be on its way to another communicator, as it could not join this one.
TEST(RootTest, WhoLeavesBeforeARoundIsNamedToThoseThatWaitInIt) {
  const std::atomic<bool> never = false;
  for (const bool waits_first : {true, false}) {
    const bootstrap::Address root = bootstrap::StartRoot(INADDR_LOOPBACK).value();
    Result<bootstrap::Link> stays = bootstrap::Link::Join(root, 2, 0, 0, Deadline(60));
    ASSERT_TRUE(stays) << stays.error().message;
    {
      Result<bootstrap::Link> leaves = bootstrap::Link::Join(root, 2, 1, 0, Deadline(60));
      ASSERT_TRUE(leaves) << leaves.error().message;
      std::thread round([&] {
        ASSERT_TRUE(leaves->Share("here", Deadline(60), never));
        if (!waits_first) leaves = tl::unexpected(Error{ErrorCode::kIo, "no ports"});
      });
      const auto all = stays->Share("here", Deadline(60), never);
      ASSERT_TRUE(all) << all.error().message;
      round.join();
      if (waits_first) {
        std::thread waits([&] {
          EXPECT_EQ(stays->Share("again", Deadline(60), never).error().message, "rank 1 has left");
        });
        leaves = tl::unexpected(Error{ErrorCode::kIo, "no ports"});
        waits.join();
        continue;
      }
    }
    EXPECT_EQ(stays->Share("again", Deadline(60), never).error().message, "rank 1 has left");
  }
}

constexpr int64_t kHelloMagic = 0x0006'4d4d'4f43'5454;

Status SayHello(ControlLink& link, const bootstrap::Address& root, int32_t rank, int32_t num_ranks,
                int64_t magic = kHelloMagic) {
  return link.Send(FrameType::kHello, {magic, static_cast<int64_t>(root.secret[0]),
                                       static_cast<int64_t>(root.secret[1]), rank, num_ranks, 0});
}

TEST(RootTest, ARankOfAnotherVersionIsToldSo) {
  const bootstrap::Address root = bootstrap::StartRoot(INADDR_LOOPBACK).value();
  const int fd = TcpSocket(root.root);
  ASSERT_EQ(ConnectTo(fd, root.root), 0);
  ControlLink older(fd);
  ASSERT_TRUE(SayHello(older, root, 0, 2, kHelloMagic - (int64_t{1} << 48)));
  const auto answer = older.Receive(4096, 60'000);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->type, FrameType::kAbort);
  EXPECT_EQ((*answer)->body,
            "version 5 of Tutti's protocol meets version 6: all hosts need the same version of "
            "Tutti");
}

// What a rank says at its end may be anything: the others hear of what makes sense, and fail for nothing of it.
TEST(RootTest, WhatALeavingRankHadCompletedIsToldToTheOthers) {
  const auto words = [](std::initializer_list<int64_t> list) { return WordsToBytes(list); };
  for (const auto& [body, is_told] :
       std::vector<std::pair<std::string, bool>>{{words({3}), true},
                                                 {words({3, 1, 5, 6}), true},
                                                 {words({3, 1}), false},
                                                 {"three", false},
                                                 {std::string(33, 'x'), false},
                                                 {words({}), false}}) {
    const bootstrap::Address root = bootstrap::StartRoot(INADDR_LOOPBACK).value();
    const int fd = TcpSocket(root.root);
    ASSERT_EQ(ConnectTo(fd, root.root), 0);
    ControlLink leaves(fd);
    ASSERT_TRUE(SayHello(leaves, root, 0, 2));
    ASSERT_TRUE(leaves.Send(FrameType::kShare, "here"));
    bootstrap::Link stays = bootstrap::Link::Join(root, 2, 1, 0, Deadline(60)).value();
    const std::atomic<bool> never = false;
    ASSERT_TRUE(stays.Share("here", Deadline(60), never));
    ASSERT_TRUE(leaves.Send(FrameType::kEnd, body));
    const Deadline patience(is_told ? 60 : 0.1);
    while (stays.departures().empty() && !patience.HasPassed()) ASSERT_TRUE(stays.Check());
    EXPECT_EQ(stays.departures().size(), is_told ? 1u : 0u);
    EXPECT_EQ(stays.departures().WhyNever(1, {.collectives = 3}, {}).has_value(), is_told);
    EXPECT_EQ(stays.departures().WhyNever(1, {.collectives = 2}, {}), std::nullopt);
  }
}

// As on a host that is busy.
TEST(RootTest, WhoSaysLateWhoItIsIsHeard) {
  const bootstrap::Address root = bootstrap::StartRoot(INADDR_LOOPBACK).value();
  const int fd = TcpSocket(root.root);
  ASSERT_EQ(ConnectTo(fd, root.root), 0);
  ControlLink link(fd);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ASSERT_TRUE(SayHello(link, root, 0, 1));
  ASSERT_TRUE(link.Send(FrameType::kShare, "here"));
  const Result<std::optional<Frame>> frame = link.Receive(1000, 60'000);
  ASSERT_TRUE(frame) << frame.error().message;
  ASSERT_TRUE(*frame);
  EXPECT_EQ((*frame)->type, FrameType::kShared);
}

TEST(RootTest, ItGoesWhenItHasLingeredAndRefusesWhoComesThen) {
  using std::chrono::milliseconds;
  const bootstrap::Address root = bootstrap::StartRoot(INADDR_LOOPBACK, milliseconds(50)).value();
  ComeFailAndGo(root);
  const Deadline deadline(60);
  int why = 0;
  while (why == 0 && !deadline.HasPassed()) {
    const int fd = TcpSocket(root.root);
    why = ConnectTo(fd, root.root) == 0 ? 0 : errno;
    close(fd);
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(why, ECONNREFUSED);
  EXPECT_THAT(bootstrap::Link::Join(root, 3, 1, 0, Deadline(60)).error().message,
              HasSubstr("nobody could be reached"));
}

TEST(CommunicatorFaultsTest, AnAddressThatIsNotOfThisHostIsNamed) {
  setenv("TUTTI_HOST", "203.0.113.7", 1);
  const Result<UniqueId> id = MakeUniqueId();
  unsetenv("TUTTI_HOST");
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().message, "cannot listen at 203.0.113.7: Cannot assign requested address");
  for (const char* host : {"no.such.host.invalid", "[::1]", "fe80::1"}) {
    setenv("TUTTI_HOST", host, 1);
    const Result<UniqueId> none = MakeUniqueId();
    unsetenv("TUTTI_HOST");
    ASSERT_FALSE(none) << host;
    EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument) << host;
    EXPECT_THAT(none.error().message, testing::StartsWith("TUTTI_HOST: ")) << host;
    EXPECT_THAT(none.error().message, HasSubstr(host));
  }
}

}  // namespace
}  // namespace tutti
