// Files together: the network that comes out, against families and counts by hand; conflicts.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "samples.h"
#include "tutti/base/file.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace {

constexpr int64_t kGB = 1'000'000'000;

Imported MustImport(const std::vector<std::string>& arguments, const MergeOptions& options = {}) {
  Result<Imported> imported = Import(arguments, options);
  if (imported) return *std::move(imported);
  ADD_FAILURE() << imported.error().message;
  return {*ParseTopology("mesh(1)"), {}, {}};
}

std::string ErrorOf(const std::vector<std::string>& arguments, const MergeOptions& options = {}) {
  const Result<Imported> imported = Import(arguments, options);
  EXPECT_FALSE(imported.has_value());
  return imported ? "" : imported.error().message;
}

int64_t Between(const Topology& topology, const std::string& from, const std::string& to) {
  int64_t total = -1;
  for (LinkId link : topology.Links())
    if (topology.node_name(topology.tail(link)) == from &&
        topology.node_name(topology.head(link)) == to)
      total = std::max<int64_t>(total, 0) + topology.bandwidth(link);
  return total;
}

bool Has(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(), [&part](const std::string& text) {
    return text.find(part) != std::string::npos;
  });
}

bool Says(const Imported& imported, const std::string& what, const std::string& source) {
  return std::any_of(imported.provenance.begin(), imported.provenance.end(),
                     [&](const Provenance& one) {
                       return one.what.find(what) != std::string::npos &&
                              one.source.find(source) != std::string::npos;
                     });
}

uint64_t Print(const std::string& expression) {
  return ParseTopology(expression).value().Fingerprint();
}

// --- What files of a machine give is what its family gives
// -----------------------------------------

TEST(ImportMerge, TwoMatricesAndACableListAreTwoDgx) {
  const Imported imported =
      MustImport({"node[0-1]=nvidia-smi/dgx_h100.txt", "ibnetdiscover/rails_two_nodes.txt"});
  EXPECT_EQ(imported.topology.Fingerprint(), Print("dgx_h100(2,fabric=rails(spines=2),override=["
                                                   "rail0-spine0:50GB/s,rail0-spine1:50GB/s,"
                                                   "rail1-spine0:50GB/s,rail1-spine1:50GB/s,"
                                                   "rail2-spine0:50GB/s,rail2-spine1:50GB/s,"
                                                   "rail3-spine0:50GB/s,rail3-spine1:50GB/s,"
                                                   "rail4-spine0:50GB/s,rail4-spine1:50GB/s,"
                                                   "rail5-spine0:50GB/s,rail5-spine1:50GB/s,"
                                                   "rail6-spine0:50GB/s,rail6-spine1:50GB/s,"
                                                   "rail7-spine0:50GB/s,rail7-spine1:50GB/s])"));
  EXPECT_EQ(imported.topology.node_name(NodeId{9}), "node1.gpu1");
  EXPECT_EQ(Between(imported.topology, "node1.gpu1", "rail1"), 50 * kGB);
  EXPECT_TRUE(imported.warnings.empty()) << imported.warnings[0];
  EXPECT_TRUE(Says(imported, "node0: NVSwitch", "dgx_h100.txt:2"));
  EXPECT_TRUE(Says(imported, "node1: mlx5_1", "rails_two_nodes.txt"));
}

// --fabric says what no file does, with the words of the families.

MergeOptions WithFabric(const std::string& text) {
  MergeOptions options;
  const Result<GivenFabric> fabric = ParseGivenFabric(text);
  EXPECT_TRUE(fabric.has_value()) << text;
  if (fabric) options.fabric = *fabric;
  return options;
}

TEST(ImportMerge, AGivenFabricIsThatOfTheFamily) {
  const std::vector<std::string> two{"node[0-1]=nvidia-smi/dgx_h100.txt"};
  for (const auto& [given, family] : std::vector<std::pair<std::string, std::string>>{
           {"rails(nic=400Gbit/s)", "dgx_h100(2)"},
           {"rails(count=4,nic=400Gbit/s)", "dgx_h100(2,fabric=rails(count=4))"},
           {"rails(spines=2, nic=400Gbit/s)", "dgx_h100(2,fabric=rails(spines=2))"},
           {"spine_leaf(2,4,nic=400Gbit/s)", "dgx_h100(2,fabric=spine_leaf(2,4))"},
           {"switch(nic=400Gbit/s)", "dgx_h100(2,fabric=switch)"}}) {
    SCOPED_TRACE(given);
    const Imported imported = MustImport(two, WithFabric(given));
    EXPECT_EQ(imported.topology.Fingerprint(), Print(family));
    EXPECT_TRUE(imported.warnings.empty());
    EXPECT_TRUE(Says(imported, "network", "given"));
  }
  MergeOptions thin = WithFabric("rails(spines=2,nic=400Gbit/s)");
  thin.oversubscription_num = 2;
  EXPECT_EQ(MustImport(two, thin).topology.Fingerprint(),
            Print("dgx_h100(2,fabric=rails(spines=2),oversubscription=2)"));
}

