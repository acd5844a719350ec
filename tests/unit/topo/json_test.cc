#include "tutti/topo/json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/parse.h"
#include "support/text.h"
#include "tutti/base/file.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::Parse;

// Everything a topology says of itself.
void ExpectSame(const Topology& a, const Topology& b) {
  EXPECT_EQ(a.ToText(), b.ToText());
  EXPECT_EQ(a.Fingerprint(), b.Fingerprint());
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.expression(), b.expression());
  EXPECT_EQ(a.grid(), b.grid());
  ASSERT_EQ(a.original() != nullptr, b.original() != nullptr);
  if (a.original() != nullptr) ExpectSame(*a.original(), *b.original());
  ASSERT_EQ(a.num_nodes(), b.num_nodes());
  for (NodeId node : a.Nodes()) EXPECT_EQ(a.node_name(node), b.node_name(node));
}

void ExpectRoundTrip(const Topology& topology) {
  const std::string text = TopologyToJson(topology);
  const Result<Topology> back = TopologyFromJson(text);
  ASSERT_TRUE(back.has_value()) << back.error().message << "\n" << text;
  ExpectSame(topology, *back);
  EXPECT_EQ(TopologyToJson(*back), text);
}

TEST(TopologyJson, WorkedExample) {
  EXPECT_EQ(TopologyToJson(Parse("torus(3,bw=25Gbit/s,alpha=1us)")), R"json({
  "format": "tutti-topology",
  "version": 1,
  "name": "torus(3,bw=3125MB/s,alpha=1us)",
  "ranks": 3,
  "switches": 0,
  "grid": {"dims": [3], "wraps": true},
  "link_defaults": {"bandwidth": "3125MB/s", "alpha": "1us"},
  "links": [
    {"from": 0, "to": 1, "duplex": true},
    {"from": 0, "to": 2, "duplex": true},
    {"from": 1, "to": 2, "duplex": true}
  ]
}
)json");
}

TEST(TopologyJson, ReadsWhatPeopleWrite) {
  const Result<Topology> topology = TopologyFromJson(R"({
    "format": "tutti-topology", "version": 1, "source": "by hand", "comment": "two GPUs",
    "nodes": [{"name": "gpu0", "kind": "rank"}, {"name": "gpu1", "kind": "rank"},
              {"name": "sw", "kind": "switch"}],
    "link_defaults": {"alpha": "0.7us"},
    "links": [{"from": "gpu0", "to": "sw", "duplex": true, "bandwidth": "25Gbit/s"},
              {"from": 1, "to": "sw", "bandwidth_Bps": 10, "alpha_ps": 3},
              {"from": "sw", "to": "gpu1", "duplex": false, "bandwidth": "1e3"}],
    "self_loops": [{"node": "gpu1", "bandwidth": "1GB/s", "alpha": "0"}]})");
  ASSERT_TRUE(topology.has_value()) << topology.error().message;
  EXPECT_EQ(topology->ToText(),
            "topology ranks=2 switches=1\n"
            "link 0 -> 2 bandwidth=3125000000 alpha_ps=700000\n"
            "link 1 -> 2 bandwidth=10 alpha_ps=3\n"
            "link 2 -> 0 bandwidth=3125000000 alpha_ps=700000\n"
            "link 2 -> 1 bandwidth=1000 alpha_ps=700000\n"
            "self-loop 1 bandwidth=1000000000 alpha_ps=0\n");
  EXPECT_EQ(topology->node_name(NodeId{2}), "sw");
  ExpectRoundTrip(*topology);
}

