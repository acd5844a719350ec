// What each reader makes of its samples, and the line it names where a file is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "samples.h"
#include "tutti/base/file.h"

namespace tutti {
namespace {

struct Counts {
  const char* file;
  const char* format;
  size_t gpus, nics, nvlinks, cables;
};

TEST(ImportReaders, CountWhatTheSamplesHold) {
  const std::vector<Counts> table{
      {"nvidia-smi/dgx_h100.txt", "nvidia-smi", 8, 8, 28, 0},
      {"nvidia-smi/dgx_a100_storage.txt", "nvidia-smi", 8, 10, 28, 0},
      {"nvidia-smi/dgx1_v100.txt", "nvidia-smi", 8, 4, 16, 0},
      {"nvidia-smi/hgx_4_direct.txt", "nvidia-smi", 4, 0, 6, 0},
      {"nvidia-smi/pcie_4_bridges.txt", "nvidia-smi", 4, 2, 2, 0},
      {"nvidia-smi/pcie_8_no_nvlink.txt", "nvidia-smi", 8, 2, 0, 0},
      {"nvidia-smi/two_gpus_phb.txt", "nvidia-smi", 2, 1, 0, 0},
      {"nvidia-smi/one_gpu.txt", "nvidia-smi", 1, 1, 0, 0},
      {"nccl-xml/h100_node0.xml", "nccl-xml", 8, 8, 8, 0},
      {"nccl-xml/h100_node1.xml", "nccl-xml", 8, 8, 8, 0},
      {"nccl-xml/a100_node0.xml", "nccl-xml", 8, 8, 8, 0},
      {"nccl-xml/a100_pcie_bridge.xml", "nccl-xml", 2, 1, 1, 0},
      {"nccl-xml/no_nvlink_two_sockets.xml", "nccl-xml", 2, 1, 0, 0},
      {"nccl-xml/sparse.xml", "nccl-xml", 2, 0, 0, 0},
      {"nccl-xml/b200_two.xml", "nccl-xml", 2, 0, 2, 0},
      {"slurm-conf/one_switch.conf", "slurm-conf", 0, 0, 0, 2},
      {"slurm-conf/two_levels.conf", "slurm-conf", 0, 0, 0, 10},
      {"slurm-conf/three_levels.conf", "slurm-conf", 0, 0, 0, 13},
      {"slurm-conf/continued.conf", "slurm-conf", 0, 0, 0, 4},
      {"slurm-conf/several_ranges.conf", "slurm-conf", 0, 0, 0, 8},
      {"slurm-conf/two_parents.conf", "slurm-conf", 0, 0, 0, 8},
      {"slurm-conf/blocks.conf", "slurm-conf", 0, 0, 0, 36},
      {"ibnetdiscover/one_switch.txt", "ibnetdiscover", 0, 0, 0, 2},
      {"ibnetdiscover/rails_two_nodes.txt", "ibnetdiscover", 0, 0, 0, 32},
      {"ibnetdiscover/rails_slow_cable.txt", "ibnetdiscover", 0, 0, 0, 32},
      {"ibnetdiscover/unnamed_switches.txt", "ibnetdiscover", 0, 0, 0, 5},
      {"ibnetdiscover/leaf_spine.txt", "ibnetdiscover", 0, 0, 0, 6},
      {"lldp/node0.json", "lldp", 0, 0, 0, 2},
      {"lldp/node1.json", "lldp", 0, 0, 0, 1},
      {"lldp/node2_json0.json", "lldp", 0, 0, 0, 1},
      {"topograph/two_leaves.json", "topograph", 0, 0, 0, 6},
      {"topograph/labels_v1.json", "topograph", 0, 0, 0, 5},
      {"topograph/leaf_only.json", "topograph", 0, 0, 0, 3},
      {"slurm-yaml/tree.yaml", "slurm-yaml", 0, 0, 0, 10},
      {"slurm-yaml/default_of_two.yaml", "slurm-yaml", 0, 0, 0, 8},
      {"slurm-yaml/flow_style.yaml", "slurm-yaml", 0, 0, 0, 5},
      {"hwloc-xml/four_a100_pairs.xml", "hwloc-xml", 4, 2, 2, 0},
      {"hwloc-xml/four_a100_clique.xml", "hwloc-xml", 4, 2, 6, 0},
      {"hwloc-xml/mi210_no_links.xml", "hwloc-xml", 2, 1, 0, 0},
      {"hwloc-xml/two_a100_loadable.xml", "hwloc-xml", 2, 2, 0, 0},
      {"nccl-log/pcie_two_hosts.log", "nccl-log", 4, 2, 0, 0},
      {"nccl-log/nvls_no_graph.log", "nccl-log", 8, 8, 0, 0},
      {"nccl-log/nvlink_graph.log", "nccl-log", 4, 2, 0, 0},
      {"nccl-log/sockets.log", "nccl-log", 1, 1, 0, 0},
  };
  for (const Counts& counts : table) {
    SCOPED_TRACE(counts.file);
    const Facts facts = MustRead(counts.file);
    EXPECT_EQ(facts.format, counts.format);
    EXPECT_EQ(facts.cables.size(), counts.cables);
    const size_t hosts = facts.format == "nccl-log" ? facts.boxes.size() : 1;  // each as the first
    ASSERT_EQ(facts.boxes.size(), counts.gpus > 0 ? hosts : 0u);
    if (facts.boxes.empty()) continue;
    EXPECT_EQ(facts.boxes[0].gpus.size(), counts.gpus);
    EXPECT_EQ(facts.boxes[0].nics.size(), counts.nics);
    EXPECT_EQ(facts.boxes[0].nvlinks.size(), counts.nvlinks);
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kSamples))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, table.size());
}

