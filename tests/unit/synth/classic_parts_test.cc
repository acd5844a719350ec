// The parts of the classic algorithms: the forward builder, routing of blocks, rings, trees.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "classic/block_router.h"
#include "classic/common.h"
#include "classic/double_tree.h"
#include "classic/forward_builder.h"
#include "classic/link_index.h"
#include "classic/rings.h"
#include "tutti/base/random.h"
#include "unit/synth/classic_support.h"

namespace tutti::classic {
namespace {

using test_support::Parse;

std::string Text(const Topology& topology, const Schedule& schedule) {
  std::string text;
  for (const Transfer& transfer : schedule.transfers)
    text += std::to_string(transfer.step) + ": " + std::to_string(transfer.shard.value) + "[" +
            std::to_string(transfer.begin) + "," + std::to_string(transfer.end) + ") " +
            std::to_string(topology.tail(transfer.link).value) + ">" +
            std::to_string(topology.head(transfer.link).value) + "\n";
  return text;
}

// --- ForwardBuilder: a ring of four, the broadcast from rank 0 ---------------------------------

class ForwardBuilderTest : public testing::Test {
 protected:
  ForwardBuilder Builder(int32_t units) {
    return *ForwardBuilder::Make(topology_, collective_, units);
  }
  static constexpr ShardId kShard{0};

