#include "tutti/graph/max_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tutti/base/random.h"

namespace tutti {
namespace {

using Flow64 = MaxFlow<int64_t>;
using Flow128 = MaxFlow<WideCapacity>;

struct Network {
  int32_t num_nodes = 0;
  std::vector<Flow64::Arc> arcs;
  std::vector<std::optional<int64_t>> supply;  // none: without limit
};

Network RandomNetwork(uint64_t seed) {
  Random random(seed);
  const auto draw = [&random](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random.Below(static_cast<uint64_t>(hi - lo + 1)));
  };
  Network net;
  net.num_nodes = static_cast<int32_t>(draw(1, 8));
  const auto node = [&] { return NodeId{static_cast<int32_t>(draw(0, net.num_nodes - 1))}; };
  const int64_t largest = draw(0, 1) == 0 ? 3 : 1000;
  for (int64_t left = draw(0, 30); left > 0; --left)
    net.arcs.push_back({node(), node(), draw(0, largest)});
  for (int32_t n = 0; n < net.num_nodes; ++n) {
    const int64_t kind = draw(0, 5);
    net.supply.emplace_back(kind <= 2 ? 0 : draw(0, largest));
    if (kind == 5) net.supply.back().reset();
  }
  return net;
}

template <class Capacity>
MaxFlow<Capacity> Make(const Network& net) {
  std::vector<typename MaxFlow<Capacity>::Arc> arcs;
  for (const auto& arc : net.arcs) arcs.push_back({arc.tail, arc.head, arc.capacity});
  MaxFlow<Capacity> flow(net.num_nodes, arcs);
  for (int32_t n = 0; n < net.num_nodes; ++n) {
    const auto& supply = net.supply[static_cast<size_t>(n)];
    if (supply) flow.SetSupply(NodeId{n}, *supply);
    if (!supply) flow.SetUnlimitedSupply(NodeId{n});
  }
  return flow;
}

// What may come into the nodes of `side`; none: without limit.
std::optional<int64_t> IntoSide(const Network& net, const std::vector<bool>& side) {
  int64_t total = 0;
  for (size_t n = 0; n < side.size(); ++n) {
    if (!side[n]) continue;
    if (!net.supply[n]) return std::nullopt;
    total += *net.supply[n];
  }
  for (const auto& arc : net.arcs)
    if (!side[arc.tail.index()] && side[arc.head.index()]) total += arc.capacity;
  return total;
}

// The smallest cut by trying all of them.
int64_t BruteForce(const Network& net, NodeId sink, int64_t limit) {
  int64_t best = limit;
  for (uint32_t bits = 0; bits < (1u << net.num_nodes); ++bits) {
    if ((bits >> sink.value & 1) == 0) continue;
    std::vector<bool> side;
    for (int32_t n = 0; n < net.num_nodes; ++n) side.push_back((bits >> n & 1) != 0);
    best = std::min(best, IntoSide(net, side).value_or(limit));
  }
  return best;
}

// Flow is conserved, within capacities, and takes no more than the supplies.
void ExpectIsAFlow(const Network& net, const Flow64& flow, NodeId sink, int64_t value) {
  std::vector<int64_t> net_out(static_cast<size_t>(net.num_nodes), 0);
  for (size_t a = 0; a < net.arcs.size(); ++a) {
    const int64_t amount = flow.Flow(static_cast<int32_t>(a));
    EXPECT_GE(amount, 0);
    EXPECT_LE(amount, net.arcs[a].capacity);
    net_out[net.arcs[a].tail.index()] += amount;
    net_out[net.arcs[a].head.index()] -= amount;
  }
  net_out[sink.index()] += value;
  for (size_t n = 0; n < net_out.size(); ++n) {
    EXPECT_GE(net_out[n], 0);
    if (net.supply[n].has_value()) {
      EXPECT_LE(net_out[n], *net.supply[n]);
    }
  }
}

TEST(MaxFlowTest, FindsTheFlowAndTheCutOfATextbookNetwork) {
  // 5 may leave node 0, but only 2 + 2 enter node 3.
  const std::vector<Flow64::Arc> arcs = {
      {{0}, {1}, 3}, {{0}, {2}, 2}, {{1}, {2}, 1}, {{1}, {3}, 2}, {{2}, {3}, 2}};
  Flow64 flow(4, arcs);
  flow.SetUnlimitedSupply(NodeId{0});
  EXPECT_EQ(flow.Run(NodeId{3}), 4);
  EXPECT_EQ(flow.SinkSide(), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(flow.Run(NodeId{2}), 3);
  EXPECT_EQ(flow.SinkSide(), (std::vector<bool>{false, false, true, false}));
}

TEST(MaxFlowTest, FlowMustBeTakenBackFromAShortWay) {
  // The short way 0-1-4-5, taken first, must give way to 0-1-2-6-5 and 0-3-4-5.
  const std::vector<Flow64::Arc> arcs = {{{0}, {1}, 1}, {{1}, {4}, 1}, {{4}, {5}, 1},
                                         {{1}, {2}, 1}, {{2}, {6}, 1}, {{6}, {5}, 1},
                                         {{0}, {3}, 1}, {{3}, {4}, 1}};
  Flow64 flow(7, arcs);
  flow.SetUnlimitedSupply(NodeId{0});
  EXPECT_EQ(flow.Run(NodeId{5}), 2);
  EXPECT_EQ(flow.Flow(1), 0);
}

TEST(MaxFlowTest, StopsAtTheLimit) {
  const std::vector<Flow64::Arc> arcs = {{{0}, {1}, 100}};
  Flow64 flow(2, arcs);
  flow.SetUnlimitedSupply(NodeId{0});
  EXPECT_EQ(flow.Run(NodeId{1}, 7), 7);
  EXPECT_EQ(flow.Flow(0), 7);
  EXPECT_EQ(flow.Run(NodeId{1}, 0), 0);
  EXPECT_EQ(flow.Run(NodeId{1}), 100);
}

TEST(MaxFlowTest, ASinkUsesItsOwnSupplyAndHasNoMoreThanAskedWithoutLimit) {
  Flow64 flow(1, {});
  EXPECT_EQ(flow.Run(NodeId{0}), 0);
  flow.SetSupply(NodeId{0}, 5);
  EXPECT_EQ(flow.Run(NodeId{0}), 5);
  flow.SetUnlimitedSupply(NodeId{0});
  EXPECT_EQ(flow.Run(NodeId{0}, 9), 9);
}

TEST(MaxFlowTest, ALongWayNeedsNoDeepStack) {
  constexpr int32_t kNodes = 300'000;
  std::vector<Flow64::Arc> arcs;
  for (int32_t n = 0; n + 1 < kNodes; ++n) arcs.push_back({{n}, {n + 1}, kNodes});
  Flow64 flow(kNodes, arcs);
  for (int32_t n = 0; n < kNodes; ++n) flow.SetSupply(NodeId{n}, 1);
  EXPECT_EQ(flow.Run(NodeId{kNodes - 1}), kNodes);
}

TEST(MaxFlowTest, WideCapacitiesDoNotOverflow) {
  const WideCapacity big = WideCapacity{1} << 100;
  const std::vector<Flow128::Arc> arcs = {{{0}, {1}, big}, {{0}, {1}, big}, {{1}, {0}, big}};
  Flow128 flow(2, arcs);
  flow.SetUnlimitedSupply(NodeId{0});
  EXPECT_TRUE(flow.Run(NodeId{1}) == 2 * big);
}

TEST(MaxFlowProperty, EqualsTheSmallestOfAllCuts) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = RandomNetwork(seed);
    Flow64 flow = Make<int64_t>(net);
    Flow128 wide = Make<WideCapacity>(net);
    // One workspace over all sinks, forth and back: a run leaves nothing behind.
    for (int32_t i = 0; i < 2 * net.num_nodes; ++i) {
      const NodeId sink{i < net.num_nodes ? i : 2 * net.num_nodes - 1 - i};
      const int64_t limit = i % 3 == 0 ? 4 : 1'000'000;
      const int64_t value = flow.Run(sink, limit);
      EXPECT_EQ(value, BruteForce(net, sink, limit));
      EXPECT_EQ(static_cast<int64_t>(wide.Run(sink, limit)), value);
      ExpectIsAFlow(net, flow, sink, value);
      if (value < limit) {
        const std::vector<bool> side = flow.SinkSide();
        EXPECT_TRUE(side[sink.index()]);
        EXPECT_EQ(IntoSide(net, side), value);
      }
    }
  }
}

TEST(MaxFlowProperty, ChangedCapacitiesAndSuppliesActLikeANewNetwork) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Network net = RandomNetwork(seed);
    Flow64 flow = Make<int64_t>(net);
    const NodeId sink{0};
    flow.Run(sink, 1'000'000);
    for (size_t a = 0; a < net.arcs.size(); a += 2) {
      net.arcs[a].capacity = static_cast<int64_t>(a);
      flow.SetCapacity(static_cast<int32_t>(a), net.arcs[a].capacity);
    }
    net.supply.back() = 2;
    flow.SetSupply(NodeId{net.num_nodes - 1}, 2);
    EXPECT_EQ(flow.Run(sink, 1'000'000), Make<int64_t>(net).Run(sink, 1'000'000));
  }
}

}  // namespace
}  // namespace tutti
