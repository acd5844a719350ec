// What files say of their networks, against the links (docs/formats/topology.md).
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/parse.h"
#include "support/text.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using test_support::Parse;

// The file of `topology` with `from`, which stands there, replaced by `to`, read again.
Topology Edited(const Topology& topology, const std::string& from, const std::string& to) {
  std::string text = TopologyToJson(topology);
  const size_t at = text.find(from);
  if (at == text.npos) ADD_FAILURE() << "no " << from << " in " << text;
  if (at != text.npos) text.replace(at, from.size(), to);
  Result<Topology> back = TopologyFromJson(text);
  if (!back) ADD_FAILURE() << back.error().message;
  return back ? *std::move(back) : topology;
}

void ExpectSameOrigin(const Topology& a, const Topology& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.expression(), b.expression());
  EXPECT_EQ(a.grid(), b.grid());
  EXPECT_EQ(a.ToText(), b.ToText());
  ASSERT_EQ(a.original() != nullptr, b.original() != nullptr);
  if (a.original() != nullptr) ExpectSameOrigin(*a.original(), *b.original());
}

// The 27 - 28 of faults found by use, on a smaller torus.
TEST(TopologyClaims, ARemovedLinkMakesItAModifiedTorus) {
  const Topology torus = Parse("torus(3,3)");
  const std::string cable = "    {\"from\": 0, \"to\": 1, \"duplex\": true},\n";
  const Topology less = Edited(torus, cable, "");
  EXPECT_EQ(less.name(), "modified from torus(3,3)");
  EXPECT_EQ(less.expression(), "");
  EXPECT_FALSE(less.grid().has_value());
  EXPECT_EQ(less.num_links(), torus.num_links() - 2);
  // It stays so in files.
  ExpectSameOrigin(*TopologyFromJson(TopologyToJson(less)), less);

  const Topology more = Edited(torus, cable, cable + cable);
  EXPECT_EQ(more.name(), "modified from torus(3,3)");
  EXPECT_TRUE(more.grid().has_value());  // the neighbours are the same

  const Topology moved = Edited(torus, cable, "    {\"from\": 0, \"to\": 4, \"duplex\": true},\n");
  EXPECT_EQ(moved.name(), "modified from torus(3,3)");
  EXPECT_FALSE(moved.grid().has_value());
}

TEST(TopologyClaims, OtherParametersLeaveTheWiring) {
  const Topology torus = Parse("torus(3,4)");
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"50GB/s\"", "\"49GB/s\""},
           {"\"alpha\": \"500ns\"", "\"alpha\": \"501ns\""},
           {"\"to\": 1, \"duplex\": true", "\"to\": 1, \"duplex\": true, \"alpha\": \"1us\""},
           {"\"version\": 1", "\"version\": 2, \"host_bandwidth\": \"1GB/s\""}}) {
    const Topology changed = Edited(torus, from, to);
    EXPECT_EQ(changed.name(), "torus(3,4) with other parameters") << to;
    EXPECT_EQ(changed.expression(), "torus(3,4)") << to;
    EXPECT_EQ(changed.grid(), torus.grid()) << to;
    ExpectSameOrigin(*TopologyFromJson(TopologyToJson(changed)), changed);
  }
}

TEST(TopologyClaims, NamesThatAreNoExpressionsStay) {
  const Topology torus = Parse("torus(3,3)");
  EXPECT_EQ(Edited(torus, "torus(3,3)", "rack 7").name(), "rack 7");
  EXPECT_EQ(Edited(torus, "torus(3,3)", "rack 7").expression(), "");
  EXPECT_EQ(Edited(torus, "torus(3,3)", "torus(3,x)").name(), "torus(3,x)");
  // A reader opens no files: neither agrees nor differs.
  EXPECT_EQ(Edited(torus, "torus(3,3)", "transpose(x.json)").name(), "transpose(x.json)");
  EXPECT_EQ(Edited(torus, "torus(3,3)", "hypercube(3)").name(), "modified from hypercube(3)");
  // Nothing large is made to find out.
  EXPECT_EQ(Edited(torus, "torus(3,3)", "without(torus(900,900),nodes=809991)").name(),
            "modified from without(torus(900,900),nodes=809991)");
  EXPECT_EQ(Edited(torus, "\"name\": \"torus(3,3)\"", "\"comment\": \"none\"").name(), "");
}

TEST(TopologyClaims, NameAndExpressionAreCheckedBoth) {
  const Topology torus = Parse("torus(3,3)");
  const auto named = [&torus](const std::string& name, const std::string& expression) {
    const std::string header = "\"version\": 3,\n  \"expression\": \"" + expression + "\"";
    const Topology once =
        Edited(Edited(torus, "\"torus(3,3)\"", "\"" + name + "\""), "\"version\": 1", header);
    ExpectSameOrigin(*TopologyFromJson(TopologyToJson(once)), once);
    return once.name() + " | " + once.expression();
  };
  EXPECT_EQ(named("rack 7", "torus(3,3)"), "rack 7 | torus(3,3)");
  EXPECT_EQ(named("rack 7", "torus(3,3,bw=1GB/s)"), "rack 7 | torus(3,3,bw=1GB/s)");
  EXPECT_EQ(named("rack 7", "ring(9)"), "rack 7 | ");
  EXPECT_EQ(named("", "torus(3,3)"), "torus(3,3) | torus(3,3)");
  EXPECT_EQ(named("torus(3,3)", ""), "torus(3,3) | torus(3,3)");
  EXPECT_EQ(named("torus(3,3)", "ring(9)"), "torus(3,3) | torus(3,3)");
}

