#include "tutti/lower/nccl_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
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

// As its older readers take it, and its newer ones: the same number.
int32_t Device(const std::string& tag) {
  const std::string text = Attribute(tag, "dev");
  EXPECT_EQ(std::stoi(text, nullptr, 0), std::stoi(text, nullptr, 16)) << tag;
  return std::stoi(text, nullptr, 16);
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
    if (tag.starts_with("<net ")) graphs.back().nics.back().push_back(Device(tag));
  }
  return graphs;
}

std::string MustWriteGraph(const Topology& topology, const Schedule& schedule,
                           const NcclGraphOptions& options = {}) {
  const Result<NcclGraph> graph = ToNcclGraph(topology, schedule, options);
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  if (!graph) return "";
  EXPECT_EQ(graph->note, "");
  return graph->xml;
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
  // From the root on, to which NCCL reduces.
  EXPECT_EQ(graphs[0].channels, (std::vector<std::vector<int32_t>>{{2, 1, 0}}));
}

// --- Trees over boxes -----------------------------------------------------------------------

// How NCCL joins `parent.size()` boxes, by hand: the parent of each, and which are second children.
struct Joins {
  std::vector<int32_t> parent;
  std::set<int32_t> second;
};
const std::vector<std::vector<Joins>>& JoinsByHand() {
  static const std::vector<std::vector<Joins>> joins = {
      {{{-1, 0}, {1}}, {{1, -1}, {0}}},
      {{{-1, 2, 0}, {2}}, {{1, -1, 0}, {0}}},
      {{{-1, 2, 0, 2}, {2, 3}}, {{1, 3, 1, -1}, {0, 1}}},
      {{{-1, 2, 4, 2, 0}, {3, 4}}, {{1, -1, 3, 0, 3}, {0, 4}}},
  };
  return joins;
}

using Edge = std::pair<int32_t, int32_t>;  // parent, child
using Paths = std::vector<std::vector<int32_t>>;

// The tree that NCCL makes of the boxes' paths, of two or more GPUs each.
std::set<Edge> TreeOf(const Paths& paths, int pattern, const Joins& joins) {
  std::set<Edge> edges;
  for (size_t box = 0; box < paths.size(); ++box) {
    for (size_t i = 1; i < paths[box].size(); ++i) edges.emplace(paths[box][i - 1], paths[box][i]);
    if (joins.parent[box] < 0) continue;
    const auto& above = paths[static_cast<size_t>(joins.parent[box])];
    const bool is_second = joins.second.count(static_cast<int32_t>(box)) > 0;
    const size_t place = pattern == 3 ? 0 : pattern == 2 ? 1 : is_second ? 0 : 1;
    edges.emplace(above[place], paths[box][0]);
  }
  return edges;
}

int32_t RootOf(const std::set<Edge>& tree) {
  std::set<int32_t> children;
  for (const auto& [parent, child] : tree) children.insert(child);
  for (const auto& [parent, child] : tree)
    if (children.count(parent) == 0) return parent;
  return -1;
}

// An all-reduce of one unit along each tree, up and down again, on a complete network.
Schedule AlongTrees(const Topology& complete, const std::vector<std::set<Edge>>& trees) {
  const int32_t n = complete.num_ranks();
  const auto units = static_cast<int32_t>(trees.size());
  Schedule schedule =
      Empty(complete, MustMake(CollectiveKind::kAllReduce, n, {.all_reduce_shards = 1}), units);
  schedule.num_steps = 2 * n;
  for (int32_t unit = 0; unit < units; ++unit) {
    const std::set<Edge>& tree = trees[static_cast<size_t>(unit)];
    std::map<int32_t, int32_t> depth{{RootOf(tree), 0}};
    for (int32_t round = 0; round < n; ++round)
      for (const auto& [parent, child] : tree)
        if (depth.count(parent) > 0) depth[child] = depth[parent] + 1;
    for (const auto& [parent, child] : tree) {
      const auto add = [&](int32_t from, int32_t to, int32_t step, TransferOp op) {
        schedule.transfers.push_back(
            {ShardId{0}, LinkOf(complete, from, to), unit, unit + 1, step, op});
      };
      add(child, parent, n - depth[child], TransferOp::kReduce);
      add(parent, child, n + depth[child] - 1, TransferOp::kCopy);
    }
  }
  return schedule;
}

