// Ranks of the service that are left go on without others, and others come to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "running_daemon.h"
#include "support/status.h"

namespace tutti::service {
namespace {

using test_support::Succeeded;
using testing::HasSubstr;

void CheckSums(Communicator& ranks, int32_t num_ranks) {
  ASSERT_EQ(ranks.num_ranks(), num_ranks);
  for (const int64_t count : {int64_t{1}, int64_t{50'000}}) {
    std::vector<int64_t> data(static_cast<size_t>(count), ranks.rank() + 1);
    ASSERT_TRUE(Succeeded(
        ranks.AllReduce(data.data(), data.data(), count, DataType::kInt64, ReduceOp::kSum)));
    for (const int64_t sum : data) ASSERT_EQ(sum, int64_t{num_ranks} * (num_ranks + 1) / 2);
  }
}

// Until it fails.
void RunOn(Communicator& ranks) {
  std::vector<int64_t> data(1000);
  while (ranks.AllReduce(data.data(), data.data(), 1000, DataType::kInt64, ReduceOp::kSum)) {
  }
}

TEST(DaemonRegroupTest, TheOthersGoOnWithoutOneThatLeft) {
  RunningDaemon first("shrink-a"), second("shrink-b");
  for (int32_t victim = 0; victim < 4; ++victim) {
    RunRanks({&first, &second}, 4, [victim](Communicator& ranks) {
      CheckSums(ranks, 4);
      if (ranks.rank() == victim) return;
      RunOn(ranks);
      const auto left = ranks.Shrink();
      ASSERT_TRUE(left) << left.error().message;
      CheckSums(**left, 3);
      // Again, by name, while all live.
      const std::vector<int32_t> out = {0};
      if ((*left)->rank() == 0) return static_cast<void>((*left)->Barrier());
      const auto two = (*left)->Shrink(out);
      ASSERT_TRUE(two) << two.error().message;
      CheckSums(**two, 2);
      static_cast<void>((*left)->Barrier());
    });
  }
}

TEST(DaemonRegroupTest, TheRootDaemonMayBeTheOneThatGoes) {
  auto first = std::make_unique<RunningDaemon>("root-goes");
  RunningDaemon second("stays-b"), third("stays-c");
  std::atomic<int> ready{0};
  std::thread killer([&] {
    while (ready < 6) std::this_thread::yield();
    first->End();
  });
  RunRanks({first.get(), &second, &third}, 6, [&ready](Communicator& ranks) {
    CheckSums(ranks, 6);
    ++ready;
    RunOn(ranks);
    const auto left = ranks.Shrink();
    if (ranks.rank() % 3 == 0) {
      ASSERT_FALSE(left);  // its service has gone
      return;
    }
    ASSERT_TRUE(left) << left.error().message;
    CheckSums(**left, 4);
  });
  killer.join();
}

TEST(DaemonRegroupTest, RanksThatAskForDifferentThingsAllHearOfIt) {
  RunningDaemon first("half-a"), second("half-b");
  RunRanks({&first, &second}, 3, [](Communicator& ranks) {
    const std::vector<int32_t> out = {2};
    if (ranks.rank() < 2) {
      const auto left = ranks.rank() == 0 ? ranks.Shrink(out) : ranks.Shrink();
      ASSERT_FALSE(left);
      EXPECT_THAT(left.error().message,
                  HasSubstr("rank 0 asks to shrink without rank 2, rank 1 to shrink"));
    }
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
  });
}

TEST(DaemonRegroupTest, NewcomersJoinARunningCommunicator) {
  RunningDaemon first("grow-a"), second("grow-b");
  const std::vector<const RunningDaemon*> daemons = {&first, &second};
  std::atomic<bool> made = false;
  UniqueId grows;
  std::thread newcomer([&] {
    while (!made) std::this_thread::yield();
    Result<Communicator> joined =
        Communicator::Join(grows, 4, 3, {.timeout_s = 60, .service = second.socket()});
    ASSERT_TRUE(joined) << joined.error().message;
    CheckSums(*joined, 4);
  });
  RunRanks(daemons, 3, [&](Communicator& ranks) {
    CheckSums(ranks, 3);
    if (ranks.rank() == 1) {
      grows = ranks.MakeGrowId().value();
      made = true;
    }
    const auto grown = ranks.Grow(4, ranks.rank() == 1 ? &grows : nullptr);
    ASSERT_TRUE(grown) << grown.error().message;
    CheckSums(**grown, 4);
    CheckSums(ranks, 3);
  });
  newcomer.join();
}

TEST(DaemonRegroupTest, ManyRanksOfACommunicatorOnOneHost) {
  RunningDaemon daemon("many");
  RunRanks({&daemon}, 40, [](Communicator& ranks) { CheckSums(ranks, 40); });
}

// Nothing is polled where nobody asks for anything.
TEST(DaemonIdleTest, ADaemonWithoutWorkSleeps) {
  RunningDaemon daemon("idle");
  RunRanks({&daemon}, 2, [&daemon](Communicator& ranks) {
    CheckSums(ranks, 2);
    if (ranks.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it has spun and yielded
      const int64_t before = daemon.Ask("status")["rounds"];
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      EXPECT_LT(daemon.Ask("status")["rounds"].get<int64_t>() - before, 20'000);
      while (daemon.Ask("status")["sleeps"] == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CheckSums(ranks, 2);
  });
}

}  // namespace
}  // namespace tutti::service
