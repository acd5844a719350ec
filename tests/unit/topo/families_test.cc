#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/parse.h"
#include "tutti/graph/distance.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using test_support::Parse;

uint64_t Print(const std::string& expression) { return Parse(expression).Fingerprint(); }

std::vector<int32_t> Heads(const Topology& topology, int32_t node) {
  std::vector<int32_t> heads;
  for (LinkId link : topology.OutLinks(NodeId{node})) heads.push_back(topology.head(link).value);
  return heads;
}

using Ints = std::vector<int32_t>;

struct FamilyFacts {
  const char* expression;
  int32_t ranks, links, degree, diameter;
};

// Sizes by hand, or from [direct-connect] Tables 4 to 9.
TEST(Families, HaveTheirSizeDegreeAndDiameter) {
  const std::vector<FamilyFacts> table{
      {"ring(8)", 8, 16, 2, 4},
      {"ring(2)", 2, 2, 1, 1},
      {"uniring(1,5)", 5, 5, 1, 4},
      {"uniring(3,4)", 4, 12, 3, 3},
      {"biring(2,8)", 8, 16, 2, 4},
      {"biring(4,5)", 5, 20, 4, 2},
      {"complete(5)", 5, 20, 4, 1},
      {"bipartite(4)", 8, 32, 4, 2},
      {"hamming(2,3)", 9, 36, 4, 2},
      {"hamming(3,2)", 8, 24, 3, 3},
      {"torus(3,3)", 9, 36, 4, 2},
      {"torus(2,3)", 6, 18, 3, 2},
      {"torus(1,4)", 4, 8, 2, 2},
      {"torus(3,3,3)", 27, 162, 6, 3},
      {"torus(3,3,2)", 18, 90, 5, 3},
      {"torus(3,3,3,2)", 54, 378, 7, 4},
      {"torus(1)", 1, 0, 0, 0},
      {"hypercube(3)", 8, 24, 3, 3},
      {"twisted_hypercube(3)", 8, 24, 3, 2},
      {"twisted_torus(8,4)", 32, 128, 4, 4},
      {"twisted_torus(4,4,8)", 128, 768, 6, 6},
      {"twisted_torus(4,8,8)", 256, 1536, 6, 6},
      {"circulant(7,2,3)", 7, 28, 4, 2},
      {"circulant(12,2,3)", 12, 48, 4, 2},
      {"circulant(8,1,4)", 8, 24, 3, 2},
      {"dircirculant(3)", 5, 15, 3, 2},
      {"cayley(8,4,3,5,0,4,1,1,3,2,0)", 32, 128, 4, 3},
      {"cayley(1,7,1,0,1)", 7, 7, 1, 6},
      {"debruijn(4,4)", 256, 1020, 4, 4},
      {"kautz(2,2)", 12, 24, 2, 3},
      {"kautz(3,0)", 4, 12, 3, 1},
      {"genkautz(4,64)", 64, 252, 4, 3},
      {"genkautz(4,1024)", 1024, 4092, 4, 5},
      {"genkautz_mod(4,64)", 64, 256, 4, 3},
      {"transpose(genkautz_mod(2,7))", 7, 14, 2, 3},
      {"dgx1", 8, 48, 6, 2},
      {"product(ring(3),complete(4))", 12, 60, 5, 2},
      {"power(uniring(1,4),2)", 16, 32, 2, 6},
      {"transpose(genkautz(2,7))", 7, 12, 2, 3},
      {"line(bipartite(4))", 32, 128, 4, 3},
      {"line(bipartite(4),2)", 128, 512, 4, 4},
      {"line(circulant(16,3,4),k=3)", 1024, 4096, 4, 6},
      {"line(product(power(uniring(1,4),3),uniring(1,2)))", 512, 2048, 4, 11},
      {"degree(biring(2,5),2)", 10, 40, 4, 2},
      {"degree(complete(3),3)", 9, 54, 6, 2},
  };
  for (const FamilyFacts& facts : table) {
    SCOPED_TRACE(facts.expression);
    const Topology topology = Parse(facts.expression);
    EXPECT_EQ(topology.num_ranks(), facts.ranks);
    EXPECT_EQ(topology.num_links(), facts.links);
    EXPECT_EQ(topology.regular_degree(), facts.degree);
    EXPECT_EQ(Diameter(topology), facts.diameter);
    EXPECT_FALSE(topology.has_switches());
  }
}

