// The distance-regular graphs of [direct-connect] Table 8: sizes, and the arrays known from the
// literature, which determine most of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "families/finite_field.h"
#include "support/parse.h"
#include "tutti/graph/distance_regular.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

using test_support::Parse;

struct Row {
  const char* name;
  int32_t ranks, diameter;
  const char* array;
};

constexpr Row kTable[] = {
    {"octahedron", 6, 2, "{4,1;1,4}"},
    {"paley9", 9, 2, "{4,2;1,2}"},
    {"k55minus", 10, 3, "{4,3,1;1,3,4}"},
    {"heawood3", 14, 3, "{4,3,2;1,2,4}"},
    {"line_petersen", 15, 3, "{4,2,1;1,1,4}"},
    {"cube4", 16, 4, "{4,3,2,1;1,2,3,4}"},
    {"line_heawood", 21, 3, "{4,2,2;1,1,2}"},
    {"pg23", 26, 3, "{4,3,3;1,1,4}"},
    {"ag24minus", 32, 4, "{4,3,3,1;1,1,3,4}"},
    {"odd4", 35, 3, "{4,3,3;1,1,2}"},
    {"line_tutte8", 45, 4, "{4,2,2,2;1,1,1,2}"},
    {"doubled_odd4", 70, 7, "{4,3,3,2,2,1,1;1,1,2,2,3,3,4}"},
    {"gq33", 80, 4, "{4,3,3,3;1,1,1,4}"},
    {"line_tutte12", 189, 6, "{4,2,2,2,2,2;1,1,1,1,1,2}"},
    {"gh33", 728, 6, "{4,3,3,3,3,3;1,1,1,1,1,4}"},
};

TEST(Distreg, HasTheSizesAndArraysOfTheLiterature) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.name);
    const Topology topology = Parse(std::string("distreg(") + row.name + ")");
    EXPECT_EQ(topology.num_ranks(), row.ranks);
    EXPECT_EQ(topology.regular_degree(), 4);
    EXPECT_EQ(topology.num_links(), 4 * row.ranks);  // no self-loops
    EXPECT_TRUE(IsBidirectional(topology));
    EXPECT_EQ(Diameter(topology), row.diameter);
    const DistanceRegularity found = CheckDistanceRegular(topology.graph());
    ASSERT_TRUE(found.array.has_value());
    EXPECT_EQ(found.array->ToString(), row.array);
  }
}

TEST(Distreg, ListsExactlyTheGraphsOfTheTable) {
  const std::vector<FamilyInfo> families = TopologyFamilies();
  const auto distreg = std::find_if(families.begin(), families.end(), [](const FamilyInfo& family) {
    return family.name == "distreg";
  });
  ASSERT_NE(distreg, families.end());
  std::vector<std::string> listed, wanted;
  for (const FamilyMember& member : distreg->members) {
    listed.emplace_back(member.name);
    EXPECT_EQ(member.summary.substr(0, member.summary.find(' ')),
              std::to_string(Parse("distreg(" + listed.back() + ")").num_ranks()));
  }
  for (const Row& row : kTable) wanted.emplace_back(row.name);
  EXPECT_EQ(listed, wanted);
}

TEST(Distreg, SomeAreOldAcquaintances) {
  const char* same[][2] = {{"octahedron", "circulant(6,1,2)"},
                           {"paley9", "hamming(2,3)"},
                           {"paley9", "torus(3,3)"},
                           {"cube4", "torus(4,4)"},
                           {"k55minus", "circulant(10,1,3)"}};
  for (const auto& pair : same) {
    SCOPED_TRACE(pair[1]);
    const IsomorphismSearch search =
        FindIsomorphism(Parse(std::string("distreg(") + pair[0] + ")"), Parse(pair[1]));
    EXPECT_EQ(search.outcome, IsomorphismSearch::Outcome::kFound);
  }
  // The numbers, too.
  EXPECT_EQ(Parse("distreg(cube4)").Fingerprint(), Parse("hypercube(4)").Fingerprint());
  EXPECT_EQ(Parse("distreg(paley9)").Fingerprint(), Parse("hamming(2,3)").Fingerprint());
}