TEST(ImportMerge, AGivenFabricThatDoesNotFitIsRefused) {
  const std::vector<std::string> two{"node[0-1]=nvidia-smi/dgx_h100.txt"};
  EXPECT_NE(ErrorOf(two, WithFabric("rails")).find("give --nic"), std::string::npos);
  EXPECT_NE(ErrorOf(two, WithFabric("rails(count=9,nic=1GB/s)")).find("no box uses more than 8"),
            std::string::npos);
  EXPECT_NE(ErrorOf(two, WithFabric("spine_leaf(3,1,nic=1GB/s)")).find("3 leaves for 2 boxes"),
            std::string::npos);
  EXPECT_NE(ErrorOf({two[0], "ibnetdiscover/rails_two_nodes.txt"}, WithFabric("rails"))
                .find("files describe the fabric"),
            std::string::npos);
  for (const char* bad : {"", "mesh", "rails(", "rails(2)", "rails(count=0)", "rails(count=x)",
                          "spine_leaf(2)", "spine_leaf", "switch(2)", "rails(nic=fast)",
                          "rails(nic=0GB/s)", "rails(count=99999999)", "rails)"})
    EXPECT_FALSE(ParseGivenFabric(bad).has_value()) << bad;
}

TEST(ImportMerge, LogsJoinMatricesAndContradictThem) {
  MergeOptions options;
  options.nic_bandwidth = 50 * kGB;
  const Imported imported =
      MustImport({"dgx[0-1]=nvidia-smi/dgx_h100.txt", "nccl-log/nvls_no_graph.log"}, options);
  EXPECT_EQ(imported.topology.num_ranks(), 16);
  EXPECT_TRUE(Says(imported, "dgx1: NVSwitch", "dgx_h100.txt"));
  EXPECT_NE(ErrorOf({"dgx0=nvidia-smi/hgx_4_direct.txt", "nccl-log/nvls_no_graph.log"}, options)
                .find("nvls_no_graph.log:"),
            std::string::npos);
  // NVLink is there and nobody says how: not taken for PCIe.
  EXPECT_NE(ErrorOf({"nccl-log/nvlink_graph.log"}, options).find("nothing says how its 4 GPUs"),
            std::string::npos);
  const Imported pcie = MustImport({"nccl-log/pcie_two_hosts.log"});
  EXPECT_EQ(pcie.topology.num_ranks(), 8);
  EXPECT_EQ(Between(pcie.topology, "alpha.mlx5_0", "network"), 25 * kGB);
}

// Logs of jobs that end early, or of which one host's is missing.
TEST(ImportMerge, LogsNameAllRanks) {
  const auto line = [](const std::string& host, int gpu, const std::string& of, int rank) {
    return fmt::format(
        "{}:1:2 [{}] NCCL INFO ncclCommInitRank comm 0x5 rank {} nranks {} cudaDev {} nvmlDev {} "
        "busId {}b000 commId {} - Init START\n",
        host, gpu, rank, of.substr(of.find('/') + 1), gpu, gpu, gpu + 1,
        of.substr(0, of.find('/')));
  };
  const auto merge = [](const std::vector<std::string>& texts) {
    std::vector<Facts> files;
    for (const std::string& text : texts) {
      files.push_back(ParseFacts(text, fmt::format("f{}", files.size())).value());
      for (BoxFacts& box : files.back().boxes)
        if (box.host.empty()) box.host = "a";
    }
    const Result<Imported> imported = MergeFacts(files, {.nic_bandwidth = kGB});
    if (!imported) return imported.error().message;
    for (const std::string& warning : imported->warnings)
      if (warning.find("ranks") != warning.npos) return "warns: " + warning;
    return std::string("fine");
  };
  const std::string a0 = line("a", 0, "0x7/4", 0), a1 = line("a", 1, "0x7/4", 1),
                    b0 = line("b", 0, "0x7/4", 2), b1 = line("b", 1, "0x7/4", 3);
  const std::string matrix = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n";
  const std::string advice =
      "; give the whole log, and those of all hosts, or files that describe the hosts";
  const std::string missing = "f0:2: of 4 ranks 2 stand in the log, rank 2 does not (commId 0x7)";
  EXPECT_EQ(merge({a0 + a1}), missing + advice);
  EXPECT_EQ(merge({a0 + a1 + a0 + a1}), missing + advice);
  // Of other files the GPUs of the host are known.
  EXPECT_EQ(merge({a0 + a1, matrix}), "warns: " + missing);
  EXPECT_EQ(merge({matrix, a0 + a1 + b0}),
            "f1:3: of 4 ranks 3 stand in the log, rank 3 does not (commId 0x7)" + advice);
  // One log a host: all have been given, or not.
  EXPECT_EQ(merge({a1 + a0, b0}),
            "f1:1: of 4 ranks 3 stand in the logs, rank 3 does not (commId 0x7)" + advice);
  // What holds GPUs together does not stand in these logs, but all ranks do.
  const std::string unknown = "nothing says how its 2 GPUs are joined";
  EXPECT_NE(merge({a0 + a1, b0 + b1}).find(unknown), std::string::npos);
  // Smaller communicators beside that of all ranks.
  std::string all;
  for (int i = 0; i < 3; ++i) {
    const std::string host(1, static_cast<char>('a' + i));
    all += host + ":1:2 [0] NCCL INFO NET/IB : Using [0]m0:1/IB\n" + line(host, 0, "0x7/3", i);
  }
  EXPECT_EQ(merge({all + line("a", 0, "0x8/2", 0) + line("b", 0, "0x8/2", 1)}), "fine");
  EXPECT_EQ(merge({all + line("b", 0, "0x8/2", 1)}),
            "warns: f0:7: of 2 ranks 1 stand in the log, rank 0 does not (commId 0x8)");
  EXPECT_EQ(merge({all + line("b", 0, "0x8/2", 1) + line("c", 0, "0x9/2", 0)}),
            "warns: f0:7: of 2 ranks 1 stand in the log, rank 0 does not (commId 0x8); the same of "
            "1 others");
  EXPECT_EQ(merge({all + line("a", 0, "0x8/4", 0)}),
            "f0:7: of 4 ranks 1 stand in the log, rank 1 does not (commId 0x8)" + advice);
  // What ends is no communicator of its own.
  const std::string end =
      "a:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 4 cudaDev 0 busId 1b000 - Destroy COMPLETE\n";
  EXPECT_NE(merge({a0 + a1 + b0 + b1 + end}).find(unknown), std::string::npos);
  // A log a process, of one host.
  EXPECT_EQ(merge({line("a", 0, "0x7/2", 0), line("a", 1, "0x7/2", 1)}),
            "a: 1 GPUs (f0:1), but 2 ranks of one communicator (f1:1); give logs of several "
            "processes of a host as one file");
}

