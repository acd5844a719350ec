// Host limits: where they stand, who keeps and who refuses them, and what they are as links.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "support/parse.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/operators.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"
#include "tutti/topo/translations.h"

namespace tutti {
namespace {

using test_support::Parse;

std::string FaultOf(const std::string& expression) {
  const Result<Topology> topology = ParseTopology(expression);
  return topology ? "none" : topology.error().message;
}

// ring(3) with limits of 7 and 9 GB/s at ranks 0 and 2.
Topology::Builder ThreeRanks() {
  Topology::Builder builder(3);
  for (int32_t rank = 0; rank < 3; ++rank)
    builder.AddDuplex(NodeId{rank}, NodeId{(rank + 1) % 3}, {});
  return builder;
}

Topology Uneven() {
  Topology::Builder builder = ThreeRanks();
  builder.SetHostBandwidth(NodeId{0}, 7'000'000'000);
  builder.SetHostBandwidth(NodeId{2}, 9'000'000'000);
  return *std::move(builder).Build();
}

TEST(HostLimits, StandOnAnyFamilyAndAreRemembered) {
  for (const char* text :
       {"ring(4,host_bw=5GB/s)", "torus(3,3,bw=3125MB/s,host_bw=12500MB/s)",
        "switch(4,host_bw=10GB/s)", "product(ring(3),ring(4),host_bw=10GB/s)",
        "line(bipartite(2),host_bw=10GB/s)", "genkautz(2,5,parallel=2,host_bw=10GB/s)"}) {
    SCOPED_TRACE(text);
    const Topology topology = Parse(text);
    EXPECT_EQ(topology.name(), text);
    EXPECT_TRUE(topology.has_host_limits());
    for (NodeId rank : topology.Ranks())
      EXPECT_EQ(topology.host_bandwidth(rank), topology.host_bandwidth(NodeId{0}));
    EXPECT_EQ(ParseExpressionTree(text)->host_bandwidth, topology.host_bandwidth(NodeId{0}));
    EXPECT_NE(topology.ToText().find("host 0 bandwidth="), std::string::npos);
  }
  EXPECT_FALSE(Parse("ring(4)").has_host_limits());
  EXPECT_EQ(Parse("ring(4)").host_bandwidth(NodeId{3}), std::nullopt);
}

TEST(HostLimits, TellNetworksApart) {
  std::set<uint64_t> prints = {
      Parse("ring(3)").Fingerprint(), Parse("ring(3,host_bw=7GB/s)").Fingerprint(),
      Parse("ring(3,host_bw=9GB/s)").Fingerprint(), Uneven().Fingerprint()};
  EXPECT_EQ(prints.size(), 4u);
  EXPECT_EQ(FindNodeOrbits(Parse("ring(3,host_bw=7GB/s)")).num_orbits(), 1);
  EXPECT_EQ(FindNodeOrbits(Uneven()).num_orbits(), 3);
  EXPECT_EQ(FindIsomorphism(Parse("ring(3)"), Uneven()).outcome, IsomorphismSearch::Outcome::kNone);
  EXPECT_TRUE(FindTranslations(Parse("ring(3,host_bw=7GB/s)")).has_value());
  EXPECT_FALSE(FindTranslations(Uneven()).has_value());
}

TEST(HostLimits, GoThroughFiles) {
  for (const Topology& topology :
       {Parse("ring(3,host_bw=7GB/s)"), Uneven(), Parse("switch(4,host_bw=10GB/s)"),
        Parse("without(torus(3,3,host_bw=10GB/s),nodes=2)")}) {
    const std::string text = TopologyToJson(topology);
    SCOPED_TRACE(text);
    EXPECT_NE(text.find("\"version\": 2"), std::string::npos);
    const Result<Topology> back = TopologyFromJson(text);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->ToText(), topology.ToText());
    EXPECT_EQ(back->Fingerprint(), topology.Fingerprint());
    EXPECT_EQ(TopologyToJson(*back), text);
  }
  EXPECT_NE(TopologyToJson(Parse("ring(3)")).find("\"version\": 1"), std::string::npos);
}

TEST(HostLimits, FilesSayWhatIsWrong) {
  const auto fault = [](int version, const std::string& top, const std::string& first) {
    const Result<Topology> topology = TopologyFromJson(fmt::format(
        R"({{"format": "tutti-topology", "version": {}{}, "nodes": [{{"name": "a", "kind": "rank"{}}},
            {{"name": "s", "kind": "switch"}}], "links": [{{"from": "a", "to": "s", "duplex": true,
            "bandwidth_Bps": 5, "alpha_ps": 0}}]}})",
        version, top, first));
    return topology ? std::string("none") : topology.error().message;
  };
  EXPECT_EQ(fault(2, R"(, "host_bandwidth_Bps": 3)", ""), "none");
  EXPECT_EQ(fault(2, "", R"(, "host_bandwidth": "1GB/s")"), "none");
  EXPECT_NE(fault(1, R"(, "host_bandwidth_Bps": 3)", "").find("unknown key"), std::string::npos);
  EXPECT_NE(fault(1, "", R"(, "host_bandwidth_Bps": 3)").find("unknown key"), std::string::npos);
  EXPECT_NE(fault(2, R"(, "host_bandwidth_Bps": 0)", "").find("$.host_bandwidth_Bps"),
            std::string::npos);
  EXPECT_NE(fault(2, R"(, "host_bandwidth": "1", "host_bandwidth_Bps": 1)", "").find("exclude"),
            std::string::npos);
  EXPECT_NE(fault(2, "", R"(}, {"name": "b", "kind": "switch", "host_bandwidth_Bps": 3)")
                .find("a switch has no host"),
            std::string::npos);
  EXPECT_NE(fault(5, "", "").find("knows versions 1 to 4"), std::string::npos);
}

