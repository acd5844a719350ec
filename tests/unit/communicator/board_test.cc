// Small collectives of ranks that share memory, one after the other.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>
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
