#include "tutti/topo/translations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/parse.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::Parse;
using ::testing::HasSubstr;

NodePermutation Images(const std::vector<int32_t>& values) {
  NodePermutation images;
  for (int32_t value : values) images.push_back(NodeId{value});
  return images;
}

// A ring of four: links 0 -> 1, 0 -> 3, 1 -> 0, 1 -> 2, 2 -> 1, 2 -> 3, 3 -> 0, 3 -> 2 in this
// order. Class 0 goes up, class 1 down.
TEST(Translations, RingOfFourByHand) {
  const Topology ring = Parse("ring(4)");
  const Result<Translations> found = Translations::Make(ring, {Images({1, 2, 3, 0})});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->num_ranks(), 4);
  ASSERT_EQ(found->num_classes(), 2);
  const std::vector<int32_t> classes{0, 1, 1, 0, 1, 0, 0, 1};
  for (LinkId link : ring.Links())
    EXPECT_EQ(found->LinkClass(link), classes[link.index()]) << link.value;
  EXPECT_EQ(found->InLink(NodeId{0}, 0), LinkId{6});
  EXPECT_EQ(found->InLink(NodeId{0}, 1), LinkId{2});
  EXPECT_EQ(found->ImagesOf(NodeId{3}), Images({3, 0, 1, 2}));
  EXPECT_EQ(found->Inverses(), Images({0, 3, 2, 1}));
}

// The smallest group that does not commute, S3 as the prism: 0, 1, 2 one way round and 3, 4, 5 the
// other, i to i + 3 across. Left translations are "turn both triangles" and "exchange them".
TEST(Translations, GroupThatDoesNotCommute) {
  Topology::Builder builder(6);
  for (int32_t i = 0; i < 3; ++i) {
    builder.AddLink(NodeId{i}, NodeId{(i + 1) % 3}, {});
    builder.AddLink(NodeId{3 + (i + 1) % 3}, NodeId{3 + i}, {});
    builder.AddDuplex(NodeId{i}, NodeId{i + 3}, {});
  }
  const Result<Topology> prism = std::move(builder).Build();
  ASSERT_TRUE(prism.has_value());
  const NodePermutation turn = Images({1, 2, 0, 4, 5, 3});
  const NodePermutation swap = Images({3, 5, 4, 0, 2, 1});
  const Result<Translations> found = Translations::Make(*prism, {turn, swap});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  // Every translation keeps every class, and undoes its inverse.
  const NodePermutation inverses = found->Inverses();
  for (NodeId u : prism->Ranks()) {
    EXPECT_EQ(found->ImagesOf(inverses[u.index()])[u.index()], NodeId{0});
    for (LinkId link : prism->Links()) {
      const NodeId tail = found->ImagesOf(prism->tail(link))[u.index()];
      const NodeId head = found->ImagesOf(prism->head(link))[u.index()];
      const LinkId image = found->InLink(head, found->LinkClass(link));
      EXPECT_EQ(prism->tail(image), tail);
      EXPECT_EQ(prism->head(image), head);
    }
  }
}

TEST(Translations, RefusesWhatIsNone) {
  struct Case {
    const char* network;
    std::vector<NodePermutation> generators;
    const char* message;
  };
  const std::vector<Case> cases{
      {"ring(4)", {Images({1, 2, 3})}, "no permutation"},
      {"ring(4)", {Images({1, 2, 3, 3})}, "no permutation"},
      {"ring(4)", {Images({1, 2, 3, 4})}, "no permutation"},
      {"ring(4)", {Images({1, 0, 2, 3}), Images({1, 2, 3, 0})}, "generator 0 is no symmetry"},
      {"ring(4)", {Images({2, 3, 0, 1})}, "do not take rank 0 to rank 1"},
      {"ring(4)", {}, "do not take rank 0 to rank 1"},
      // A reflection leaves ranks in place.
      {"ring(4)", {Images({1, 2, 3, 0}), Images({0, 3, 2, 1})}, "several symmetries"},
      {"complete(4)", {Images({1, 2, 3, 0}), Images({1, 0, 2, 3})}, "several symmetries"},
      {"torus(3,3,bw=[1,2]GB/s)",
       {Images({1, 2, 0, 4, 5, 3, 7, 8, 6}), Images({0, 3, 6, 1, 4, 7, 2, 5, 8})},
       "generator 1 is no symmetry"},
      {"switch(4)", {Images({1, 2, 3, 0})}, "switches"},
  };
  for (const Case& one : cases) {
    const Result<Translations> made = Translations::Make(Parse(one.network), one.generators);
    ASSERT_FALSE(made.has_value()) << one.network << ", wanted: " << one.message;
    EXPECT_EQ(made.error().code, ErrorCode::kInfeasible);
    EXPECT_THAT(made.error().message, HasSubstr(one.message));
  }
}

