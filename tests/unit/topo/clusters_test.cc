// Boxes of GPUs and their fabrics: sizes, capacities and names counted by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "families/host_list.h"
#include "support/parse.h"
#include "support/text.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using test_support::Parse;

constexpr int64_t kGB = 1'000'000'000;

std::string ErrorOf(const std::string& expression) {
  const Result<Topology> topology = ParseTopology(expression);
  EXPECT_FALSE(topology.has_value()) << expression;
  return topology ? "" : topology.error().message;
}

NodeId Find(const Topology& topology, const std::string& name) {
  for (NodeId node : topology.Nodes())
    if (topology.node_name(node) == name) return node;
  ADD_FAILURE() << "no node " << name;
  return NodeId{0};
}

// Bytes/s from the one to the other over all their links; 0: not linked.
int64_t Between(const Topology& topology, const std::string& from, const std::string& to) {
  int64_t total = 0;
  for (LinkId link : topology.OutLinks(Find(topology, from)))
    if (topology.head(link) == Find(topology, to)) total += topology.bandwidth(link);
  return total;
}

// Bytes/s out of the nodes whose names begin so.
int64_t CutOf(const Topology& topology, const std::string& prefix) {
  int64_t total = 0;
  const auto inside = [&](NodeId node) {
    return topology.node_name(node).compare(0, prefix.size(), prefix) == 0;
  };
  for (LinkId link : topology.Links())
    if (inside(topology.tail(link)) && !inside(topology.head(link)))
      total += topology.bandwidth(link);
  return total;
}

struct Facts {
  const char* expression;
  int32_t ranks, switches, links;
};

TEST(Clusters, HaveTheNodesAndLinksOfACountByHand) {
  const std::vector<Facts> table{
      // 8 GPUs and the NVSwitch: no NIC leads anywhere.
      {"dgx_h100(1)", 8, 1, 16},
      // 2 NVSwitches and 8 rails; 16 cables inside, 16 NICs.
      {"dgx_h100(2)", 16, 10, 64},
      {"dgx_a100(128)", 1024, 136, 4096},
      {"dgx_a100(2,fabric=switch)", 16, 3, 64},
      {"cluster()", 16, 10, 64},
      {"cluster", 16, 10, 64},
      // One GPU a box has no NVSwitch.
      {"cluster(boxes=4,gpus=1,fabric=switch)", 4, 1, 8},
      // 4 NICs of 2 GPUs each are nodes: 2 x (1 + 4) and 4 rails; 16 + 16 + 8 cables.
      {"cluster(nics=4)", 16, 14, 80},
      // Two NICs a GPU: 16 + 32 cables, 16 rails.
      {"cluster(nics=16)", 16, 18, 96},
      // 4 leaves of 2 boxes, 2 spines: 64 + 64 + 8 cables.
      {"cluster(boxes=8,fabric=spine_leaf(4,2))", 64, 14, 272},
      // 3 boxes on 2 leaves.
      {"cluster(boxes=3,gpus=2,fabric=spine_leaf(2,1))", 6, 6, 28},
      // 2 spines above 8 rails: 16 more cables.
      {"dgx_h100(2,fabric=rails(spines=2))", 16, 12, 96},
      {"dgx_h100(2,fabric=rails(count=4))", 16, 6, 64},
      // k = 4: 8 leaves, 8 aggregation switches, 4 cores; 16 + 16 + 16 cables.
      {"fat_tree(4)", 16, 20, 96},
      {"fat_tree(8)", 128, 80, 768},
      {"cluster(boxes=2,gpus=8,fabric=fat_tree(4))", 16, 22, 128},
      {"spine_leaf(4,2,8)", 32, 6, 80},
      {"rail(4,8)", 32, 12, 128},
      // 28 wired pairs a box, 16 NICs a box.
      {"mi250(1)", 16, 0, 56},
      {"mi250(2)", 32, 1, 176},
      {"nvl72(1)", 72, 1, 144},
      {"nvl72(2)", 144, 6, 576},
  };
  for (const Facts& facts : table) {
    SCOPED_TRACE(facts.expression);
    const Topology topology = Parse(facts.expression);
    EXPECT_EQ(topology.num_ranks(), facts.ranks);
    EXPECT_EQ(topology.num_nodes() - topology.num_ranks(), facts.switches);
    EXPECT_EQ(topology.num_links(), facts.links);
    EXPECT_TRUE(IsBidirectional(topology));
  }
}

