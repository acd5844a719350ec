#include "tutti/lower/nccl_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedules.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers

// What of one <graph> comes back: its attributes, and the orders.
struct Graph {
  std::string id, pattern;
  std::vector<std::vector<int32_t>> channels;  // ranks
  std::vector<std::vector<int32_t>> nics;
  std::string speed_intra, speed_inter, cross_nic;
};

std::string Attribute(const std::string& tag, const std::string& name) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(tag, match, std::regex(" " + name + "=\"([^\"]*)\""))) << tag;
  return match.str(1);
}

std::vector<Graph> Read(const std::string& xml) {
  std::vector<Graph> graphs;
  const std::regex tags("<[^>]*>");
  for (std::sregex_iterator at(xml.begin(), xml.end(), tags), end; at != end; ++at) {
    const std::string tag = at->str();
    if (tag.starts_with("<graph "))
      graphs.push_back({Attribute(tag, "id"),
                        Attribute(tag, "pattern"),
                        {},
                        {},
                        Attribute(tag, "speedintra"),
                        Attribute(tag, "speedinter"),
                        Attribute(tag, "crossnic")});
    if (tag == "<channel>") {
      graphs.back().channels.emplace_back();
      graphs.back().nics.emplace_back();
    }
    if (tag.starts_with("<gpu "))
      graphs.back().channels.back().push_back(std::stoi(Attribute(tag, "rank")));
    if (tag.starts_with("<net "))
      graphs.back().nics.back().push_back(std::stoi(Attribute(tag, "dev")));
  }
  return graphs;
}

std::string MustWriteGraph(const Topology& topology, const Schedule& schedule,
                           const NcclGraphOptions& options = {}) {
  const Result<std::string> xml = ToNcclGraph(topology, schedule, options);
  EXPECT_TRUE(xml.has_value()) << xml.error().message;
  return xml.value_or("");
}

Schedule MustSynthesize(const Topology& topology, CollectiveKind kind, const char* name) {
  const Result<Schedule> schedule =
      RunSynthesizer(**FindSynthesizer(name), topology, MustMake(kind, topology.num_ranks()), {});
  EXPECT_TRUE(schedule.has_value()) << schedule.error().message;
  return *schedule;
}

TEST(NcclGraphTest, WorkedExample) {
  const Topology ring = UniRing(3);  // links of 50 GB/s
  EXPECT_EQ(MustWriteGraph(ring, RingAllGather(ring)),
            "<graphs version=\"1\">\n"
            "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"50.000\" "
            "speedinter=\"50.000\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" "
            "samechannels=\"1\">\n"
            "    <channel>\n"
            "      <gpu dev=\"0\" rank=\"0\"/>\n"
            "      <gpu dev=\"1\" rank=\"1\"/>\n"
            "      <gpu dev=\"2\" rank=\"2\"/>\n"
            "    </channel>\n"
            "  </graph>\n"
            "</graphs>\n");
}

TEST(NcclGraphTest, BoxesGetTheirPartOfTheRingAndTheirNics) {
  const Topology ring = UniRing(6);
  const Schedule schedule = RingAllGather(ring);
  for (int32_t box = 0; box < 2; ++box) {
    const auto graphs = Read(MustWriteGraph(ring, schedule, {.box_ranks = 3, .box = box}));
    ASSERT_EQ(graphs.size(), 1U);
    EXPECT_EQ(graphs[0].channels,
              (std::vector<std::vector<int32_t>>{{3 * box, 3 * box + 1, 3 * box + 2}}));
    EXPECT_EQ(graphs[0].nics, (std::vector<std::vector<int32_t>>{{0, 2}}));
    EXPECT_EQ(graphs[0].cross_nic, "1");
  }
  const auto shared = Read(MustWriteGraph(ring, schedule, {.box_ranks = 3, .box = 1, .nics = 1}));
  EXPECT_EQ(shared[0].nics, (std::vector<std::vector<int32_t>>{{0, 0}}));
  EXPECT_EQ(shared[0].cross_nic, "0");
}

