#include "tutti/sim/flow_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/build.h"
#include "support/parse.h"
#include "tutti/base/random.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::LinkOf;
using test_support::Parse;
using ::testing::HasSubstr;

// One path a pair over the given nodes; pairs that are not named send nothing.
struct NamedPath {
  std::vector<int32_t> nodes;
  int64_t weight = 1;
};

Routing RoutingOf(const Topology& topology, const std::vector<NamedPath>& paths) {
  const int32_t ranks = topology.num_ranks();
  RoutingBuilder builder(ranks, 1);
  std::vector<int64_t> demand;
  for (int32_t source = 0; source < ranks; ++source)
    for (int32_t destination = 0; destination < ranks; ++destination) {
      demand.push_back(0);
      for (const NamedPath& path : paths) {
        if (path.nodes.front() != source || path.nodes.back() != destination) continue;
        std::vector<LinkId> hops;
        for (size_t i = 1; i < path.nodes.size(); ++i)
          hops.push_back(LinkOf(topology, path.nodes[i - 1], path.nodes[i]));
        builder.AddPath(hops, path.weight);
        demand.back() += path.weight;
      }
      builder.EndPair();
    }
  Routing routing = std::move(builder).Finish();
  routing.demand = demand;
  routing.topology_fingerprint = topology.Fingerprint();
  return routing;
}

FlowSimReport RunFlows(const Topology& topology, const Routing& routing, int64_t size,
                       ForwardingPlace forwarding = ForwardingPlace::kNic) {
  FlowSimOptions options;
  options.size_bytes = size;
  options.forwarding = forwarding;
  const Result<FlowSimReport> report = SimulateRouting(topology, routing, options);
  EXPECT_TRUE(report) << report.error().message;
  return *report;
}

// A line of three. 0->1 and 0->2 share the first link with 1 and 3 chunks: 1 GB/s gives each chunk
// a quarter. The 1-chunk pair ends together with the 3-chunk pair, for chunks are equal. 1->2 has
// one chunk and shares the second link with three others.
TEST(FlowSimulator, SharesLinksByChunksByHand) {
  const Topology line = Parse("mesh(3,bw=1GB/s,alpha=1us)");
  const Routing routing = RoutingOf(line, {{{0, 1}, 1}, {{0, 1, 2}, 3}, {{1, 2}, 1}});
  // Rank 0 sends most, four chunks; M chosen so that a chunk has 1000 bytes.
  const FlowSimReport report = RunFlows(line, routing, 4000);
  EXPECT_NEAR(report.link_bytes[LinkOf(line, 0, 1).index()], 4000, 1e-6);
  EXPECT_NEAR(report.link_bytes[LinkOf(line, 1, 2).index()], 4000, 1e-6);
  EXPECT_NEAR(report.bound_s, 4e-6, 1e-15);
  EXPECT_NEAR(report.busy_s, 4e-6, 1e-15);
  // The longest path has two alphas.
  EXPECT_NEAR(report.time_s, 6e-6, 1e-15);
  EXPECT_EQ(report.events, 1);
}

