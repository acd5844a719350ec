// forest: spanning trees packed to the proven limit of the network, through switches.
//
// Model       The tightest cut gives the number of trees a root and a link (tree_network.h),
//             switches are split off (splitting.h), trees packed (packing.h) and laid over links
//             (routed_trees.h), chunks of them timed (timing.h). What reduces goes the other way:
//             over the same trees and each link's twin, or over trees of the transposed network.
// Cost        All-gather, reduce-scatter, broadcast and reduce: the cut's bandwidth part exactly,
//             more by the height of a tree times one chunk. All-reduce: both one after the other,
//             overlapped where links are free, or by roots of unlike rates (root_rates.h) where
//             that is faster and there are no switches.
// Reference   [forestcoll]
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "forest/packing.h"
#include "forest/root_rates.h"
#include "forest/routed_trees.h"
#include "forest/splitting.h"
#include "forest/timing.h"
#include "forest/tree_network.h"
#include "registry.h"
#include "tutti/bounds/bounds.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace forest {
namespace {

constexpr std::string_view kName = "forest";

struct Trees {
  std::vector<RoutedTree> routed;
  int64_t at_each = 1;
  Rational loss;
};

Result<Trees> TreesOf(const Topology& topology, TreeNetwork network) {
  if (const Status split = SplitSwitches(network); !split) return tl::unexpected(split.error());
  const Result<std::vector<PackedTree>> packed = PackForest(network);
  if (!packed) return tl::unexpected(packed.error());
  const int64_t at_each = network.trees_at_each;
  const Rational loss = network.loss;
  return Trees{RouteTrees(topology, network, *packed), at_each, loss};
}

Result<Trees> MakeTrees(const Topology& topology, std::optional<NodeId> root,
                        const SynthOptions& options) {
  Result<TreeNetwork> network = CountTrees(topology, root, options.trees);
  if (!network) return tl::unexpected(network.error());
  if (root && options.trees == 0)
    if (std::optional<TreeNetwork> fewest = FewestTrees(topology, *root, *network))
      // Where it rounds what links carry, its switches may not come out without loss.
      if (Result<Trees> trees = TreesOf(topology, *std::move(fewest));
          trees || trees.error().code == ErrorCode::kCancelled)
        return trees;
  return TreesOf(topology, *std::move(network));
}

// What the trees of one direction, the slower one, lose of the network's rate.
void Note(const Trees& trees, const SynthOptions& options) {
  if (options.notes == nullptr || trees.loss == Rational(0)) return;
  const double loss = trees.loss.ToDouble();
  if (options.notes->gap.value_or(0) >= loss) return;
  options.notes->gap = loss;
  options.notes->remark =
      fmt::format("trees a root: {}, which reach at least {:.4g} % of the optimal rate",
                  trees.at_each, 100 * (1 - loss));
}

std::optional<NodeId> RootOf(const Collective& collective) {
  if (collective.has_root()) return collective.root();
  if (collective.num_shards() == 1) return NodeId{0};
  return std::nullopt;
}

// The trees of all roots, numbered one root after the other.
Result<std::vector<RoutedTree>> TreesOver(const Topology& topology, const TreeNetwork& network) {
  const Result<std::vector<PackedTree>> packed = PackForest(network);
  if (!packed) return tl::unexpected(packed.error());
  std::vector<int64_t> first(network.trees_of.size(), 0);
  std::partial_sum(network.trees_of.begin(), network.trees_of.end() - 1, first.begin() + 1);
  std::vector<RoutedTree> trees = RouteTrees(topology, network, *packed);
  for (RoutedTree& tree : trees) tree.first += first[tree.root.index()];
  return trees;
}

// All-reduce by roots of unlike rates, where that is faster than reduce-scatter and all-gather.
Result<std::optional<Forest>> ForestOfRates(const Topology& topology,
                                            const Collective& collective) {
  const Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  const Rational worthwhile(999, 1000);
  const std::optional<Rational>& halves = bounds->rsag_seconds_per_byte;
  if (halves && bounds->seconds_per_byte > *halves * worthwhile) return std::nullopt;
  std::vector<LinkId> link_map;
  const Topology transpose = TransposeTopology(topology, &link_map);
  const Result<std::optional<RootRates>> rates = FindRootRates(topology, transpose, link_map);
  if (!rates) return tl::unexpected(rates.error());
  if (!*rates || (halves && (*rates)->seconds_per_byte > *halves * worthwhile)) return std::nullopt;
  Result<std::vector<RoutedTree>> up = TreesOver(transpose, (*rates)->up);
  if (!up) return tl::unexpected(up.error());
  Result<std::vector<RoutedTree>> down = TreesOver(topology, (*rates)->down);
  if (!down) return tl::unexpected(down.error());
  const int64_t trees_a_shard = (*rates)->down.total() / collective.num_shards();
  return Forest{.up = Turned(*std::move(up), link_map),
                .down = *std::move(down),
                .trees_up = trees_a_shard,
                .trees_down = trees_a_shard,
                .over_all_shards = true};
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  if (collective.kind() == CollectiveKind::kAllReduce && options.trees == 0) {
    const Result<std::optional<Forest>> forest = ForestOfRates(topology, collective);
    if (!forest) return tl::unexpected(forest.error());
    if (*forest) return TimeForest(topology, collective, **forest, options);
  }
  const std::optional<NodeId> root = RootOf(collective);
  const bool reduces = collective.reduces();
  const bool spreads = collective.destinations(ShardId{0}).all;
  const std::optional<std::vector<LinkId>> twins =
      reduces ? ReverseLinks(topology) : std::optional<std::vector<LinkId>>();
  Forest forest;
  if (spreads || twins) {
    Result<Trees> trees = MakeTrees(topology, root, options);
    if (!trees) return tl::unexpected(trees.error());
    Note(*trees, options);
    if (twins) {
      forest.up = Turned(trees->routed, *twins);
      forest.trees_up = trees->at_each;
    }
    if (spreads) {
      forest.down = std::move(trees->routed);
      forest.trees_down = trees->at_each;
    }
  }
  if (reduces && !twins) {
    std::vector<LinkId> link_map;
    const Topology transpose = TransposeTopology(topology, &link_map);
    Result<Trees> trees = MakeTrees(transpose, root, options);
    if (!trees) return tl::unexpected(trees.error());
    Note(*trees, options);
    forest.up = Turned(std::move(trees->routed), link_map);
    forest.trees_up = trees->at_each;
  }
  return TimeForest(topology, collective, forest, options);
}

// About a microsecond for every lane that a flow sees, two flows a branch.
Forecast ForecastOf(const Topology& topology, const Collective& collective,
                    const SynthOptions& /*options*/) {
  const double n = topology.num_ranks();
  const double roots = RootOf(collective) ? 1 : n;
  const double lanes = topology.num_links() + (topology.has_switches() ? n * n / 4 : 0);
  constexpr double kNsALane = 1000, kMost = 9e18;
  const double work = 2 * roots * n * lanes * kNsALane;
  return {.work_ns = static_cast<int64_t>(std::min(kMost, work)), .steps_only = false};
}

}  // namespace
}  // namespace forest

Synthesizer ForestSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = forest::kName,
          .description = "spanning trees packed to the proven limit, through switches",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                          Kind::kBroadcast, Kind::kReduce},
          .synthesize = forest::Synthesize,
          .reduces_through_switches = true,
          .forecast = forest::ForecastOf,
          .options = {SynthOption::kTrees}};
}

}  // namespace tutti
