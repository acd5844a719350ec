// The service in simulated time: history.h says what is drawn and what must be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "history.h"

namespace tutti::histories {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Seeds [first, first + count), until some break a promise; how the first of them went is printed.
HistoryOutcome RunAll(uint64_t first, uint64_t count) {
  HistoryOutcome sum;
  constexpr uint64_t kMostBroken = 10;
  uint64_t deaths = 0, broken = 0, seed = first;
  for (; seed < first + count && broken < kMostBroken; ++seed) {
    const HistoryOutcome one = RunHistory({.seed = seed});
    if (!one.broken.empty()) {
      ADD_FAILURE() << "seed " << seed << ": " << one.broken;
      if (broken++ == 0) RunHistory({.seed = seed, .prints = true});
    }
    sum.segments += one.segments;
    sum.simulated_ns += one.simulated_ns;
    sum.operations += one.operations;
    sum.changes += one.changes;
    sum.refused_changes += one.refused_changes;
    sum.lost_ways += one.lost_ways;
    sum.failed_ranks += one.failed_ranks;
    sum.shrunk_ranks += one.shrunk_ranks;
    if (one.something_died) ++deaths;
  }
  fmt::print(
      "{} histories from seed {}: {} operations of ranks, {} changes ({} refused), {} ways left, "
      "something "
      "died in {}, {} ranks told, {} went on in new communicators; {} segments, {} s simulated\n",
      seed - first, first, sum.operations, sum.changes, sum.refused_changes, sum.lost_ways, deaths,
      sum.failed_ranks, sum.shrunk_ranks, sum.segments, sum.simulated_ns / 1'000'000'000);
  return sum;
}

TEST(HistoriesTest, TheServiceKeepsItsPromises) {
  const HistoryOutcome sum =
      RunAll(FromEnvironment("TUTTI_SEED", 1), FromEnvironment("TUTTI_HISTORIES", 300));
  // What is to happen does.
  EXPECT_GT(sum.operations, 0);
  EXPECT_GT(sum.changes, 0);
  EXPECT_GT(sum.lost_ways, 0);
  EXPECT_GT(sum.shrunk_ranks, 0);
}

TEST(HistoriesByHand, TheServiceKeepsItsPromises) {
  RunAll(FromEnvironment("TUTTI_SEED", 1), FromEnvironment("TUTTI_HISTORIES", 100'000));
}

TEST(HistoriesTest, TheSameSeedIsTheSameHistory) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const HistoryOutcome once = RunHistory({.seed = seed}), again = RunHistory({.seed = seed});
    EXPECT_EQ(once.digest, again.digest) << "seed " << seed;
    EXPECT_EQ(once.segments, again.segments) << "seed " << seed;
  }
}

// A rule that is broken shows within some hundred histories.
TEST(HistoriesTest, SeededFaultsAreFound) {
  constexpr uint64_t kMost = 3'000;
  for (const SeededFault fault : {SeededFault::kOwnNumber, SeededFault::kNoHold,
                                  SeededFault::kResumesWrong, SeededFault::kForgetsAFrame}) {
    std::string broken;
    uint64_t seed = 1;
    for (; seed <= kMost && broken.empty(); ++seed)
      broken = RunHistory({.seed = seed, .fault = fault}).broken;
    EXPECT_NE(broken, "") << "fault " << static_cast<int>(fault);
    fmt::print("fault {}: found by seed {}: {}\n", static_cast<int>(fault), seed - 1, broken);
  }
}

}  // namespace
}  // namespace tutti::histories
