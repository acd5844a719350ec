// The table of found Cayley digraphs, every row built and measured.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
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
  EXPECT_EQ(entry.diameter, measured->diameter);
  EXPECT_EQ(entry.bidirectional, measured->bidirectional);
  EXPECT_EQ(entry.reverse_symmetric, measured->reverse_symmetric);
  EXPECT_EQ(entry.simple, measured->simple);
  EXPECT_EQ(entry.self_loops, measured->self_loops);
}

// No row is beaten by another, or by what the finder makes of the other bases.
void ExpectOnTheFrontier(const BaseEntry& entry) {
  SCOPED_TRACE(entry.recipe);
  Search search({}, "found");
  for (const Candidate* other : search.All(entry.ranks, entry.degree).candidates())
    EXPECT_FALSE(other->tl <= entry.tl && other->tb <= entry.tb &&
                 (other->has(kBidirectional) || !entry.bidirectional))
        << other->recipe;
}

void ExpectVerified(const char* recipe, CollectiveKind kind, int32_t tl, const Rational& tb) {
  SCOPED_TRACE(recipe);
  const Result<Topology> topology = ParseTopology(recipe);
  ASSERT_TRUE(topology) << topology.error().message;
  const Result<Collective> collective = Collective::Make(kind, topology->num_ranks());
  ASSERT_TRUE(collective);
  const Result<const Synthesizer*> bfb = FindSynthesizer("bfb");
  ASSERT_TRUE(bfb);
  const Result<Schedule> schedule = RunSynthesizer(**bfb, *topology, *collective, {});
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(Verify(*topology, *collective, *schedule).ok());
  const AnalyticCost cost = ComputeCost(*topology, *schedule);
  EXPECT_EQ(cost.tl, tl);
  EXPECT_EQ(cost.tb, std::optional<Rational>(tb));
}

TEST(Found, SmallRowsAreMeasured) {
  const std::vector<BaseEntry> entries = EntriesUpTo(128);
  EXPECT_FALSE(entries.empty());
  for (const BaseEntry& entry : entries) ExpectMeasured(entry);
}

TEST(FoundSlow, EveryRowIsMeasured) {
  for (const BaseEntry& entry : EntriesUpTo(kMaxRanks)) ExpectMeasured(entry);
}

TEST(FoundSlow, EveryRowAddsToTheOtherBases) {
  for (const BaseEntry& entry : EntriesUpTo(kMaxRanks)) ExpectOnTheFrontier(entry);
}

}  // namespace
}  // namespace tutti::design
