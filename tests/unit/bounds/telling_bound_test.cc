#include "telling_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "networks.h"
#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"
#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

Rational MostTold(const Topology& topology) {
  const CutNetwork network(topology);
  const std::optional<Rational> most = MostToldAtOnce(network, EachAlone(network));
  EXPECT_TRUE(most.has_value());
  return most.value_or(0) * Rational(network.unit);
}

Topology TellingDigraph(uint64_t seed, int32_t ranks) {
  Random random(seed);
  Topology::Builder builder(ranks);
  const auto bandwidth = [&random] { return static_cast<int64_t>(1 + random.Below(9)); };
  for (int32_t rank = 0; rank < ranks; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % ranks}, {bandwidth(), 0});
  for (uint64_t extra = random.Below(2 * static_cast<uint64_t>(ranks)); extra > 0; --extra) {
    const NodeId tail{static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)))};
    const NodeId head{static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)))};
    if (tail != head) builder.AddLink(tail, head, {bandwidth(), 0});
  }
  return *std::move(builder).Build();
}

// 3 bytes/s there and 1 back. Whoever is first, one message goes each way.
TEST(TellingBoundTest, TwoRanksByHand) {
  Topology::Builder builder(2);
  builder.AddLink(NodeId{0}, NodeId{1}, {3, 0});
  builder.AddLink(NodeId{1}, NodeId{0}, {1, 0});
  EXPECT_EQ(MostTold(*std::move(builder).Build()), Rational(1));
}

// A ring of three in one direction: two messages until the first knows, two more, over three links.
TEST(TellingBoundTest, ARingByHand) {
  Topology::Builder builder(3);
  for (int32_t rank = 0; rank < 3; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % 3}, {1, 0});
  EXPECT_EQ(MostTold(*std::move(builder).Build()), Rational(3, 4));
}

TEST(TellingBoundTest, NothingOfSwitches) {
  Topology::Builder builder(2, 1);
  for (int32_t rank = 0; rank < 2; ++rank) builder.AddDuplex(NodeId{rank}, NodeId{2}, {1, 0});
  const CutNetwork network(*std::move(builder).Build());
  EXPECT_FALSE(MostToldAtOnce(network, EachAlone(network)).has_value());
}

// Rates of an all-reduce of three ranks by every order of up to six messages, as a linear program:
// none brings more than is proven, whichever way the network is turned.
TEST(TellingBoundProperty, NoOrderOfMessagesBringsMore) {
  constexpr int32_t kRanks = 3, kMost = 6;
  using Counts = std::array<int32_t, kRanks * kRanks>;
  using State = std::pair<std::array<uint32_t, kRanks>, Counts>;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = TellingDigraph(seed, kRanks);
    std::set<Counts> reached;
    std::set<State> layer{{{1, 2, 4}, {}}};
    for (int32_t messages = 0; messages < kMost; ++messages) {
      std::set<State> next;
      for (const auto& [known, counts] : layer)
        for (LinkId link : topology.Links()) {
          State after{known, counts};
          const size_t tail = topology.tail(link).index(), head = topology.head(link).index();
          after.first[head] |= known[tail];
          ++after.second[tail * kRanks + head];
          if (after.first == known) continue;
          if (after.first == std::array<uint32_t, kRanks>{7, 7, 7}) reached.insert(after.second);
          next.insert(after);
        }
      layer = std::move(next);
    }
    std::map<std::pair<size_t, size_t>, int64_t> capacity;
    for (LinkId link : topology.Links())
      capacity[{topology.tail(link).index(), topology.head(link).index()}] +=
          topology.bandwidth(link);
    LinearProgram program(LinearProgram::Goal::kMaximize);
    std::map<std::pair<size_t, size_t>, int32_t> rows;
    for (const auto& [ends, most] : capacity)
      rows[ends] = program.AddRow(-LinearProgram::kNoLimit, static_cast<double>(most), {});
    for (const Counts& counts : reached) {
      std::vector<LinearProgram::RowEntry> entries;
      for (const auto& [ends, row] : rows)
        if (const int32_t count = counts[ends.first * kRanks + ends.second]; count > 0)
          entries.push_back({row, static_cast<double>(count)});
      program.AddColumn(0, LinearProgram::kNoLimit, 1, entries);
    }
    const Result<LpSolution> best = program.Solve();
    ASSERT_TRUE(best.has_value()) << best.error().message;
    const CutNetwork network(topology);
    for (const CutNetwork& turned : {network, network.Transposed()}) {
      const std::optional<Rational> most = MostToldAtOnce(turned, EachAlone(turned));
      ASSERT_TRUE(most.has_value());
      EXPECT_GE((*most * Rational(network.unit)).ToDouble(), best->objective - 1e-6);
    }
  }
}

// The bound takes the larger of both, and on cables of two equal links partitions alone.
TEST(TellingBoundProperty, IsNeverBelowPartitions) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = TellingDigraph(seed, static_cast<int32_t>(3 + seed % 6));
    const CutNetwork network(topology);
    const Partition tightest = TightestPartition(network);
    const Rational by_partition =
        Rational(2 * (tightest.num_parts - 1)) / network.BytesPerSecond(tightest.capacity);
    const Bounds bounds = *ComputeBounds(
        topology, *Collective::Make(CollectiveKind::kAllReduce, topology.num_ranks()));
    EXPECT_GE(bounds.seconds_per_byte, by_partition);
    // It cannot exceed what reduce-scatter and all-gather take.
    EXPECT_LE(bounds.seconds_per_byte, *bounds.rsag_seconds_per_byte);
  }
}

}  // namespace
}  // namespace tutti