  Topology topology_ = Parse("ring(4)");
  Collective collective_ = *Collective::Make(CollectiveKind::kBroadcast, 4);
};

TEST_F(ForwardBuilderTest, RelaysKeepWhatTheyForward) {
  ForwardBuilder builder = Builder(1);
  EXPECT_EQ(builder.Send(NodeId{0}, NodeId{2}, kShard, builder.Whole(), 0), 2);
  EXPECT_EQ(builder.Ready(NodeId{1}, kShard, builder.Whole()), 1);
  EXPECT_EQ(builder.Ready(NodeId{3}, kShard, builder.Whole()), ForwardBuilder::kNever);
  EXPECT_EQ(builder.Send(NodeId{0}, NodeId{1}, kShard, builder.Whole(), 5), 1);  // there already
  EXPECT_EQ(Text(topology_, std::move(builder).Finish("test", 1)),
            "0: 0[0,1) 0>1\n1: 0[0,1) 1>2\n");
}

TEST_F(ForwardBuilderTest, UnitsAlternateBetweenEqualWays) {
  ForwardBuilder builder = Builder(2);
  builder.Send(NodeId{0}, NodeId{2}, kShard, builder.Whole(), 0);
  EXPECT_EQ(Text(topology_, std::move(builder).Finish("test", 1)),
            "0: 0[0,1) 0>1\n0: 0[1,2) 0>3\n1: 0[0,1) 1>2\n1: 0[1,2) 3>2\n");
}

TEST_F(ForwardBuilderTest, ALateDeliveryIsBroughtForward) {
  ForwardBuilder builder = Builder(1);
  builder.Send(NodeId{0}, NodeId{1}, kShard, builder.Whole(), 4);
  EXPECT_EQ(builder.Ready(NodeId{1}, kShard, builder.Whole()), 5);
  builder.Send(NodeId{0}, NodeId{1}, kShard, builder.Whole(), 0);
  EXPECT_EQ(builder.Ready(NodeId{1}, kShard, builder.Whole()), 1);
  EXPECT_EQ(Text(topology_, std::move(builder).Finish("test", 1)), "0: 0[0,1) 0>1\n");
}

TEST_F(ForwardBuilderTest, EmptyStepsAreTakenOutAndNeighboursJoined) {
  ForwardBuilder builder = Builder(3);
  builder.Send(NodeId{0}, NodeId{1}, kShard, builder.Whole(), 7);
  builder.Send(NodeId{1}, NodeId{2}, kShard, {1, 3}, 20);
  EXPECT_EQ(Text(topology_, std::move(builder).Finish("test", 1)),
            "0: 0[0,3) 0>1\n1: 0[1,3) 1>2\n");
}

TEST(ClassicBuilderTest, TooManyDeliveriesAreRefused) {
  const Topology ring = Parse("ring(64)");
  const Collective gather = *Collective::Make(CollectiveKind::kAllGather, 64);
  EXPECT_EQ(ForwardBuilder::Make(ring, gather, 1 << 20).error().code,
            ErrorCode::kResourceExhausted);
  const Collective exchange = *Collective::Make(CollectiveKind::kAllToAll, 64);
  EXPECT_EQ(BlockRouter::Make(ring, exchange, 1 << 20).error().code, ErrorCode::kResourceExhausted);
}

// --- BlockRouter against all choices of ways ----------------------------------------------------

// All shortest paths of a pair, as lists of links.
std::vector<std::vector<LinkId>> ShortestPaths(const Topology& topology, NodeId from, NodeId to) {
  std::vector<std::vector<LinkId>> paths{{}};
  for (bool longer = true; longer;) {
    std::vector<std::vector<LinkId>> arrived, next;
    for (const std::vector<LinkId>& path : paths) {
      const NodeId at = path.empty() ? from : topology.head(path.back());
      if (at == to) arrived.push_back(path);
      for (LinkId link : topology.OutLinks(at)) {
        next.push_back(path);
        next.back().push_back(link);
      }
    }
    if (!arrived.empty()) return arrived;
    paths = std::move(next);
  }
  return {};
}

// Sum over steps of the busiest link, in blocks, at best.
int64_t BestByTryingAll(const Topology& topology) {
  std::vector<std::vector<std::vector<LinkId>>> choices;
  for (NodeId from : topology.Ranks())
    for (NodeId to : topology.Ranks())
      if (from != to) choices.push_back(ShortestPaths(topology, from, to));
  std::map<std::pair<size_t, int32_t>, int64_t> load;
  int64_t best = INT64_MAX;
  const auto search = [&](const auto& self, size_t block) -> void {
    if (block == choices.size()) {
      std::map<size_t, int64_t> busiest;
      for (const auto& [at, blocks] : load) busiest[at.first] = std::max(busiest[at.first], blocks);
      int64_t total = 0;
      for (const auto& [step, blocks] : busiest) total += blocks;
      best = std::min(best, total);
      return;
    }
    for (const std::vector<LinkId>& path : choices[block]) {
      for (size_t i = 0; i < path.size(); ++i) ++load[{i, path[i].value}];
      self(self, block + 1);
      for (size_t i = 0; i < path.size(); ++i) --load[{i, path[i].value}];
    }
  };
  search(search, 0);
  return best;
}

TEST(ClassicBlockRouterTest, IsAsGoodAsTheBestChoiceOnSmallNetworks) {
  for (const char* expression : {"ring(4)", "ring(6)", "mesh(2,3)", "uniring(1,4)", "kautz(2,1)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Collective exchange = *Collective::Make(CollectiveKind::kAllToAll, topology.num_ranks());
    BlockRouter router = *BlockRouter::Make(topology, exchange, 1);
    std::map<int32_t, std::map<int32_t, int64_t>> load;
    for (const Transfer& transfer : std::move(router).Route())
      ++load[transfer.step][transfer.link.value];
    int64_t total = 0;
    for (const auto& [step, links] : load) {
      int64_t busiest = 0;
      for (const auto& [link, blocks] : links) busiest = std::max(busiest, blocks);
      total += busiest;
    }
    EXPECT_EQ(total, BestByTryingAll(topology));
  }
}

TEST(ClassicBlockRouterTest, HeavyBlocksGoOverFastLinks) {
  // Two ways of two hops from 0 to 3; that over 2 has three times the bandwidth.
  Topology::Builder builder(4);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {.bandwidth = 1'000'000'000});
  builder.AddDuplex(NodeId{1}, NodeId{3}, {.bandwidth = 1'000'000'000});
  builder.AddDuplex(NodeId{0}, NodeId{2}, {.bandwidth = 3'000'000'000});
  builder.AddDuplex(NodeId{2}, NodeId{3}, {.bandwidth = 3'000'000'000});
  const Topology topology = *std::move(builder).Build();
  std::vector<int64_t> demand(16, 0);
  demand[3] = 1000;
  const Collective exchange = *Collective::Make(CollectiveKind::kAllToAllV, 4, {.demand = demand});
  std::map<int32_t, int32_t> by_middle;
  for (const Transfer& transfer : std::move(*BlockRouter::Make(topology, exchange, 8)).Route())
    if (transfer.step == 0) ++by_middle[topology.head(transfer.link).value];
  EXPECT_EQ(by_middle[1], 2);
  EXPECT_EQ(by_middle[2], 6);
}

// --- Rings --------------------------------------------------------------------------------------

void ExpectDisjointRings(const Topology& topology, const std::vector<Ring>& rings) {
  std::set<int32_t> used;
  for (const Ring& ring : rings) {
    std::set<int32_t> seen;
    ASSERT_EQ(ring.order.size(), static_cast<size_t>(topology.num_ranks()));
    ASSERT_EQ(ring.links.size(), ring.order.size());
    for (size_t i = 0; i < ring.order.size(); ++i) {
      EXPECT_TRUE(seen.insert(ring.order[i].value).second);
      EXPECT_EQ(topology.tail(ring.links[i]), ring.order[i]);
      EXPECT_EQ(topology.head(ring.links[i]), ring.order[(i + 1) % ring.order.size()]);
      EXPECT_TRUE(used.insert(ring.links[i].value).second);
    }
  }
}

TEST(ClassicRingsTest, FoundRingsShareNoLink) {
  struct Row {
    const char* expression;
    size_t rings;
  };
  for (const Row& row :
       {Row{"ring(5)", 2}, Row{"uniring(3,4)", 3}, Row{"dgx1", 6}, Row{"torus(6,6)", 4},
        Row{"torus(3,3,3)", 6}, Row{"complete(8)", 6}, Row{"hypercube(6)", 6}, Row{"mesh(4,4)", 2},
        Row{"mesh(3,3)", 0}, Row{"mesh(4)", 0}, Row{"ring(2)", 1}, Row{"debruijn(2,4)", 1}}) {
    SCOPED_TRACE(row.expression);
    const Topology topology = Parse(row.expression);
    const std::vector<Ring> rings = FindRings(topology, 16, 1);
    EXPECT_GE(rings.size(), row.rings);
    EXPECT_EQ(rings.empty(), row.rings == 0);
    ExpectDisjointRings(topology, rings);
    EXPECT_LE(FindRings(topology, 1, 1).size(), 1u);
  }
}

TEST(ClassicRingsTest, LineDigraphsAlwaysHaveARing) {
  for (const char* expression : {"kautz(2,4)", "kautz(3,3)", "debruijn(2,7)", "debruijn(3,4)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const std::vector<Ring> rings = FindRings(topology, 1, 7);
    EXPECT_EQ(rings.size(), 1u);
    ExpectDisjointRings(topology, rings);
  }
}

TEST(ClassicRingsTest, GridCyclesFollowLinks) {
  for (bool wraps : {false, true}) {
    for (int32_t a = 1; a <= 6; ++a)
      for (int32_t b = 1; b <= 6; ++b)
        for (int32_t c = 1; c <= 4; ++c) {
          const std::string sizes =
              std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c);
          SCOPED_TRACE((wraps ? "torus " : "mesh ") + sizes);
          const std::vector<NodeId> order = GridCycle({.dims = {a, b, c}, .wraps = wraps});
          const int32_t longer = (a > 1) + (b > 1) + (c > 1);
          const bool exists =
              a * b * c == 2 || (longer > 0 && wraps) || (longer > 1 && a * b * c % 2 == 0);
          EXPECT_EQ(!order.empty(), exists);
          if (order.empty()) continue;
          const Topology grid = Parse((wraps ? "torus(" : "mesh(") + sizes + ")");
          const LinkIndex index(grid.graph());
          EXPECT_EQ(std::set<NodeId>(order.begin(), order.end()).size(),
                    static_cast<size_t>(a * b * c));
          for (size_t i = 0; i < order.size(); ++i)
            EXPECT_FALSE(index.Between(order[i], order[(i + 1) % order.size()]).empty());
        }
  }
}

// --- Trees, indices, pipelines ------------------------------------------------------------------

TEST(ClassicDoubleTreeTest, NoRankIsInnerTwice) {
  for (int32_t n = 1; n <= 130; ++n) {
    SCOPED_TRACE(n);
    const NodeId root{n / 3};
    std::vector<int32_t> inner(static_cast<size_t>(n), 0);
    for (const std::vector<TreeEdge>& tree : DoubleTree(n, root)) {
      std::vector<int32_t> depth(static_cast<size_t>(n), -1);
      std::vector<int32_t> children(static_cast<size_t>(n), 0);
      depth[root.index()] = 0;
      for (const TreeEdge& edge : tree) {
        ASSERT_GE(depth[edge.parent.index()], 0) << "a parent comes before its children";
        EXPECT_EQ(depth[edge.child.index()], -1);
        depth[edge.child.index()] = depth[edge.parent.index()] + 1;
        EXPECT_LE(++children[edge.parent.index()], edge.parent == root ? 1 : 2);
      }
      const int32_t most = 1 + static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(n - 1)));
      for (int32_t rank = 0; rank < n; ++rank) {
        EXPECT_GE(depth[static_cast<size_t>(rank)], 0);
        EXPECT_LE(depth[static_cast<size_t>(rank)], most);
        if (NodeId{rank} != root)
          inner[static_cast<size_t>(rank)] += children[static_cast<size_t>(rank)] > 0;
      }
    }
    for (int32_t count : inner) EXPECT_LE(count, 1);
  }
}

TEST(ClassicLinkIndexTest, FindsParallelLinks) {
  const Topology topology = Parse("dgx1");
  const LinkIndex index(topology.graph());
  for (NodeId tail : topology.Nodes())
    for (NodeId head : topology.Nodes()) {
      std::vector<LinkId> expected;
      for (LinkId link : topology.OutLinks(tail))
        if (topology.head(link) == head) expected.push_back(link);
      const std::span<const LinkId> found = index.Between(tail, head);
      EXPECT_EQ(std::vector<LinkId>(found.begin(), found.end()), expected);
    }
}

TEST(ClassicPipelineTest, ChunksMinimiseTheFormula) {
  const Topology ring = Parse("ring(4,bw=10GB/s,alpha=2us)");
  const auto seconds = [](int64_t bytes, int32_t depth, int32_t chunks) {
    return Rational(depth + chunks - 1) *
           (Rational(2, 1'000'000) + Rational(bytes, chunks) / Rational(10'000'000'000));
  };
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{1} << 20, int64_t{1} << 26})
    for (int32_t depth : {1, 2, 7, 40}) {
      const int32_t chunks = PipelineChunks(ring, bytes, depth);
      ASSERT_GE(chunks, 1);
      ASSERT_LE(chunks, 256);
      if (chunks > 1) {
        EXPECT_LE(seconds(bytes, depth, chunks), seconds(bytes, depth, chunks - 1));
      }
      if (chunks < 256) {
        EXPECT_LE(seconds(bytes, depth, chunks), seconds(bytes, depth, chunks + 1));
      }
    }
}

}  // namespace
}  // namespace tutti::classic