TEST(ImportMerge, AHalfLogIsNoSmallerMachine) {
  const std::string text = ReadFile(kSamples + "nccl-log/pcie_two_hosts.log").value();
  const Result<Imported> imported =
      MergeFacts({ParseFacts(text.substr(0, text.size() * 2 / 3), "half").value()}, {});
  ASSERT_FALSE(imported.has_value());
  EXPECT_NE(imported.error().message.find("of 8 ranks 5 stand in the log"), std::string::npos)
      << imported.error().message;
  EXPECT_TRUE(imported.error().message.starts_with("half:")) << imported.error().message;
}

TEST(ImportMerge, HwlocAndYamlMakeACluster) {
  MergeOptions options;
  options.nic_bandwidth = 25 * kGB;
  const Imported imported =
      MustImport({"*=hwloc-xml/four_a100_clique.xml", "slurm-yaml/tree.yaml"}, options);
  EXPECT_EQ(imported.topology.num_ranks(), 32);
  EXPECT_EQ(Between(imported.topology, "node01.gpu0", "node01.gpu3"), 100 * kGB);
  EXPECT_EQ(Between(imported.topology, "leaf1", "root"), 200 * kGB);
  EXPECT_TRUE(Says(imported, "leaf2", "tree.yaml:6"));
}

TEST(ImportMerge, MatricesAloneAreOnOneSwitch) {
  const Imported imported =
      MustImport({"node[0-1]=nvidia-smi/dgx_h100.txt"}, {.nic_bandwidth = 50 * kGB});
  EXPECT_EQ(imported.topology.Fingerprint(), Print("dgx_h100(2,fabric=switch)"));
  EXPECT_TRUE(Has(imported.warnings, "no file describes the fabric"));
}

TEST(ImportMerge, XmlAloneSaysItsNicsItself) {
  const Imported imported = MustImport({"nccl-xml/h100_node0.xml", "nccl-xml/h100_node1.xml"});
  EXPECT_EQ(imported.topology.Fingerprint(), Print("dgx_h100(2,fabric=switch)"));
  EXPECT_EQ(imported.topology.node_name(NodeId{8}), "h100_node1.gpu0");
  EXPECT_EQ(MustImport({"n[1-4]=nccl-xml/a100_node0.xml"}).topology.Fingerprint(),
            Print("dgx_a100(4,fabric=switch)"));
}

TEST(ImportMerge, TreesGiveLeavesAndSpines) {
  const Imported imported = MustImport({"*=nccl-xml/a100_node0.xml", "slurm-conf/two_levels.conf"});
  EXPECT_EQ(imported.topology.Fingerprint(), Print("dgx_a100(8,fabric=spine_leaf(2,1))"));
  EXPECT_EQ(imported.topology.node_name(NodeId{0}), "node01.gpu0");
  EXPECT_TRUE(Says(imported, "leaf1 - spine", "two_levels.conf:3"));
  const Imported thin = MustImport({"*=nccl-xml/a100_node0.xml", "slurm-conf/two_levels.conf"},
                                   {.oversubscription_num = 3, .oversubscription_den = 2});
  EXPECT_EQ(thin.topology.Fingerprint(),
            Print("dgx_a100(8,fabric=spine_leaf(2,1),oversubscription=3:2)"));
}

