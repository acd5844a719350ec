// Operators as functions, the numbers they give, and expressions taken apart.

#include "tutti/topo/operators.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/parse.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace {

using test_support::Parse;

constexpr const char* kBases[] = {"uniring(1,4)",    "uniring(2,3)",  "kautz(2,2)",
                                  "bipartite(2)",    "genkautz(2,5)", "debruijn(2,2)",
                                  "dircirculant(3)", "mesh(2,3)",     "torus(3,3,bw=1GB/s)"};

void ExpectSame(const Result<Topology>& made, const std::string& expression) {
  SCOPED_TRACE(expression);
  ASSERT_TRUE(made) << made.error().message;
  const Topology parsed = Parse(expression);
  EXPECT_EQ(made->ToText(), parsed.ToText());
  EXPECT_EQ(made->name(), parsed.name());
}

TEST(OperatorFunctions, MakeWhatTheExpressionsMake) {
  for (const char* base : kBases) {
    const Topology topology = Parse(base);
    ExpectSame(LineDigraph(topology), fmt::format("line({})", base));
    ExpectSame(CartesianPower(topology, 2), fmt::format("power({},2)", base));
    ExpectSame(BidirectionalUnion(topology), fmt::format("bidirectional({})", base));
    ExpectSame(CartesianProduct(std::vector{topology, Parse("ring(3)")}),
               fmt::format("product({},ring(3))", base));
    if (base == std::string("debruijn(2,2)") || base == std::string("genkautz(2,5)"))
      continue;  // self-loops
    ExpectSame(DegreeExpansion(topology, 2), fmt::format("degree({},2)", base));
  }
}

TEST(OperatorFunctions, SayWhatIsWrongWithoutAColumn) {
  const auto fault = [](const Result<Topology>& result) {
    return result ? std::string("none") : result.error().message;
  };
  EXPECT_EQ(fault(DegreeExpansion(Parse("debruijn(2,2)"), 2)),
            "degree(G,n): the network has self-loops, wanted none ([direct-connect] D.2)");
  EXPECT_EQ(fault(LineDigraph(Parse("switch(3)"))),
            "line(G,k=1): the network has switches; unwind it first");
  EXPECT_NE(fault(LineDigraph(Parse("torus(3,3,bw=[1,2]GB/s)"))).find("differ in bandwidth"),
            std::string::npos);
  EXPECT_NE(fault(CartesianPower(Parse("ring(100)"), 5)).find("at most"), std::string::npos);
  EXPECT_NE(fault(DegreeExpansion(Parse("ring(3)"), 0)).find("wanted at least 1"),
            std::string::npos);
  EXPECT_NE(fault(CartesianProduct({})).find("no networks"), std::string::npos);
  // A network without a name gives one without a name.
  Topology::Builder builder(2);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {});
  EXPECT_EQ(LineDigraph(*std::move(builder).Build())->name(), "");
}

// Rank i of the line digraph is port i: it sends to the ports of its head, and to no others.
TEST(OperatorFunctions, LinePortsAreTheRanksOfTheLineDigraph) {
  for (const char* base : kBases) {
    SCOPED_TRACE(base);
    const Topology topology = Parse(base);
    const std::vector<LinePort> ports = LinePorts(topology);
    const Topology line = *LineDigraph(topology);
    ASSERT_EQ(line.num_ranks(), static_cast<int32_t>(ports.size()));
    for (NodeId from : line.Ranks()) {
      std::vector<int32_t> wanted, found;
      for (NodeId to : line.Ranks())
        if (to != from && ports[to.index()].tail == ports[from.index()].head)
          wanted.push_back(to.value);
      for (LinkId link : line.OutLinks(from)) found.push_back(line.head(link).value);
      EXPECT_EQ(found, wanted);
      const bool loop = ports[from.index()].tail == ports[from.index()].head;
      EXPECT_EQ(line.self_loops(from).size(), loop ? 1u : 0u);
      EXPECT_EQ(ports[from.index()].link.has_value(), !loop);
    }
  }
}

TEST(ExpressionTreeTest, ByHand) {
  const Result<ExpressionTree> tree =
      ParseExpressionTree(" line( power( uniring(1,4,bw=2GB/s), 2 ,parallel=3), k=2, alpha=1us)");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->text, "line(power(uniring(1,4,bw=2GB/s),2,parallel=3),k=2,alpha=1us)");
  EXPECT_EQ(tree->family, "line");
  EXPECT_EQ(tree->option("k"), 2);
  EXPECT_EQ(tree->option("seed"), std::nullopt);
  EXPECT_EQ(tree->alpha_ps, (std::vector<int64_t>{1'000'000}));
  EXPECT_TRUE(tree->sizes.empty());
  ASSERT_EQ(tree->operands.size(), 1u);
  const ExpressionTree& power = tree->operands[0];
  EXPECT_EQ(power.family, "power");
  EXPECT_EQ(power.sizes, (std::vector<int64_t>{2}));
  EXPECT_EQ(power.parallel, 3);
  ASSERT_EQ(power.operands.size(), 1u);
  EXPECT_EQ(power.operands[0].family, "uniring");
  EXPECT_EQ(power.operands[0].sizes, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(power.operands[0].bandwidth, (std::vector<int64_t>{2'000'000'000}));
  EXPECT_EQ(power.operands[0].text, "uniring(1,4,bw=2GB/s)");
}

TEST(ExpressionTreeTest, KnowsTheMemberOfAFamily) {
  const Result<ExpressionTree> tree = ParseExpressionTree("line(distreg( ag24minus ,bw=1GB/s))");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->member, "");
  EXPECT_EQ(tree->operands[0].family, "distreg");
  EXPECT_EQ(tree->operands[0].member, "ag24minus");
  EXPECT_EQ(tree->text, "line(distreg(ag24minus,bw=1GB/s))");
}

TEST(ExpressionTreeTest, FilesAreLeaves) {
  const Result<ExpressionTree> tree = ParseExpressionTree("product(\"my base.json\",ring(3))");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->operands[0].family, "");
  EXPECT_EQ(tree->operands[0].text, "\"my base.json\"");
}

TEST(ExpressionTreeTest, RefusesWhatIsNoExpression) {
  for (const char* bad : {"", "my cluster", "nosuch(3)", "line(3)", "line(ring(3),k=x)", "ring(3"})
    EXPECT_FALSE(ParseExpressionTree(bad)) << bad;
}

// name() is the text of the tree, also of what went through a file.
TEST(ExpressionTreeTest, NamesSurviveFiles) {
  for (const char* expression :
       {"line(power(uniring(1,4),2),2)", "degree(bipartite(2),3,bw=1GB/s)",
        "product(uniring(1,4),ring(3))", "bidirectional(kautz(2,2))", "line(debruijn(2,2),k=2)",
        "line(distreg(cube4))", "without(torus(3,3),links=2,seed=7)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Result<Topology> stored = TopologyFromJson(TopologyToJson(topology));
    ASSERT_TRUE(stored) << stored.error().message;
    EXPECT_EQ(stored->name(), topology.name());
    EXPECT_EQ(stored->Fingerprint(), topology.Fingerprint());
    const Result<ExpressionTree> tree = ParseExpressionTree(stored->name());
    ASSERT_TRUE(tree) << tree.error().message;
    EXPECT_EQ(tree->text, topology.name());
    EXPECT_EQ(Parse(tree->text).Fingerprint(), topology.Fingerprint());
  }
}

}  // namespace
}  // namespace tutti
