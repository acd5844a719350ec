// c-cube: all-reduce over two binary trees of a DGX-1 that share no link, half of the data each.
//
// Model       Tree A and its image under rank g -> g + 4 modulo 8, a symmetry of the machine:
//             depth 3, at most two children, together at most 4 of the 6 NVLinks of a rank (2 at
//             ranks 3 and 7, leaves of both), every NVLink at most once.
//                 A   0 -> 1, 4;  1 -> 2, 3;  4 -> 6;  6 -> 5, 7
//                 B   4 -> 5, 0;  5 -> 6, 7;  0 -> 2;  2 -> 1, 3
//             Chunks go up and down as a pipeline (baselines/tree_pipeline.h).
// Cost        chunks / 2 + 5 steps of 1 / chunks of M over one NVLink.
// Reference   [c-cube] as [tacos] sections V.A and VI.5 tell it. Assumption: the layout of its
//             figure 10(c) is not public; these trees have what is told of it: two, binary, without
//             contention, 4 of 6 links per rank. Reduction and broadcast overlap chunk by chunk.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "baselines/tree_pipeline.h"
#include "classic/link_index.h"
#include "registry.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace baselines {
namespace {

constexpr std::string_view kCCube = "c-cube";
constexpr int32_t kNumRanks = 8, kHalf = 4;
// Parents before children.
constexpr std::array<std::pair<int32_t, int32_t>, kNumRanks - 1> kTreeA{
    {{0, 1}, {0, 4}, {1, 2}, {1, 3}, {4, 6}, {6, 5}, {6, 7}}};

Result<std::vector<Tree>> LayOut(const Topology& topology) {
  const auto other = [&](const std::string& why) {
    return MakeError(ErrorCode::kInfeasible, fmt::format("'{}' is laid out for dgx1; '{}' has {}",
                                                         kCCube, topology.name(), why));
  };
  if (topology.num_ranks() != kNumRanks || topology.has_switches())
    return other(fmt::format("{} ranks and {} switches", topology.num_ranks(),
                             topology.num_nodes() - topology.num_ranks()));
  const std::optional<std::vector<LinkId>> twin = ReverseLinks(topology);
  if (!twin) return other("links without a reverse of the same bandwidth and alpha");
  const classic::LinkIndex links(topology.graph());
  std::vector<bool> taken(static_cast<size_t>(topology.num_links()), false);
  std::vector<Tree> trees;
  for (int32_t shift : {0, kHalf}) {
    Tree tree{NodeId{shift}, {}};
    for (const auto& [a, b] : kTreeA) {
      const NodeId parent{(a + shift) % kNumRanks}, child{(b + shift) % kNumRanks};
      const size_t before = tree.down.size();
      for (LinkId link : links.Between(parent, child)) {
        if (taken[link.index()]) continue;
        taken[link.index()] = taken[(*twin)[link.index()].index()] = true;
        tree.down.push_back(link);
        break;
      }
      if (tree.down.size() == before)
        return other(fmt::format("too few links {} - {}", parent.value, child.value));
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

Result<Schedule> SynthesizeCCube(const Topology& topology, const Collective& collective,
                                 const SynthOptions& options) {
  return LayOut(topology).and_then([&](std::vector<Tree> trees) {
    return MakeTreeAllReduce(kCCube, topology, collective, options, {std::move(trees)});
  });
}

}  // namespace
}  // namespace baselines

Synthesizer CCubeSynthesizer() {
  return {.name = baselines::kCCube,
          .description = "C-Cube: two binary trees over a DGX-1 that share no link",
          .collectives = {CollectiveKind::kAllReduce},
          .synthesize = baselines::SynthesizeCCube,
          .one_shard_all_reduce = true,
          .chunk_choice = true};
}

}  // namespace tutti
