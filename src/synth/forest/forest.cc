// forest: spanning trees packed to the proven limit of the network, through switches.
//
// Model       The tightest cut gives the number of trees a root and a link (tree_network.h),
//             switches are split off (splitting.h), trees packed (packing.h) and laid over links
//             (routed_trees.h), chunks of them timed (timing.h). What reduces goes the other way:
//             over the same trees and each link's twin, or over trees of the transposed network.
//             Switches that reduce are branched in (reducing_switches.h).
// Cost        All-gather, reduce-scatter, broadcast and reduce: the cut's bandwidth part exactly,
//             more by the height of a tree times one chunk. All-reduce: both one after the other,
//             overlapped where links are free, or by roots of unlike rates (root_rates.h) where
//             that is faster and there are no switches. Where fewer trees a root than the optimum
//             has are predicted to be faster at the size, these.
// Reference   [forestcoll]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <utility>

#include "forest/branching_trees.h"
#include "forest/packing.h"
#include "forest/reducing_switches.h"
#include "forest/root_rates.h"
#include "forest/routed_trees.h"
#include "forest/shifted_packing.h"
#include "forest/splitting.h"
#include "forest/timing.h"
#include "forest/tree_network.h"
#include "registry.h"
#include "tutti/base/units.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/transform.h"
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

Result<Trees> TreesOf(const Topology& topology, TreeNetwork network, Effort effort) {
  if (const Status split = SplitSwitches(network, effort); !split)
    return tl::unexpected(split.error());
  const Result<std::vector<PackedTree>> packed = PackForest(network, topology, effort);
  if (!packed) return tl::unexpected(packed.error());
  const int64_t at_each = network.trees_at_each;
  const Rational loss = network.loss;
  return Trees{RouteTrees(topology, network, *packed), at_each, loss};
}

// How much is done for trees that are only tried: kInfeasible for those that would take long, or
// that lose `max_loss` of the optimum's rate or more.
struct TreeTrial {
  Effort effort = Effort::kAny;
  Rational max_loss = 1;
};