// Orders of the GPUs of each box at random.
Paths RandomPaths(int32_t boxes, int32_t gpus, std::mt19937& random) {
  Paths paths(static_cast<size_t>(boxes));
  for (int32_t box = 0; box < boxes; ++box) {
    auto& path = paths[static_cast<size_t>(box)];
    path.resize(static_cast<size_t>(gpus));
    std::iota(path.begin(), path.end(), box * gpus);
    for (size_t i = path.size(); i > 1; --i) std::swap(path[i - 1], path[random() % i]);
  }
  return paths;
}

TEST(NcclGraphProperty, TreesOverBoxesComeBackAsNcclJoinsThem) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto& joins = JoinsByHand()[random() % JoinsByHand().size()];
    const auto boxes = static_cast<int32_t>(joins[0].parent.size());
    // Of two GPUs a box both trees are one path each, and together a ring.
    const int32_t gpus = 3 + static_cast<int32_t>(random() % 2);
    const int pattern = 1 + static_cast<int>(random() % 3);
    const Topology complete = Complete(boxes * gpus);
    std::vector<Paths> channels;
    std::vector<std::set<Edge>> trees;
    for (const size_t count = 1 + random() % 2; channels.size() < count;) {
      channels.push_back(RandomPaths(boxes, gpus, random));
      for (const Joins& join : joins) trees.push_back(TreeOf(channels.back(), pattern, join));
    }
    std::map<int, Paths> read;  // by channel
    int read_pattern = 0;
    const Schedule schedule = AlongTrees(complete, trees);
    for (int32_t box = 0; box < boxes; ++box) {
      const auto graphs = Read(MustWriteGraph(complete, schedule, {.box_ranks = gpus, .box = box}));
      ASSERT_EQ(graphs.size(), 1U);
      EXPECT_EQ(graphs[0].id, "1");
      read_pattern = std::stoi(graphs[0].pattern);
      std::set<std::vector<int32_t>> wanted,
          got(graphs[0].channels.begin(), graphs[0].channels.end());
      for (const Paths& paths : channels) wanted.insert(paths[static_cast<size_t>(box)]);
      EXPECT_EQ(got, wanted);
      for (size_t c = 0; c < graphs[0].channels.size(); ++c) {
        const auto& path = graphs[0].channels[c];
        const int32_t exit = read_pattern == 3 ? path[0] : path[1];
        EXPECT_EQ(graphs[0].nics[c],
                  (std::vector<int32_t>{path[0] - box * gpus, exit - box * gpus}));
      }
      if (channels.size() == 1) read[0].push_back(graphs[0].channels[0]);
    }
    // What NCCL makes of the files is what the schedule was made of.
    if (channels.size() > 1) continue;
    for (size_t tree = 0; tree < 2; ++tree)
      EXPECT_EQ(TreeOf(read[0], read_pattern, joins[tree]), trees[tree]) << tree;
  }
}

TEST(NcclGraphTest, BoxesOfOneGpuHangOnIt) {
  const Topology complete = Complete(4);
  const Paths single{{0}, {1}, {2}, {3}};
  std::vector<std::set<Edge>> trees;
  for (const Joins& joins : JoinsByHand()[2]) trees.push_back(TreeOf(single, 3, joins));
  const auto graphs = Read(MustWriteGraph(complete, AlongTrees(complete, trees), {.box_ranks = 1}));
  ASSERT_EQ(graphs.size(), 1U);
  EXPECT_EQ(graphs[0].pattern, "3");
  EXPECT_EQ(graphs[0].channels, (Paths{{0}}));
  EXPECT_EQ(graphs[0].nics, (Paths{{0, 0}}));
  EXPECT_EQ(graphs[0].cross_nic, "0");
}

// The paths are kept, the joins are not: a row of boxes; NCCL's own joins, but one tree of them only.
TEST(NcclGraphTest, JoinsThatAreNotNcclsAreNoted) {
  const Topology complete = Complete(6);
  const Paths paths{{1, 0}, {2, 3}, {5, 4}};
  for (const Joins& joins : {Joins{{-1, 0, 1}, {1, 2}}, JoinsByHand()[1][0]}) {
    const Schedule schedule = AlongTrees(complete, {TreeOf(paths, 3, joins)});
    const Result<NcclGraph> graph = ToNcclGraph(complete, schedule, {.box_ranks = 2, .box = 2});
    ASSERT_TRUE(graph.has_value()) << graph.error().message;
    EXPECT_NE(graph->note.find("double binary tree"), std::string::npos);
    EXPECT_EQ(Read(graph->xml)[0].channels, (Paths{{5, 4}}));
    EXPECT_EQ(Read(graph->xml)[0].pattern, "3");
  }
}