TEST(TopologyJson, RoundTripsEveryFamily) {
  for (const char* expression :
       {"mesh(1)", "torus(4,4)", "mesh(3,2,bw=[1,2]GB/s)", "dgx1", "debruijn(2,3)",
        "genkautz(3,11,alpha=[1ns])", "uniring(3,5)", "biring(4,6)",
        "rfs(2,4,3,bw=[200,100,50]GB/s)", "switch2d(3,4)", "dragonfly(4,3,bw=[7,5]GB/s)",
        "without(torus(4,4),links=2,nodes=2)", "unwind(switch(5),degree=2)",
        "transpose(kautz(2,2))", "product(dgx1,uniring(1,3))", "twisted_torus(4,2)",
        "complete(4,bw=1125899906842624,alpha=1000s)"}) {
    SCOPED_TRACE(expression);
    ExpectRoundTrip(Parse(expression));
  }
}

// Links in an order no family makes: cables cannot be written as one entry there.
TEST(TopologyJson, KeepsAnyOrderOfParallelLinks) {
  Topology::Builder builder(3);
  const LinkSpec slow{.bandwidth = 1, .alpha_ps = 0}, fast{.bandwidth = 2, .alpha_ps = 9};
  for (const auto& [tail, head] :
       std::vector<std::pair<int, int>>{{0, 2}, {0, 1}, {1, 2}, {1, 0}, {2, 1}, {2, 0}})
    for (const LinkSpec& spec : {fast, slow, fast})
      builder.AddLink(NodeId{tail}, NodeId{head}, spec);
  builder.AddLink(NodeId{0}, NodeId{0}, fast);
  builder.SetNodeNames({"\"quoted\"", "tab-less \\ name", "\xc3\xa9t\xc3\xa9"});
  builder.SetName("a name");
  ExpectRoundTrip(*std::move(builder).Build());
}

const std::string kHead = R"({"format":"tutti-topology","version":1,)";
const std::string kSpec = R"("link_defaults":{"bandwidth":"1GB/s","alpha":"1us"},)";
const std::string kLink = R"("links":[{"from":0,"to":1,"duplex":true}])";
const std::string kNamed =
    R"("nodes":[{"name":"a","kind":"rank"},{"name":"b","kind":"rank"}],)" + kSpec;
std::string Whole(const std::string& body) { return kHead + body + "}"; }

