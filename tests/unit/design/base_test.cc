// Every entry of the base families, built and measured.
#include "base.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "candidate.h"
#include "tutti/bounds/bounds.h"
#include "tutti/coll/collective.h"
#include "tutti/design/finder.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/synth/stored.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti::design {
namespace {

bool HasSelfLoops(const Topology& topology) {
  for (NodeId node : topology.Nodes())
    if (!topology.self_loops(node).empty()) return true;
  return false;
}

bool HasParallelLinks(const Topology& topology) {
  for (NodeId node : topology.Nodes()) {
    std::vector<char> seen(static_cast<size_t>(topology.num_nodes()), 0);
    for (LinkId link : topology.OutLinks(node))
      if (std::exchange(seen[topology.head(link).index()], 1)) return true;
  }
  return false;
}

void ExpectTrue(const BaseEntry& entry, int32_t ranks, int32_t degree) {
  SCOPED_TRACE(entry.recipe);
  EXPECT_EQ(entry.ranks, ranks);
  EXPECT_EQ(entry.degree, degree);
  const Result<Topology> topology = ParseTopology(entry.recipe);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->num_ranks(), ranks);
  EXPECT_EQ(topology->regular_degree(), std::optional<int32_t>(degree));
  EXPECT_EQ(Diameter(*topology), entry.diameter);
  EXPECT_EQ(IsBidirectional(*topology), entry.bidirectional);
  EXPECT_EQ(HasSelfLoops(*topology), entry.self_loops);
  EXPECT_EQ(entry.simple, !HasParallelLinks(*topology) && !entry.self_loops);
  if (entry.reverse_symmetric) {
    EXPECT_EQ(FindReverseSymmetry(*topology).outcome, IsomorphismSearch::Outcome::kFound);
  }
  const Result<Collective> collective = Collective::Make(CollectiveKind::kAllGather, ranks);
  ASSERT_TRUE(collective);
  const Result<BfbCost> back = ComputeBfbCost(TransposeTopology(*topology), *collective, {});
  ASSERT_TRUE(back);
  if (entry.bfb || entry.reduce_scatter) {
    const DesignCost claimed = entry.reduce_scatter.value_or(DesignCost{entry.tl, entry.tb});
    EXPECT_EQ(back->tl, claimed.tl);
    EXPECT_EQ(back->tb, std::optional<Rational>(claimed.tb));
  }
  if (!entry.bfb) {
    const Result<Schedule> schedule = MakeStored(*topology, *collective, {});
    ASSERT_TRUE(schedule) << schedule.error().message;
    const Result<StepCost> cost = AnalyticCost(*topology, *schedule);
    ASSERT_TRUE(cost);
    EXPECT_EQ(cost->tl, entry.tl);
    EXPECT_EQ(cost->tb, entry.tb);
    return;
  }
  const Result<BfbCost> cost = ComputeBfbCost(*topology, *collective, {});
  ASSERT_TRUE(cost) << cost.error().message;
  EXPECT_EQ(cost->tl, entry.tl);
  EXPECT_EQ(cost->tb, std::optional<Rational>(entry.tb))
      << cost->tb->ToString() << " against " << entry.tb.ToString();
}

TEST(BasesSlow, AreWhatTheyClaim) {
  for (const BaseFamily& family : BaseFamilies()) {
    int64_t listed = 0;
    for (int32_t degree = 1; degree <= 8; ++degree)
      for (int32_t ranks = 2; ranks <= 130; ++ranks) {
        std::vector<BaseEntry> entries;
        family.list(ranks, degree, entries);
        listed += static_cast<int64_t>(entries.size());
        for (const BaseEntry& entry : entries) {
          ExpectTrue(entry, ranks, degree);
          if (entry.reduce_scatter && entry.bfb) ExpectTrue(TransposeOf(entry), ranks, degree);
        }
      }
    EXPECT_GT(listed, 0) << family.name;
  }
}

TEST(Limits, ByHand) {
  EXPECT_EQ(MooreBoundSteps(1024, 4), 5);  // 1 + 4 + 16 + 64 + 256 = 341 < 1024 <= 1365
  EXPECT_EQ(MooreBoundSteps(5, 4), 1);
  EXPECT_EQ(MooreBoundSteps(6, 4), 2);
  EXPECT_EQ(MooreBoundSteps(7, 1), 6);
  EXPECT_EQ(BidirectionalMooreBoundSteps(728, 4), 6);
  EXPECT_EQ(BidirectionalMooreBoundSteps(21, 4), 3);
  EXPECT_EQ(BidirectionalMooreBoundSteps(9, 2), 4);
  EXPECT_EQ(BidirectionalMooreBoundSteps(2, 1), 1);
  // Table 7: 4 + 16 * 2 + 11 * 3 hops to 31 ranks at least: 5.80e-2.
  EXPECT_EQ(MooreFlow(32, 4), Rational(4, 69));
  EXPECT_NEAR(MooreFlow(1024, 4).ToDouble(), 8.57e-4, 0.005e-4);
}

}  // namespace
}  // namespace tutti::design
