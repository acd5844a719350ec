#include "tutti/topo/symmetry.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/parse.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using test_support::Parse;
using Outcome = IsomorphismSearch::Outcome;

// [direct-connect] Table 9, column "Reverse-Symmetric".
TEST(ReverseSymmetry, OfTheGraphsInTable9) {
  for (const char* symmetric :
       {"complete(5)", "bipartite(4)", "hamming(2,3)", "kautz(2,2)", "kautz(3,1)",
        "circulant(9,1,3)", "dircirculant(4)", "biring(2,7)", "uniring(2,5)", "debruijn(2,4)",
        "debruijn(3,2)", "product(uniring(1,4),uniring(1,8))", "genkautz(4,5)", "torus(3,3,2)",
        "dgx1", "rfs(2,3,4,bw=[200,100,50]GB/s)"}) {
    const Topology topology = Parse(symmetric);
    const IsomorphismSearch search = FindReverseSymmetry(topology);
    EXPECT_EQ(search.outcome, Outcome::kFound) << symmetric;
    EXPECT_TRUE(IsIsomorphism(Transpose(topology.graph()), topology.graph(), search.isomorphism));
  }
  EXPECT_EQ(FindReverseSymmetry(Parse("genkautz(2,7)")).outcome, Outcome::kNone);
}

TEST(ReverseSymmetry, DependsOnBandwidths) {
  EXPECT_EQ(FindReverseSymmetry(Parse("product(uniring(1,3),uniring(1,4),bw=[1,2]GB/s)")).outcome,
            Outcome::kFound);
  // A one-way ring read backwards: 1, 2, 2 is itself again, 1, 2, 3 becomes 3, 2, 1.
  const auto ring = [](std::vector<int64_t> bandwidths) {
    Topology::Builder builder(3);
    for (int i = 0; i < 3; ++i)
      builder.AddLink(NodeId{i}, NodeId{(i + 1) % 3},
                      {.bandwidth = bandwidths[static_cast<size_t>(i)]});
    return *std::move(builder).Build();
  };
  EXPECT_EQ(FindReverseSymmetry(ring({1, 2, 2})).outcome, Outcome::kFound);
  EXPECT_EQ(FindReverseSymmetry(ring({1, 2, 3})).outcome, Outcome::kNone);
}

// K(d,n) = L^n(K_{d+1}), and de Bruijn digraphs are the line digraphs of the shorter ones,
// self-loops included.
TEST(Isomorphism, LineDigraphsOfKautzAndDeBruijn) {
  const std::vector<std::pair<const char*, const char*>> same{
      {"line(complete(3))", "kautz(2,1)"},       {"line(complete(3),3)", "kautz(2,3)"},
      {"line(complete(4),2)", "kautz(3,2)"},     {"line(kautz(2,1),1)", "genkautz(2,12)"},
      {"line(debruijn(2,2))", "debruijn(2,3)"},  {"line(debruijn(3,1),2)", "debruijn(3,3)"},
      {"degree(complete(2),3)", "bipartite(3)"}, {"degree(ring(4),1)", "ring(4)"}};
  for (const auto& [left, right] : same)
    EXPECT_EQ(FindIsomorphism(Parse(left), Parse(right)).outcome, Outcome::kFound) << left;
  EXPECT_EQ(FindIsomorphism(Parse("line(complete(4))"), Parse("bipartite(3)")).outcome,
            Outcome::kNone);
}

TEST(Orbits, OfKnownNetworks) {
  const std::vector<std::pair<const char*, int>> table{{"torus(6,6)", 1},
                                                       {"hypercube(6)", 1},
                                                       {"mesh(3,3)", 3},
                                                       {"mesh(2,3)", 2},
                                                       {"mesh(5)", 3},
                                                       {"twisted_torus(8,4)", 1},
                                                       {"twisted_torus(4,4,8)", 1},
                                                       {"twisted_torus(2,4,4)", 1},
                                                       {"complete(30)", 1},
                                                       {"bipartite(6)", 1},
                                                       {"switch(5)", 2},
                                                       {"rfs(2,3,4)", 2},
                                                       {"dgx1", 2},
                                                       {"kautz(2,2)", 2},
                                                       {"torus(4,4,bw=[1,2]GB/s)", 1},
                                                       {"dragonfly(4,3)", 1}};
  for (const auto& [expression, orbits] : table) {
    const Topology topology = Parse(expression);
    const NodeOrbits found = FindNodeOrbits(topology);
    EXPECT_EQ(found.num_orbits(), orbits) << expression;
    EXPECT_TRUE(found.proven) << expression;
    for (const Isomorphism& generator : found.generators)
      EXPECT_TRUE(IsIsomorphism(topology.graph(), topology.graph(), generator)) << expression;
  }
}

TEST(Orbits, OfLargeNetworksWithinTheBudget) {
  EXPECT_EQ(FindNodeOrbits(Parse("torus(50,50)")).num_orbits(), 1);
  EXPECT_EQ(FindNodeOrbits(Parse("hypercube(10)")).num_orbits(), 1);
  EXPECT_EQ(FindNodeOrbits(Parse("complete(200)")).num_orbits(), 1);
  EXPECT_EQ(FindNodeOrbits(Parse("bipartite(100)")).num_orbits(), 1);
  EXPECT_EQ(FindNodeOrbits(Parse("switch(500)")).num_orbits(), 2);
  EXPECT_EQ(FindNodeOrbits(Parse("rfs(2,4,32)")).num_orbits(), 2);
  EXPECT_TRUE(FindNodeOrbits(Parse("genkautz(4,1000)")).proven);
  EXPECT_NE(FindReverseSymmetry(Parse("genkautz(4,1000)")).outcome, Outcome::kGaveUp);
}

}  // namespace
}  // namespace tutti