TEST(ImportMerge, TheDgx1MatrixIsItsFamily) {
  const Topology topology = MustImport({"nvidia-smi/dgx1_v100.txt"}).topology;
  const Topology family = *ParseTopology("dgx1");
  ASSERT_EQ(topology.num_nodes(), 8);
  for (NodeId a : family.Ranks())
    for (NodeId b : family.Ranks()) {
      int64_t wanted = 0, got = 0;
      for (LinkId link : family.OutLinks(a))
        if (family.head(link) == b) wanted += family.bandwidth(link);
      for (LinkId link : topology.OutLinks(a))
        if (topology.head(link) == b) got += topology.bandwidth(link);
      EXPECT_EQ(got, wanted) << a.value << " " << b.value;
    }
}

// --- Inside boxes
// ----------------------------------------------------------------------------------

TEST(ImportMerge, FewNvlinksOfEveryPairAreDirect) {
  const Topology topology = MustImport({"nvidia-smi/hgx_4_direct.txt"}).topology;
  EXPECT_EQ(topology.num_nodes(), 4);
  EXPECT_EQ(Between(topology, "hgx_4_direct.gpu0", "hgx_4_direct.gpu3"), 100 * kGB);
  const Topology faster =
      MustImport({"nvidia-smi/hgx_4_direct.txt"}, {.nvlink_bandwidth = 20 * kGB}).topology;
  EXPECT_EQ(Between(faster, "hgx_4_direct.gpu0", "hgx_4_direct.gpu3"), 80 * kGB);
}

