// Switches that reduce: how they are called, who keeps them, and what files say of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/parse.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/operators.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using test_support::Parse;
using ::testing::HasSubstr;

std::vector<std::string> ReducingNames(const Topology& topology) {
  std::vector<std::string> names;
  for (NodeId node : topology.Nodes())
    if (!topology.is_rank(node) && topology.reduces(node))
      names.push_back(topology.node_name(node));
  return names;
}

TEST(ReducingSwitches, AreCalledByTheirNamesOrAllAtOnce) {
  struct Row {
    const char* text;
    std::vector<std::string> names;
  };
  const std::vector<Row> rows{
      {"switch(3)", {}},
      {"switch(3,reduces=true)", {"3"}},
      {"rail(2,2,reduces=nvswitch)", {"box0.nvswitch", "box1.nvswitch"}},
      {"rail(2,2,reduces=box1.nvswitch)", {"box1.nvswitch"}},
      {"rail(2,2,reduces=[rail0,box0.nvswitch])", {"box0.nvswitch", "rail0"}},
      {"without(rail(2,2,reduces=nvswitch))", {"box0.nvswitch", "box1.nvswitch"}},
      {"transpose(rail(2,2,reduces=nvswitch))", {"box0.nvswitch", "box1.nvswitch"}},
      {"bidirectional(rail(2,2,reduces=nvswitch))", {"box0.nvswitch", "box1.nvswitch"}},
      {"host_forwarding(rail(2,2,host_bw=9GB/s,reduces=nvswitch))",
       {"box0.nvswitch", "box1.nvswitch"}},
      {"unwind(switch(4,reduces=true),degree=2)", {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const Topology topology = Parse(row.text);
    EXPECT_EQ(ReducingNames(topology), row.names);
    EXPECT_EQ(topology.name(), row.text);
    EXPECT_EQ(topology.has_reducing_switches(), !row.names.empty());
    for (NodeId rank : topology.Ranks()) EXPECT_TRUE(topology.reduces(rank));
    EXPECT_EQ(ReducingNames(OrderLinks(topology)), row.names);
    EXPECT_EQ(ReducingNames(TransposeTopology(topology)), row.names);
  }
}

TEST(ReducingSwitches, FaultsNameTheColumn) {
  struct Row {
    const char* text;
    const char* message;
  };
  for (const Row& row : std::vector<Row>{
           {"ring(4,reduces=true)", "column 16: reduces=: the network has no switches"},
           {"switch(4,reduces=nvswitch)",
            "column 18: reduces=: no switch is called 'nvswitch'; the first is '4'"},
           {"rail(2,2,reduces=[nvswitch,spine])",
            "column 28: reduces=: no switch is called 'spine'; the first is 'box0.nvswitch'"},
           {"switch(4,reduces=0)", "no switch is called '0'"},
           {"switch(4,reduces=false)", "reduces=: found 'false', wanted true, the name"},
           {"switch(4,reduces=[])", "found '])', wanted a value of the list"},
           {"switch(4,reduces=true(1))", "reduces=: found 'true"},
           {"switch(4,reduces=true,reduces=true)", "stands there twice"},
           {"cluster(fabric=fat_tree(4,reduces=true))", "and reduces= belong to the cluster"},
           {"host_forwarding(switch(4,host_bw=1GB/s),reduces=true)",
            "host_bw= and reduces= belong to the network inside"}}) {
    SCOPED_TRACE(row.text);
    const Result<Topology> topology = ParseTopology(row.text);
    ASSERT_FALSE(topology.has_value());
    EXPECT_THAT(topology.error().message, HasSubstr(row.message));
  }
}

TEST(ReducingSwitches, OnlySwitchesAreToldThatTheyReduce) {
  for (const int32_t node : {-1, 0, 1, 3}) {
    Topology::Builder builder(2, 1);
    builder.AddDuplex(NodeId{0}, NodeId{2}, {});
    builder.AddDuplex(NodeId{1}, NodeId{2}, {});
    builder.SetReduces(NodeId{node});
    const Result<Topology> topology = std::move(builder).Build();
    ASSERT_FALSE(topology.has_value());
    EXPECT_THAT(topology.error().message, HasSubstr("no switch, switches are [2, 3)"));
  }
}

TEST(ReducingSwitches, AreAnotherNetwork) {
  EXPECT_NE(Parse("switch(4,reduces=true)").Fingerprint(), Parse("switch(4)").Fingerprint());
  EXPECT_NE(Parse("rail(2,2,reduces=true)").Fingerprint(),
            Parse("rail(2,2,reduces=nvswitch)").Fingerprint());
  EXPECT_THAT(Parse("switch(4,reduces=true)").ToText(), HasSubstr("reduces 4\n"));
}

TEST(ReducingSwitches, FilesKeepThem) {
  for (const char* text : {"switch(3,reduces=true)", "rail(2,2,reduces=nvswitch)",
                           "without(rail(3,2,reduces=[rail1,box2.nvswitch]),link=0-6)"}) {
    SCOPED_TRACE(text);
    const Topology topology = Parse(text);
    const std::string json = TopologyToJson(topology);
    EXPECT_THAT(json, HasSubstr("\"version\": 4"));
    const Result<Topology> back = TopologyFromJson(json);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->Fingerprint(), topology.Fingerprint());
    EXPECT_EQ(back->name(), text);
    EXPECT_EQ(TopologyToJson(*back), json);
  }
  // The network that was unwound stands inside.
  const Topology unwound = Parse("unwind(switch(4,reduces=true),degree=2)");
  const Result<Topology> back = TopologyFromJson(TopologyToJson(unwound));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ASSERT_NE(back->original(), nullptr);
  EXPECT_TRUE(back->original()->has_reducing_switches());
}

TEST(ReducingSwitches, FaultsOfFilesNameThePlace) {
  const std::string json = TopologyToJson(Parse("switch(3,reduces=true)"));
  struct Row {
    const char *from, *to, *message;
  };
  for (const Row& row :
       std::vector<Row>{{"\"version\": 4", "\"version\": 3", "$.nodes[3]: unknown key \"reduces\""},
                        {"\"version\": 4", "\"version\": 5",
                         "$.version: found 5, this reader knows versions 1 to 4"},
                        {"\"reduces\": true", "\"reduces\": 1",
                         "$.nodes[3].reduces: found 1, wanted true or false"},
                        {"\"kind\": \"rank\"", "\"kind\": \"rank\", \"reduces\": true",
                         "$.nodes[0].reduces: every rank reduces"}}) {
    SCOPED_TRACE(row.to);
    std::string spoiled = json;
    spoiled.replace(spoiled.find(row.from), std::string(row.from).size(), row.to);
    const Result<Topology> topology = TopologyFromJson(spoiled);
    ASSERT_FALSE(topology.has_value());
    EXPECT_THAT(topology.error().message, HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace tutti