TEST(FindTranslations, OnFamiliesAndOperators) {
  for (const char* expression : {"ring(1)",
                                 "ring(2)",
                                 "ring(7)",
                                 "biring(4,5)",
                                 "uniring(1,6)",
                                 "uniring(3,4)",
                                 "torus(4,3,2)",
                                 "torus(1,5)",
                                 "torus(3,4,bw=[1,2]GB/s)",
                                 "hypercube(1)",
                                 "hypercube(5)",
                                 "complete(6)",
                                 "bipartite(4)",
                                 "hamming(2,4)",
                                 "circulant(12,2,3,6)",
                                 "dircirculant(5)",
                                 "twisted_torus(6,3)",
                                 "twisted_torus(4,4,8)",
                                 "twisted_torus(2,4,4)",
                                 "product(ring(3),bipartite(2),complete(3))",
                                 "power(bipartite(2),3)",
                                 "product(uniring(1,3),uniring(1,4),bw=[1,2]GB/s)",
                                 "transpose(dircirculant(3))",
                                 "bidirectional(uniring(1,5))",
                                 "degree(ring(5),3)",
                                 "degree(power(ring(3),2),2)",
                                 "torus(3,3,parallel=2)",
                                 "cayley(8,4,3,5,0,4,1,1,3,2,0)",
                                 "cayley(7,3,2,1,0,0,1)",
                                 "product(cayley(7,3,2,1,0,0,1),ring(3))",
                                 "product(transpose(uniring(2,3)),ring(4))"}) {
    const Topology topology = Parse(expression);
    const Result<Translations> found = FindTranslations(topology);
    ASSERT_TRUE(found.has_value()) << expression << ": " << found.error().message;
    // The links of a class have one kind, and each rank has one of them in and one out.
    EXPECT_EQ(found->num_classes() * topology.num_ranks(), topology.num_links()) << expression;
    std::set<std::pair<int32_t, int32_t>> out, in;
    for (LinkId link : topology.Links()) {
      const int32_t link_class = found->LinkClass(link);
      out.emplace(topology.tail(link).value, link_class);
      in.emplace(topology.head(link).value, link_class);
      EXPECT_EQ(topology.spec(link), topology.spec(LinkId{link_class})) << expression;
      EXPECT_EQ(found->InLink(topology.head(link), link_class), link) << expression;
    }
    EXPECT_EQ(out.size(), static_cast<size_t>(topology.num_links())) << expression;
    EXPECT_EQ(in.size(), static_cast<size_t>(topology.num_links())) << expression;
  }
}

// The same network with its ranks in another order and without a name that tells what it is.
Topology Disguised(const Topology& topology, int32_t factor) {
  const int32_t n = topology.num_ranks();
  const auto moved = [&](NodeId node) { return NodeId{node.value * factor % n}; };
  Topology::Builder builder(n);
  for (LinkId link : topology.Links())
    builder.AddLink(moved(topology.tail(link)), moved(topology.head(link)), topology.spec(link));
  builder.SetName("a network");
  return *std::move(builder).Build();
}

TEST(FindTranslations, BySearchWhereNothingSaysWhatItIs) {
  struct Case {
    const char* expression;
    int32_t factor;  // prime to the number of ranks
  };
  for (const Case& one : {Case{"hypercube(4)", 3}, Case{"torus(3,5)", 7}, Case{"hamming(2,3)", 2},
                          Case{"kautz(2,1)", 5}, Case{"cayley(7,3,2,1,0,0,1)", 5},
                          Case{"torus(4,4,bw=[1,2]GB/s)", 5}, Case{"bipartite(4)", 3}}) {
    const Topology topology = Disguised(Parse(one.expression), one.factor);
    const Result<Translations> found = FindTranslations(topology);
    EXPECT_TRUE(found.has_value()) << one.expression;
    // The draws are seeded.
    const Result<Translations> again = FindTranslations(topology);
    if (found && again) {
      EXPECT_EQ(found->generators(), again->generators());
    }
  }
}

// Vertex-transitive, but no group of ten symmetries moves every vertex.
TEST(FindTranslations, ThePetersenGraphHasNone) {
  Topology::Builder builder(10);
  for (int32_t i = 0; i < 5; ++i) {
    builder.AddDuplex(NodeId{i}, NodeId{(i + 1) % 5}, {});
    builder.AddDuplex(NodeId{i}, NodeId{i + 5}, {});
    builder.AddDuplex(NodeId{i + 5}, NodeId{(i + 2) % 5 + 5}, {});
  }
  const Result<Topology> petersen = std::move(builder).Build();
  ASSERT_TRUE(petersen.has_value());
  EXPECT_FALSE(FindTranslations(*petersen).has_value());
}

TEST(FindTranslations, SaysThatThereAreNone) {
  for (const char* expression :
       {"mesh(3,3)", "switch(4)", "genkautz(2,7)", "dgx1", "without(torus(3,3),links=1,seed=1)"}) {
    const Result<Translations> found = FindTranslations(Parse(expression));
    ASSERT_FALSE(found.has_value()) << expression;
    EXPECT_EQ(found.error().code, ErrorCode::kInfeasible);
  }
}

}  // namespace
}  // namespace tutti