TEST(ImportMerge, GpusWithoutNvlinkAreJoinedByPcie) {
  // Pairs on PCIe switches, two pairs a socket: 4 switches, 2 NUMA nodes, the system.
  const Topology topology = MustImport({"x=nvidia-smi/pcie_8_no_nvlink.txt"}).topology;
  EXPECT_EQ(topology.num_ranks(), 8);
  EXPECT_EQ(topology.num_nodes(), 15);
  EXPECT_EQ(topology.num_links(), 2 * (8 + 4 + 2));
  EXPECT_EQ(Between(topology, "x.gpu0", "x.pcie0"), 31'507'692'307);
  EXPECT_EQ(Between(topology, "x.pcie1", "x.numa0"), 31'507'692'307);
  // Two GPUs on two sockets, by XML: their own PCIe links, and the sockets joined.
  const Topology sockets = MustImport({"y=nccl-xml/no_nvlink_two_sockets.xml"}).topology;
  EXPECT_EQ(sockets.num_nodes(), 3);
  EXPECT_EQ(Between(sockets, "y.gpu0", "y.system0"), 31'507'692'307);
}

TEST(ImportMerge, BridgedPairsKeepNvlinkAndPcie) {
  const Topology topology = MustImport({"x=nvidia-smi/pcie_4_bridges.txt"}).topology;
  EXPECT_EQ(Between(topology, "x.gpu2", "x.gpu3"), 100 * kGB);
  EXPECT_EQ(Between(topology, "x.gpu0", "x.system0"), 31'507'692'307);
}

TEST(ImportMerge, SharedNicsAreNodesAndOthersAreLeftOut) {
  const Imported imported =
      MustImport({"a[0-1]=nvidia-smi/dgx_a100_storage.txt"}, {.nic_bandwidth = 25 * kGB});
  EXPECT_EQ(Between(imported.topology, "a0.gpu1", "a0.mlx5_0"), 25 * kGB);
  EXPECT_EQ(Between(imported.topology, "a0.mlx5_0", "network"), 25 * kGB);
  EXPECT_EQ(Between(imported.topology, "a0.mlx5_8", "network"), -1);
  EXPECT_TRUE(Has(imported.warnings, "a0: no GPU is nearest to mlx5_8, mlx5_9"));
}

TEST(ImportMerge, NewerGpusHaveFasterNvlinks) {
  const Topology topology = MustImport({"b=nccl-xml/b200_two.xml"}).topology;
  EXPECT_EQ(Between(topology, "b.gpu0", "b.nvswitch"), 900 * kGB);
}

// --- Fabrics
// ---------------------------------------------------------------------------------------

TEST(ImportMerge, FabricsAloneJoinHosts) {
  const Topology topology = MustImport({"ibnetdiscover/leaf_spine.txt"}).topology;
  EXPECT_EQ(topology.num_ranks(), 4);
  EXPECT_EQ(topology.node_name(NodeId{2}), "h2");
  EXPECT_EQ(Between(topology, "h2", "leaf2"), 6'750'000'000);
  EXPECT_EQ(Between(topology, "leaf2", "spine1"), 6'750'000'000);
  const Imported slurm = MustImport({"slurm-conf/three_levels.conf"}, {.nic_bandwidth = 10 * kGB});
  EXPECT_EQ(slurm.topology.num_ranks(), 8);
  EXPECT_EQ(Between(slurm.topology, "e0", "p0"), 20 * kGB);
  EXPECT_EQ(Between(slurm.topology, "p0", "core"), 40 * kGB);
  const Imported graph = MustImport({"topograph/labels_v1.json"}, {.nic_bandwidth = 10 * kGB});
  EXPECT_EQ(Between(graph.topology, "nn-3", "nn-2"), 10 * kGB);
  EXPECT_EQ(Between(graph.topology, "nn-2", "nn-1"), -1);  // leads nowhere else
  EXPECT_TRUE(Has(graph.warnings, "1 switches that join nothing are left out: nn-1"));
}

// Blocks say which hosts are near, and nothing of the network between.
TEST(ImportMerge, BlocksAreJoinedByOneSwitch) {
  const std::vector<std::string> blocks{"slurm-conf/blocks.conf", "*=nvidia-smi/dgx_h100.txt"};
  const Imported imported = MustImport(blocks, {.nic_bandwidth = kGB});
  EXPECT_EQ(imported.topology.num_ranks(), 36 * 8);
  EXPECT_EQ(Between(imported.topology, "b1", "network"), 18 * 8 * kGB);
  EXPECT_TRUE(Has(imported.warnings, "blocks.conf:1: nothing says what joins the 2 blocks"));
  EXPECT_TRUE(Says(imported, "b2 - network", "blocks.conf:2"));
  const Imported thin = MustImport(blocks, {.nic_bandwidth = kGB, .oversubscription_num = 2});
  EXPECT_EQ(Between(thin.topology, "b1", "network"), 9 * 8 * kGB);
  const Imported racks = MustImport({"slurm-yaml/default_of_two.yaml"}, {.nic_bandwidth = kGB});
  EXPECT_EQ(racks.topology.num_ranks(), 8);
  EXPECT_EQ(Between(racks.topology, "rack2", "network"), 4 * kGB);
  // Of hosts in one block nothing is missing.
  const Imported one =
      MustImport({"nvl[01-18]=nvidia-smi/dgx_h100.txt", blocks[0]}, {.nic_bandwidth = kGB});
  EXPECT_FALSE(Has(one.warnings, "nothing says what joins"));
  EXPECT_EQ(one.topology.num_ranks(), 144);
}

TEST(ImportMerge, AGivenFabricJoinsTheHostsOfBlocks) {
  const Imported imported = MustImport({"slurm-conf/blocks.conf", "*=nvidia-smi/dgx_h100.txt"},
                                       WithFabric("rails(spines=2,nic=400Gbit/s)"));
  EXPECT_EQ(imported.topology.Fingerprint(), Print("dgx_h100(36,fabric=rails(spines=2))"));
  EXPECT_TRUE(Has(imported.warnings, "blocks are left out"));
  const Imported hosts =
      MustImport({"slurm-yaml/default_of_two.yaml"}, WithFabric("switch(nic=1GB/s)"));
  EXPECT_EQ(Between(hosts.topology, "gpu5", "network"), kGB);
  EXPECT_NE(ErrorOf({"slurm-conf/two_levels.conf"}, WithFabric("switch(nic=1GB/s)"))
                .find("files describe the fabric"),
            std::string::npos);
}

TEST(ImportMerge, NeighboursOfInterfacesAreCables) {
  const Topology topology =
      MustImport({"lldp/node0.json", "lldp/node1.json", "third=lldp/node2_json0.json"},
                 {.nic_bandwidth = 10 * kGB})
          .topology;
  EXPECT_EQ(topology.num_ranks(), 3);
  EXPECT_EQ(topology.node_name(NodeId{2}), "third");
  for (const char* host : {"node0", "node1", "third"})
    EXPECT_EQ(Between(topology, host, "leaf1"), 10 * kGB);
  EXPECT_EQ(Between(topology, "node0", "leaf2"), -1);  // leads nowhere else
  EXPECT_NE(ErrorOf({"a[0-1]=lldp/node1.json"}).find("those of one host"), std::string::npos);
}

TEST(ImportMerge, TwoParentsShareWhatGoesUp) {
  const Topology topology =
      MustImport({"slurm-conf/two_parents.conf"}, {.nic_bandwidth = 10 * kGB}).topology;
  EXPECT_EQ(Between(topology, "l1", "t1"), 10 * kGB);
  EXPECT_EQ(Between(topology, "l1", "t2"), 10 * kGB);
}

TEST(ImportMerge, DirectorsWithoutNamesAreKeptApart) {
  const Imported imported = MustImport({"ibnetdiscover/unnamed_switches.txt"});
  EXPECT_EQ(imported.topology.num_ranks(), 2);  // storage1 and c1
  // Two cables of 12.5 GB/s between the switches.
  EXPECT_EQ(Between(imported.topology, "S-b8599f0000000001", "S-b8599f0000000002"), 25 * kGB);
  EXPECT_TRUE(Has(imported.warnings, "1 aggregation nodes"));
}

TEST(ImportMerge, HostsThatNoFileDescribesAreLeftOut) {
  const Imported imported =
      MustImport({"node01=nccl-xml/a100_node0.xml", "node02=nccl-xml/a100_node0.xml",
                  "slurm-conf/two_levels.conf"});
  EXPECT_EQ(imported.topology.num_ranks(), 16);
  EXPECT_TRUE(Has(imported.warnings, "6 hosts of the tree are left out"));
  EXPECT_TRUE(Has(imported.warnings, "switches that join nothing"));
}

// --- Conflicts and gaps
// ----------------------------------------------------------------------------

TEST(ImportMerge, WarnsOfASlowCable) {
  const Imported imported =
      MustImport({"node0=nccl-xml/h100_node0.xml", "node1=nccl-xml/h100_node1.xml",
                  "ibnetdiscover/rails_slow_cable.txt"});
  EXPECT_EQ(Between(imported.topology, "node1.gpu5", "rail5"), 25 * kGB);
  EXPECT_EQ(Between(imported.topology, "node0.gpu5", "rail5"), 50 * kGB);
  ASSERT_EQ(imported.warnings.size(), 1u);
  EXPECT_TRUE(Has(imported.warnings, "node1: mlx5_5 can 50GB/s"));
  EXPECT_TRUE(Has(imported.warnings, "h100_node1.xml:"));
  EXPECT_TRUE(Has(imported.warnings, "runs at 25GB/s"));
  EXPECT_TRUE(Has(imported.warnings, "rails_slow_cable.txt:"));
}

TEST(ImportMerge, NamesBothSourcesOfAConflict) {
  const std::string gpus =
      ErrorOf({"n=nvidia-smi/dgx_h100.txt", "n=nccl-xml/a100_pcie_bridge.xml"});
  EXPECT_NE(gpus.find("n: 8 GPUs (tests/data/import/nvidia-smi/dgx_h100.txt:1), but 2 GPUs "
                      "(tests/data/import/nccl-xml/a100_pcie_bridge.xml:1)"),
            std::string::npos)
      << gpus;
  const std::string links =
      ErrorOf({"n=nvidia-smi/dgx_h100.txt", "n=nvidia-smi/dgx_a100_storage.txt"});
  EXPECT_NE(links.find("n: 18 NVLinks between GPU 0 and GPU 1"), std::string::npos) << links;
  EXPECT_NE(links.find("but 12 NVLinks"), std::string::npos) << links;
}

// What files say of the same NVLinks, one by pairs and the other by GPUs around an NVSwitch. A
// matrix says of pairs without any that they have none.
TEST(ImportMerge, NamesConflictsOfNvlinks) {
  struct Files {
    const char *first, *second;
    std::string says;  // "": they agree
  };
  const std::string matrices = kSamples + "nvidia-smi/", xmls = kSamples + "nccl-xml/";
  const auto pair = [](int count, const std::string& place) {
    return fmt::format("{} NVLinks between GPU 0 and GPU 1 ({})", count, place);
  };
  const std::string none = pair(0, matrices + "pcie_8_no_nvlink.txt:2");
  for (const Files& files : std::vector<Files>{
           {"nvidia-smi/dgx_h100.txt", "nccl-xml/h100_node0.xml", ""},
           {"nccl-xml/h100_node0.xml", "nvidia-smi/dgx_h100.txt", ""},
           {"nvidia-smi/dgx_h100.txt", "nccl-xml/a100_node0.xml",
            pair(18, matrices + "dgx_h100.txt:2") + ", but 12 to the NVSwitch (" + xmls +
                "a100_node0.xml:7)"},
           {"nccl-xml/a100_node0.xml", "nvidia-smi/dgx_h100.txt",
            "12 NVLinks between GPU 0 and the NVSwitch (" + xmls + "a100_node0.xml:7), but " +
                pair(18, matrices + "dgx_h100.txt:2")},
           {"nvidia-smi/dgx1_v100.txt", "nccl-xml/h100_node0.xml",
            pair(1, matrices + "dgx1_v100.txt:2") + ", but 18 to the NVSwitch (" + xmls +
                "h100_node0.xml:6)"},
           {"nvidia-smi/pcie_8_no_nvlink.txt", "nccl-xml/h100_node0.xml",
            none + ", but 18 to the NVSwitch (" + xmls + "h100_node0.xml:6)"},
           {"nvidia-smi/pcie_8_no_nvlink.txt", "nvidia-smi/dgx1_v100.txt",
            none + ", but " + pair(1, matrices + "dgx1_v100.txt:2")},
           {"nccl-xml/a100_pcie_bridge.xml", "nvidia-smi/two_gpus_phb.txt",
            pair(12, xmls + "a100_pcie_bridge.xml:5") + ", but " +
                pair(0, matrices + "two_gpus_phb.txt:2")},
           {"nccl-xml/no_nvlink_two_sockets.xml", "nvidia-smi/two_gpus_phb.txt", ""}}) {
    SCOPED_TRACE(fmt::format("{} {}", files.first, files.second));
    const Result<Imported> imported =
        Import({fmt::format("n={}", files.first), fmt::format("n={}", files.second)});
    EXPECT_EQ(imported ? "" : imported.error().message,
              files.says.empty() ? "" : "n: " + files.says);
  }
}

// A matrix whose legend has two names the wrong way round, beside XML.
TEST(ImportMerge, NamesConflictsOfNearness) {
  std::string text = ReadFile(kSamples + "nvidia-smi/dgx_h100.txt").value();
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"NIC0: mlx5_0", "NIC0: mlx5_7"}, {"NIC7: mlx5_7", "NIC7: mlx5_0"}})
    text.replace(text.find(from), from.size(), to);
  Facts matrix = ParseFacts(text, "m").value(), xml = MustRead("nccl-xml/h100_node0.xml");
  matrix.boxes[0].host = xml.boxes[0].host = "n";
  const auto merge = [](const Facts& first, const Facts& second) {
    const Result<Imported> imported = MergeFacts({first, second}, {.nic_bandwidth = kGB});
    return imported ? std::string("fine") : imported.error().message;
  };
  const std::string place = kSamples + "nccl-xml/h100_node0.xml";
  EXPECT_EQ(merge(matrix, xml),
            "n: mlx5_0 is nearest to GPU 7 (m:17), but to GPU 0 (" + place + ":11)");
  EXPECT_EQ(merge(xml, matrix),
            "n: mlx5_7 is nearest to GPU 7 (" + place + ":97), but to GPU 0 (m:10)");
}

// A log that says nothing of nearness may stand before the matrix that does, or behind it.
TEST(ImportMerge, NearnessComesFromTheFileThatSaysIt) {
  const MergeOptions options{.nic_bandwidth = 50 * kGB};
  const std::string matrix = "dgx[0-1]=nvidia-smi/dgx_h100.txt", log = "nccl-log/nvls_no_graph.log";
  const Imported behind = MustImport({matrix, log}, options);
  EXPECT_EQ(MustImport({log, matrix}, options).topology.Fingerprint(),
            behind.topology.Fingerprint());
  EXPECT_EQ(Between(behind.topology, "dgx0.gpu0", "network"), 50 * kGB);
}

// Two files of one fabric, written here: the second contradicts the first.
TEST(ImportMerge, NamesConflictsOfFabrics) {
  const auto merge = [](const std::vector<std::string>& texts) {
    std::vector<Facts> files;
    for (size_t i = 0; i < texts.size(); ++i)
      files.push_back(ParseFacts(texts[i], fmt::format("f{}", i)).value());
    const Result<Imported> imported = MergeFacts(files, {.nic_bandwidth = kGB});
    return imported ? std::string("fine") : imported.error().message;
  };
  EXPECT_EQ(merge({"SwitchName=a Nodes=x,y\n", "SwitchName=a Nodes=y,x\n"}), "fine");
  EXPECT_EQ(merge({"SwitchName=a Nodes=x,y\nSwitchName=c Switches=a,b\n",
                   "SwitchName=b Nodes=x,z\nSwitchName=c Switches=a,b\n"}),
            "x is below a (f0:1), but below b (f1:1)");
  EXPECT_EQ(merge({"SwitchName=a Nodes=x\nSwitchName=c Switches=a,b\n",
                   "SwitchName=b Nodes=z\nSwitchName=d Switches=a,b\n"}),
            "switch a is below c (f0:2), but below d (f1:2)");
  EXPECT_EQ(merge({"SwitchName=a Nodes=x Switches=b\nSwitchName=b Nodes=y Switches=c\n"
                   "SwitchName=c Nodes=z Switches=a\n"}),
            "switch a is below itself, by way of b (f0:1)");
  EXPECT_NE(merge({"SwitchName=a Nodes=x\nSwitchName=b Nodes=y\n"}).find("the files together"),
            std::string::npos);
  const std::string cable =
      "Switch 2 \"S-1\" # \"{}\"\n[1] \"H-7\"[1](7) # 4xHDR\n"
      "[2] \"H-8\"[1](8) # 4xHDR\nCa 1 \"H-7\" # \"x mlx5_0\"\n"
      "[1](7) \"S-1\"[1] # 4xHDR\nCa 1 \"H-8\" # \"y mlx5_0\"\n"
      "[1](8) \"S-1\"[2] # 4xHDR\n";
  EXPECT_EQ(merge({fmt::format(fmt::runtime(cable), "p"), fmt::format(fmt::runtime(cable), "p")}),
            "fine");
  EXPECT_EQ(merge({fmt::format(fmt::runtime(cable), "p"), fmt::format(fmt::runtime(cable), "q")}),
            "x: mlx5_0 is cabled to p (f0:2), but to q (f1:2)");
}

// Adapters 1 and 2 of ibnetdiscover, both called "x mlx5_0", and two ports of one adapter.
TEST(ImportMerge, OneNicIsOneAdapter) {
  const auto fabric = [](const std::string& first, const std::string& second) {
    return "Switch 2 \"S-1\" # \"p\"\n[1] \"H-1\"[1] # 4xHDR\n[2] " + second +
           " # 4xHDR\n[3] \"H-9\"[1] # 4xHDR\nCa 2 \"H-1\" # \"x mlx5_0\"\n[1](a) \"S-1\"[1] # "
           "4xHDR\n" +
           first + "Ca 1 \"H-9\" # \"y mlx5_0\"\n[1](9) \"S-1\"[3] # 4xHDR\n";
  };
  const std::string two_ports = fabric("[2](b) \"S-1\"[2] # 4xHDR\n", "\"H-1\"[2]");
  const std::string twice =
      fabric("Ca 1 \"H-2\" # \"x mlx5_0\"\n[1](b) \"S-1\"[2] # 4xHDR\n", "\"H-2\"[1]");
  const std::string boxes =
      "<system><pci><gpu/></pci><nic>\n<net name=\"mlx5_0\" speed=\"200000\" guid=\"{}\"/></nic>"
      "</system>";
  const auto merge = [](const std::string& text, const std::string& box) {
    std::vector<Facts> files{ParseFacts(text, "f").value()};
    if (!box.empty()) {
      files.push_back(ParseFacts(box, "b").value());
      files.push_back(files.back());
      files[1].boxes[0].host = "x";
      files[2].boxes[0].host = "y";
      files[2].boxes[0].nics[0].guid = "";
    }
    const Result<Imported> imported = MergeFacts(files, {.nic_bandwidth = kGB});
    if (!imported) return imported.error().message;
    return imported->warnings.empty() ? "fine" : imported->warnings[0];
  };
  const auto box = [&boxes](const std::string& guid) {
    return fmt::format(fmt::runtime(boxes), guid);
  };
  const std::string conflict =
      "x: mlx5_0 has the GUID 0000000000000001 (f:2), but 0000000000000002 (f:3)";
  EXPECT_EQ(merge(two_ports, ""), "fine");
  EXPECT_EQ(merge(twice, ""), conflict);
  EXPECT_EQ(merge(twice, box("")), conflict);
  for (const char* guid : {"", "0x1", "0xa"}) EXPECT_EQ(merge(two_ports, box(guid)), "fine");
  EXPECT_EQ(merge(two_ports, box("0x7")),
            "x: mlx5_0 has the GUID 0000000000000007 (b:2), but 0000000000000001 (f:2); taken for "
            "one");
}

TEST(ImportMerge, SaysWhatIsMissing) {
  EXPECT_NE(ErrorOf({"a[0-1]=nvidia-smi/dgx_h100.txt"}).find("give --nic 400Gbit/s"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"*=nvidia-smi/dgx_h100.txt"}).find("'*=' stands for hosts"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"a=slurm-conf/one_switch.conf"}).find("describes no single host"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"a[=nvidia-smi/dgx_h100.txt"}).find("brackets"), std::string::npos);
  EXPECT_NE(ErrorOf({"a=nowhere.txt"}).find("nowhere.txt"), std::string::npos);
}

// More than a link can have, by many cables: an error of the network and no overflow.
TEST(ImportMerge, SumsDoNotOverflow) {
  std::string conf =
      "SwitchName=a Nodes=n[1-20000]\nSwitchName=b Nodes=m[1-20000]\n"
      "SwitchName=c Switches=a,b\n";
  const Result<Imported> imported =
      MergeFacts({ParseFacts(conf, "f").value()}, {.nic_bandwidth = 1'000'000'000'000});
  ASSERT_FALSE(imported.has_value());
  EXPECT_NE(imported.error().message.find("the files together"), std::string::npos)
      << imported.error().message;
}

TEST(ImportMerge, JsonTellsWhereItComesFrom) {
  const Imported imported = MustImport({"nvidia-smi/hgx_4_direct.txt"});
  const std::string text = ImportedToJson(imported);
  EXPECT_NE(text.find("\"source\": \"hgx_4_direct: 4 GPUs"), std::string::npos) << text;
  const Result<Topology> read = TopologyFromJson(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->Fingerprint(), imported.topology.Fingerprint());
  EXPECT_EQ(read->node_name(NodeId{3}), "hgx_4_direct.gpu3");
}

}  // namespace
}  // namespace tutti