Result<Trees> MakeTrees(const Topology& topology, const TreeRoots& roots,
                        const SynthOptions& options, const TreeTrial& tried) {
  Result<TreeNetwork> network = CountTrees(topology, roots, options.trees);
  if (!network) return tl::unexpected(network.error());
  if (network->loss >= tried.max_loss)
    return MakeError(ErrorCode::kInfeasible, "so few trees lose more than they gain");
  if (roots.one && options.trees == 0)
    if (std::optional<TreeNetwork> fewest = FewestTrees(topology, roots, *network))
      // Where it rounds what links carry, its switches may not come out without loss.
      if (Result<Trees> trees = TreesOf(topology, *std::move(fewest), tried.effort);
          trees || trees.error().code == ErrorCode::kCancelled)
        return trees;
  return TreesOf(topology, *std::move(network), tried.effort);
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
Result<std::vector<RoutedTree>> TreesOver(const Topology& topology, TreeNetwork network) {
  if (const Status split = SplitSwitches(network); !split) return tl::unexpected(split.error());
  const Result<std::vector<PackedTree>> packed = PackForest(network, topology);
  if (!packed) return tl::unexpected(packed.error());
  std::vector<int64_t> first(network.trees_of.size(), 0);
  std::partial_sum(network.trees_of.begin(), network.trees_of.end() - 1, first.begin() + 1);
  std::vector<RoutedTree> trees = RouteTrees(topology, network, *packed);
  for (RoutedTree& tree : trees) tree.first += first[tree.root.index()];
  return trees;
}

// All-reduce by roots of unlike rates, where that takes less than `halves`.
Result<std::optional<Forest>> RatesOver(const Topology& topology, const Collective& collective,
                                        const std::optional<Rational>& halves) {
  std::vector<LinkId> link_map;
  const Topology transpose = TransposeTopology(topology, &link_map);
  const Result<std::optional<RootRates>> rates =
      FindRootRates(topology, transpose, link_map, collective.num_shards());
  if (!rates) return tl::unexpected(rates.error());
  if (!*rates || (halves && (*rates)->seconds_per_byte > *halves)) return std::nullopt;
  // Shares of links that no longer give a switch as much as they take may keep it from coming out.
  const auto none = [](const Error& error) -> Result<std::optional<Forest>> {
    if (error.code == ErrorCode::kInfeasible) return std::nullopt;
    return tl::unexpected(error);
  };
  Result<std::vector<RoutedTree>> up = TreesOver(transpose, (*rates)->up);
  if (!up) return none(up.error());
  Result<std::vector<RoutedTree>> down = TreesOver(topology, (*rates)->down);
  if (!down) return none(down.error());
  const int64_t trees_a_shard = (*rates)->down.total() / collective.num_shards();
  return Forest{.up = Turned(*std::move(up), link_map),
                .down = *std::move(down),
                .trees_up = trees_a_shard,
                .trees_down = trees_a_shard,
                .over_all_shards = true};
}

// The same where it is faster than reduce-scatter and all-gather.
Result<std::optional<Forest>> ForestOfRates(const Topology& topology,
                                            const Collective& collective) {
  if (topology.has_switches()) return std::nullopt;
  const Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  const Rational worthwhile(999, 1000);
  std::optional<Rational> halves = bounds->rsag_seconds_per_byte;
  if (halves) *halves *= worthwhile;
  if (halves && bounds->seconds_per_byte > *halves) return std::nullopt;
  return RatesOver(topology, collective, halves);
}

// Trees over the links of `network` in both directions, as far as the collective takes them.
// `limits`: as TreeRoots has it.
Result<Forest> ForestOver(const Topology& network, const Topology* limits, int32_t num_roots,
                          const Collective& collective, const SynthOptions& options,
                          const TreeTrial& tried = {}) {
  const TreeRoots roots{.count = num_roots, .one = RootOf(collective), .limits = limits};
  const bool reduces = collective.reduces();
  const bool spreads = collective.destinations(ShardId{0}).all;
  const std::optional<std::vector<LinkId>> twins =
      reduces ? ReverseLinks(network) : std::optional<std::vector<LinkId>>();
  Forest forest;
  if (spreads || twins) {
    Result<Trees> trees = MakeTrees(network, roots, options, tried);
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
    const Topology transpose = TransposeTopology(network, &link_map);
    std::optional<Topology> limits_back;
    if (limits != nullptr) limits_back = TransposeTopology(*limits);
    Result<Trees> trees = MakeTrees(
        transpose,
        {.count = num_roots, .one = roots.one, .limits = limits_back ? &*limits_back : nullptr},
        options, tried);
    if (!trees) return tl::unexpected(trees.error());
    Note(*trees, options);
    forest.up = Turned(std::move(trees->routed), link_map);
    forest.trees_up = trees->at_each;
  }
  return forest;
}

// Bytes a second that the limit lets a collective of one direction, or an all-reduce, spread.
Result<Rational> RateOf(const Topology& topology, const Collective& collective) {
  const Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  return Rational(1) / bounds->seconds_per_byte;
}

// Rate of the trees that ForestOver() makes: all-gather, or broadcast from the root.
Result<Rational> RateOfTrees(const Topology& topology, const Collective& collective) {
  const std::optional<NodeId> root = RootOf(collective);
  Collective::Options options;
  if (root) options.root = root->value;
  const Result<Collective> spread =
      Collective::Make(root ? CollectiveKind::kBroadcast : CollectiveKind::kAllGather,
                       topology.num_ranks(), std::move(options));
  if (!spread) return tl::unexpected(spread.error());
  return RateOf(topology, *spread);
}

// Whole-buffer trees that go up and down the same links.
Forest BranchingForest(const Topology& topology, const std::vector<LinkId>& twins,
                       int32_t num_shards) {
  constexpr int32_t kBranchingTrees = 128;
  const int32_t a_shard = std::max(1, kBranchingTrees / num_shards);
  std::vector<RoutedTree> trees = BranchingTrees(topology, twins, a_shard * num_shards);
  Forest forest{.up = Turned(trees, twins),
                .down = {},
                .trees_up = a_shard,
                .trees_down = a_shard,
                .over_all_shards = true};
  forest.down = std::move(trees);
  return forest;
}

// Where switches reduce: trees branch in them.
Result<Schedule> SynthesizeWithSwitches(const Topology& topology, const Collective& collective,
                                        const SynthOptions& options) {
  const auto timed = [&](const SwitchesAsRanks& network, Forest forest) {
    forest.up = OnRealNodes(network, std::move(forest.up));
    forest.down = OnRealNodes(network, std::move(forest.down));
    return TimeForest(topology, collective, forest, options);
  };
  const Result<Rational> rate = RateOfTrees(topology, collective);
  if (!rate) return tl::unexpected(rate.error());
  const SwitchesAsRanks network = WithSwitchesAsRanks(topology, *rate);
  Result<Forest> forest =
      ForestOver(network.topology, &topology, topology.num_ranks(), collective, options);
  if (!forest && forest.error().code == ErrorCode::kInfeasible) {
    // Too many ranks once switches count: they only forward then.
    forest = ForestOver(topology, nullptr, topology.num_ranks(), collective, options);
    if (!forest) return tl::unexpected(forest.error());
    return TimeForest(topology, collective, *forest, options);
  }
  if (!forest) return tl::unexpected(forest.error());
  Result<Schedule> schedule = timed(network, *std::move(forest));
  constexpr int32_t kMaxBranchingRanks = 64;
  if (!schedule || collective.kind() != CollectiveKind::kAllReduce || options.trees > 0 ||
      topology.num_ranks() > kMaxBranchingRanks)
    return schedule;
  // Sums may also stay in switches until they are whole.
  const Result<Rational> sums = RateOf(topology, collective);
  if (!sums) return tl::unexpected(sums.error());
  const SwitchesAsRanks roots = WithSwitchesAsRanks(topology, *sums);
  Result<std::optional<Forest>> by_rates = RatesOver(roots.topology, collective, std::nullopt);
  if (!by_rates) return tl::unexpected(by_rates.error());
  const auto keep_faster = [&](Result<Schedule> other) -> Status {
    if (!other) return tl::unexpected(other.error());
    if (CompletionPs(topology, *other) < CompletionPs(topology, *schedule))
      schedule = std::move(other);
    return {};
  };
  if (*by_rates)
    if (const Status tried = keep_faster(timed(roots, **std::move(by_rates))); !tried)
      return tl::unexpected(tried.error());
  // Or no switch is in every tree.
  if (const auto twins = ReverseLinks(topology)) {
    const Forest branching = BranchingForest(topology, *twins, collective.num_shards());
    if (const Status tried = keep_faster(TimeForest(topology, collective, branching, options));
        !tried)
      return tl::unexpected(tried.error());
  }
  return schedule;
}

struct Made {
  Schedule schedule;
  int64_t trees;  // a root
};

Result<Made> MakeOptimal(const Topology& topology, const Collective& collective,
                         const SynthOptions& options) {
  const auto timed = [&](const Result<Forest>& forest) -> Result<Made> {
    if (!forest) return tl::unexpected(forest.error());
    Result<Schedule> schedule = TimeForest(topology, collective, *forest, options);
    if (!schedule) return tl::unexpected(schedule.error());
    return Made{*std::move(schedule), std::max(forest->trees_up, forest->trees_down)};
  };
  if (collective.kind() == CollectiveKind::kAllReduce && options.trees == 0) {
    Result<std::optional<Forest>> forest = ForestOfRates(topology, collective);
    if (!forest) return tl::unexpected(forest.error());
    if (*forest) return timed(**std::move(forest));
  }
  return timed(ForestOver(topology, nullptr, topology.num_ranks(), collective, options));
}

// Fewer trees carry larger chunks, each of which takes its alpha once a link: of small shards that
// is worth more than the rate that they lose.
constexpr std::array<int32_t, 8> kFewerTrees = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr int64_t kMaxFewerTreesWork = int64_t{1} << 18;  // ranks times links

bool TriesFewerTrees(const Topology& topology, const SynthOptions& options) {
  return options.trees == 0 &&
         int64_t{topology.num_ranks()} * topology.num_links() <= kMaxFewerTreesWork;
}

Result<Schedule> WithFewerTrees(const Topology& topology, const Collective& collective,
                                const SynthOptions& options, Made best) {
  const Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  const auto limit_ps = bounds->Limit(options.size_bytes) * Rational(kPicosecondsPerSecond);
  const Rational nearly(101, 100);
  const int64_t all = best.trees;
  int64_t best_ps = CompletionPs(topology, best.schedule);
  for (const int32_t trees : kFewerTrees) {
    if (trees >= all || Rational(best_ps) <= limit_ps * nearly) break;
    SynthOptions fewer = options;
    SynthNotes notes;
    fewer.trees = trees;
    fewer.notes = &notes;
    const auto skipped = [](const Error& error) { return error.code == ErrorCode::kInfeasible; };
    // Trees of a known rate are no faster than it, within the part that it is known to.
    const Rational known(1023, 1024);
    const Result<Forest> forest = ForestOver(
        topology, nullptr, topology.num_ranks(), collective, fewer,
        {.effort = Effort::kQuick, .max_loss = Rational(1) - known * limit_ps / Rational(best_ps)});
    if (!forest && skipped(forest.error())) continue;
    if (!forest) return tl::unexpected(forest.error());
    Result<Schedule> schedule = TimeForest(topology, collective, *forest, fewer);
    if (!schedule) return schedule;
    const int64_t end_ps = CompletionPs(topology, *schedule);
    if (end_ps >= best_ps) continue;
    best_ps = end_ps;
    best.schedule = *std::move(schedule);
    if (options.notes != nullptr) *options.notes = std::move(notes);
  }
  return std::move(best.schedule);
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  if (topology.has_reducing_switches())
    return SynthesizeWithSwitches(topology, collective, options);
  Result<Made> made = MakeOptimal(topology, collective, options);
  if (!made) return tl::unexpected(made.error());
  if (made->trees <= 1 || !TriesFewerTrees(topology, options)) return std::move(made->schedule);
  return WithFewerTrees(topology, collective, options, *std::move(made));
}

// Switches that join others, as the levels of a fat tree do and a box's cards do not: removing one
// looks at lanes between all pairs of ranks.
int64_t JoiningSwitches(const Topology& topology) {
  int64_t joining = 0;
  for (const NodeId node : topology.Nodes()) {
    if (topology.is_rank(node)) continue;
    std::set<NodeId> others;
    for (const LinkId link : topology.OutLinks(node))
      if (!topology.is_rank(topology.head(link))) others.insert(topology.head(link));
    if (others.size() > 1) ++joining;
  }
  return joining;
}

// About a microsecond for every lane that a flow sees, two flows a branch. Equal boxes are packed
// without flows: what is left are tests of all ranks, the switches that join boxes, and the messages.
Forecast ForecastOf(const Topology& topology, const Collective& collective,
                    const SynthOptions& options) {
  constexpr double kNsALane = 1000, kNsATestedLane = 400, kNsAMessage = 1000, kNsAPair = 400,
                   kMost = 9e18;
  constexpr double kTriedMessages = 600'000, kTimes = 8;
  const double n = topology.num_ranks();
  const double roots = RootOf(collective) ? 1 : n;
  double work = 0;
  // Unwound networks have lanes of many sizes, which often do not fit without flows.
  if (n > kFewRanks && topology.has_switches() && SeemsShifted(topology)) {
    const double ways = collective.kind() == CollectiveKind::kAllReduce ? 2 : 1;
    work = n * topology.num_links() * kNsATestedLane +
           static_cast<double>(JoiningSwitches(topology)) * n * n * kNsAPair +
           ways * std::max(kTriedMessages, 2 * roots * n) * kNsAMessage;
    if (TriesFewerTrees(topology, options)) work *= kTimes;
  } else {
    const double lanes = topology.num_links() + (topology.has_switches() ? n * n / 4 : 0);
    // Trees of one root are alike in few lanes: about as many classes as a rank has lanes.
    const double classes = RootOf(collective) && n > kFewRanks ? std::max(1.0, lanes / n) : 1;
    work = 2 * roots * classes * n * lanes * kNsALane;
  }
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
          .options = {SynthOption::kTrees},
          .groups = GroupUse::kThroughOthers};
}

}  // namespace tutti
