// Ranks that leave while others go on, without a service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ranks_in_threads.h"
#include "support/word_message.h"
#include "tutti/communicator.h"

namespace tutti {
namespace {

using testing::HasSubstr;

void Leave(Communicator& ranks) { const Communicator leaves = std::move(ranks); }

// What two ranks say to each other is no concern of those that have left; a message to one of those is an error, which names it.
TEST(LeavingTest, MessagesBetweenOthersGoOnAndThoseToWhoHasLeftFail) {
  for (const bool shared_memory : {true, false}) {
    SCOPED_TRACE(shared_memory ? "shared memory" : "TCP");
    std::atomic<int> there = 4, done = 0;
    const auto body = [&](Communicator& ranks) {
      int32_t mine = 1, sum = 0;
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &sum, 1, DataType::kInt32, ReduceOp::kSum)));
      if (ranks.rank() > 1) {
        Leave(ranks);
        --there;
        return;
      }
      while (there > 2) std::this_thread::yield();
      for (int32_t round = 0; round < 10; ++round)
        ASSERT_NO_FATAL_FAILURE(test_support::ExchangeWord(ranks, round));
      ++done;
      while (done < 2) std::this_thread::yield();
      int32_t never = 0;
      const Message lost{.peer = 3, .data = &never, .bytes = sizeof(never)};
      const Status failed = ranks.Exchange({&lost, 1});
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code, ErrorCode::kPeerFailed);
      EXPECT_THAT(failed.error().message,
                  HasSubstr("waits for message 1 of rank 3, which sent 0 and is no longer there"));
    };
    RunRanks(4, body, {.timeout_s = 600, .shared_memory = shared_memory});
  }
}

// Ranks that leave too early, as by a loop that is one round short, are named to those that wait for them; by every way that
// collectives take.
TEST(LeavingTest, WhoWaitsForACollectiveHearsWhoHasLeft) {
  for (const bool shared_memory : {true, false})
    for (const int64_t count : {int64_t{1}, int64_t{1} << 20}) {
      SCOPED_TRACE(std::to_string(count) + (shared_memory ? " by shared memory" : " by TCP"));
      const auto body = [&](Communicator& ranks) {
        std::vector<int32_t> data(static_cast<size_t>(count), 1);
        const auto all_reduce = [&] {
          return ranks.AllReduce(data.data(), data.data(), count, DataType::kInt32, ReduceOp::kSum);
        };
        for (int round = 0; round < 3; ++round) ASSERT_TRUE(Succeeded(all_reduce()));
        if (ranks.rank() == 2) return Leave(ranks);
        const Status failed = all_reduce();
        ASSERT_FALSE(failed);
        EXPECT_EQ(failed.error().code, ErrorCode::kPeerFailed);
        EXPECT_THAT(failed.error().message,
                    HasSubstr("calls its collective 4; rank 2 completed 3 and is no longer there"));
      };
      RunRanks(3, body, {.timeout_s = 600, .shared_memory = shared_memory});
    }
}

// What was sent before its sender left comes, whenever the receiver asks for it.
TEST(LeavingTest, WhatWasSentBeforeItsSenderLeftComes) {
  for (const bool shared_memory : {true, false})
    for (const size_t count : {1u, 1000u, 1u << 20}) {
      SCOPED_TRACE(std::to_string(count) + (shared_memory ? " by shared memory" : " by TCP"));
      std::atomic<bool> began = false;
      const auto body = [&](Communicator& ranks) {
        std::vector<int32_t> data(count, ranks.rank() == 0 ? 7 : -1);
        const Message message{.peer = 1 - ranks.rank(),
                              .data = data.data(),
                              .bytes = static_cast<int64_t>(count * sizeof(int32_t)),
                              .is_send = ranks.rank() == 0};
        if (ranks.rank() == 0) began = true;
        while (!began) std::this_thread::yield();
        if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ASSERT_TRUE(Succeeded(ranks.Exchange({&message, 1})));
        EXPECT_EQ(data, std::vector<int32_t>(count, 7));
        if (ranks.rank() == 0) Leave(ranks);
      };
      RunRanks(2, body, {.timeout_s = 600, .shared_memory = shared_memory});
    }
}

}  // namespace
}  // namespace tutti