TEST(TopologyClaims, GridsAreThoseOfTheLinks) {
  const Topology torus = Parse("torus(3,4)");
  EXPECT_EQ(Edited(torus, "[3, 4]", "[4, 3]").grid(), std::nullopt);
  EXPECT_EQ(Edited(torus, "\"wraps\": true", "\"wraps\": false").grid(), std::nullopt);
  EXPECT_TRUE(Edited(torus, "torus(3,4)", "rack 7").grid().has_value());
  // With lengths of at most two it wraps or not: the same cables.
  EXPECT_TRUE(Edited(Parse("mesh(2,2)"), "false", "true").grid().has_value());
  EXPECT_TRUE(Edited(Parse("mesh(1)"), "false", "true").grid().has_value());
}

TEST(TopologyClaims, UnwoundNetworksKeepTheirOriginal) {
  const Topology unwound = Parse("unwind(switch2d(2,4,bw=[450,50]GB/s),degree=1)");
  ASSERT_NE(unwound.original(), nullptr);
  EXPECT_EQ(unwound.original()->name(), "switch2d(2,4,bw=[450GB/s,50GB/s])");
  EXPECT_TRUE(unwound.original()->has_switches());
  const std::string text = TopologyToJson(unwound);
  EXPECT_NE(text.find("\"version\": 3"), text.npos);
  ExpectSameOrigin(*TopologyFromJson(text), unwound);

  // A transpose turns it around, also where it is no operator.
  const Topology transposed = Parse("transpose(unwind(switch(4),degree=2))");
  ASSERT_NE(transposed.original(), nullptr);
  EXPECT_EQ(transposed.original()->name(), "transpose(switch(4))");
  ASSERT_NE(TransposeTopology(unwound).original(), nullptr);
  EXPECT_EQ(OrderLinks(unwound).original(), unwound.original());
  // Twice is once.
  EXPECT_EQ(Parse("unwind(unwind(switch(4),degree=2),degree=1)").original()->name(), "switch(4)");
  // No switches, other links than switches give, other ranks: none.
  for (const char* none :
       {"unwind(torus(4),degree=1)", "unwind(switch(4),degree=1,bw=1TB/s)",
        "unwind(switch(4),degree=1,alpha=1us)", "unwind(switch(4),degree=1,parallel=2)",
        "unwind(switch(4),degree=1,host_bw=1GB/s)", "power(unwind(switch(4),degree=1),2)",
        "without(unwind(switch(4),degree=2),links=1)", "line(unwind(switch(4),degree=1))"})
    EXPECT_EQ(Parse(none).original(), nullptr) << none;
}

TEST(TopologyClaims, AnOriginalThatIsNoneIsNotKept) {
  const Topology unwound = Parse("unwind(switch(4),degree=1)");
  // Faster links than the switch has.
  EXPECT_EQ(Edited(unwound, "\"50GB/s\"", "\"60GB/s\"").original(), nullptr);
  // The name is no expression, so that only the sums tell.
  const Topology named = Edited(unwound, "unwind(switch(4),degree=1)", "my box");
  EXPECT_NE(named.original(), nullptr);
  EXPECT_EQ(Edited(named, "\"50GB/s\"", "\"60GB/s\"").original(), nullptr);
  EXPECT_EQ(Edited(named, "\"ranks\": 4", "\"ranks\": 4, \"host_bandwidth\": \"1GB/s\"").original(),
            nullptr);
  // A file of version 1, or one that lost it: the expression tells.
  std::string text = TopologyToJson(unwound);
  const size_t at = text.find(",\n  \"original\"");
  text.erase(at, text.rfind('}') - at);
  text.replace(text.find("\"version\": 3"), 12, "\"version\": 1");
  ExpectSameOrigin(*TopologyFromJson(text), unwound);

  const auto fault = [&unwound](const std::string& from, const std::string& to) {
    std::string file = TopologyToJson(unwound);
    file.replace(file.find(from), from.size(), to);
    const Result<Topology> topology = TopologyFromJson(file);
    return topology ? std::string("none") : topology.error().message;
  };
  EXPECT_NE(fault("\"original\": {", "\"original\": {\"original\": 1,").find("unwound twice"),
            std::string::npos);
  EXPECT_NE(fault("\"switches\": 1", "\"switches\": -1").find("$.original: $.switches"),
            std::string::npos);
  EXPECT_NE(fault("\"version\": 3", "\"version\": 2").find("unknown key \"original\""),
            std::string::npos);
}

