// Small collectives of ranks that share memory, one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ranks_in_threads.h"
#include "support/status.h"
#include "tutti/base/random.h"
#include "tutti/coll/collective.h"
#include "tutti/communicator.h"

namespace tutti {
namespace {

// The board's rows take turns, those of small contributions and those of larger ones: what call `at` gives is told from what every
// other gives.
int64_t GivenAt(int32_t rank, int64_t at, int64_t position) {
  return at * 1'000'000 + rank * 10'000 + position;
}

std::vector<int64_t> AllGiven(int32_t rank, int64_t at, int64_t count) {
  std::vector<int64_t> values;
  for (int64_t position = 0; position < count; ++position)
    values.push_back(GivenAt(rank, at, position));
  return values;
}

// Of `count` words or blocks, what rank `me` must have after call `at`; empty: nothing.
std::vector<int64_t> WantedAfter(CollectiveKind kind, int64_t at, int64_t count, int32_t root,
                                 int32_t num_ranks, int32_t me) {
  std::vector<int64_t> wanted;
  const bool at_root = kind == CollectiveKind::kReduce || kind == CollectiveKind::kGather;
  if (at_root && me != root) return wanted;
  const bool gathers = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kGather ||
                       kind == CollectiveKind::kAllToAll;
  const bool own_block = kind == CollectiveKind::kReduceScatter ||
                         kind == CollectiveKind::kScatter || kind == CollectiveKind::kAllToAll;
  const int64_t first = own_block ? count * me : 0;
  const bool from_root = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
  for (int32_t block = 0; block < (gathers ? num_ranks : 1); ++block)
    for (int64_t i = first; i < first + count; ++i) {
      int64_t value = 0;
      if (gathers || from_root)
        value = GivenAt(from_root ? root : block, at, i);
      else
        for (int32_t rank = 0; rank < num_ranks; ++rank) value += GivenAt(rank, at, i);
      wanted.push_back(value);
    }
  return wanted;
}

Status CallOnBoard(Communicator& ranks, CollectiveKind kind, const int64_t* in, int64_t* out,
                   int64_t count, int32_t root) {
  const auto type = DataType::kInt64;
  const auto sum = ReduceOp::kSum;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return ranks.AllReduce(in, out, count, type, sum);
    case CollectiveKind::kReduceScatter:
      return ranks.ReduceScatter(in, out, count, type, sum);
    case CollectiveKind::kReduce:
      return ranks.Reduce(in, out, count, type, sum, root);
    case CollectiveKind::kBroadcast:
      return ranks.Broadcast(in, out, count, type, root);
    case CollectiveKind::kScatter:
      return ranks.Scatter(in, out, count, type, root);
    case CollectiveKind::kGather:
      return ranks.Gather(in, out, count, type, root);
    case CollectiveKind::kAllGather:
      return ranks.AllGather(in, out, count, type);
    default:
      return ranks.AllToAll(in, out, count, type);
  }
}

TEST(BoardTest, ManySmallCallsInARow) {
  static constexpr std::array kKinds{CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kReduce,    CollectiveKind::kBroadcast,
                                     CollectiveKind::kScatter,   CollectiveKind::kGather,
                                     CollectiveKind::kAllGather, CollectiveKind::kAllToAll};
  for (const int32_t num_ranks : {2, 3, 5})
    RunRanks(num_ranks, [num_ranks](Communicator& ranks) {
      const int32_t me = ranks.rank();
      Random same(7), own(static_cast<uint64_t>(me));
      CollectiveKind kind = kKinds[0];
      int32_t root = 0;
      for (int64_t at = 1; at <= 4000; ++at) {
        if (own.Below(200) == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
        // Often the same again, so that a root gets ahead by all rows.
        if (same.Below(20) == 0) {
          kind = kKinds[same.Below(kKinds.size())];
          root = static_cast<int32_t>(same.Below(static_cast<uint64_t>(num_ranks)));
        }
        const auto count = static_cast<int64_t>(same.Below(10) == 0 ? 300 : 1 + same.Below(16));
        const std::vector<int64_t> in = AllGiven(me, at, count * num_ranks);
        std::vector<int64_t> out(static_cast<size_t>(count * num_ranks), -1);
        ASSERT_TRUE(
            test_support::Succeeded(CallOnBoard(ranks, kind, in.data(), out.data(), count, root)));
        const std::vector<int64_t> wanted = WantedAfter(kind, at, count, root, num_ranks, me);
        out.resize(wanted.size());
        ASSERT_EQ(out, wanted) << Name(kind) << " " << at;
      }
    });
}

// Segments and rows of the board take turns with small operations, and a writer runs ahead of readers.
TEST(BoardStreamTest, LargeCallsBetweenSmallOnes) {
  static constexpr std::array kKinds{CollectiveKind::kBroadcast, CollectiveKind::kAllGather,
                                     CollectiveKind::kAllReduce};
  static constexpr std::array<int64_t, 6> kCounts{1, 300, 2049, 8192, 8193, 50'000};  // of 8 bytes
  for (const int32_t num_ranks : {3, 5})
    RunRanks(num_ranks, [num_ranks](Communicator& ranks) {
      const int32_t me = ranks.rank();
      Random same(11), own(static_cast<uint64_t>(me));
      for (int64_t at = 1; at <= 150; ++at) {
        if (own.Below(20) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const CollectiveKind kind = kKinds[same.Below(kKinds.size())];
        const auto root = static_cast<int32_t>(same.Below(static_cast<uint64_t>(num_ranks)));
        const int64_t count = kCounts[same.Below(kCounts.size())];
        const bool gathers = kind == CollectiveKind::kAllGather, in_place = same.Below(2) == 0;
        const std::vector<int64_t> in = AllGiven(me, at, count);
        std::vector<int64_t> out(static_cast<size_t>(count * (gathers ? num_ranks : 1)), -1);
        int64_t* own_part = out.data() + (gathers ? count * me : 0);
        if (in_place) std::copy(in.begin(), in.end(), own_part);
        ASSERT_TRUE(test_support::Succeeded(
            CallOnBoard(ranks, kind, in_place ? own_part : in.data(), out.data(), count, root)));
        ASSERT_EQ(out, WantedAfter(kind, at, count, root, num_ranks, me))
            << Name(kind) << " " << at;
      }
    });
}

// By plans, by messages and over the board.
TEST(BoardStreamTest, ResultsThatDoNotStayInTheCache) {
  for (const auto& [num_ranks, count] :
       std::vector<std::pair<int32_t, int64_t>>{{2, 1'100'003}, {3, 750'001}})
    RunRanks(num_ranks, [num_ranks = num_ranks, count = count](Communicator& ranks) {
      const int32_t me = ranks.rank();
      for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kAllGather,
                                        CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
        const std::vector<int64_t> in = AllGiven(me, 1, count * num_ranks);
        std::vector<int64_t> out(static_cast<size_t>(count * num_ranks), -1);
        ASSERT_TRUE(
            test_support::Succeeded(CallOnBoard(ranks, kind, in.data(), out.data(), count, 1)));
        const std::vector<int64_t> wanted = WantedAfter(kind, 1, count, 1, num_ranks, me);
        out.resize(wanted.size());
        ASSERT_TRUE(out == wanted) << Name(kind) << " of " << num_ranks;
      }
    });
}

// Small, large, or not on the board at all: the last rank calls another thing than the others.
TEST(BoardStreamTest, AnotherCallIsNamed) {
  struct Call {
    CollectiveKind kind;
    int64_t count;
    int32_t root;
  };
  const Call of_others{CollectiveKind::kAllGather, 5000, 0};
  for (const Call& of_last :
       {Call{CollectiveKind::kAllGather, 5001, 0},
        Call{CollectiveKind::kAllGather, 5000 + (1 << 16), 0},
        Call{CollectiveKind::kAllGather, 8, 0}, Call{CollectiveKind::kBroadcast, 5000, 2}})
    RunRanks(3, [&](Communicator& ranks) {
      const bool is_last = ranks.rank() == 2;
      const Call& call = is_last ? of_last : of_others;
      const std::vector<int64_t> in(static_cast<size_t>(call.count));
      std::vector<int64_t> out(static_cast<size_t>(call.count * 3));
      const Status done =
          CallOnBoard(ranks, call.kind, in.data(), out.data(), call.count, call.root);
      // A root may have given all that it has.
      if (is_last && call.kind == CollectiveKind::kBroadcast && done) return;
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().message, testing::HasSubstr("do not run the same"));
    });
}

TEST(BoardStreamTest, IsForManyRanks) {
  const auto schedule_of = [](int32_t num_ranks, CollectiveKind kind) {
    std::string schedule;
    RunRanks(num_ranks, [&](Communicator& ranks) {
      if (ranks.rank() == 0) schedule = ranks.ScheduleFor(kind, 1 << 20, DataType::kInt64).value();
    });
    return schedule;
  };
  EXPECT_EQ(schedule_of(3, CollectiveKind::kBroadcast), "shared board");
  EXPECT_EQ(schedule_of(3, CollectiveKind::kAllGather), "shared board");
  EXPECT_EQ(schedule_of(2, CollectiveKind::kBroadcast), "bfb on complete(2)");
  EXPECT_EQ(schedule_of(3, CollectiveKind::kReduce), "bfb on complete(3)");
}

TEST(BoardTest, IsForSmallCalls) {
  RunRanks(3, [](Communicator& ranks) {
    const auto schedule = [&ranks](int64_t count) {
      return ranks.ScheduleFor(CollectiveKind::kAllReduce, count, DataType::kInt64).value();
    };
    EXPECT_EQ(schedule(2048), "shared board");
    EXPECT_EQ(schedule(2049), "bfb on complete(3)");
  });
}

}  // namespace
}  // namespace tutti