TEST(NcclGraphTest, PathsAreTrees) {
  // All-reduce on 0 - 1 - 2: to rank 2 and back.
  const Topology path = Path(3);
  Schedule schedule =
      Empty(path, MustMake(CollectiveKind::kAllReduce, 3, {.all_reduce_shards = 1}));
  Add(schedule, 0, 0, LinkOf(path, 0, 1), TransferOp::kReduce);
  Add(schedule, 1, 0, LinkOf(path, 1, 2), TransferOp::kReduce);
  Add(schedule, 2, 0, LinkOf(path, 2, 1));
  Add(schedule, 3, 0, LinkOf(path, 1, 0));
  const auto graphs = Read(MustWriteGraph(path, schedule));
  ASSERT_EQ(graphs.size(), 1U);
  EXPECT_EQ(graphs[0].id, "1");
  EXPECT_EQ(graphs[0].channels, (std::vector<std::vector<int32_t>>{{0, 1, 2}}));
}

TEST(NcclGraphProperty, RingsComeBackAsHamiltonianCyclesOfTheNetworksLinks) {
  for (const char* network : {"ring(5)", "torus(4,4)", "complete(5)", "hypercube(3)", "dgx1"})
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                      CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}) {
      SCOPED_TRACE(std::string(network) + " " + std::string(Name(kind)));
      const Result<Topology> topology = ParseTopology(network);
      const auto graphs = Read(MustWriteGraph(*topology, MustSynthesize(*topology, kind, "ring")));
      ASSERT_EQ(graphs.size(), 1U);
      EXPECT_EQ(graphs[0].pattern, "4");
      std::vector<int32_t> all(static_cast<size_t>(topology->num_ranks()));
      std::iota(all.begin(), all.end(), 0);
      for (const std::vector<int32_t>& order : graphs[0].channels) {
        EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), all.begin(), all.end()));
        for (size_t i = 0; i < order.size(); ++i) {
          bool linked = false;
          for (LinkId link : topology->OutLinks(NodeId{order[i]}))
            linked = linked || topology->head(link) == NodeId{order[(i + 1) % order.size()]};
          EXPECT_TRUE(linked) << i;
        }
      }
    }
}

TEST(NcclGraphTest, ImportedAndDgxLikeBoxesHaveRingsOnceTheirSwitchesAreUnwound) {
  for (const char* network : {"unwind(switch(4),degree=1)", "unwind(dgx_h100(1),degree=1)"}) {
    const Result<Topology> box = ParseTopology(network);
    ASSERT_TRUE(box.has_value()) << box.error().message;
    const auto graphs =
        Read(MustWriteGraph(*box, MustSynthesize(*box, CollectiveKind::kAllReduce, "ring")));
    ASSERT_EQ(graphs.size(), 1U);
    EXPECT_EQ(graphs[0].id, "0");
    EXPECT_EQ(graphs[0].channels[0].size(), static_cast<size_t>(box->num_ranks()));
  }
}

TEST(NcclGraphTest, WhatIsNeitherIsNamed) {
  const Topology complete = Complete(4);
  const Schedule direct = MustSynthesize(complete, CollectiveKind::kAllGather, "direct");
  const Result<std::string> refused = ToNcclGraph(complete, direct);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(refused.error().message,
            "rank 0 sends one chunk to 3 ranks: neither a ring nor a path, and NCCL's graphs have "
            "no others");
  const Topology ring = UniRing(4);
  for (const auto& [options, message] : std::vector<std::pair<NcclGraphOptions, std::string>>{
           {{.box_ranks = 3}, "4 ranks are not boxes of --box-ranks 3"},
           {{.box_ranks = 2, .box = 2}, "--box is 2; there are 2 boxes, from 0 on"}}) {
    const Result<std::string> bad = ToNcclGraph(ring, RingAllGather(ring), options);
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().message, message);
  }
}

}  // namespace
}  // namespace tutti