// 0->1, 0->1->2 and a long flow on 1->2->3 alone on its last link: when 0->1->2 ends, 1->3 speeds
// up. Chunks of 1000 bytes, links of 1 GB/s, but 0->1 has half of it.
TEST(FlowSimulator, RatesRiseWhenOthersEnd) {
  Topology::Builder builder(4);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {500'000'000, 0});
  builder.AddDuplex(NodeId{1}, NodeId{2}, {1'000'000'000, 0});
  builder.AddDuplex(NodeId{2}, NodeId{3}, {1'000'000'000, 0});
  const Topology line = *std::move(builder).Build();
  const Routing routing = RoutingOf(line, {{{0, 1, 2}, 1}, {{1, 2, 3}, 3}});
  // Rank 1 sends most, three chunks.
  const FlowSimReport report = RunFlows(line, routing, 1333);
  const double chunk = 1333.0 / 3;
  // Link 1->2 gives each of four chunks 0.25 GB/s (0->1 could take 0.5): all end at once.
  EXPECT_EQ(report.events, 1);
  EXPECT_NEAR(report.busy_s, chunk * 4 / 1e9, 1e-15);

  const Routing uneven = RoutingOf(line, {{{0, 1, 2}, 3}, {{1, 2, 3}, 1}});
  // Link 0->1 gives its three chunks a sixth of 1 GB/s each; the other one takes the half that is
  // left of 1->2 and ends first.
  const FlowSimReport two = RunFlows(line, uneven, 1333);
  EXPECT_EQ(two.events, 2);
  EXPECT_NEAR(two.busy_s, chunk * 6 / 1e9, 1e-15);
}

TEST(FlowSimulator, HostLimitsHoldForOwnTrafficOrForAll) {
  const Topology line = Parse("mesh(3,bw=1GB/s,alpha=0us,host_bw=0.5GB/s)");
  const Routing routing = RoutingOf(line, {{{0, 1, 2}, 1}, {{1, 2}, 1}, {{2, 1}, 1}});
  const int64_t size = 1000;  // no rank sends more than one chunk: it has 1000 bytes
  // NICs forward: 2 receives two chunks at 0.5 GB/s.
  EXPECT_NEAR(RunFlows(line, routing, size, ForwardingPlace::kNic).busy_s, 4e-6, 1e-15);
  // Hosts forward: the host of 1 takes in what passes and what is for it, and sends two as well.
  EXPECT_NEAR(RunFlows(line, routing, size, ForwardingPlace::kHost).busy_s, 4e-6, 1e-15);
  const Routing two = RoutingOf(line, {{{0, 1, 2}, 1}, {{1, 2}, 1}, {{1, 0}, 1}});
  EXPECT_NEAR(RunFlows(line, two, 2 * size, ForwardingPlace::kNic).busy_s, 4e-6, 1e-15);
  EXPECT_NEAR(RunFlows(line, two, 2 * size, ForwardingPlace::kHost).busy_s, 6e-6, 1e-15);
}

// Max-min fairness by its definition: every chunk has a resource that is full and on which no other
// chunk is faster. Checked through the time of one event at a time against plain water-filling.
double BusyByWaterFilling(const Topology& topology, const Routing& routing, double chunk_bytes) {
  const auto paths = static_cast<size_t>(routing.num_paths());
  std::vector<double> left(paths, chunk_bytes);
  double now = 0;
  for (;;) {
    std::vector<double> rate(paths, 0);
    std::vector<bool> settled(paths);
    bool any = false;
    for (size_t path = 0; path < paths; ++path) {
      settled[path] = left[path] <= 0;
      any = any || !settled[path];
    }
    if (!any) return now;
    for (;;) {
      double lowest = std::numeric_limits<double>::infinity();
      LinkId fullest{-1};
      for (const LinkId link : topology.Links()) {
        double free = static_cast<double>(topology.bandwidth(link));
        double open = 0;
        for (size_t path = 0; path < paths; ++path)
          for (const LinkId hop : routing.Hops(PathId{static_cast<int32_t>(path)}))
            if (hop == link && left[path] > 0)
              (settled[path] ? free : open) +=
                  settled[path] ? -rate[path] * static_cast<double>(routing.weight[path])
                                : static_cast<double>(routing.weight[path]);
        if (open > 0 && free / open < lowest) {
          lowest = free / open;
          fullest = link;
        }
      }
      if (fullest.value < 0) break;
      for (size_t path = 0; path < paths; ++path)
        for (const LinkId hop : routing.Hops(PathId{static_cast<int32_t>(path)}))
          if (hop == fullest && !settled[path]) {
            settled[path] = true;
            rate[path] = lowest;
          }
    }
    double step = std::numeric_limits<double>::infinity();
    for (size_t path = 0; path < paths; ++path)
      if (left[path] > 0) step = std::min(step, left[path] / rate[path]);
    now += step;
    for (size_t path = 0; path < paths; ++path) {
      if (left[path] > 0) left[path] -= step * rate[path];
      if (left[path] < chunk_bytes * 1e-9) left[path] = 0;
    }
  }
}

TEST(FlowSimulator, AgreesWithPlainWaterFilling) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Topology topology =
        Parse(seed % 2 == 0 ? "mesh(3,3,bw=[1,3]GB/s,alpha=0us)" : "ring(7,bw=2GB/s,alpha=0us)");
    Random random(seed);
    std::vector<NamedPath> paths;
    for (int i = 0; i < 12; ++i) {
      // A walk that visits no node twice.
      NamedPath path{
          {static_cast<int32_t>(random.Below(static_cast<uint64_t>(topology.num_ranks())))},
          static_cast<int64_t>(1 + random.Below(3))};
      for (int hop = 0; hop < 3; ++hop) {
        const IdRange<LinkId> outs = topology.OutLinks(NodeId{path.nodes.back()});
        const LinkId link =
            outs[static_cast<int32_t>(random.Below(static_cast<uint64_t>(outs.size())))];
        const int32_t next = topology.head(link).value;
        if (std::find(path.nodes.begin(), path.nodes.end(), next) == path.nodes.end())
          path.nodes.push_back(next);
      }
      if (path.nodes.size() > 1) paths.push_back(path);
    }
    Routing routing = RoutingOf(topology, paths);
    const int64_t size = 1'000'000;
    const double chunk =
        static_cast<double>(size) / static_cast<double>(CollectiveOf(routing)->weight_of_size());
    const FlowSimReport report = RunFlows(topology, routing, size);
    EXPECT_NEAR(report.busy_s / BusyByWaterFilling(topology, routing, chunk), 1, 1e-9) << seed;
    EXPECT_GE(report.busy_s, report.bound_s * (1 - 1e-12)) << seed;
  }
}

TEST(FlowSimulator, ErrorsSayWhatIsWrong) {
  const Topology line = Parse("mesh(3)");
  Routing routing = RoutingOf(line, {{{0, 1}, 1}});
  EXPECT_THAT(SimulateRouting(line, routing, {}).error().message, HasSubstr("at least 1 byte"));
  routing.topology_fingerprint ^= 1;
  FlowSimOptions options;
  options.size_bytes = 1;
  EXPECT_THAT(SimulateRouting(line, routing, options).error().message,
              HasSubstr("another network"));
}

}  // namespace
}  // namespace tutti