// Each row one fault away from a valid file.
const std::vector<std::pair<std::string, std::string>> kBadFiles{
    {"", "no valid JSON"},
    {"{", "no valid JSON"},
    {"[]", "$: found [], wanted an object"},
    {Whole(R"("ranks":2,)" + kSpec + kLink).substr(0, 90), "no valid JSON"},
    {"{\"a\":1e999}", "no valid JSON"},
    {"{\"a\":\"\xff\"}", "no valid JSON"},
    {"{\"version\":1}", "$.format: found nothing, wanted \"tutti-topology\""},
    {R"({"format":"tutti-topology"})", "$.version: found nothing"},
    {R"({"format":"tutti-topology","version":5})",
     "$.version: found 5, this reader knows versions 1 to 4"},
    {R"({"format":"tutti-topology","version":"1"})", "$.version: found \"1\""},
    {Whole(R"("ranks":2,"ranks":2,)" + kSpec + kLink), "the key \"ranks\" stands twice"},
    {Whole(R"("ranks":2,"colour":1,)" + kSpec + kLink),
     "$: unknown key \"colour\"; accepted: format, version, name"},
    {Whole(R"("ranks":2,"name":5,)" + kSpec + kLink), "$.name: found 5, wanted a string"},
    {Whole(kSpec + kLink), "$: wanted the field nodes, or ranks"},
    {Whole(R"("ranks":0,)" + kSpec + kLink),
     "$.ranks: found 0, wanted a whole number within 1 .. "},
    {Whole(R"("ranks":-2,)" + kSpec + kLink), "$.ranks: found -2"},
    {Whole(R"("ranks":2.5,)" + kSpec + kLink), "$.ranks: found 2.5"},
    {Whole(R"("ranks":99999999999999999999,)" + kSpec + kLink), "$.ranks: found "},
    {Whole(R"("ranks":2000000,)" + kSpec + kLink), "$.ranks: found 2000000"},
    {Whole(R"("ranks":2,"switches":-1,)" + kSpec + kLink), "$.switches: found -1"},
    {Whole(kNamed + R"("ranks":2,)" + kLink), "$: nodes excludes ranks and switches"},
    {Whole(R"("nodes":5,)" + kSpec + kLink), "$.nodes: wanted a list"},
    {Whole(R"("nodes":[5],)" + kSpec + kLink), "$.nodes[0]: found 5, wanted an object"},
    {Whole(R"("nodes":[{"name":"a"}],)" + kSpec + kLink), "$.nodes[0]: wanted the field kind"},
    {Whole(R"("nodes":[{"name":"a","kind":"nic"}],)" + kSpec + kLink),
     "$.nodes[0].kind: found \"nic\", wanted \"rank\" or \"switch\""},
    {Whole(R"("nodes":[{"name":"s","kind":"switch"},{"name":"a","kind":"rank"}],)" + kSpec + kLink),
     "$.nodes[1].kind: a rank behind a switch"},
    {Whole(R"("nodes":[{"name":"a","kind":"rank"},{"name":"a","kind":"rank"}],)" + kSpec + kLink),
     "$.nodes[1].name: the name \"a\" is taken"},
    {Whole(R"("nodes":[],)" + kSpec + R"("links":[])"), "at least 1 rank"},
    {Whole(R"("ranks":2,)" + kSpec.substr(0, kSpec.size() - 1)), "$: wanted the field links"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":{})"), "$.links: found {}, wanted a list"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":[7])"), "$.links[0]: found 7, wanted an object"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":[{"to":1}])"), "$.links[0]: wanted the field from"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":[{"from":0,"to":2}])"),
     "$.links[0].to: found 2, wanted a whole number within 0 .. 1"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":[{"from":0,"to":"b"}])"),
     "$.links[0].to: found \"b\", wanted the name or the number of a node"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":[{"from":1,"to":1}])"),
     "$.links[0]: a link to itself; those belong into self_loops"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":[{"from":0,"to":1,"duplex":1}])"),
     "$.links[0].duplex: found 1, wanted true or false"},
    {Whole(R"("ranks":2,)" + kSpec + R"("links":[{"from":0,"to":1,"bw":1}])"),
     "$.links[0]: unknown key \"bw\""},
    {Whole(R"("ranks":2,)" + kLink), "$.links[0]: wanted the field bandwidth"},
    {Whole(R"("ranks":2,"link_defaults":{"bandwidth":"1GB/s"},)" + kLink),
     "$.links[0]: wanted the field alpha"},
    {Whole(R"("ranks":2,"link_defaults":{"bandwidth":"nan","alpha":"1us"},)" + kLink),
     "$.link_defaults.bandwidth: bandwidth 'nan' is not a number"},
    {Whole(R"("ranks":2,"link_defaults":{"bandwidth":5,"alpha":"1us"},)" + kLink),
     "$.link_defaults.bandwidth: found 5, wanted a string with a unit (or bandwidth_Bps)"},
    {Whole(R"("ranks":2,"link_defaults":{"bandwidth":"0GB/s"},)" + kLink),
     "$.link_defaults.bandwidth: \"0GB/s\" is outside 1 .. "},
    {Whole(R"("ranks":2,"link_defaults":{"bandwidth":"1GB/s","bandwidth_Bps":5},)" + kLink),
     "$.link_defaults: bandwidth and bandwidth_Bps exclude each other"},
    {Whole(R"("ranks":2,"link_defaults":{"alpha_ps":-1},)" + kLink),
     "$.link_defaults.alpha_ps: found -1"},
    {Whole(R"("ranks":2,"link_defaults":{"alpha":"1"},)" + kLink),
     "$.link_defaults.alpha: time '1' has no unit"},
    {Whole(R"("ranks":3,)" + kSpec + kLink), "the network is disconnected"},
    {Whole(R"("ranks":2,"self_loops":[{"node":2}],)" + kSpec + kLink),
     "$.self_loops[0].node: found 2"},
    {Whole(R"("ranks":2,"self_loops":5,)" + kSpec + kLink), "$.self_loops: found 5, wanted a list"},
    {Whole(R"("ranks":2,"grid":{"dims":[2]},)" + kSpec + kLink), "$.grid: wanted the field wraps"},
    {Whole(R"("ranks":2,"grid":{"wraps":true},)" + kSpec + kLink), "$.grid: wanted the field dims"},
    {Whole(R"("ranks":2,"grid":{"dims":[3],"wraps":true},)" + kSpec + kLink),
     "$.grid.dims[0]: found 3, wanted a whole number within 1 .. 2"},
    {Whole(R"("ranks":2,"grid":{"dims":[1],"wraps":true},)" + kSpec + kLink),
     "$.grid.dims: 1 positions for 2 ranks"},
};

