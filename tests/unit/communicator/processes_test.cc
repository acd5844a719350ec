// Ranks that are processes of their own: what they compute, and what others hear when one stops or dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "every_collective.h"
#include "ranks_in_threads.h"
#include "support/quiet_fork.h"
#include "tutti/communicator.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// They do not see each other's buffers: what one sends to four others they read through the kernel, else all passes rings.
TEST(CommunicatorProcessTest, EveryCollectiveBetweenProcesses) {
  for (const bool shared_memory : {true, false}) {
    const UniqueId id = MakeUniqueId().value();
    constexpr int32_t kRanks = 5;
    std::vector<pid_t> children;
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      const pid_t child = test_support::QuietFork();
      if (child == 0) {
        Communicator ranks =
            Communicator::Join(id, kRanks, rank, {.timeout_s = 60, .shared_memory = shared_memory})
                .value();
        for (const int64_t count : {1, 17, 2049, 150'000}) CheckAll(ranks, count);
        _exit(testing::Test::HasFailure() || !ranks.Barrier() ? 1 : 0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
  }
}

// A program that forks after it made an id: its child has no thread of the root to wait for.
TEST(CommunicatorProcessTest, AForkedChildExits) {
  ASSERT_TRUE(MakeUniqueId());
  const pid_t child = test_support::QuietFork();
  if (child == 0) {
    alarm(60);
    std::exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
}

// A process that stands still, with all its threads, says nothing any more; one that computes does.
TEST(CommunicatorProcessTest, ARankThatIsStoppedIsNamedToAllOthers) {
  constexpr int32_t kRanks = 3;
  struct Job {
    UniqueId id;
    CommunicatorOptions options;
    pid_t victim = 0;
  };
  std::vector<Job> jobs;
  // Both at once: what they do most of the time is wait.
  for (const bool shared_memory : {true, false}) {
    const Job job{MakeUniqueId().value(),
                  {.timeout_s = 120, .silence_s = 4, .shared_memory = shared_memory}};
    const pid_t victim = test_support::QuietFork();
    if (victim == 0) {
      const Result<Communicator> communicator = Communicator::Join(job.id, kRanks, 2, job.options);
      if (communicator) raise(SIGSTOP);
      _exit(0);
    }
    jobs.push_back({job.id, job.options, victim});
  }
  std::vector<std::thread> threads;
  for (const Job& job : jobs)
    for (int32_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([&job, rank] {
        Communicator ranks = Communicator::Join(job.id, kRanks, rank, job.options).value();
        std::vector<double> data(1000);
        const Status ran =
            ranks.AllReduce(data.data(), data.data(), 1000, DataType::kFloat64, ReduceOp::kSum);
        ASSERT_FALSE(ran);
        EXPECT_EQ(ran.error().code, ErrorCode::kPeerFailed);
        EXPECT_THAT(ran.error().message, AllOf(HasSubstr("rank 2 ("), HasSubstr("is stopped")));
      });
  for (std::thread& thread : threads) thread.join();
  for (const Job& job : jobs) {
    kill(job.victim, SIGCONT);
    int status = 0;
    ASSERT_EQ(waitpid(job.victim, &status, 0), job.victim);
    EXPECT_TRUE(WIFEXITED(status));
  }
}

TEST(CommunicatorProcessTest, ARootThatIsStoppedIsNamed) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const CommunicatorOptions options{.timeout_s = 120, .silence_s = 4};
  const pid_t root = test_support::QuietFork();
  if (root == 0) {
    const UniqueId id = MakeUniqueId().value();
    if (write(pipe_ends[1], id.bytes.data(), id.bytes.size()) < 0) _exit(1);
    Result<Communicator> communicator = Communicator::Join(id, 2, 0, options);
    // Not before the other has joined, too.
    if (communicator && communicator->Barrier()) raise(SIGSTOP);
    _exit(0);
  }
  UniqueId id;
  ASSERT_EQ(read(pipe_ends[0], id.bytes.data(), id.bytes.size()),
            static_cast<ssize_t>(id.bytes.size()));
  Communicator ranks = Communicator::Join(id, 2, 1, options).value();
  Status ran;
  while (ran) ran = ranks.Barrier();
  EXPECT_THAT(ran.error().message,
              AllOf(HasSubstr("the process that made the unique id ("), HasSubstr("is stopped")));
  kill(root, SIGCONT);
  ASSERT_EQ(waitpid(root, nullptr, 0), root);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

// A rank that computes for long is not silent, and one whose time-out is short hears of it in time.
TEST(CommunicatorProcessTest, WhoComputesIsNotSilent) {
  RunRanks(2,
           [](Communicator& ranks) {
             if (ranks.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5500));
             ASSERT_TRUE(Succeeded(ranks.Barrier()));
           },
           {.timeout_s = 120, .silence_s = 5});
}

TEST(CommunicatorProcessTest, ARankThatIsKilledIsNamedToAllOthers) {
  const UniqueId id = MakeUniqueId().value();
  constexpr int32_t kRanks = 3;
  const pid_t victim = test_support::QuietFork();
  if (victim == 0) {
    const Result<Communicator> communicator = Communicator::Join(id, kRanks, 2, {.timeout_s = 60});
    if (communicator) raise(SIGKILL);
    _exit(1);
  }
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&id, rank] {
      Communicator ranks = Communicator::Join(id, kRanks, rank, {.timeout_s = 60}).value();
      std::vector<double> data(1000);
      const Status ran =
          ranks.AllReduce(data.data(), data.data(), 1000, DataType::kFloat64, ReduceOp::kSum);
      ASSERT_FALSE(ran);
      EXPECT_EQ(ran.error().code, ErrorCode::kPeerFailed);
      EXPECT_THAT(ran.error().message, HasSubstr("rank 2 ("));
      EXPECT_THAT(ran.error().message, HasSubstr("has gone"));
    });
  for (std::thread& thread : threads) thread.join();
  int status = 0;
  ASSERT_EQ(waitpid(victim, &status, 0), victim);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace tutti