// Points and lines can change places in PG(2,3) and H(3), but not in W(3), which is not its own
// dual.
TEST(Distreg, OnlyTheQuadrangleIsNotVertexTransitive) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.name);
    const NodeOrbits orbits = FindNodeOrbits(Parse(std::string("distreg(") + row.name + ")"));
    EXPECT_TRUE(orbits.proven);
    EXPECT_EQ(orbits.num_orbits(), row.name == std::string("gq33") ? 2 : 1);
  }
}

TEST(DistanceRegularTopologies, OthersAreNot) {
  for (const char* expression : {"torus(3,4)", "torus(5,5)", "circulant(12,2,3)", "uniring(1,5)",
                                 "genkautz(2,8)", "mesh(3)", "biring(4,5)", "twisted_hypercube(4)",
                                 "degree(ring(5),2)", "without(hypercube(4),links=1)"}) {
    EXPECT_FALSE(CheckDistanceRegular(Parse(expression).graph()).array) << expression;
  }
  for (const char* expression :
       {"hamming(3,4)", "complete(7)", "bipartite(5)", "hypercube(7)", "ring(9)"})
    EXPECT_TRUE(CheckDistanceRegular(Parse(expression).graph()).array) << expression;
}

// The axioms, by trying all elements.
TEST(FiniteField, IsAField) {
  for (int32_t q : {2, 3, 4, 9}) {
    SCOPED_TRACE(q);
    const topo::FiniteField field(q);
    for (int32_t a = 0; a < q; ++a) {
      EXPECT_EQ(field.Add(a, 0), a);
      EXPECT_EQ(field.Multiply(a, 1), a);
      EXPECT_EQ(field.Subtract(a, a), 0);
      if (a != 0) {
        EXPECT_EQ(field.Multiply(a, field.Inverse(a)), 1);
      }
      for (int32_t b = 0; b < q; ++b) {
        EXPECT_EQ(field.Add(a, b), field.Add(b, a));
        EXPECT_EQ(field.Multiply(a, b), field.Multiply(b, a));
        EXPECT_EQ(field.Add(field.Subtract(a, b), b), a);
        EXPECT_TRUE(0 <= field.Multiply(a, b) && field.Multiply(a, b) < q);
        EXPECT_EQ(field.Multiply(a, b) == 0, a == 0 || b == 0);
        for (int32_t c = 0; c < q; ++c) {
          EXPECT_EQ(field.Add(field.Add(a, b), c), field.Add(a, field.Add(b, c)));
          EXPECT_EQ(field.Multiply(field.Multiply(a, b), c),
                    field.Multiply(a, field.Multiply(b, c)));
          EXPECT_EQ(field.Multiply(a, field.Add(b, c)),
                    field.Add(field.Multiply(a, b), field.Multiply(a, c)));
        }
      }
    }
  }
}

TEST(FiniteField, ProjectiveSpacesHaveTheirNumberOfPoints) {
  for (int32_t q : {2, 3, 4, 9})
    for (int32_t length = 1; length <= (q > 4 ? 3 : 4); ++length) {
      const std::vector<topo::Coordinates> points =
          topo::ProjectivePoints(topo::FiniteField(q), length);
      int32_t wanted = 0;  // 1 + q + .. + q^(length - 1)
      for (int32_t i = 0; i < length; ++i) wanted = wanted * q + 1;
      EXPECT_EQ(static_cast<int32_t>(points.size()), wanted);
      EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
      EXPECT_EQ(std::set<topo::Coordinates>(points.begin(), points.end()).size(), points.size());
    }
}

}  // namespace
}  // namespace tutti