TEST(ImportReaders, AreTheFormatsThatAreListed) {
  std::map<std::string, int> folders;
  for (const auto& entry : std::filesystem::directory_iterator(kSamples))
    ++folders[entry.path().filename().string()];
  for (const ImportFormat& format : ImportFormats())
    EXPECT_EQ(folders[std::string(format.name)], 1) << format.name;
  EXPECT_EQ(folders.size(), ImportFormats().size());
}

TEST(ImportReaders, MatricesGiveClassesAndNames) {
  const BoxFacts box = MustRead("nvidia-smi/dgx_h100.txt").boxes[0];
  EXPECT_EQ(box.nics[3].name, "mlx5_3");
  EXPECT_EQ(box.ClassOf(0, 8), PathClass::kPix);
  EXPECT_EQ(box.ClassOf(0, 9), PathClass::kNode);
  EXPECT_EQ(box.ClassOf(9, 0), PathClass::kNode);
  EXPECT_EQ(box.ClassOf(0, 15), PathClass::kSys);
  EXPECT_EQ(box.nvlinks[0].links, 18);
  EXPECT_EQ(box.nvlinks[0].place.line, 2);
}

TEST(ImportReaders, XmlGivesSpeedsAddressesAndClasses) {
  const BoxFacts box = MustRead("nccl-xml/h100_node1.xml").boxes[0];
  EXPECT_EQ(box.gpus[0].sm, 90);
  EXPECT_EQ(box.gpus[7].id, "0000:71:00.0");
  EXPECT_EQ(box.gpus[0].pcie_bandwidth, 63'015'384'615);  // 32 GT/s x 16, 128b/130b
  EXPECT_EQ(box.nics[5].name, "mlx5_5");
  EXPECT_EQ(box.nics[5].bandwidth, 50'000'000'000);
  EXPECT_EQ(box.nics[5].guid, "0c42a10300000105");
  EXPECT_EQ(box.nvlinks[3].peer, kNvSwitch);
  EXPECT_EQ(box.ClassOf(2, 10), PathClass::kPix);
  EXPECT_EQ(box.ClassOf(2, 11), PathClass::kPhb);
  EXPECT_EQ(box.ClassOf(2, 12), PathClass::kSys);
}

// Speeds and widths that NCCL and kernels write where they know none. In a virtual machine whose GPU
// has no port above it, NCCL of several versions writes the smaller of the GPU's width and 0,
// beside a speed: no error, but said.
TEST(ImportReaders, PcieLinksMayBeUnknown) {
  struct Link {
    const char *speed, *lanes;
    bool is_noted = false;
  };
  for (const Link& link : std::vector<Link>{{"", ""},
                                            {"", "0"},
                                            {"Unknown", "0"},
                                            {"Unknown speed", "16"},
                                            {"Unknown", "255"},
                                            {"16.0 GT/s PCIe", "255"},
                                            {"16.0 GT/s PCIe", ""},
                                            {"16.0 GT/s PCIe", "0", true}}) {
    SCOPED_TRACE(fmt::format("'{}' '{}'", link.speed, link.lanes));
    const Result<Facts> facts = ParseFacts(
        fmt::format("<system>\n<pci link_speed=\"{}\" link_width=\"{}\"><gpu/></pci></system>",
                    link.speed, link.lanes),
        "f");
    ASSERT_TRUE(facts.has_value()) << facts.error().message;
    EXPECT_EQ(facts->boxes[0].gpus[0].pcie_bandwidth, 0);
    EXPECT_EQ(facts->notes, link.is_noted
                                ? std::vector<std::string>{"f:2: link_width=\"0\" of 1 GPUs: their "
                                                           "PCIe links are not known"}
                                : std::vector<std::string>{});
  }
}

TEST(ImportReaders, FabricsNameTheirEnds) {
  const Facts facts = MustRead("ibnetdiscover/unnamed_switches.txt");
  EXPECT_EQ(facts.notes.size(), 1u);
  EXPECT_NE(facts.cables[0].a.node, facts.cables[4].a.node);
  EXPECT_EQ(facts.cables[0].bandwidth, 12'500'000'000);
  EXPECT_EQ(facts.cables[0].b.node, "storage1");
  EXPECT_EQ(facts.cables[0].b.nic, "HCA-1");
  const Facts fdr = MustRead("ibnetdiscover/leaf_spine.txt");
  EXPECT_EQ(fdr.cables[0].bandwidth, 6'750'000'000);
}

TEST(ImportReaders, HwlocGivesAddressesSpeedsClassesAndNvlinks) {
  const BoxFacts box = MustRead("hwloc-xml/four_a100_pairs.xml").boxes[0];
  EXPECT_EQ(box.gpus[1].id, "0000:23:00.0");
  EXPECT_EQ(box.gpus[1].pcie_bandwidth, 31'507'692'000);
  EXPECT_EQ(box.nics[1].name, "mlx5_1");
  EXPECT_EQ(box.nics[1].guid, "b8599f0300aa0001");
  EXPECT_EQ(box.ClassOf(0, 1), PathClass::kPix);
  EXPECT_EQ(box.ClassOf(0, 4), PathClass::kPix);
  EXPECT_EQ(box.ClassOf(0, 2), PathClass::kSys);
  EXPECT_EQ(box.nvlinks[1].gpu, 2);
  EXPECT_EQ(box.nvlinks[1].peer, 3);
  EXPECT_EQ(box.nvlinks[1].links, 4);
}

TEST(ImportReaders, OfSeveralTopologiesTheDefaultCounts) {
  const Facts facts = MustRead("slurm-yaml/default_of_two.yaml");
  ASSERT_EQ(facts.notes.size(), 1u);
  EXPECT_NE(facts.notes[0].find("of 2 topologies 'racks' is taken"), std::string::npos);
  EXPECT_EQ(facts.cables[7].a.node, "gpu8");
  EXPECT_EQ(facts.cables[7].b.node, "rack2");
  EXPECT_EQ(facts.cables[7].place.line, 14);
}

TEST(ImportReaders, LogsNameTheirHosts) {
  const Facts facts = MustRead("nccl-log/pcie_two_hosts.log");
  ASSERT_EQ(facts.boxes.size(), 2u);
  const BoxFacts& box = facts.boxes[1];
  EXPECT_EQ(box.host, "beta");
  EXPECT_EQ(box.gpus[3].id, "0000:7e:00.0");
  EXPECT_EQ(box.nics[1].name, "mlx5_1");
  EXPECT_EQ(box.nics[1].bandwidth, 25'000'000'000);
  EXPECT_EQ(box.ClassOf(0, 1), PathClass::kPix);
  EXPECT_EQ(box.ClassOf(0, 2), PathClass::kSys);
  EXPECT_EQ(box.ClassOf(2, 5), PathClass::kPix);
  EXPECT_TRUE(facts.notes.empty());
  // How NVLink joins them is not said, so that PCIe is not taken for it.
  const Facts nvlink = MustRead("nccl-log/nvlink_graph.log");
  EXPECT_TRUE(nvlink.boxes[0].classes.empty());
  EXPECT_NE(nvlink.notes[0].find("nvidia-smi"), std::string::npos);
}

TEST(ImportReaders, HostListsExpandAsSlurmDoes) {
  const auto names = [](const char* text) { return ExpandHostList(text, 1000).value(); };
  EXPECT_EQ(names("n[08-11]"), (std::vector<std::string>{"n08", "n09", "n10", "n11"}));
  EXPECT_EQ(names("a,b[1,3]-x"), (std::vector<std::string>{"a", "b1-x", "b3-x"}));
  EXPECT_EQ(names("r[1-2]c[0-1]"), (std::vector<std::string>{"r1c0", "r1c1", "r2c0", "r2c1"}));
  for (const char* bad : {"", "a,,b", "a[", "a]", "a[1-", "a[2-1]", "a[x]", "a[[1]]", "a[1-2000]",
                          "a[1-100][1-100]", "a b", "a[1-999999999999]"})
    EXPECT_FALSE(ExpandHostList(bad, 1000).has_value()) << bad;
}

struct Bad {
  const char* text;
  const char* says;
};

const std::vector<Bad> kBadFiles{
    {"", "f: nothing in it is of a format that is known"},
    {"hello\n", "f: nothing in it is of a format that is known: nccl-xml, hwloc-xml"},
    // nvidia-smi
    {"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0\n", "f:2: the matrix ends after 1 of 2 rows"},
    {"\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV2\t X \n", "f:3: GPU1 and GPU0: found 'NV2'"},
    {"\tGPU0\tGPU1\nGPU0\t X \tFAR\nGPU1\tFAR\t X \n", "f:2: GPU0 and GPU1: found 'FAR'"},
    {"\tGPU0\tGPU1\nGPU0\tSYS\tSYS\nGPU1\tSYS\t X \n", "f:2: GPU0 and GPU0: X stands on"},
    {"\tGPU0\tGPU1\nGPU1\t X \tSYS\n", "f:2: found 'GPU1', wanted the row of GPU0"},
    {"\tGPU0\tGPU1\nGPU0\t X \n", "f:2: GPU0 has 1 cells, wanted 2"},
    {"\tGPU0\tGPU0\nGPU0\t X \tSYS\n", "f:1: 'GPU0' heads two columns"},
    {"\tGPU0\tNIC0\tGPU1\n", "f:1: a GPU behind a NIC"},
    {"\tGPU0\tNIC0\nGPU0\t X \tNV2\nNIC0\tNV2\t X \n", "f:2: GPU0 and NIC0: NVLinks to a NIC"},
    {"\tGPU0\tGPU1\nGPU0\t X \tNV0\n", "found 'NV0'"},
    // NCCL XML
    {"<system version=\"1\">", "f:1: no XML"},
    {"<system>\n</system>\n", "f:1: no <gpu> element"},
    {"<!DOCTYPE a [<!ENTITY b \"c\">]>\n<system/>", "f:1: a document type"},
    {"<system><cpu>\n<pci busid=\"a\"><gpu dev=\"x\"/></pci></cpu></system>",
     "f:2: <gpu>: dev=\"x\", wanted a whole number"},
    {"<system><cpu>\n<pci busid=\"a\"><gpu/></pci>\n<pci busid=\"A\"><gpu/></pci></cpu></system>",
     "f:3: <pci>: two GPUs at a"},
    {"<system><cpu>\n<pci busid=\"a\"><gpu dev=\"0\"/></pci>\n<pci busid=\"b\"><gpu "
     "dev=\"0\"/></pci></cpu></system>",
     "f:3: <gpu>: dev=\"0\" stands in line 2, too"},
    {"<system><pci busid=\"a\"><gpu>\n<nvlink target=\"b\" count=\"1\" "
     "tclass=\"0x030200\"/></gpu>"
     "</pci></system>",
     "f:2: <nvlink>: no GPU has the address 'b'"},
    {"<system><pci busid=\"a\"><gpu>\n<nvlink target=\"b\" count=\"0\"/></gpu></pci></system>",
     "f:2: <nvlink>: count=\"0\""},
    {"<system><pci busid=\"a\"><gpu><nvlink target=\"b\" count=\"2\"/></gpu></pci>\n<pci "
     "busid=\"b\"><gpu dev=\"1\">\n<nvlink target=\"a\" count=\"3\"/></gpu></pci></system>",
     "f:3: <nvlink>: 3 NVLinks, but line 1 says 2"},
    {"<system><pci><gpu/></pci><nic><net name=\"e\"/>\n<net name=\"e\"/></nic></system>",
     "f:2: <net>: the name 'e' stands in line 1, too"},
    {"<system><pci><gpu/></pci><nic><net speed=\"-1\"/></nic></system>", "speed=\"-1\""},
    {"<system>\n<pci link_speed=\"0.0 GT/s PCIe\" link_width=\"16\"><gpu/></pci></system>",
     "f:2: <pci>: link_speed=\"0.0 GT/s PCIe\", wanted 2.5 to 256 GT/s"},
    {"<system>\n<pci link_speed=\"fast\" link_width=\"16\"><gpu/></pci></system>",
     "f:2: <pci>: link_speed=\"fast\", wanted"},
    {"<system>\n<pci link_speed=\"16 GT/s\" link_width=\"-4\"><gpu/></pci></system>",
     "f:2: <pci>: link_width=\"-4\", wanted 1 to 64 lanes"},
    {"<system>\n<pci link_speed=\"16 GT/s\" link_width=\"65\"><gpu/></pci></system>",
     "f:2: <pci>: link_width=\"65\", wanted 1 to 64 lanes"},
    // Slurm
    {"SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "f:2: switch 'a' stands in line 1, too"},
    {"SwitchName=a\n", "f:1: switch 'a' has neither"},
    {"SwitchName=a Nodes=n[1-3],n2\n", "f:1: 'n2' stands below 'a' twice"},
    {"#x\nSwitchName=a Nodes=n[1\n", "f:2: hostlist 'n[1': brackets do not match"},
    {"SwitchName=a Nodes=n[1-99999999]\n", "f:1: hostlist"},
    {"SwitchName=a Hosts=n\n", "f:1: unknown key 'Hosts'"},
    {"SwitchName=a SwitchName=b\n", "f:1: two names in one line"},
    {"SwitchName=a Switches=a\n", "f:1: switch 'a' is below itself"},
    {"SwitchName=a Nodes=n\nNodes=m\n", "f:2: Nodes= or Switches= without SwitchName="},
    {"SwitchName=a Nodes=n x\n", "f:1: found 'x', wanted KEY=VALUE"},
    // ibnetdiscover
    {"Switch 2 \"S-1\" # \"a\"\n[1] \"H-1\"[1] # 4xHDR\n", "f:2: the file ends without the node"},
    {"Switch 2 \"S-1\" # \"a\"\nSwitch 2 \"S-1\" # \"a\"\n", "f:2: 'S-1' stands in line 1, too"},
    {"[1] \"S-1\"[1]\n", "f:1: a port before the first node"},
    {"Switch 1 \"S-1\"\n[x] \"S-2\"[1]\n", "f:2: wanted the number of a port"},
    {"Switch 1 \"S-1\"\n[1] \"S-2\"\n", "f:2: wanted the port at the other end"},
    {"Switch 1 \"S-1\"\n[1] \"S-1\"[1]\n", "f:2: a cable from a port to itself"},
    {"Switch 1 \"S-1\"\n[1] \"S-2\"[1]\nSwitch 1 \"S-2\"\n", "f:2: 'S-2' does not name its port"},
    {"Switch 1 \"S-1\"\n[1] \"S-2\"[1] # 4xHDR\nSwitch 1 \"S-2\"\n[1] \"S-1\"[1] # 4xEDR\n",
     "f:2: line 4 gives the cable another rate"},
    {"Switch 1 \"S-1\"\n[1] \"S-2\"[1]\n[2] \"S-2\"[1]\nSwitch 1 \"S-2\"\n[1] \"S-1\"[1]\n",
     "f:3: line 5 has another cable at this port"},
    // LLDP
    {"{\"lldp\": {\"interface\": [", "f:1: no JSON: syntax error at byte"},
    {"{\"lldp\": 1e999}", "f: no JSON: [json.exception.out_of_range.406] number overflow"},
    {"{\"lldp\": {}}", "f: $.lldp: no interface has a neighbour"},
    {"{\"lldp\": {\"interface\": [{\"e\": {\"chassis\": {\"s\": {}}, \"chassis\": {\"t\": "
     "{}}}}]}}",
     "f: $.lldp.interface[0].e: the key 'chassis' is twice"},
    {"{\"lldp\": {\"interface\": [{\"e\": {\"chassis\": {}}}]}}",
     "f: $.lldp.interface[0].chassis: the neighbour of e has no printable name"},
    {"{\"lldp\": {\"interface\": [{\"e\": {\"chassis\": {\"s\": {}}}}, {\"e\": {\"chassis\": "
     "{\"s\": {}}}}]}}",
     "f: $.lldp.interface[1]: 'e' stands there twice"},
    // Slurm's YAML
    {"- topology: a\n  tree: {\n", "f:3: no YAML"},
    {"- topology: a\n  flat: true\n", "f:1: topology 'a' is neither a tree nor of blocks"},
    {"- topology: a\n  tree: 5\n", "f:2: wanted the list 'switches'"},
    {"topology: a\n", "f:1: wanted a list of topologies"},
    {"- topology: a\n- 5\n", "f:2: wanted a topology"},
    {"- topology: a\n  tree:\n    switches:\n      - switch: s\n", "f:4: switch 's' has neither"},
    {"- topology: a\n  tree:\n    switches:\n      - nodes: n\n", "f:4: '' is no name of a"},
    {"- topology: a\n  tree: {switches: [{switch: s, nodes: n},\n {switch: s, nodes: m}]}\n",
     "f:3: switch 's' stands in line 2, too"},
    {"- topology: a\n  tree: {switches: [{switch: s, children: s}]}\n", "below itself"},
    {"- topology: a\n  tree: {switches: [{switch: s, nodes: 'n['}]}\n", "f:2: hostlist 'n['"},
    {"- topology: a\n  tree: {switches: [{switch: s, nodes: 'n1,n1'}]}\n",
     "f:2: 'n1' stands below 's' twice"},
    {"- topology: a\n  tree: {switches: [{switch: s, hosts: n}]}\n",
     "f:2: found 'hosts', wanted switch, nodes or children"},
    {"- topology: a\n  tree: {switches: [{switch: s, switch: s}]}\n", "the key 'switch' is twice"},
    {"- topology: &a x\n  tree: *a\n", "f:2: an alias"},
    // hwloc
    {"<topology version=\"2.0\">", "f:1: no XML"},
    {"<topology>\n</topology>\n", "f:1: <topology>: version=\"\", wanted 2"},
    {"<topology version=\"2.0\">\n</topology>\n", "no GPU and no NIC"},
    {"<!DOCTYPE a [\n<!ENTITY b \"c\">]>\n<topology/>", "f:2: an entity"},
    {"<topology version=\"2.0\"><object type=\"PCIDev\" pci_type=\"0302 [10de:1]\"/>\n"
     "<distances2 name=\"NVLinkBandwidth\"><indexes>1 x</indexes></distances2></topology>",
     "f:2: <indexes>: found 'x'"},
    {"<topology version=\"2.0\"><object type=\"PCIDev\" pci_type=\"0302 [10de:1]\"/>\n"
     "<distances2 name=\"NVLinkBandwidth\"><indexes>1 2</indexes></distances2></topology>",
     "f:2: <distances2>: 0 values for 2 objects"},
    // NCCL's log
    {"n:1:2 [0] NCCL INFO nothing\n", "f: no line names a GPU"},
    {"n:1:2 [0] NCCL INFO init rank 0 nranks 1 cudaDev 0 busId xyz commId 1\n",
     "f:1: busId 'xyz', wanted hexadecimal digits"},
    {"n:1:2 [0] NCCL INFO init rank 4 nranks 4 cudaDev 0 busId 1b000 commId 1\n",
     "f:1: rank 4 of 4 ranks"},
    {"n:1:2 [0] NCCL INFO NET/IB : Using [0]a:1/IB\nn:1:2 [0] NCCL INFO NET/IB : Using "
     "[0]b:1/IB\n",
     "f:2: NIC 0 is b, but a in line 1"},
    {"n:1:2 [0] NCCL INFO NET/IB : Using [x]a:1/IB\n", "f:1: found '[x]a:1/IB'"},
    {"n:1:2 [0] NCCL INFO === System\nn:1:2 [0] NCCL INFO + PCI[x GPU\n", "f:2: wanted '+ LINK"},
    // topograph
    {"{\"instances\": [{\"id\": \"a\", \"network_layers\": [\"s\"",
     "f:1: no JSON: syntax error at byte"},
    {"{\"instances\": [5, {\"id\": \"a\", \"id\": \"b\", \"network_layers\": [\"s\"]}]}",
     "f: $.instances[1]: the key 'id' is twice"},
    {"{\"instances\": [], \"network_layers\": 1, \"instances\": []}",
     "f: $: the key 'instances' is twice"},
    {"{\"network_layers\": 1}", "f: $: wanted an object with the list instances"},
    {"{\"instances\": [{\"id\": \"a\", \"network_layers\": []}]}", "$.instances[0].network_layers"},
    {"{\"instances\": [{\"id\": \"a\", \"network_layers\": [\"s\", \"s\"]}]}", "below itself"},
    {"{\"instances\": [{\"id\": \"a\", \"network_layers\": [\"s\"]}, {\"id\": \"a\", "
     "\"network_layers\": [\"s\"]}]}",
     "$.instances[1].id: 'a' is $.instances[0], too"},
    {"{\"instances\": [{\"id\": \"a\", \"network_layers\": [\"s\", \"t\"]}, {\"id\": \"b\", "
     "\"network_layers\": [\"s\", \"u\"]}]}",
     "switch 's' is below 'u' here and below 't'"},
};

TEST(ImportReaders, NameTheLineAtFault) {
  for (const Bad& bad : kBadFiles) {
    const Result<Facts> facts = ParseFacts(bad.text, "f");
    ASSERT_FALSE(facts.has_value()) << bad.text;
    EXPECT_NE(facts.error().message.find(bad.says), std::string::npos) << bad.text << "\n"
                                                                       << facts.error().message;
  }
}

// However long a path is, its end tells it from others of the folder; contents are cut.
TEST(ImportReaders, NameAFileByItsWholePath) {
  const std::string folder(300, 'd');
  EXPECT_EQ((FactPlace{folder + "/node0.xml", 11}.Text()), folder + "/node0.xml:11");
  EXPECT_EQ((FactPlace{folder + "/node1.xml", 0}.Text()), folder + "/node1.xml");
  EXPECT_EQ((FactPlace{"a\x1b[2J\nb", 3}.Text()), "a?[2J?b:3");
  EXPECT_EQ(ParseFacts("SwitchName=" + std::string(70, 'k') + "\t" + folder, folder + "/f")
                .error()
                .message,
            folder + "/f:1: found '" + std::string(60, 'd') + "...', wanted KEY=VALUE");
}

// Half a file is an error or facts that are fewer, never a crash.
TEST(ImportReaders, EndWhereverAFileEnds) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kSamples)) {
    if (!entry.is_regular_file()) continue;
    const std::string text = ReadFile(entry.path().string()).value();
    for (size_t size = 0; size < text.size(); size += std::max<size_t>(1, text.size() / 97)) {
      const Result<Facts> facts = ParseFacts(text.substr(0, size), "half");
      EXPECT_TRUE(facts.has_value() || !facts.error().message.empty());
    }
  }
}

TEST(ImportReaders, NestingAndSizesHaveLimits) {
  std::string deep = "<system>";
  for (int i = 0; i < 100; ++i) deep += "<pci>";
  EXPECT_NE(ParseFacts(deep + "<gpu/>", "f").error().message.find("f:1"), std::string::npos);
  std::string closed = deep + "<gpu/>";
  for (int i = 0; i < 100; ++i) closed += "</pci>";
  EXPECT_NE(ParseFacts(closed + "</system>", "f").error().message.find("nested deeper"),
            std::string::npos);
  const std::string brackets(200'000, '[');
  EXPECT_NE(ParseFacts("{\"network_layers\":" + brackets, "f").error().message.find("nested"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
