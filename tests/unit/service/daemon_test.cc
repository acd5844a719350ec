#include "tutti/service/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "running_daemon.h"
#include "support/status.h"

namespace tutti::service {
namespace {

using test_support::Succeeded;
using testing::HasSubstr;

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

// Only some exchange messages, so that the same collective is another command of each rank.
TEST(DaemonTest, CollectivesAreTheSameWhateverMessagesSomeExchangeBetweenThem) {
  const RunningDaemon daemon("messages-between");
  for (const int32_t late : {0, 1, 2})
    RunRanks({&daemon}, 3, [late](Communicator& ranks) {
      for (int32_t turn = 0; turn < 20; ++turn) {
        if (ranks.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        float sent = static_cast<float>(turn), received = -1;
        const int32_t from = turn % 3, to = (turn + 1) % 3;
        const Message send{.peer = to, .data = &sent, .bytes = sizeof(sent), .is_send = true};
        const Message receive{.peer = from, .data = &received, .bytes = sizeof(sent)};
        if (ranks.rank() == from) {
          ASSERT_TRUE(Succeeded(ranks.Exchange({&send, 1})));
        }
        if (ranks.rank() == to) {
          ASSERT_TRUE(Succeeded(ranks.Exchange({&receive, 1})));
          EXPECT_EQ(received, sent);
        }
        float in = static_cast<float>(ranks.rank() + turn), out = 0;
        ASSERT_TRUE(Succeeded(ranks.AllReduce(&in, &out, 1, DataType::kFloat32, ReduceOp::kSum)));
        EXPECT_EQ(out, static_cast<float>(3 + 3 * turn));
      }
    });
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
      // What the one that leaves has completed ends for the others, too.
      ASSERT_TRUE(Succeeded(ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum)));
      EXPECT_EQ(sum, 3);
      if (ranks.rank() == 2) return;
      const Status done = ranks.AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().message, HasSubstr("rank 2 completed 1 and is no longer there"));
    });
}

// Rank 1 leaves because rank 2 has left: of rank 2 hears rank 0, too, however late it calls.
TEST(DaemonTest, WhoLeftFirstIsNamed) {
  RunningDaemon a("a"), b("b");
  for (const auto& daemons : {std::vector<const RunningDaemon*>{&a}, {&a, &b}}) {
    const Result<UniqueId> id = MakeUniqueId(a.socket());
    ASSERT_TRUE(id) << id.error().message;
    std::atomic<int32_t> last = 2;  // the rank whose turn it is to call, or to leave
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        const RunningDaemon& daemon = *daemons[static_cast<size_t>(rank) % daemons.size()];
        std::optional<Communicator> ranks;
        Result<Communicator> joined =
            Communicator::Join(*id, 3, rank, {.timeout_s = 60, .service = daemon.socket()});
        ASSERT_TRUE(joined) << joined.error().message;
        ranks.emplace(std::move(*joined));
        while (last != rank) std::this_thread::yield();
        if (rank < 2) {
          float mine = 1, sum = 0;
          const Status done = ranks->AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
          ASSERT_FALSE(done);
          EXPECT_THAT(done.error().message, HasSubstr("rank 2 completed 0 and is no longer there"));
        }
        ranks.reset();
        --last;
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(DaemonTest, AbortEndsAll) {
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
}

// Rank 1 does not call before rank 0 has given up. The time-out is for joining, too, which may take longer where the
// machine is busy: then again, with more of it.
TEST(DaemonTest, AnOperationThatTimesOutEndsForAll) {
  RunningDaemon a("a"), b("b");
  std::vector<std::optional<Communicator>> ranks(2);
  for (double timeout_s = 0.5; !ranks[0] || !ranks[1]; timeout_s *= 2) {
    const Result<UniqueId> id = MakeUniqueId(a.socket());
    ASSERT_TRUE(id) << id.error().message;
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        Result<Communicator> joined = Communicator::Join(
            *id, 2, rank, {.timeout_s = timeout_s, .service = rank == 0 ? a.socket() : b.socket()});
        ranks[static_cast<size_t>(rank)].reset();
        if (joined) ranks[static_cast<size_t>(rank)].emplace(std::move(*joined));
      });
    for (std::thread& thread : threads) thread.join();
  }
  for (std::optional<Communicator>& rank : ranks) {
    float mine = 1, sum = 0;
    const Status done = rank->AllReduce(&mine, &sum, 1, DataType::kFloat32, ReduceOp::kSum);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("rank 0: all-reduce of 1 float (sum) did not end"));
  }
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

}  // namespace
}  // namespace tutti::service