TEST(NcclGraphTest, DevicesPastNineAreReadAlikeByAllReaders) {
  const Topology ring = UniRing(24);
  const auto graphs = Read(MustWriteGraph(ring, RingAllGather(ring), {.box_ranks = 12}));
  EXPECT_EQ(graphs[0].nics, (Paths{{0, 11}}));
}

struct RefusedTree {
  const char* name;
  int32_t ranks, box_ranks;
  std::vector<std::set<Edge>> trees;
  const char* message;
};

class NcclGraphRefuses : public testing::TestWithParam<RefusedTree> {};

TEST_P(NcclGraphRefuses, TreesThatTheFormatHasNoWordsFor) {
  const RefusedTree& row = GetParam();
  const Topology complete = Complete(row.ranks);
  const Result<NcclGraph> refused =
      ToNcclGraph(complete, AlongTrees(complete, row.trees), {.box_ranks = row.box_ranks});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(refused.error().message,
            std::string(row.message) +
                "; NCCL's graphs hold rings, and trees of paths within each box; --to mscclpp and "
                "--to msccl-xml hold this schedule");
}

INSTANTIATE_TEST_SUITE_P(
    All, NcclGraphRefuses,
    testing::Values(RefusedTree{"ForkInABox",
                                4,
                                0,
                                {{{0, 1}, {1, 2}, {1, 3}}},
                                "rank 1 has ranks 2 and 3 of its box below it"},
                    RefusedTree{"RootInTheMiddle",
                                3,
                                0,
                                {{{1, 0}, {1, 2}}},
                                "rank 1 has ranks 0 and 2 of its box below it"},
                    RefusedTree{"BoxEnteredTwice",
                                4,
                                2,
                                {{{0, 1}, {0, 2}, {1, 3}}},
                                "a tree enters box 1 at ranks 2 and 3"},
                    RefusedTree{"HangsOnTheThird",
                                6,
                                3,
                                {{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}},
                                "box 1 hangs on rank 2, which is number 3 of the path in box 0: "
                                "other boxes hang on the first two"},
                    RefusedTree{"ThreeBoxesBelow",
                                4,
                                1,
                                {{{0, 1}, {0, 2}, {0, 3}}},
                                "box 0 has more than two boxes below it"},
                    RefusedTree{"TwoPatterns",
                                6,
                                2,
                                {{{0, 1}, {0, 2}, {2, 3}, {0, 4}, {4, 5}},
                                 {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}},
                                "boxes hang on the first GPU of a path in one tree and on the "
                                "second in another, more than one pattern says"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(NcclGraphTest, ReductionsAndCopiesByDifferentTreesAreRefused) {
  const Topology complete = Complete(3);
  Schedule schedule =
      Empty(complete, MustMake(CollectiveKind::kAllReduce, 3, {.all_reduce_shards = 1}));
  Add(schedule, 0, 0, LinkOf(complete, 2, 1), TransferOp::kReduce);
  Add(schedule, 1, 0, LinkOf(complete, 1, 0), TransferOp::kReduce);
  Add(schedule, 2, 0, LinkOf(complete, 0, 1));
  Add(schedule, 2, 0, LinkOf(complete, 0, 2));
  const Result<NcclGraph> refused = ToNcclGraph(complete, schedule);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().message.starts_with(
      "a chunk that rank 0 sends goes neither round a ring of all ranks nor along a tree of them"))
      << refused.error().message;
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
  const Result<NcclGraph> refused = ToNcclGraph(complete, direct);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_TRUE(refused.error().message.starts_with("rank 0 has ranks 1 and 2 of its box below it"))
      << refused.error().message;
  const Topology ring = UniRing(4);
  for (const auto& [options, message] : std::vector<std::pair<NcclGraphOptions, std::string>>{
           {{.box_ranks = 3}, "4 ranks are not boxes of --box-ranks 3"},
           {{.box_ranks = 2, .box = 2}, "--box is 2; there are 2 boxes, from 0 on"}}) {
    const Result<NcclGraph> bad = ToNcclGraph(ring, RingAllGather(ring), options);
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().message, message);
  }
}

}  // namespace
}  // namespace tutti