TEST(Clusters, NodesSayWhereTheyAre) {
  const Topology topology = Parse("cluster(boxes=2,gpus=2,nics=1,fabric=spine_leaf(2,1))");
  std::vector<std::string> names;
  for (NodeId node : topology.Nodes()) names.push_back(topology.node_name(node));
  EXPECT_EQ(names, (std::vector<std::string>{"box0.gpu0", "box0.gpu1", "box1.gpu0", "box1.gpu1",
                                             "box0.nvswitch", "box1.nvswitch", "box0.nic0",
                                             "box1.nic0", "leaf0", "leaf1", "spine0"}));
  const Topology tree = Parse("fat_tree(4)");
  EXPECT_EQ(tree.node_name(NodeId{15}), "host15");
  EXPECT_EQ(tree.node_name(NodeId{16}), "leaf0");
  EXPECT_EQ(tree.node_name(NodeId{24}), "agg0");
  EXPECT_EQ(tree.node_name(NodeId{32}), "core0");
}

TEST(Clusters, HaveTheCapacitiesOfTheirDataSheets) {
  const Topology a100 = Parse("dgx_a100(2)"), h100 = Parse("dgx_h100(2)");
  EXPECT_EQ(Between(a100, "box1.gpu3", "box1.nvswitch"), 300 * kGB);
  EXPECT_EQ(Between(a100, "rail3", "box1.gpu3"), 25 * kGB);
  EXPECT_EQ(Between(h100, "box0.nvswitch", "box0.gpu7"), 450 * kGB);
  EXPECT_EQ(Between(h100, "box0.gpu7", "rail7"), 50 * kGB);
  EXPECT_EQ(Between(h100, "box0.gpu7", "rail6"), 0);
  EXPECT_EQ(CutOf(h100, "box0."), 400 * kGB);
  const Topology racks = Parse("nvl72(2)");
  EXPECT_EQ(Between(racks, "box0.gpu71", "box0.nvswitch"), 900 * kGB);
  EXPECT_EQ(Between(racks, "box0.gpu71", "rail3"), 50 * kGB);
  EXPECT_EQ(CutOf(racks, "rail0"), 36 * 50 * kGB);
  const Topology amd = Parse("mi250(2)");
  EXPECT_EQ(Between(amd, "box1.gpu0", "box1.gpu1"), 200 * kGB);
  EXPECT_EQ(CutOf(amd, "box0."), 256 * kGB);
  for (NodeId rank : amd.Ranks()) {  // seven links of 50 GB/s, and the NIC
    int64_t out = 0;
    for (LinkId link : amd.OutLinks(rank)) out += amd.bandwidth(link);
    EXPECT_EQ(out, 366 * kGB) << rank.value;
  }
}

