// [direct-connect] figure 7: all-reduce and all-to-all against N at degree 4.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alltoall_mcf/circulant_flow.h"
#include "baselines.h"
#include "direct.h"
#include "networks.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace direct_figure7 {
namespace {

using direct::Figure;
using direct::Word;

constexpr int32_t kLargest = 1024, kSmallest = 8, kStep = 4;
// The paper's words are of N = 900 .. 1000. Flows without a closed form are computed at every
// kFlowEvery-th N and, in that window, kWindowStep apart.
constexpr int32_t kFlowEvery = 64, kWindowBegin = 900, kWindowEnd = 1000, kWindowStep = 17;
constexpr double kFigureGap = 2e-3;

using ByRanks = std::map<int32_t, Rational>;  // microseconds

// [F.4] The circulant of degree 4 with the fewest steps, theorem 22: strides m and m + 1.
int32_t BestStride(int32_t ranks) {
  int32_t m = 1;
  while (2 * m * (m + 1) + 1 < ranks) ++m;
  return m;
}

// The time at this N; between two that are known, on the straight line through them.
std::optional<Rational> TimeAt(const ByRanks& times, int32_t ranks) {
  const auto above = times.lower_bound(ranks);
  if (above == times.end()) return std::nullopt;
  if (above->first == ranks) return above->second;
  if (above == times.begin()) return std::nullopt;
  const auto below = std::prev(above);
  const Rational part(ranks - below->first, above->first - below->first);
  return below->second + part * (above->second - below->second);
}

// Average of a over b, over the N of the window at which a is known.
struct Ratio {
  Rational sum;
  int64_t terms = 0;
};
Ratio AverageRatio(const ByRanks& a, const ByRanks& b) {
  Ratio ratio;
  for (const auto& entry : a) {
    if (entry.first < kWindowBegin || entry.first > kWindowEnd) continue;
    const std::optional<Rational> other = TimeAt(b, entry.first);
    if (!other) continue;
    ratio.sum += entry.second / *other;
    ++ratio.terms;
  }
  return ratio;
}

ResultRow RatioRow(const std::string& label, const Ratio& ratio, const char* paper) {
  if (ratio.terms == 0) return {label, {Word("not counted", paper), Figure(0)}};
  return {label, {Figure(ratio.sum / Rational(ratio.terms), paper), Figure(ratio.terms)}};
}

// Only the points of a sweep on its grid: the window is far denser than the rest.
ChartSeries Series(const std::string& name, const ByRanks& times, int32_t grid = 1) {
  ChartSeries series{.name = name};
  for (const auto& entry : times)
    if (entry.first % grid == 0) series.points.emplace_back(entry.first, entry.second.ToDouble());
  return series;
}
// For what jumps from one N to the next.
ChartSeries Points(const std::string& name, const ByRanks& times, int32_t grid = 1) {
  ChartSeries series = Series(name, times, grid);
  series.line = false;
  return series;
}

struct Curves {
  ByRanks best, genkautz, circulant, shifted_ring, two_tree, trees_in_one_piece, torus,
      traditional_torus, bound;
};

// Everything but flows that need a solver; all-reduce, then all-to-all.
Status AddAllReduce(int32_t ranks, const SizedFrontier& frontier, Curves& curves) {
  for (const Design& design : frontier.all_reduce) {
    const Rational us = direct::AllReduceUs(design);
    const auto known = curves.best.find(ranks);
    if (known == curves.best.end() || us < known->second) curves.best[ranks] = us;
  }
  const Result<Topology> kautz =
      ParseTopology(fmt::format("genkautz({},{})", direct::kTableDegree, ranks));
  if (!kautz) return tl::unexpected(kautz.error());
  // A reduce-scatter is the reversal of an all-gather on the transpose.
  curves.genkautz[ranks] = 0;
  for (const Topology& network : {*kautz, TransposeTopology(*kautz)}) {
    const Result<BfbCost> cost =
        ComputeBfbCost(network, *Collective::Make(CollectiveKind::kAllGather, ranks), {});
    if (!cost) return tl::unexpected(cost.error());
    curves.genkautz[ranks] += direct::AllReduceUs(cost->tl, *cost->tb) / Rational(2);
  }
  curves.circulant[ranks] = direct::AllReduceUs(BestStride(ranks), BestTb(ranks));
  curves.shifted_ring[ranks] = direct::ShiftedRingAllReduceUs(ranks);
  curves.two_tree[ranks] = direct::TwoTreeAllReduce(ranks).us;
  curves.trees_in_one_piece[ranks] = direct::TreesInOnePieceUs(ranks);
  curves.bound[ranks] =
      direct::AllReduceUs(MooreBoundSteps(ranks, direct::kTableDegree), BestTb(ranks));
  return {};
}

Status AddCirculants(int32_t ranks, Curves& curves) {
  const auto add = [ranks](int32_t a, int32_t b, ByRanks& times) -> Status {
    const Result<Rational> flow = direct::CirculantFlow(ranks, a, b);
    if (!flow) return tl::unexpected(flow.error());
    times[ranks] = direct::AllToAllUs(ranks, direct::kTableDegree, *flow);
    return {};
  };
  const int32_t m = BestStride(ranks);
  if (const Status added = add(m, m + 1, curves.circulant); !added) return added;
  if (const Status added = add(1, direct::ShiftedRingStride(ranks), curves.shifted_ring); !added)
    return added;
  curves.bound[ranks] =
      direct::AllToAllUs(ranks, direct::kTableDegree, MooreFlow(ranks, direct::kTableDegree));
  return {};
}

// A square torus looks the same along every link, so that shortest paths load all links alike.
Status AddTorus(int32_t side, Curves& all_reduce, Curves& all_to_all) {
  const int32_t ranks = side * side;
  const Result<Topology> torus = ParseTopology(fmt::format("torus({0},{0})", side));
  if (!torus) return tl::unexpected(torus.error());
  all_reduce.torus[ranks] = direct::AllReduceUs(2 * (side / 2), BestTb(ranks));
  all_reduce.traditional_torus[ranks] = direct::TraditionalTorusAllReduceUs(side);
  const NodeId origin{0};
  const HopStatistics hops = CountHops(*torus, std::span(&origin, 1));
  all_to_all.torus[ranks] = direct::AllToAllUs(ranks, direct::kTableDegree,
                                               Rational(direct::kTableDegree, hops.total_hops));
  return {};
}

Status AddFlow(const Result<Topology>& topology, ByRanks& times) {
  if (!topology) return tl::unexpected(topology.error());
  const Result<direct::Flow> flow = direct::ComputeFlow(*topology, kFigureGap);
  if (!flow) return tl::unexpected(flow.error());
  const int32_t ranks = topology->num_ranks();
  times[ranks] = direct::AllToAllUs(ranks, direct::kTableDegree, flow->lower);
  return {};
}

// The N at which everything is computed, and those of them at which flows are, too.
struct Sizes {
  std::set<int32_t> sweep, flows;
};
Sizes SizesUpTo(int32_t largest, int32_t step) {
  Sizes sizes;
  const int32_t window_end = std::min(kWindowEnd, largest);
  for (int32_t ranks = (kSmallest + step - 1) / step * step; ranks <= largest; ranks += step)
    sizes.sweep.insert(ranks);
  for (int32_t ranks = kWindowBegin; ranks <= window_end; ++ranks) sizes.sweep.insert(ranks);
  for (int32_t ranks = kFlowEvery; ranks <= largest; ranks += kFlowEvery) sizes.flows.insert(ranks);
  for (int32_t ranks = kWindowBegin; ranks <= window_end; ranks += kWindowStep)
    sizes.flows.insert(ranks);
  if (sizes.flows.empty()) sizes.flows.insert(largest);
  sizes.sweep.insert(sizes.flows.begin(), sizes.flows.end());
  return sizes;
}

struct AllCurves {
  Curves all_reduce, all_to_all;
};

Status AddSize(const SizedFrontier& frontier, bool with_flows, AllCurves& curves) {
  const int32_t ranks = frontier.ranks;
  if (const Status added = AddAllReduce(ranks, frontier, curves.all_reduce); !added) return added;
  if (const Status added = AddCirculants(ranks, curves.all_to_all); !added) return added;
  if (!with_flows) return {};
  const std::string kautz = fmt::format("genkautz({},{})", direct::kTableDegree, ranks);
  if (const Status added = AddFlow(ParseTopology(kautz), curves.all_to_all.genkautz); !added)
    return added;
  return AddFlow(direct::DoubleBinaryTree(ranks), curves.all_to_all.two_tree);
}

Result<AllCurves> ComputeCurves(int32_t largest, int32_t step) {
  const Sizes sizes = SizesUpTo(largest, step);
  const Result<std::vector<SizedFrontier>> frontiers =
      FindAllFrontiers({direct::kTableDegree}, largest);
  if (!frontiers) return tl::unexpected(frontiers.error());
  AllCurves curves;
  ProgressScope progress("networks of figure 7", static_cast<int64_t>(sizes.sweep.size()));
  for (const SizedFrontier& frontier : *frontiers) {
    if (!sizes.sweep.contains(frontier.ranks)) continue;
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (const Status added = AddSize(frontier, sizes.flows.contains(frontier.ranks), curves);
        !added)
      return tl::unexpected(added.error());
    progress.Add(1);
  }
  for (int32_t side = 3; side * side <= largest; ++side)
    if (const Status added = AddTorus(side, curves.all_reduce, curves.all_to_all); !added)
      return tl::unexpected(added.error());
  return curves;
}

// What the text says of the figure: the times of one curve over those of another.
struct PaperRatio {
  const char* label;
  ByRanks Curves::*slower;
  ByRanks Curves::*faster;
  const char* paper;
};
constexpr std::array<PaperRatio, 5> kAllReduceRatios = {
    {{"all-reduce: shifted ring / our best", &Curves::shifted_ring, &Curves::best, "56"},
     {"all-reduce: double binary tree in one piece / our best", &Curves::trees_in_one_piece,
      &Curves::best, "10"},
     {"all-reduce: double binary tree, two-tree algorithm / our best", &Curves::two_tree,
      &Curves::best, "10"},
     {"all-reduce: 2-D torus, traditional schedule / our best", &Curves::traditional_torus,
      &Curves::best, "4"},
     {"all-reduce: 2-D torus, BFB / our best", &Curves::torus, &Curves::best, "4"}}};
constexpr std::array<PaperRatio, 5> kAllToAllRatios = {
    {{"all-to-all: shifted ring / circulant", &Curves::shifted_ring, &Curves::circulant, "9"},
     {"all-to-all: double binary tree / circulant", &Curves::two_tree, &Curves::circulant, "14"},
     {"all-to-all: shifted ring / generalized Kautz", &Curves::shifted_ring, &Curves::genkautz,
      "28"},
     {"all-to-all: double binary tree / generalized Kautz", &Curves::two_tree, &Curves::genkautz,
      "42"},
     {"all-to-all: generalized Kautz / theoretical bound", &Curves::genkautz, &Curves::bound,
      "<= 1.052"}}};

ResultTable RatioTable(const AllCurves& curves) {
  ResultTable table{.title = "What the text says of the figure, averages over N = 900 .. 1000",
                    .label_name = "ratio of times",
                    .columns = {{.name = "ratio", .digits = 2}, {.name = "sizes counted"}}};
  const auto add = [&table](const Curves& of, std::span<const PaperRatio> ratios) {
    for (const PaperRatio& ratio : ratios)
      table.rows.push_back(
          RatioRow(ratio.label, AverageRatio(of.*ratio.slower, of.*ratio.faster), ratio.paper));
  };
  add(curves.all_reduce, kAllReduceRatios);
  add(curves.all_to_all, kAllToAllRatios);
  return table;
}

Chart TimeChart(std::string title, std::string y_label, std::vector<ChartSeries> series) {
  std::erase_if(series, [](const ChartSeries& each) { return each.points.empty(); });
  return {.title = std::move(title),
          .x_label = "ranks N",
          .y_label = std::move(y_label),
          .log_y = true,
          .series = std::move(series)};
}

Chart AllReduceChart(const Curves& curves, int32_t step) {
  return TimeChart("All-reduce of 1 MiB, d = 4, alpha = 10 us, 100 Gbit/s", "all-reduce time (us)",
                   {Series("shifted ring", curves.shifted_ring, step),
                    Series("double binary tree", curves.two_tree, step),
                    Series("2-D torus", curves.torus), Series("circulant", curves.circulant, step),
                    Series("generalized Kautz", curves.genkautz, step),
                    Series("our best", curves.best, step), Series("bound", curves.bound, step)});
}

Chart AllToAllChart(const Curves& curves, int32_t step) {
  return TimeChart(
      "All-to-all, 1 MiB a rank, d = 4, 100 Gbit/s", "all-to-all time (us)",
      {Points("shifted ring", curves.shifted_ring, step),
       Points("double binary tree", curves.two_tree), Series("2-D torus", curves.torus),
       Series("circulant", curves.circulant, step), Series("generalized Kautz", curves.genkautz),
       Series("bound", curves.bound, step)});
}

std::vector<std::string> Notes() {
  return {
      "All-reduce: TL + TB of reduce-scatter and all-gather, which are the same but on "
      "generalized Kautz graphs and on some of our best; our best is the fastest on the "
      "finder's frontier of the all-reduce. The paper's figures for double binary tree and torus "
      "are those of trees without pieces and of the traditional torus schedule; the stronger "
      "baselines stand beside them.",
      fmt::format("All-to-all: exact for circulants, shifted rings and tori (by symmetry), within "
                  "{:.1f} % for generalized Kautz graphs and double binary trees, which are "
                  "computed at every {}th N and every {}th of 900 .. 1000; the ratios take "
                  "generalized Kautz graphs between them on a straight line.",
                  100 * kFigureGap, kFlowEvery, kWindowStep),
      "The paper does not say the shift of its shifted ring; ours is the smallest stride that is "
      "prime to N, which at N = 1024 has the paper's all-to-all time."};
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const auto largest = static_cast<int32_t>(
      options.max_ranks == 0 ? kLargest : std::min<int64_t>(options.max_ranks, kMaxDesignRanks));
  const auto step =
      static_cast<int32_t>(options.step == 0 ? kStep : std::min<int64_t>(options.step, largest));
  if (largest < kSmallest)
    return InvalidArgument(
        fmt::format("figure 7 begins at {} ranks; asked for at most {}", kSmallest, largest));
  const Result<AllCurves> curves = ComputeCurves(largest, step);
  if (!curves) return tl::unexpected(curves.error());
  return ExperimentResult{.tables = {RatioTable(*curves)},
                          .notes = Notes(),
                          .charts = {AllReduceChart(curves->all_reduce, step),
                                     AllToAllChart(curves->all_to_all, step)}};
}

}  // namespace
}  // namespace direct_figure7

Experiment DirectFigure7() {
  return {
      "direct-fig7", "[direct-connect] figure 7",
      "all-reduce and all-to-all times up to 1024 ranks at degree 4, beside rings, trees and tori",
      direct_figure7::Run};
}

}  // namespace tutti