TEST(HostLimits, BuilderRefusesWhatBreaksT7) {
  const auto fault = [](int32_t rank, int64_t bandwidth) {
    Topology::Builder builder = ThreeRanks();
    builder.SetHostBandwidth(NodeId{rank}, bandwidth);
    const Result<Topology> topology = std::move(builder).Build();
    return topology ? std::string("none") : topology.error().message;
  };
  EXPECT_EQ(fault(2, int64_t{1} << 50), "none");
  EXPECT_EQ(fault(3, 1), "host limit of node 3: no rank, ranks are [0, 3)");
  EXPECT_EQ(fault(-1, 1), "host limit of node -1: no rank, ranks are [0, 3)");
  EXPECT_NE(fault(1, 0).find("rank 1: bandwidth 0"), std::string::npos);
  EXPECT_NE(fault(1, (int64_t{1} << 50) + 1).find("outside 1 .. 2^50"), std::string::npos);
}

TEST(HostLimits, OperatorsKeepOrRefuseThem) {
  for (const char* text :
       {"transpose(ring(4,host_bw=7GB/s))", "bidirectional(uniring(1,4,host_bw=7GB/s))",
        "without(ring(4,host_bw=7GB/s),links=1)", "unwind(switch(4,host_bw=7GB/s),degree=2)"}) {
    SCOPED_TRACE(text);
    const Topology topology = Parse(text);
    for (NodeId rank : topology.Ranks()) EXPECT_EQ(topology.host_bandwidth(rank), 7'000'000'000);
  }
  EXPECT_EQ(Parse("transpose(ring(4,host_bw=7GB/s),host_bw=8GB/s)").host_bandwidth(NodeId{1}),
            8'000'000'000);
  EXPECT_EQ(TransposeTopology(Uneven()).host_bandwidth(NodeId{2}), 9'000'000'000);
  EXPECT_EQ(OrderLinks(Uneven()).host_bandwidth(NodeId{0}), 7'000'000'000);
  for (const char* text :
       {"line(ring(4,host_bw=7GB/s))", "degree(ring(4,host_bw=7GB/s),2)",
        "power(ring(4,host_bw=7GB/s),2)", "product(ring(4,host_bw=7GB/s),ring(3))"})
    EXPECT_NE(FaultOf(text).find("give host_bw= to the whole"), std::string::npos) << text;
}

TEST(HostLimits, ExpressionsSayWhatIsWrong) {
  EXPECT_NE(FaultOf("ring(4,host_bw=[1,2]GB/s)").find("one value"), std::string::npos);
  EXPECT_NE(FaultOf("ring(4,host_bw=0)").find("outside 1"), std::string::npos);
  EXPECT_NE(FaultOf("ring(4,host_bw=1GB/s,host_bw=1GB/s)").find("twice"), std::string::npos);
  EXPECT_NE(FaultOf("ring(4,host=1GB/s)").find("host_bw"), std::string::npos);
  EXPECT_NE(FaultOf("host_forwarding(ring(4))").find("no host limits"), std::string::npos);
  EXPECT_NE(FaultOf("nic_forwarding(ring(4,host_bw=7GB/s),host_bw=7GB/s)").find("inside"),
            std::string::npos);
}

// Figure 2 of the paper: links come into one NIC and leave another, with the host between them.
TEST(HostLimits, AsLinksOfHostsThatForward) {
  const Result<Topology> split = HostForwarding(Uneven());
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->ToText(),
            "topology ranks=3 switches=4\n"
            "link 0 -> 4 bandwidth=7000000000 alpha_ps=0\n"
            "link 1 -> 3 bandwidth=50000000000 alpha_ps=500000\n"
            "link 1 -> 5 bandwidth=50000000000 alpha_ps=500000\n"
            "link 2 -> 6 bandwidth=9000000000 alpha_ps=0\n"
            "link 3 -> 0 bandwidth=7000000000 alpha_ps=0\n"
            "link 4 -> 1 bandwidth=50000000000 alpha_ps=500000\n"
            "link 4 -> 5 bandwidth=50000000000 alpha_ps=500000\n"
            "link 5 -> 2 bandwidth=9000000000 alpha_ps=0\n"
            "link 6 -> 1 bandwidth=50000000000 alpha_ps=500000\n"
            "link 6 -> 3 bandwidth=50000000000 alpha_ps=500000\n");
  EXPECT_EQ(split->node_name(NodeId{3}), "0:in");
  EXPECT_EQ(split->node_name(NodeId{6}), "2:out");
}

TEST(HostLimits, AsLinksOfNicsThatForward) {
  const Result<Topology> split = NicForwarding(Uneven());
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->num_nodes(), 5);
  EXPECT_EQ(split->num_links(), 6 + 4);
  EXPECT_EQ(split->node_name(NodeId{4}), "2:nic");
  EXPECT_EQ(Diameter(*split), 3);
}

TEST(HostLimits, AsLinksOrUnchanged) {
  EXPECT_EQ(HostLimitsAsLinks(Parse("ring(4)"))->ToText(), Parse("ring(4)").ToText());
  const Topology limited = Parse("ring(4,host_bw=7GB/s)");
  EXPECT_EQ(HostLimitsAsLinks(limited)->ToText(), HostForwarding(limited)->ToText());
  EXPECT_EQ(HostLimitsAsLinks(limited)->name(), "host_forwarding(ring(4,host_bw=7GB/s))");
}

}  // namespace
}  // namespace tutti