TEST(TopologyJson, NamesThePathAndWhatIsAccepted) {
  ASSERT_TRUE(TopologyFromJson(Whole(R"("ranks":2,)" + kSpec + kLink)).has_value());
  for (const auto& [text, message] : kBadFiles) {
    SCOPED_TRACE(text);
    const Result<Topology> topology = TopologyFromJson(text);
    ASSERT_FALSE(topology.has_value());
    EXPECT_NE(topology.error().message.find(message), std::string::npos)
        << topology.error().message;
    for (char c : topology.error().message) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  }
}

TEST(TopologyJson, FilesAreNamedInErrors) {
  const std::string path = test_support::OwnPath("topology.topo.json");
  const Topology topology = Parse("torus(3,4)");
  ASSERT_TRUE(WriteTopologyFile(path, topology).has_value());
  const Result<Topology> back = ParseTopology(path);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ExpectSame(topology, *back);
  const Result<Topology> inside = ParseTopology("transpose(\"" + path + "\")");
  ASSERT_TRUE(inside.has_value()) << inside.error().message;
  EXPECT_EQ(inside->Fingerprint(), topology.Fingerprint());
  ASSERT_TRUE(WriteFileAtomically(path, "{}").has_value());
  const Result<Topology> bad = ReadTopologyFile(path);
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().message.find(path + ": $.format"), 0u) << bad.error().message;
  std::filesystem::remove(path);
  const Status unwritable = WriteTopologyFile("/no/such/folder/x.topo.json", topology);
  ASSERT_FALSE(unwritable.has_value());
  EXPECT_EQ(unwritable.error().code, ErrorCode::kIo);
}

// The files of real machines stand for these expressions, and say where their numbers come from.
TEST(ExampleTopologies, EqualTheirExpressions) {
  const std::vector<std::pair<const char*, const char*>> table{
      {"dgx1", "dgx1"},
      {"tacc_torus_3x3x3", "torus(3,3,3,bw=25Gbit/s,host_bw=100Gbit/s)"},
      {"tacc_torus_3x3x2", "torus(3,3,2,bw=25Gbit/s,host_bw=100Gbit/s)"},
      {"tacc_torus_3x3x3x2", "torus(3,3,3,2,bw=25Gbit/s,host_bw=100Gbit/s)"},
      {"tpuv3_8x4", "torus(8,4,bw=70GB/s)"},
      {"tpuv4_twisted_4x4x8", "twisted_torus(4,4,8)"},
  };
  for (const auto& [file, expression] : table) {
    SCOPED_TRACE(file);
    const std::string path = std::string("examples/topologies/") + file + ".topo.json";
    const Result<Topology> topology = ReadTopologyFile(path);
    ASSERT_TRUE(topology.has_value()) << topology.error().message;
    EXPECT_EQ(topology->Fingerprint(), Parse(expression).Fingerprint());
    EXPECT_EQ(topology->name(), Parse(expression).name());
    EXPECT_NE(ReadFile(path)->find("\"source\""), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti
