// The table of found Cayley digraphs, every row built and measured.
#include <gtest/gtest.h>

#include <vector>

#include "base.h"
#include "own_base.h"
#include "search.h"
#include "tutti/coll/collective.h"
#include "tutti/design/finder.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti::design {
namespace {

constexpr int32_t kMaxRanks = 1024;
constexpr int32_t kMaxDegree = 8;

std::vector<BaseEntry> EntriesUpTo(int32_t max_ranks) {
  std::vector<BaseEntry> entries;
  for (int32_t degree = 1; degree <= kMaxDegree; ++degree)
    for (int32_t ranks = 2; ranks <= max_ranks; ++ranks) ListFound(ranks, degree, entries);
  return entries;
}

void ExpectMeasured(const BaseEntry& entry) {
  SCOPED_TRACE(entry.recipe);
  const Result<Topology> topology = ParseTopology(entry.recipe);
  ASSERT_TRUE(topology) << topology.error().message;
  const Result<BaseEntry> measured = MeasureBase(*topology);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(entry.ranks, measured->ranks);
  EXPECT_EQ(entry.degree, measured->degree);
  EXPECT_EQ(entry.tl, measured->tl);
  EXPECT_EQ(entry.tb, measured->tb);
  EXPECT_EQ(entry.reduce_scatter, measured->reduce_scatter);
  EXPECT_EQ(entry.diameter, measured->diameter);
  EXPECT_EQ(entry.bidirectional, measured->bidirectional);
  EXPECT_EQ(entry.reverse_symmetric, measured->reverse_symmetric);
  EXPECT_EQ(entry.simple, measured->simple);
  EXPECT_EQ(entry.self_loops, measured->self_loops);
}

// No row is beaten by what the finder makes of the other bases. (Drawn circulants may be as good.)
void ExpectOnTheFrontier(const BaseEntry& entry) {
  SCOPED_TRACE(entry.recipe);
  Search search({}, "found");
  for (const Candidate* other : search.All(entry.ranks, entry.degree).candidates())
    EXPECT_FALSE(other->tl <= entry.tl && other->tb <= entry.tb &&
                 (other->tl < entry.tl || other->tb < entry.tb) &&
                 (other->has(kBidirectional) || !entry.bidirectional))
        << other->recipe;
}

void ExpectVerified(const BaseEntry& entry, CollectiveKind kind) {
  SCOPED_TRACE(entry.recipe);
  const Result<Topology> topology = ParseTopology(entry.recipe);
  ASSERT_TRUE(topology) << topology.error().message;
  const Result<Collective> collective = Collective::Make(kind, topology->num_ranks());
  ASSERT_TRUE(collective);
  const Result<const Synthesizer*> bfb = FindSynthesizer("bfb");
  ASSERT_TRUE(bfb);
  const Result<Schedule> schedule = RunSynthesizer(**bfb, *topology, *collective, {});
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(Verify(*topology, *collective, *schedule).verified());
  const StepCost cost = AnalyticCost(*topology, *schedule);
  DesignCost expected{entry.tl, entry.tb};
  if (kind == CollectiveKind::kReduceScatter) expected = entry.reduce_scatter.value_or(expected);
  EXPECT_EQ((DesignCost{cost.tl, cost.tb}), expected);
}

TEST(Found, SmallRowsAreMeasured) {
  const std::vector<BaseEntry> entries = EntriesUpTo(128);
  EXPECT_FALSE(entries.empty());
  for (const BaseEntry& entry : entries) ExpectMeasured(entry);
}

// The frontiers of Table 7 that these bases replace (docs/results/beyond-direct-connect.md).
TEST(Found, SchedulesAreVerified) {
  for (const BaseEntry& entry : EntriesUpTo(128)) {
    if (entry.ranks % 32 != 0) continue;
    ExpectVerified(entry, CollectiveKind::kAllGather);
    ExpectVerified(entry, CollectiveKind::kReduceScatter);
  }
}

TEST(FoundSlow, LargeSchedulesAreVerified) {
  for (int32_t ranks : {256, 512, 1024}) {
    std::vector<BaseEntry> entries;
    ListFound(ranks, 4, entries);
    EXPECT_FALSE(entries.empty());
    for (const BaseEntry& entry : entries) ExpectVerified(entry, CollectiveKind::kAllGather);
  }
}

TEST(FoundSlow, EveryRowIsMeasured) {
  for (const BaseEntry& entry : EntriesUpTo(kMaxRanks)) ExpectMeasured(entry);
}

TEST(FoundSlow, EveryRowAddsToTheOtherBases) {
  for (const BaseEntry& entry : EntriesUpTo(kMaxRanks)) ExpectOnTheFrontier(entry);
}

}  // namespace
}  // namespace tutti::design
