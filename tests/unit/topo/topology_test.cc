#include "tutti/topo/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/build.h"
#include "tutti/base/random.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using test_support::MustBuild;

struct Link {
  int32_t tail, head;
  LinkSpec spec;
};

// A ring, so that it is connected, and whatever links beside it.
std::vector<Link> RandomLinks(int32_t nodes, uint64_t seed) {
  Random random(seed);
  const auto below = [&random](int32_t bound) {
    return static_cast<int32_t>(random.Below(static_cast<uint64_t>(bound)));
  };
  std::vector<Link> links;
  for (int32_t node = 0; node < nodes; ++node) links.push_back({node, (node + 1) % nodes, {}});
  for (int32_t i = 0; i < 3 * nodes; ++i)
    links.push_back({below(nodes), below(nodes), {1 + below(9), below(3)}});
  return links;
}

Topology FromLinks(int32_t ranks, int32_t switches, const std::vector<Link>& links) {
  Topology::Builder builder(ranks, switches);
  for (const Link& link : links) builder.AddLink(NodeId{link.tail}, NodeId{link.head}, link.spec);
  return MustBuild(std::move(builder));
}

TEST(Topology, WorkedExample) {
  Topology::Builder builder(2, 1);
  builder.AddLink(NodeId{2}, NodeId{0}, {.bandwidth = 30, .alpha_ps = 1});
  builder.AddLink(NodeId{0}, NodeId{2}, {.bandwidth = 10, .alpha_ps = 7});
  builder.AddLink(NodeId{2}, NodeId{1}, {.bandwidth = 20, .alpha_ps = 0});
  builder.AddLink(NodeId{1}, NodeId{0}, {.bandwidth = 40, .alpha_ps = 2});
  builder.AddLink(NodeId{1}, NodeId{1}, {.bandwidth = 5, .alpha_ps = 3});
  builder.SetNodeNames({"a", "b", "s"});
  const Topology topology = MustBuild(std::move(builder));
  EXPECT_EQ(topology.ToText(),
            "topology ranks=2 switches=1\n"
            "link 0 -> 2 bandwidth=10 alpha_ps=7\n"
            "link 1 -> 0 bandwidth=40 alpha_ps=2\n"
            "link 2 -> 0 bandwidth=30 alpha_ps=1\n"
            "link 2 -> 1 bandwidth=20 alpha_ps=0\n"
            "self-loop 1 bandwidth=5 alpha_ps=3\n");
  EXPECT_TRUE(topology.has_switches());
  EXPECT_TRUE(topology.is_rank(NodeId{1}));
  EXPECT_FALSE(topology.is_rank(NodeId{2}));
  EXPECT_EQ(topology.node_name(NodeId{2}), "s");
  EXPECT_EQ(topology.in_degree(NodeId{1}), 2);
  EXPECT_EQ(topology.out_degree(NodeId{1}), 2);
  EXPECT_EQ(topology.max_in_bandwidth(), 70);
  EXPECT_EQ(topology.regular_degree(), std::nullopt);
  EXPECT_FALSE(topology.is_homogeneous());
}

TEST(Topology, SelfLoopsCountInDegreesAndBandwidth) {
  const Topology topology =
      FromLinks(2, 0, {{0, 1, {}}, {1, 0, {}}, {0, 0, {}}, {1, 1, {}}, {1, 1, {}}, {0, 0, {}}});
  EXPECT_EQ(topology.num_links(), 2);
  EXPECT_EQ(topology.regular_degree(), 3);
  EXPECT_TRUE(topology.is_homogeneous());
  EXPECT_EQ(topology.max_in_bandwidth(), 3 * LinkSpec{}.bandwidth);
}

// One row a rule, each one fault away from a valid topology.
struct BadTopology {
  const char* invariant;
  int32_t ranks, switches;
  Link link;
  std::vector<std::string> names;
  std::optional<GridShape> grid;
  const char* message;
};

