// [direct-connect] figure 7: all-reduce and all-to-all against N at degree 4.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "circulant_flow.h"
#include "direct.h"
#include "direct_baselines.h"
#include "direct_networks.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/coll/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti {
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

// Of a sweep only what stands on its grid: the window is far denser than the rest.
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
  for (const Design& design : frontier.designs) {
    const Rational us = direct::AllReduceUs(design.tl, design.tb);
    const auto known = curves.best.find(ranks);
    if (known == curves.best.end() || us < known->second) curves.best[ranks] = us;
  }
  const Result<Topology> kautz =
      ParseTopology(fmt::format("genkautz({},{})", direct::kTableDegree, ranks));
  if (!kautz) return tl::unexpected(kautz.error());
  const Result<BfbCost> cost =
      ComputeBfbCost(*kautz, *Collective::Make(CollectiveKind::kAllGather, ranks), {});
  if (!cost) return tl::unexpected(cost.error());
  curves.genkautz[ranks] = direct::AllReduceUs(cost->tl, *cost->tb);
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

// A square torus looks the same along every link, so that shortest ways load all links alike.
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

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const auto largest = static_cast<int32_t>(
      options.max_ranks == 0 ? kLargest : std::min<int64_t>(options.max_ranks, kMaxDesignRanks));
  const auto step =
      static_cast<int32_t>(options.step == 0 ? kStep : std::min<int64_t>(options.step, largest));
  if (largest < kSmallest)
    return InvalidArgument(
        fmt::format("figure 7 begins at {} ranks; asked for at most {}", kSmallest, largest));
  std::set<int32_t> sweep, flows;
  for (int32_t ranks = (kSmallest + step - 1) / step * step; ranks <= largest; ranks += step)
    sweep.insert(ranks);
  for (int32_t ranks = kFlowEvery; ranks <= largest; ranks += kFlowEvery) flows.insert(ranks);
  for (int32_t ranks = kWindowBegin; ranks <= std::min(kWindowEnd, largest); ++ranks)
    sweep.insert(ranks);
  for (int32_t ranks = kWindowBegin; ranks <= std::min(kWindowEnd, largest); ranks += kWindowStep)
    flows.insert(ranks);
  if (flows.empty()) flows.insert(largest);
  sweep.insert(flows.begin(), flows.end());

  const Result<std::vector<SizedFrontier>> frontiers =
      FindAllFrontiers({direct::kTableDegree}, largest);
  if (!frontiers) return tl::unexpected(frontiers.error());
  Curves all_reduce, all_to_all;
  ProgressScope progress("networks of figure 7", static_cast<int64_t>(sweep.size()));
  for (const SizedFrontier& frontier : *frontiers) {
    const int32_t ranks = frontier.ranks;
    if (!sweep.contains(ranks)) continue;
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (const Status added = AddAllReduce(ranks, frontier, all_reduce); !added)
      return tl::unexpected(added.error());
    if (const Status added = AddCirculants(ranks, all_to_all); !added)
      return tl::unexpected(added.error());
    progress.Add(1);
    if (!flows.contains(ranks)) continue;
    const std::string kautz = fmt::format("genkautz({},{})", direct::kTableDegree, ranks);
    if (const Status added = AddFlow(ParseTopology(kautz), all_to_all.genkautz); !added)
      return tl::unexpected(added.error());
    if (const Status added = AddFlow(direct::DoubleBinaryTree(ranks), all_to_all.two_tree); !added)
      return tl::unexpected(added.error());
  }
  for (int32_t side = 3; side * side <= largest; ++side)
    if (const Status added = AddTorus(side, all_reduce, all_to_all); !added)
      return tl::unexpected(added.error());

  ResultTable table{.title = "What the text says of the figure, averages over N = 900 .. 1000",
                    .label_name = "ratio of times",
                    .columns = {{.name = "ratio", .digits = 2}, {.name = "sizes counted"}}};
  table.rows = {
      RatioRow("all-reduce: shifted ring / our best",
               AverageRatio(all_reduce.shifted_ring, all_reduce.best), "56"),
      RatioRow("all-reduce: double binary tree in one piece / our best",
               AverageRatio(all_reduce.trees_in_one_piece, all_reduce.best), "10"),
      RatioRow("all-reduce: double binary tree, two-tree algorithm / our best",
               AverageRatio(all_reduce.two_tree, all_reduce.best), "10"),
      RatioRow("all-reduce: 2-D torus, traditional schedule / our best",
               AverageRatio(all_reduce.traditional_torus, all_reduce.best), "4"),
      RatioRow("all-reduce: 2-D torus, BFB / our best",
               AverageRatio(all_reduce.torus, all_reduce.best), "4"),
      RatioRow("all-to-all: shifted ring / circulant",
               AverageRatio(all_to_all.shifted_ring, all_to_all.circulant), "9"),
      RatioRow("all-to-all: double binary tree / circulant",
               AverageRatio(all_to_all.two_tree, all_to_all.circulant), "14"),
      RatioRow("all-to-all: shifted ring / generalized Kautz",
               AverageRatio(all_to_all.shifted_ring, all_to_all.genkautz), "28"),
      RatioRow("all-to-all: double binary tree / generalized Kautz",
               AverageRatio(all_to_all.two_tree, all_to_all.genkautz), "42"),
      RatioRow("all-to-all: generalized Kautz / theoretical bound",
               AverageRatio(all_to_all.genkautz, all_to_all.bound), "<= 1.052"),
  };
  Chart reduce_chart{.title = "All-reduce of 1 MiB, d = 4, alpha = 10 us, 100 Gbit/s",
                     .x_label = "ranks N",
                     .y_label = "all-reduce time (us)",
                     .log_y = true,
                     .series = {Series("shifted ring", all_reduce.shifted_ring, step),
                                Series("double binary tree", all_reduce.two_tree, step),
                                Series("2-D torus", all_reduce.torus),
                                Series("circulant", all_reduce.circulant, step),
                                Series("generalized Kautz", all_reduce.genkautz, step),
                                Series("our best", all_reduce.best, step),
                                Series("bound", all_reduce.bound, step)}};
  Chart exchange_chart{.title = "All-to-all, 1 MiB a rank, d = 4, 100 Gbit/s",
                       .x_label = "ranks N",
                       .y_label = "all-to-all time (us)",
                       .log_y = true,
                       .series = {Points("shifted ring", all_to_all.shifted_ring, step),
                                  Points("double binary tree", all_to_all.two_tree),
                                  Series("2-D torus", all_to_all.torus),
                                  Series("circulant", all_to_all.circulant, step),
                                  Series("generalized Kautz", all_to_all.genkautz),
                                  Series("bound", all_to_all.bound, step)}};
  std::erase_if(reduce_chart.series, [](const ChartSeries& s) { return s.points.empty(); });
  std::erase_if(exchange_chart.series, [](const ChartSeries& s) { return s.points.empty(); });
  return ExperimentResult{
      .tables = {table},
      .notes =
          {"All-reduce: 2 (TL + TB); our best is the fastest on the finder's frontier. The paper's "
           "figures for double binary tree and torus are those of trees without pieces and of the "
           "traditional torus schedule; the stronger baselines stand beside them.",
           fmt::format(
               "All-to-all: exact for circulants, shifted rings and tori (by symmetry), within "
               "{:.1f} % for generalized Kautz graphs and double binary trees, which are "
               "computed at every {}th N and every {}th of 900 .. 1000; the ratios take "
               "generalized "
               "Kautz graphs between them on a straight line.",
               100 * kFigureGap, kFlowEvery, kWindowStep),
           "The paper does not say the shift of its shifted ring; ours is the smallest stride that "
           "is "
           "prime to N, which at N = 1024 has the paper's all-to-all time."},
      .charts = {reduce_chart, exchange_chart}};
}

}  // namespace

Experiment DirectFigure7() {
  return {
      "direct-fig7", "[direct-connect] figure 7",
      "all-reduce and all-to-all times up to 1024 ranks at degree 4, beside rings, trees and tori",
      Run};
}

}  // namespace tutti