TEST(Families, LinksAreWhereTheDefinitionPutsThem) {
  EXPECT_EQ(Heads(Parse("torus(3,4)"), 0), (Ints{1, 3, 4, 8}));
  EXPECT_EQ(Heads(Parse("mesh(3,4)"), 0), (Ints{1, 4}));
  EXPECT_EQ(Heads(Parse("uniring(2,3)"), 2), (Ints{0, 0}));
  EXPECT_EQ(Heads(Parse("circulant(8,1,4)"), 0), (Ints{1, 4, 7}));
  EXPECT_EQ(Heads(Parse("dircirculant(2)"), 3), (Ints{0, 1}));
  EXPECT_EQ(Heads(Parse("bipartite(2)"), 0), (Ints{2, 3}));
  EXPECT_EQ(Heads(Parse("debruijn(2,3)"), 3), (Ints{6, 7}));
  EXPECT_EQ(Heads(Parse("debruijn(2,3)"), 0), (Ints{1}));
  EXPECT_EQ(Parse("debruijn(2,3)").self_loops(NodeId{0}).size(), 1u);
  EXPECT_EQ(Heads(Parse("twisted_hypercube(3)"), 0), (Ints{2, 3, 4}));
  // The short dimension of 4 x 2 wraps with a shift of 2: (0,1) -> (2,0).
  EXPECT_EQ(Heads(Parse("twisted_torus(4,2)"), 1), (Ints{0, 3, 4, 7}));
}

TEST(Families, GenkautzIsDefinition16) {
  for (const auto& [degree, ranks] :
       std::vector<std::pair<int, int>>{{1, 2}, {2, 3}, {2, 7}, {3, 11}, {4, 1000}, {8, 90}}) {
    const Topology topology =
        Parse("genkautz(" + std::to_string(degree) + "," + std::to_string(ranks) + ")");
    for (int x = 0; x < ranks; ++x) {
      std::multiset<int> wanted, got;
      for (int a = 1; a <= degree; ++a) wanted.insert(((-degree * x - a) % ranks + ranks) % ranks);
      for (int32_t head : Heads(topology, x)) got.insert(head);
      for (size_t i = 0; i < topology.self_loops(NodeId{x}).size(); ++i) got.insert(x);
      ASSERT_EQ(got, wanted) << degree << " " << ranks << " " << x;
    }
  }
}

// Modulo 4, -2 x - 1 and -2 x - 2: 0 -> 3 2, 1 -> 1 0, 2 -> 3 2, 3 -> 1 0. Ranks 1 and 2 have
// self-loops, and get 1 -> 2 -> 1.
TEST(Families, GenkautzModByHand) {
  const Topology topology = Parse("genkautz_mod(2,4)");
  EXPECT_EQ(Heads(topology, 0), (Ints{2, 3}));
  EXPECT_EQ(Heads(topology, 1), (Ints{0, 2}));
  EXPECT_EQ(Heads(topology, 2), (Ints{1, 3}));
  EXPECT_EQ(Heads(topology, 3), (Ints{0, 1}));
}

// Modulo 17 the ranks 3, 6, 10 and 13 are their own -4 x - a: a = 2, 4, 1, 3. Halves in turn, the
// second pair the other way round: 3 -> 10 -> 13 -> 6 -> 3.
TEST(Families, GenkautzModTakesTheCycleInTurns) {
  const Topology topology = Parse("genkautz_mod(4,17)");
  const Topology plain = Parse("genkautz(4,17)");
  for (const auto& [tail, head] :
       std::vector<std::pair<int, int>>{{3, 10}, {10, 13}, {13, 6}, {6, 3}}) {
    Ints wanted = Heads(plain, tail);
    wanted.push_back(head);
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(Heads(topology, tail), wanted) << tail;
  }
}

