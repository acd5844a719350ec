// random_regular and xpander: what every draw keeps, and that seeds decide it alone.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "support/parse.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using test_support::Parse;
using ::testing::HasSubstr;

// Connected is every Topology.
void ExpectRegularAndSimple(const Topology& topology, int32_t ranks, int32_t degree) {
  SCOPED_TRACE(topology.name());
  EXPECT_EQ(topology.num_ranks(), ranks);
  EXPECT_EQ(topology.num_links(), ranks * degree);
  EXPECT_EQ(topology.regular_degree(), degree);
  EXPECT_TRUE(IsBidirectional(topology));
  for (NodeId node : topology.Nodes()) {
    std::set<NodeId> heads;
    for (LinkId link : topology.OutLinks(node)) heads.insert(topology.head(link));
    EXPECT_EQ(heads.size(), static_cast<size_t>(degree));
  }
}

TEST(RandomRegular, EveryDrawIsRegularAndSimple) {
  for (int32_t ranks = 3; ranks <= 14; ++ranks)
    for (int32_t degree = 2; degree < ranks; ++degree) {
      if (ranks * degree % 2 == 1) continue;
      for (int32_t seed = 0; seed < 5; ++seed)
        ExpectRegularAndSimple(
            Parse(fmt::format("random_regular({},{},seed={})", degree, ranks, seed)), ranks,
            degree);
    }
  ExpectRegularAndSimple(Parse("random_regular(1,2)"), 2, 1);
  ExpectRegularAndSimple(Parse("random_regular(3,1000)"), 1000, 3);
  ExpectRegularAndSimple(Parse("random_regular(2,500)"), 500, 2);
  ExpectRegularAndSimple(Parse("random_regular(64,200)"), 200, 64);
}

TEST(RandomRegular, DrawsAreSpreadEvenly) {
  // Two cubic graphs have six ranks: K(3,3) in 10 numberings, the prism in 60.
  std::map<std::string, int> drawn;
  constexpr int kDraws = 2100;
  for (int seed = 0; seed < kDraws; ++seed)
    ++drawn[Parse(fmt::format("random_regular(3,6,seed={})", seed)).ToText()];
  EXPECT_EQ(drawn.size(), 70u);
  for (const auto& [text, times] : drawn) {
    EXPECT_GE(times, 8) << text;  // 30 on average
    EXPECT_LE(times, 70) << text;
  }
}

TEST(Xpander, LiftsTheCompleteGraph) {
  for (int32_t degree = 2; degree <= 6; ++degree)
    for (int32_t copies = 1; copies <= 7; ++copies)
      for (int32_t seed = 0; seed < 3; ++seed) {
        const Topology topology =
            Parse(fmt::format("xpander({},{},seed={})", degree, copies, seed));
        ExpectRegularAndSimple(topology, (degree + 1) * copies, degree);
        // A rank has one neighbour among the copies of each other vertex.
        for (NodeId node : topology.Nodes()) {
          std::set<int32_t> groups{node.value / copies};
          for (LinkId link : topology.OutLinks(node))
            groups.insert(topology.head(link).value / copies);
          EXPECT_EQ(groups.size(), static_cast<size_t>(degree) + 1);
        }
      }
  EXPECT_EQ(Parse("xpander(4,1)").Fingerprint(), Parse("complete(5)").Fingerprint());
  EXPECT_EQ(Parse("xpander(1,1)").Fingerprint(), Parse("complete(2)").Fingerprint());
  ExpectRegularAndSimple(Parse("xpander(2,400)"), 1200, 2);
}

TEST(Expanders, SeedsDecide) {
  for (const char* family : {"random_regular(4,30", "xpander(4,6"}) {
    const std::string name = family;
    EXPECT_EQ(Parse(name + ")").Fingerprint(), Parse(name + ",seed=1)").Fingerprint());
    EXPECT_NE(Parse(name + ",seed=2)").Fingerprint(), Parse(name + ",seed=1)").Fingerprint());
  }
  // The same on every machine.
  const Topology fixed = Parse("random_regular(3,8,seed=5)");
  EXPECT_EQ(fixed.Fingerprint(), Parse(fixed.name()).Fingerprint());
}

TEST(Expanders, LinkParametersCount) {
  const Topology topology = Parse("xpander(3,5,bw=10GB/s,parallel=2)");
  EXPECT_EQ(topology.num_links(), 120);
  EXPECT_EQ(topology.bandwidth(LinkId{0}), 10'000'000'000);
}

TEST(Expanders, SayWhatIsWrong) {
  const std::pair<const char*, const char*> faults[] = {
      {"random_regular(3,5)", "degree 3 of 5 ranks: one of the two must be even"},
      {"random_regular(5,5)", "got 5, wanted at most 4"},
      {"random_regular(1,4)", "got 1, wanted at least 2"},
      {"random_regular(0,4)", "got 0, wanted at least 2"},
      {"random_regular(2,1)", "got 1, wanted at least 2"},
      {"random_regular(4,99999999998)", "at most"},
      {"random_regular(4)", "random_regular(d,n,seed=1)"},
      {"xpander(0,4)", "got 0, wanted at least 1"},
      {"xpander(4,0)", "got 0, wanted at least 1"},
      {"xpander(1,2)", "no more than 2 ranks"},
      {"xpander(4,999999999999)", "nodes: at most"},
      {"xpander(4,4,links=2)", "links"},
  };
  for (const auto& [expression, message] : faults) {
    const Result<Topology> topology = ParseTopology(expression);
    ASSERT_FALSE(topology.has_value()) << expression;
    EXPECT_THAT(topology.error().message, HasSubstr(message)) << expression;
  }
}

}  // namespace
}  // namespace tutti