TEST(TopologyRejects, OneFaultAtATime) {
  const Link good{0, 1, {}};
  const int64_t most = int64_t{1} << 50;
  const std::vector<BadTopology> table{
      {"T1", 0, 2, good, {}, {}, "at least 1 rank, got 0"},
      {"T1", -1, 3, good, {}, {}, "at least 1 rank, got -1"},
      {"T1", 2, -1, good, {}, {}, "number of switches is negative"},
      {"T1", 2, 0, {-1, 1, {}}, {}, {}, "link 2: node -1 is outside [0, 2)"},
      {"T1", 2, 0, {0, 2, {}}, {}, {}, "link 2: node 2 is outside [0, 2)"},
      {"T3", 2, 0, {0, 1, {0, 0}}, {}, {}, "link 2 (0 -> 1): bandwidth 0"},
      {"T3", 2, 0, {0, 1, {-5, 0}}, {}, {}, "bandwidth -5"},
      {"T3", 2, 0, {0, 1, {most + 1, 0}}, {}, {}, "is outside 1 .. 2^50 B/s"},
      {"T3", 2, 0, {0, 1, {1, -1}}, {}, {}, "alpha -1 ps"},
      {"T3", 2, 0, {1, 1, {1, 1'000'000'000'000'001}}, {}, {}, "is outside 0 .. 1000 s"},
      {"T5", 3, 0, good, {}, {}, "disconnected: no way leads from '0' to '2'"},
      {"T5", 3, 0, {2, 1, {}}, {}, {}, "disconnected: no way leads from '0' to '2'"},
      {"T5", 3, 0, {1, 2, {}}, {}, {}, "disconnected: no way leads from '2' to '0'"},
      {"T6", 2, 0, good, {"a"}, {}, "got 1 node names for 2 nodes"},
      {"T6", 2, 0, good, {"a", "a"}, {}, "node 1: the name 'a' is taken"},
      {"T6", 2, 0, good, {"a", ""}, {}, "node 1: its name is empty"},
      {"T6", 2, 0, good, {"a\n", "b"}, {}, "node 0: its name holds a control character"},
      {"grid", 2, 0, good, {}, GridShape{{3}, true}, "a grid of 3 does not describe 2 ranks"},
      {"grid", 2, 0, good, {}, GridShape{{2, 0}, true}, "a grid of 2 x 0"},
      {"grid", 2, 0, good, {}, GridShape{{-1, -2}, true}, "a grid of -1 x -2"},
      {"grid",
       2,
       0,
       good,
       {},
       GridShape{std::vector<int32_t>(9, 1 << 30), true},
       "a grid of 1073741824"},
  };
  for (const BadTopology& bad : table) {
    SCOPED_TRACE(std::string(bad.invariant) + " " + bad.message);
    Topology::Builder builder(bad.ranks, bad.switches);
    builder.AddDuplex(NodeId{0}, NodeId{1}, {});
    builder.AddLink(NodeId{bad.link.tail}, NodeId{bad.link.head}, bad.link.spec);
    builder.SetNodeNames(bad.names);
    if (bad.grid) builder.SetGrid(*bad.grid);
    const Result<Topology> built = std::move(builder).Build();
    ASSERT_FALSE(built.has_value());
    EXPECT_EQ(built.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(built.error().message.find(bad.message), std::string::npos) << built.error().message;
  }
}

TEST(TopologyProperty, LinksAreSortedByTailThenByCall) {  // T2
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Link> links = RandomLinks(7, seed);
    const Topology topology = FromLinks(5, 2, links);
    int32_t next = 0;
    for (NodeId node : topology.Nodes()) {
      std::vector<Link> calls;
      for (const Link& link : links)
        if (link.tail == node.value && link.head != node.value) calls.push_back(link);
      ASSERT_EQ(topology.OutLinks(node).size(), static_cast<int32_t>(calls.size()));
      for (const Link& call : calls) {
        EXPECT_EQ(topology.tail(LinkId{next}), node);
        EXPECT_EQ(topology.head(LinkId{next}).value, call.head);
        EXPECT_EQ(topology.spec(LinkId{next}), call.spec);
        ++next;
      }
    }
    EXPECT_EQ(next, topology.num_links());
  }
}

TEST(TopologyProperty, OrderOfCallsAcrossTailsIsIrrelevant) {  // T4
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<Link> links = RandomLinks(6, seed);
    const Topology before = FromLinks(6, 0, links);
    std::stable_sort(links.begin(), links.end(),
                     [](const Link& a, const Link& b) { return a.tail > b.tail; });
    const Topology after = FromLinks(6, 0, links);
    EXPECT_EQ(before.ToText(), after.ToText());
    EXPECT_EQ(before.Fingerprint(), after.Fingerprint());
  }
}

TEST(TopologyProperty, FingerprintSeesEveryNumber) {
  const std::vector<Link> links = RandomLinks(6, 1);
  const uint64_t before = FromLinks(6, 0, links).Fingerprint();
  EXPECT_NE(FromLinks(5, 1, links).Fingerprint(), before);
  for (size_t i = 6; i < links.size(); ++i) {
    std::vector<Link> changed = links;
    ++changed[i].spec.bandwidth;
    EXPECT_NE(FromLinks(6, 0, changed).Fingerprint(), before);
    changed = links;
    ++changed[i].spec.alpha_ps;
    EXPECT_NE(FromLinks(6, 0, changed).Fingerprint(), before);
    changed = links;
    changed[i].head = (changed[i].head + 1) % 6;
    EXPECT_NE(FromLinks(6, 0, changed).Fingerprint(), before);
  }
}

TEST(Properties, TransposeTwiceIsTheSameNetwork) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = FromLinks(5, 2, RandomLinks(7, seed));
    std::vector<LinkId> link_map;
    const Topology transpose = TransposeTopology(topology, &link_map);
    for (LinkId link : transpose.Links()) {
      const LinkId old = link_map[link.index()];
      EXPECT_EQ(transpose.tail(link), topology.head(old));
      EXPECT_EQ(transpose.head(link), topology.tail(old));
      EXPECT_EQ(transpose.spec(link), topology.spec(old));
    }
    for (NodeId node : topology.Nodes()) {
      EXPECT_EQ(transpose.in_degree(node), topology.out_degree(node));
      EXPECT_EQ(transpose.self_loops(node).size(), topology.self_loops(node).size());
    }
  }
}

