// without(G,link=a-b): cables taken away by name.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/parse.h"
#include "support/text.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace {

using test_support::Parse;

int32_t CountLinks(const Topology& topology, int32_t tail, int32_t head) {
  int32_t count = 0;
  for (LinkId link : topology.OutLinks(NodeId{tail}))
    count += topology.head(link) == NodeId{head} ? 1 : 0;
  return count;
}

TEST(WithoutNamedCables, TakesBothDirections) {
  const Topology whole = Parse("torus(8,8)"), less = Parse("without(torus(8,8),link=27-28)");
  EXPECT_EQ(less.name(), "without(torus(8,8),link=27-28)");
  EXPECT_EQ(less.num_links(), whole.num_links() - 2);
  EXPECT_EQ(CountLinks(less, 27, 28), 0);
  EXPECT_EQ(CountLinks(less, 28, 27), 0);
  EXPECT_EQ(less.num_ranks(), 64);
  EXPECT_FALSE(less.grid().has_value());
  // The order of the nodes does not matter where there are both.
  EXPECT_EQ(Parse("without(torus(8,8),link=28-27)").Fingerprint(), less.Fingerprint());
}

TEST(WithoutNamedCables, SeveralAreAListOrRepeated) {
  const Topology list = Parse("without(torus(4,4), link=[0-1, 5-6], bw=1GB/s)");
  EXPECT_EQ(list.name(), "without(torus(4,4),link=[0-1,5-6],bw=1GB/s)");
  EXPECT_EQ(list.num_links(), 64 - 4);
  const Topology again = Parse("without(torus(4,4),link=0-1,link=5-6,bw=1GB/s)");
  EXPECT_EQ(again.name(), list.name());
  EXPECT_EQ(again.Fingerprint(), list.Fingerprint());
  EXPECT_EQ(ParseExpressionTree(list.name())->cables, (std::vector<std::string>{"0-1", "5-6"}));
}

TEST(WithoutNamedCables, OneOfParallelOnesOrOfOneDirection) {
  EXPECT_EQ(CountLinks(Parse("without(biring(4,5),link=1-2)"), 1, 2), 1);
  EXPECT_EQ(CountLinks(Parse("without(biring(6,5),link=[1-2,2-1])"), 1, 2), 1);
  const Topology ring = Parse("without(uniring(2,4),link=3-0)");
  EXPECT_EQ(ring.num_links(), 7);
  EXPECT_EQ(CountLinks(ring, 3, 0), 1);
}

TEST(WithoutNamedCables, StandsBesideRandomOnes) {
  for (int seed = 1; seed <= 20; ++seed) {
    const Topology topology =
        Parse("without(torus(4,4),link=[0-1,5-6],links=3,seed=" + std::to_string(seed) + ")");
    EXPECT_EQ(topology.num_links(), 64 - 10);
    EXPECT_EQ(CountLinks(topology, 0, 1) + CountLinks(topology, 6, 5), 0);
    const Topology nodes = Parse(
        "without(torus(4,4),link=[0-1,5-6],nodes=2,links=1,seed=" + std::to_string(seed) + ")");
    EXPECT_EQ(nodes.num_ranks(), 14);
    // Names tell who is who after the renumbering.
    for (LinkId link : nodes.Links()) {
      const std::string ends =
          nodes.node_name(nodes.tail(link)) + "-" + nodes.node_name(nodes.head(link));
      EXPECT_TRUE(ends != "0-1" && ends != "1-0" && ends != "5-6" && ends != "6-5") << ends;
    }
  }
}

TEST(WithoutNamedCables, NodesGoByName) {
  const std::string path = test_support::OwnPath("without_names.topo.json");
  Topology::Builder builder(3, 2);
  for (int32_t rank = 0; rank < 3; ++rank)
    for (int32_t leaf : {3, 4}) builder.AddDuplex(NodeId{rank}, NodeId{leaf}, {});
  builder.SetNodeNames({"gpu-0", "gpu-1", "gpu", "leaf0", "1-leaf0"});
  ASSERT_TRUE(WriteTopologyFile(path, *std::move(builder).Build()));
  const auto without = [&path](const std::string& cables) {
    return ParseTopology("without(\"" + path + "\",link=" + cables + ")");
  };
  for (const char* same : {"gpu-0-leaf0", "leaf0-gpu-0", "0-3", "0-leaf0", "gpu-0-3"}) {
    const Result<Topology> topology = without(same);
    ASSERT_TRUE(topology) << same << ": " << topology.error().message;
    EXPECT_EQ(CountLinks(*topology, 0, 3) + CountLinks(*topology, 3, 0), 0) << same;
    EXPECT_EQ(topology->num_links(), 10) << same;
  }
  const Result<Topology> either = without("gpu-1-leaf0");  // gpu-1 and leaf0, gpu and 1-leaf0
  ASSERT_FALSE(either);
  EXPECT_NE(either.error().message.find("several pairs of nodes"), std::string::npos);
}

TEST(WithoutNamedCables, NamesWhatIsMissing) {
  for (const auto& [expression, message] : std::vector<std::pair<std::string, std::string>>{
           {"without(torus(4,4),link=0-5)",
            "column 25: link=0-5: no link leads from '0' to '5'; '0' is linked to 1, 3, 4, 12"},
           {"without(torus(4,4),link=0-16)",
            "link=0-16: the network has no node '16'; its 16 nodes are 0 to 15"},
           {"without(torus(4,4),link=[0-1,a-1])",
            "column 30: link=a-1: the network has no node 'a'"},
           {"without(torus(4,4),link=[0-1,1-0])", "link=1-0: '1' and '0' have no further cable"},
           {"without(uniring(1,4),link=1-0)",
            "link=1-0: no link leads from '1' to '0', only from '0' to '1'"},
           {"without(torus(4,4),link=7)", "link=7: wanted two nodes"},
           {"without(torus(4,4),link=0-1-2)", "link=0-1-2: wanted two nodes"},
           {"without(torus(4,4),link=-)", "link=-: the network has no node ''"},
           {"without(torus(4,4),link=[0-1]x)", "link=: found 'x', wanted two nodes"},
           {"without(torus(4,4),link=ring(3))", "link=: found 'ring', wanted two nodes"},
           {"without(uniring(1,4),link=0-1)", "the network is disconnected"},
           {"without(torus(3,3),link=0-1,links=18)",
            "links=18: the network has 18 cables, those that link= names included"},
           {"torus(4,4,link=0-1)", "unknown keyword 'link' of torus"},
           {"without(torus(4,4),lnk=0-1)",
            "accepted: links, nodes, seed, alpha, bw, host_bw, link, parallel"}}) {
    const Result<Topology> topology = ParseTopology(expression);
    ASSERT_FALSE(topology) << expression;
    EXPECT_NE(topology.error().message.find(message), std::string::npos)
        << expression << ": " << topology.error().message;
  }
}

}  // namespace
}  // namespace tutti