// What is no self-loop stays, and every rank has its ports again.
TEST(Families, GenkautzModRewiresSelfLoopsOnly) {
  for (int degree = 2; degree <= 9; ++degree)
    for (int ranks = degree + 1; ranks <= 60; ++ranks) {
      const std::string sizes = fmt::format("({},{})", degree, ranks);
      SCOPED_TRACE(sizes);
      const Topology plain = Parse("genkautz" + sizes), rewired = Parse("genkautz_mod" + sizes);
      EXPECT_EQ(rewired.num_links(), ranks * degree);
      std::vector<int> freed;
      for (NodeId node : rewired.Nodes()) {
        EXPECT_TRUE(rewired.self_loops(node).empty());
        EXPECT_EQ(rewired.out_degree(node), degree);
        EXPECT_EQ(rewired.in_degree(node), degree);
        const Ints before = Heads(plain, node.value), after = Heads(rewired, node.value);
        EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
        if (!plain.self_loops(node).empty()) freed.push_back(node.value);
      }
      EXPECT_EQ(freed.empty(), ranks % (degree + 1) == 0);
      // One cycle: from the first of them, the link that is new leads through all.
      size_t length = 0;
      for (int at = freed.empty() ? -1 : freed[0]; at >= 0; ++length) {
        const Ints before = Heads(plain, at), after = Heads(rewired, at);
        Ints added;
        std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                            std::back_inserter(added));
        ASSERT_EQ(added.size(), 1u);
        at = added[0] == freed[0] ? -1 : added[0];
        ASSERT_LT(length, freed.size());
      }
      EXPECT_EQ(length, freed.size());
    }
}

TEST(Families, OneNetworkWrittenInSeveralWaysHasOneFingerprint) {
  const std::vector<std::vector<std::string>> same{
      {"ring(8)", "biring(2,8)", "circulant(8,1)", "torus(8)", "circulant(8,7)"},
      {"hypercube(4)", "torus(2,2,2,2)", "mesh(2,2,2,2)", "hamming(4,2)", "power(complete(2),4)"},
      {"complete(6)", "hamming(1,6)", "genkautz(5,6)", "circulant(6,1,2,3)", "genkautz_mod(5,6)"},
      {"torus(3,5)", "product(ring(3),ring(5))", "transpose(torus(3,5))", "torus(3,1,5)"},
      {"biring(4,5)", "ring(5,parallel=2)"},
      {"uniring(3,4)", "uniring(1,4,parallel=3)"},
      {"bidirectional(uniring(2,5))", "biring(4,5)"},
      {"hamming(2,4)", "product(complete(4),complete(4))"},
      {"torus(4,4,bw=25Gbit/s)", "torus(4,4,bw=3125MB/s,alpha=500ns)"},
      {"mesh(5,8,bw=[35,80]GiB/s)", "mesh(5,8,bw=[35GiB/s,80GiB/s])",
       "product(mesh(5),mesh(8),bw=[35,80]GiB/s)"},
      {"torus(4,4)", "without(torus(4,4))", " torus ( 4 , 4 ) "},
      {"twisted_torus(2,2,4)", "transpose(twisted_torus(2,2,4))"},
      {"dircirculant(2)", "cayley(4,1,1,1,0,2,0)", "cayley(1,4,1,0,2,0,1)"},
      {"torus(3,5)", "cayley(3,5,1,1,0,2,0,0,1,0,4)"},
      {"cayley(3,2,2,1,0,0,1,bw=[1,2]GB/s)", "cayley(3,2,2,0,1,1,0,bw=[2,1]GB/s)"},
  };
  for (const auto& group : same)
    for (const std::string& expression : group)
      EXPECT_EQ(Print(expression), Print(group.front())) << expression << " " << group.front();
}

TEST(Families, TwistingTakesOneFromTheDiameterOfEveryHypercube) {
  for (int n = 3; n <= 9; ++n)
    EXPECT_EQ(Diameter(Parse("twisted_hypercube(" + std::to_string(n) + ")")), n - 1);
}

TEST(Families, GridsRememberTheirDimensions) {
  EXPECT_EQ(Parse("torus(4,5)").grid(), (GridShape{{4, 5}, true}));
  EXPECT_EQ(Parse("mesh(4,5)").grid(), (GridShape{{4, 5}, false}));
  for (const char* other : {"hypercube(3)", "ring(5)", "twisted_torus(8,4)", "dgx1",
                            "product(torus(4),torus(4))", "without(torus(4,4),links=1)"})
    EXPECT_FALSE(Parse(other).grid().has_value()) << other;
}