TEST(Properties, CablesCoverEveryLinkOnceAndPairWhatTheyCan) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = FromLinks(6, 0, RandomLinks(6, seed));
    std::vector<int> seen(static_cast<size_t>(topology.num_links()), 0);
    std::vector<int> single(36, 0);
    LinkId last{-1};
    for (const Cable& cable : CablesOf(topology)) {
      EXPECT_LT(last, cable.there);
      last = cable.there;
      ++seen[cable.there.index()];
      const NodeId tail = topology.tail(cable.there), head = topology.head(cable.there);
      if (cable.back) {
        EXPECT_LT(cable.there, *cable.back);
        ++seen[cable.back->index()];
        EXPECT_EQ(topology.tail(*cable.back), head);
        EXPECT_EQ(topology.head(*cable.back), tail);
      } else {
        ++single[static_cast<size_t>(6 * tail.value + head.value)];
        EXPECT_EQ(single[static_cast<size_t>(6 * head.value + tail.value)], 0);
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), topology.num_links());
  }
}

TEST(Properties, ReverseLinksNeedEqualParameters) {
  const LinkSpec slow{.bandwidth = 1}, fast{.bandwidth = 2};
  const Topology crossed =
      FromLinks(2, 0, {{0, 1, slow}, {0, 1, fast}, {1, 0, fast}, {1, 0, slow}});
  EXPECT_EQ(ReverseLinks(crossed),
            (std::vector<LinkId>{LinkId{3}, LinkId{2}, LinkId{1}, LinkId{0}}));
  EXPECT_TRUE(IsBidirectional(crossed));
  EXPECT_FALSE(IsBidirectional(FromLinks(2, 0, {{0, 1, slow}, {1, 0, fast}})));
  EXPECT_FALSE(IsBidirectional(FromLinks(3, 0, {{0, 1, {}}, {1, 2, {}}, {2, 0, {}}})));
}

TEST(Properties, HopsCountLinksBetweenRanks) {
  // 0 - s - 1 - 2, s a switch: 0 to 2 takes 3 hops.
  const Topology path =
      FromLinks(3, 1, {{0, 3, {}}, {3, 0, {}}, {3, 1, {}}, {1, 3, {}}, {1, 2, {}}, {2, 1, {}}});
  EXPECT_EQ(Diameter(path), 3);
  EXPECT_EQ(CountHops(path).total_hops, 2 * (2 + 3 + 1));
  const std::vector<NodeId> middle{NodeId{1}};
  EXPECT_EQ(CountHops(path, middle).diameter, 2);
  EXPECT_EQ(CountHops(path, middle).total_hops, 3);
}

}  // namespace
}  // namespace tutti