// Operators over files tell how the file's network was made, and so does what is written of them.
TEST(TopologyClaims, OperatorsOverFilesDoNotDependOnThem) {
  const std::string path = test_support::OwnPath("claims.topo.json");
  const std::string quoted = "\"" + path + "\"";
  const auto write = [&path](const Topology& topology) {
    ASSERT_TRUE(WriteTopologyFile(path, topology).has_value());
  };
  write(Parse("switch2d(2,4,bw=[450,50]GB/s)"));
  ExpectSameOrigin(Parse("unwind(" + quoted + ",degree=1)"),
                   Parse("unwind(switch2d(2,4,bw=[450,50]GB/s),degree=1)"));
  write(Parse("kautz(2,1)"));
  ExpectSameOrigin(Parse("line(" + quoted + ",2)"), Parse("line(kautz(2,1),2)"));
  // With other parameters the wiring is known, the name is not.
  write(Edited(Parse("ring(4)"), "\"50GB/s\"", "\"49GB/s\""));
  const Topology slower = Parse("power(" + quoted + ",2)");
  EXPECT_EQ(slower.name(), "power(" + path + ",2)");
  EXPECT_EQ(slower.expression(), "power(ring(4),2)");
  // Of an edited file nothing is known but its place.
  write(Edited(Parse("ring(4)"), "    {\"from\": 0, \"to\": 1, \"duplex\": true},\n", ""));
  EXPECT_EQ(Parse("power(" + quoted + ",2)").expression(), "power(" + path + ",2)");
  std::filesystem::remove(path);
}

void CollectFamilies(const ExpressionTree& tree, std::set<std::string>& families) {
  families.insert(tree.family);
  for (const ExpressionTree& operand : tree.operands) CollectFamilies(operand, families);
}

// Every family and every operator: a file says what the expression said.
TEST(TopologyClaims, EveryFamilyRoundTrips) {
  const std::vector<std::string> expressions{
      "bidirectional(genkautz(2,7))",
      "bidirectional(ring(5))",
      "bipartite(3)",
      "biring(4,5)",
      "cayley(5,2,4,1,0,0,1)",
      "circulant(9,2,3,bw=[1,2]GB/s)",
      "cluster(boxes=3,gpus=4,nics=2,nic=200Gbit/s,fabric=spine_leaf(2,2),oversubscription=3:2)",
      "complete(5,alpha=0)",
      "debruijn(2,3)",
      "debruijn_mod(2,3)",
      "degree(biring(2,5),2)",
      "dgx1",
      "dgx_a100(2,override=box0.gpu1-rail1:1GB/s)",
      "dgx_h100(2,host_bw=300GB/s)",
      "diamond",
      "dircirculant(3)",
      "distreg(octahedron)",
      "dragonfly(3,2,bw=[7,5]GB/s)",
      "fat_tree(4,oversubscription=2)",
      "genkautz(3,11)",
      "genkautz_mod(3,11)",
      "hamming(2,3)",
      "host_forwarding(torus(3,3,host_bw=80GB/s))",
      "hosts(examples/topologies/hosts.txt,gpus=2,fabric=rails)",
      "hypercube(3,bw=[1,2,3]GB/s)",
      "kautz(2,2)",
      "line(genkautz(2,5),2)",
      "mesh(2,1,3,parallel=2)",
      "mi250(2)",
      "nic_forwarding(ring(5,host_bw=20GB/s))",
      "nvl72(2)",
      "power(uniring(1,3),2,bw=[1,2]GB/s)",
      "product(ring(3),complete(4))",
      "rail(3,2)",
      "random_regular(3,8,seed=4)",
      "rfs(2,4,3,bw=[200,100,50]GB/s)",
      "ring(6,host_bw=60GB/s)",
      "spine_leaf(2,1,3)",
      "switch(5,bw_per_link=9GB/s)",
      "switch2d(3,4)",
      "torus(3,4,host_bw=60GB/s)",
      "transpose(torus(3,4))",
      "transpose(unwind(rfs(2,2,3),degree=2))",
      "twisted_hypercube(3)",
      "twisted_torus(4,2)",
      "uniring(2,4)",
      "unwind(switch2d(3,4,bw=[450,50]GB/s,host_bw=300GB/s),degree=2)",
      "without(torus(4,4),link=[0-1,5-6],links=2,nodes=2,seed=3)",
      "without(torus(3,3))",
      "xpander(3,4)",
  };
  std::set<std::string> families;
  for (const std::string& expression : expressions) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    EXPECT_FALSE(topology.name().empty());
    EXPECT_EQ(topology.expression(), topology.name());
    const std::string text = TopologyToJson(topology);
    const Result<Topology> back = TopologyFromJson(text);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    ExpectSameOrigin(*back, topology);
    for (NodeId node : topology.Nodes()) EXPECT_EQ(back->node_name(node), topology.node_name(node));
    EXPECT_EQ(TopologyToJson(*back), text);
    CollectFamilies(*ParseExpressionTree(expression), families);
  }
  for (const FamilyInfo& family : TopologyFamilies())
    EXPECT_TRUE(families.contains(std::string(family.name))) << family.name;
}

}  // namespace
}  // namespace tutti