TEST(Families, DimensionsHaveTheirOwnLinks) {
  const Topology mesh = Parse("mesh(5,8,bw=[35,80]GiB/s,alpha=[1us,300ns])");
  for (LinkId link : mesh.Links()) {
    const bool along_the_5 = std::abs(mesh.tail(link).value - mesh.head(link).value) == 8;
    EXPECT_EQ(mesh.bandwidth(link), (along_the_5 ? int64_t{35} : int64_t{80}) << 30);
    EXPECT_EQ(mesh.alpha_ps(link), along_the_5 ? 1'000'000 : 300'000);
  }
}

TEST(Families, Dgx1HasSixNvlinksOf25GBs) {
  const Topology dgx1 = Parse("dgx1");
  EXPECT_TRUE(IsBidirectional(dgx1));
  EXPECT_EQ(dgx1.max_in_bandwidth(), 150'000'000'000);
  EXPECT_EQ(Heads(dgx1, 0), (Ints{1, 2, 3, 3, 4, 4}));
}

TEST(Families, ASharedBandwidthIsWhatARankHasInADimension) {
  const Topology rfs = Parse("rfs(2,4,8,bw=[200,120,50]GB/s)");
  EXPECT_EQ(rfs.num_ranks(), 64);
  EXPECT_EQ(rfs.num_nodes(), 72);
  for (NodeId rank : rfs.Ranks()) {
    EXPECT_EQ(rfs.OutLinks(rank).size(), 1 + 3 + 1);
    int64_t total = 0;
    for (LinkId link : rfs.OutLinks(rank)) total += rfs.bandwidth(link);
    EXPECT_EQ(total, 370'000'000'000);
  }
  EXPECT_EQ(Parse("rfs(4,2,1,bw=[200,120,50]GB/s)").bandwidth(LinkId{0}), 120'000'000'000);
  EXPECT_EQ(Parse("rfs(4,2,1,bw_per_link=[200,120,50]GB/s)").max_in_bandwidth(), 520'000'000'000);
  EXPECT_EQ(Parse("rfs(4,2,1,bw=[200,120,50]GB/s)").max_in_bandwidth(), 320'000'000'000);
  EXPECT_EQ(Parse("switch(4,bw=100GB/s,parallel=2)").bandwidth(LinkId{0}), 50'000'000'000);
}

TEST(Families, Switch2dHasASwitchALine) {
  const Topology topology = Parse("switch2d(8,4,bw=[300,25]GB/s)");
  EXPECT_EQ(topology.num_ranks(), 32);
  EXPECT_EQ(topology.num_nodes(), 32 + 4 + 8);
  EXPECT_EQ(topology.num_links(), 128);
  EXPECT_EQ(Diameter(topology), 4);
  EXPECT_EQ(topology.bandwidth(topology.OutLinks(NodeId{5})[0]), 300'000'000'000);
  EXPECT_EQ(topology.head(topology.OutLinks(NodeId{5})[0]).value, 32 + 1);
  EXPECT_EQ(topology.head(topology.OutLinks(NodeId{5})[1]).value, 36 + 1);
}

TEST(Families, DragonflySpreadsItsCablesRoundRobin) {
  const Topology topology = Parse("dragonfly(4,5,bw=[400,200]GB/s)");
  EXPECT_EQ(topology.num_ranks(), 20);
  EXPECT_EQ(topology.num_links(), 4 * 20 + 2 * 6);
  for (LinkId link : topology.Links()) {
    const bool local = topology.tail(link).value / 5 == topology.head(link).value / 5;
    EXPECT_EQ(topology.bandwidth(link), local ? 100'000'000'000 : 200'000'000'000);
    EXPECT_TRUE(local || topology.tail(link).value % 5 < 3);
  }
  // 5 groups of 2: every rank has two of its group's four cables.
  const Topology full = Parse("dragonfly(5,2,bw=[400,200]GB/s)");
  for (NodeId rank : full.Ranks()) EXPECT_EQ(full.OutLinks(rank).size(), 3);
  EXPECT_EQ(full.bandwidth(full.OutLinks(NodeId{0})[1]), 100'000'000'000);
}

TEST(Operators, UnwindLinksEachRankToTheNext) {
  const Topology topology = Parse("unwind(switch(5,bw=120GB/s),degree=3)");
  EXPECT_FALSE(topology.has_switches());
  EXPECT_EQ(topology.regular_degree(), 3);
  EXPECT_EQ(Heads(topology, 3), (Ints{0, 1, 4}));
  for (LinkId link : topology.Links()) {
    EXPECT_EQ(topology.bandwidth(link), 40'000'000'000);
    EXPECT_EQ(topology.alpha_ps(link), 500'000);
  }
  EXPECT_EQ(Print("unwind(switch(5),degree=4,bw=50GB/s)"), Print("complete(5)"));
  EXPECT_EQ(Parse("unwind(rfs(2,4,8),degree=2)").num_links(), 64 * (1 + 3 + 2));
}

// [direct-connect] A.6: nothing is added to what is bidirectional, everything else doubles.
TEST(Operators, BidirectionalIsTheUnionWithTheTranspose) {
  for (const char* already : {"torus(3,4)", "dgx1", "mesh(3,2,parallel=2)", "switch(5)"})
    EXPECT_EQ(Print(fmt::format("bidirectional({})", already)), Print(already)) << already;
  for (const char* expression :
       {"genkautz(3,20)", "debruijn(2,3)", "uniring(2,2)", "uniring(1,5)", "kautz(2,1)"}) {
    SCOPED_TRACE(expression);
    const Topology base = Parse(expression);
    const Topology both = Parse(fmt::format("bidirectional({})", expression));
    if (IsBidirectional(base)) {
      EXPECT_EQ(both.ToText(), base.ToText());
      continue;
    }
    EXPECT_TRUE(IsBidirectional(both));
    EXPECT_EQ(both.num_links(), 2 * base.num_links());
    EXPECT_EQ(both.regular_degree(), 2 * *base.regular_degree());
    std::multiset<std::pair<int, int>> missing, there;
    for (LinkId link : base.Links()) {
      missing.emplace(base.tail(link).value, base.head(link).value);
      missing.emplace(base.head(link).value, base.tail(link).value);
    }
    for (LinkId link : both.Links()) there.emplace(both.tail(link).value, both.head(link).value);
    EXPECT_EQ(there, missing);
  }
}

TEST(Operators, WithoutRemovesCablesAndNodes) {
  for (int seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const std::string tail = ",seed=" + std::to_string(seed) + ")";
    const Topology links = Parse("without(torus(3,3),links=3" + tail);
    EXPECT_EQ(links.num_links(), 36 - 6);
    EXPECT_TRUE(IsBidirectional(links));
    const Topology nodes = Parse("without(torus(3,3),nodes=2" + tail);
    EXPECT_EQ(nodes.num_ranks(), 7);
    int last = -1;
    for (NodeId node : nodes.Nodes()) {
      const int old = std::stoi(nodes.node_name(node));
      EXPECT_GT(old, last);
      last = old;
    }
    // A directed link without a reverse counts as a cable, too.
    EXPECT_EQ(Parse("without(uniring(3,4),links=2" + tail).num_links(), 12 - 2);
    EXPECT_EQ(Print("without(torus(3,3),links=3" + tail), links.Fingerprint());
  }
  EXPECT_NE(Print("without(torus(5,5),links=3,seed=1)"),
            Print("without(torus(5,5),links=3,seed=2)"));
}

TEST(Operators, ProductMultipliesDegreesAndAddsDiameters) {
  for (const char* left : {"uniring(1,4)", "genkautz(2,7)", "debruijn(2,3)"})
    for (const char* right : {"ring(3)", "kautz(2,1)", "circulant(8,1,3)"}) {
      const Topology g = Parse(left), h = Parse(right);
      const Topology gh = Parse(std::string("product(") + left + "," + right + ")");
      EXPECT_EQ(gh.num_ranks(), g.num_ranks() * h.num_ranks());
      EXPECT_EQ(*gh.regular_degree(), *g.regular_degree() + *h.regular_degree());
      EXPECT_EQ(Diameter(gh), Diameter(g) + Diameter(h));
    }
}

}  // namespace
}  // namespace tutti