TEST(Clusters, OversubscriptionThinsWhatLiesAboveTheLeaves) {
  // A leaf of 2 boxes has 16 ports of 50 GB/s: 800 GB/s over 2 spines.
  const Topology full = Parse("cluster(boxes=8,fabric=spine_leaf(4,2))");
  EXPECT_EQ(Between(full, "leaf1", "spine0"), 400 * kGB);
  EXPECT_EQ(Between(full, "spine1", "leaf3"), 400 * kGB);
  const Topology thin = Parse("cluster(boxes=8,fabric=spine_leaf(4,2),oversubscription=3:1)");
  EXPECT_EQ(Between(thin, "leaf1", "spine0"), 133'333'333'333);
  EXPECT_EQ(CutOf(thin, "leaf1"), 800 * kGB + 2 * 133'333'333'333);
  EXPECT_EQ(Parse("cluster(boxes=8,fabric=spine_leaf(4,2),oversubscription=4:2)").Fingerprint(),
            Parse("cluster(boxes=8,fabric=spine_leaf(4,2),oversubscription=2)").Fingerprint());
  // Leaves of 2 and 1 boxes are built alike.
  const Topology uneven = Parse("cluster(boxes=3,gpus=2,fabric=spine_leaf(2,1))");
  EXPECT_EQ(Between(uneven, "leaf0", "spine0"), 200 * kGB);
  EXPECT_EQ(Between(uneven, "leaf1", "spine0"), 200 * kGB);
  // Every level of a full fat tree carries what its hosts do.
  const Topology tree = Parse("fat_tree(4)");
  EXPECT_EQ(CutOf(tree, "core"), 16 * 50 * kGB);
  EXPECT_EQ(CutOf(tree, "leaf0"), 4 * 50 * kGB);
  EXPECT_EQ(CutOf(Parse("fat_tree(4,oversubscription=2)"), "core"), 16 * 25 * kGB);
  EXPECT_EQ(Between(Parse("dgx_h100(4,fabric=rails(spines=2))"), "rail0", "spine1"), 100 * kGB);
}

TEST(Clusters, FatTreesJoinPodsByTheirAggregationSwitches) {
  const Topology tree = Parse("fat_tree(4)");
  for (const char* host : {"host2", "host3"}) EXPECT_EQ(Between(tree, host, "leaf1"), 50 * kGB);
  for (const char* agg : {"agg0", "agg1"}) EXPECT_EQ(Between(tree, "leaf1", agg), 50 * kGB);
  EXPECT_EQ(Between(tree, "leaf1", "agg2"), 0);
  for (const char* core : {"core0", "core1"}) EXPECT_EQ(Between(tree, "agg2", core), 50 * kGB);
  for (const char* core : {"core2", "core3"}) EXPECT_EQ(Between(tree, "agg3", core), 50 * kGB);
  EXPECT_EQ(Between(tree, "agg3", "core1"), 0);
}

TEST(Clusters, KeywordsReplaceDefaults) {
  const Topology topology =
      Parse("dgx_a100(2,nvswitch=200GB/s,nic=100Gbit/s,alpha=[1us,2us,3us],host_bw=90GB/s)");
  EXPECT_EQ(Between(topology, "box0.gpu0", "box0.nvswitch"), 200 * kGB);
  EXPECT_EQ(Between(topology, "box0.gpu0", "rail0"), 12'500'000'000);
  for (LinkId link : topology.Links()) {
    const bool nic = topology.bandwidth(link) < 20 * kGB;
    EXPECT_EQ(topology.alpha_ps(link), nic ? 2'000'000 : 1'000'000);
  }
  EXPECT_EQ(topology.host_bandwidth(NodeId{3}), 90 * kGB);
}

TEST(Clusters, OverridesNameSingleCables) {
  const Topology topology =
      Parse("dgx_h100(2,override=[box1.gpu5-rail5:200Gbit/s,box0.nvswitch-box0.gpu1:400GB/s])");
  EXPECT_EQ(Between(topology, "box1.gpu5", "rail5"), 25 * kGB);
  EXPECT_EQ(Between(topology, "rail5", "box1.gpu5"), 25 * kGB);
  EXPECT_EQ(Between(topology, "box0.gpu1", "box0.nvswitch"), 400 * kGB);
  EXPECT_EQ(Between(topology, "box0.gpu5", "rail5"), 50 * kGB);
}

TEST(Clusters, RailsAreThoseOfSwitch2d) {
  EXPECT_EQ(Parse("rail(4,8,bw=[300,25,25]GB/s)").num_links(),
            Parse("switch2d(4,8,bw=[25,300]GB/s)").num_links());
  EXPECT_EQ(Parse("dgx_h100(4)").Fingerprint(), Parse("rail(4,8)").Fingerprint());
  EXPECT_EQ(Parse("dgx_h100(4)").Fingerprint(), Parse("cluster(boxes=4)").Fingerprint());
}

// The name is the canonical expression: it parses to the same network, and files keep it.
TEST(Clusters, NamesParseBack) {
  for (const char* expression :
       {"cluster( boxes=4 , nics = 4, nic=200 Gbit/s, fabric = spine_leaf( 2 , 2 ), "
        "oversubscription=6:4 )",
        "dgx_h100(2,fabric=rails(spines=2,count=4),override=[rail0-spine1:10GB/s])",
        "fat_tree(4,oversubscription=2,bw=50GB/s)"}) {
    const Result<Topology> topology = ParseTopology(expression);
    if (!topology) {
      EXPECT_NE(topology.error().message.find("exclude"), std::string::npos)
          << topology.error().message;
      continue;
    }
    const Topology again = Parse(topology->name());
    EXPECT_EQ(again.name(), topology->name());
    EXPECT_EQ(again.Fingerprint(), topology->Fingerprint());
    const Result<Topology> read = TopologyFromJson(TopologyToJson(*topology));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->expression(), topology->expression());
    EXPECT_EQ(read->Fingerprint(), topology->Fingerprint());
  }
  EXPECT_EQ(Parse("cluster(boxes=4,fabric=spine_leaf(2,2),oversubscription=6:4)").name(),
            "cluster(boxes=4,fabric=spine_leaf(2,2),oversubscription=3:2)");
}

struct Bad {
  const char* expression;
  const char* says;
};

TEST(Clusters, RefuseNonsense) {
  const std::vector<Bad> table{
      {"cluster(boxes=0)", "got boxes=0, wanted 1 to"},
      {"cluster(gpus=0)", "got gpus=0, wanted 1 to"},
      {"dgx_h100(0)", "got boxes=0, wanted 1 to"},
      {"cluster(boxes=2,nics=0)", "several boxes without NICs are not joined"},
      {"cluster(gpus=8,nics=3)", "one must be a multiple of the other"},
      {"cluster(nic=0Gbit/s)", "outside 1 .."},
      {"cluster(nvswitch=0)", "outside 1 .."},
      {"cluster(nic=fast)", "nic=:"},
      {"cluster(nic=[1,2]GB/s)", "wanted one value"},
      {"cluster(boxes=999999999)", "got boxes=999999999"},
      {"cluster(boxes=1000000,gpus=1000000)", "1000000 boxes of 1000000 GPUs"},
      {"dgx_h100(999999999999999999)", "got boxes=999999999999999999"},
      {"cluster(fabric=fat_tree(3))", "wanted an even number"},
      {"cluster(fabric=fat_tree(2))", "16 NICs, wanted at most 2"},
      {"cluster(fabric=fat_tree(0))", "wanted at least 2"},
      {"fat_tree(5)", "wanted an even number"},
      {"fat_tree(100000)", "wanted 1 to"},
      {"fat_tree(999999999999999998)", "wanted 1 to"},
      {"spine_leaf(0,1,1)", "wanted at least 1"},
      {"spine_leaf(2,0,1)", "wanted at least 1"},
      {"spine_leaf(1000,999999999,1000)", "at most"},
      {"cluster(boxes=2,fabric=spine_leaf(3,1))", "3 leaves for 2 boxes"},
      {"cluster(boxes=6,fabric=spine_leaf(4,1))", "leave the last of 4 leaves empty"},
      {"cluster(fabric=rails(count=0))", "count=0, wanted 1 to 8"},
      {"cluster(fabric=rails(count=9))", "count=9, wanted 1 to 8"},
      {"cluster(fabric=ring)", "unknown fabric 'ring'"},
      {"cluster(fabric=4)", "unknown fabric '4'"},
      {"cluster(fabric=rails(bw=1GB/s))", "belong to the cluster"},
      {"cluster(oversubscription=0,fabric=spine_leaf(1,1))", "no ratio such as 2"},
      {"cluster(oversubscription=1:0,fabric=spine_leaf(1,1))", "no ratio such as 2"},
      {"cluster(oversubscription=2)", "nothing lies above its NIC ports"},
      {"cluster(boxes=1,oversubscription=2)", "a single box, which has no fabric"},
      {"cluster(boxes=1,gpus=1,nic=1B/s,fabric=spine_leaf(1,2))", "less than 1"},
      {"cluster(boxes=2,gpus=2,bw=1GB/s,nic=1GB/s)", "exclude each other"},
      {"cluster(gpus=2,fabric=spine_leaf(1,1),bw=1GB/s,oversubscription=2)", "exclude each other"},
      {"cluster(4)", "wanted no argument"},
      {"cluster(boxes=2,boxes=3)", "stands there twice"},
      {"dgx_h100(2,gpus=4)", "unknown keyword 'gpus'"},
      {"dgx_h100(2,override=box0.gpu0-rail0)", "wanted two nodes and a bandwidth"},
      {"dgx_h100(2,override=box0.gpu0-rail9:1GB/s)", "no two nodes"},
      {"dgx_h100(2,override=box0.gpu0-rail1:1GB/s)", "no link joins them"},
      {"dgx_h100(2,override=box0.gpu0-rail0:0)", "outside 1 .."},
      {"dgx_h100(2,override=[box0.gpu0-rail0:1GB/s,rail0-box0.gpu0:2GB/s])", "twice"},
      {"hosts(nowhere/hosts.txt)", "nowhere/hosts.txt"},
      {"hosts()", "the path is missing"},
      {"hosts(torus(2,2))", "wanted a path"},
  };
  for (const Bad& bad : table) {
    const std::string message = ErrorOf(bad.expression);
    EXPECT_NE(message.find(bad.says), std::string::npos) << bad.expression << ": " << message;
  }
}

std::string WriteTemporary(const std::string& name, const std::string& text) {
  const std::string path = test_support::OwnPath(name);
  std::ofstream(path) << text;
  return path;
}

TEST(Clusters, HostListsGiveBoxesTheirNames) {
  const std::string path = WriteTemporary("tutti_hosts_test.txt",
                                          "# two kinds\n\nnode-a slots=2 max_slots=4\n"
                                          "node-b:3   # as MPICH writes it\nnode-c\n");
  const Topology topology = Parse(fmt::format("hosts({},gpus=2)", path));
  EXPECT_EQ(topology.num_ranks(), 7);
  EXPECT_EQ(topology.node_name(NodeId{2}), "node-b.gpu0");
  EXPECT_EQ(topology.node_name(NodeId{6}), "node-c.gpu1");
  EXPECT_EQ(Between(topology, "node-b.gpu2", "switch"), 50 * kGB);
  EXPECT_EQ(Between(topology, "node-a.gpu0", "node-a.nvswitch"), 450 * kGB);
  const Topology leaves =
      Parse(fmt::format("hosts({},fabric=spine_leaf(3,1),override=node-b.gpu1-leaf1:1GB/s)", path));
  EXPECT_EQ(Between(leaves, "leaf1", "node-b.gpu1"), kGB);
  // The file keeps how it was made.
  const Result<Topology> read = TopologyFromJson(TopologyToJson(leaves));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->expression(), leaves.expression());
  std::filesystem::remove(path);
}

TEST(HostList, NamesTheLineAtFault) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& bad : std::vector<Case>{{"a\nb\na\n", "f:3: host 'a' stands in line 1, too"},
                                           {"a slots=0\n", "f:1: 'slots=0': wanted 1 to"},
                                           {"a slots=x\n", "f:1: 'slots=x': wanted 1 to"},
                                           {"a:0\n", "f:1: 'a:0': wanted 1 to"},
                                           {"a:2 slots=3\n", "f:1: the slots stand there twice"},
                                           {"\na cores=3\n", "f:2: 'cores=3': wanted slots=N"},
                                           {"a,b\n", "f:1: 'a,b' is no name"},
                                           {"# none\n\n", "f: no host stands there"},
                                           {"", "f: no host stands there"},
                                           {"a\nb\nc\nd\n", "f:4: more than 3 hosts"}}) {
    const auto hosts = topo::ParseHostList(bad.text, "f", 3);
    ASSERT_FALSE(hosts.has_value()) << bad.text;
    EXPECT_NE(hosts.error().message.find(bad.says), std::string::npos) << hosts.error().message;
  }
}

}  // namespace
}  // namespace tutti
