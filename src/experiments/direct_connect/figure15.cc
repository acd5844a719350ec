// [direct-connect] figure 15: which construction wins the all-reduce at each N, for two sizes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "direct.h"
#include "networks.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/design/finder.h"

namespace tutti {
namespace direct_figure15 {
namespace {

using direct::Figure;
using direct::Word;

constexpr int32_t kLargest = 2000;
constexpr size_t kDrawn = 500;  // sizes in a chart: more points than a reader can tell apart

struct Setting {
  int32_t mebibytes;
  const char* most;  // "the most popular one", in the words of A.3
  double y_min;      // milliseconds; few ranks are much faster and would squeeze the rest
};
constexpr std::array<Setting, 2> kSettings = {{{1, "GenKautz", 0}, {100, "Circulant", 16}}};

// The paper's letters: L line graph, P power, C product of different graphs (and D degree
// expansion, B made bidirectional), in this order; without any of them the family of the graph.
std::string ConstructionOf(const std::string& recipe) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kOperators = {
      {{"line(", "L"},
       {"power(", "P"},
       {"product(", "C"},
       {"degree(", "D"},
       {"bidirectional(", "B"}}};
  constexpr std::array<std::pair<const char*, const char*>, 4> kFamilies = {
      {{"genkautz(", "GenKautz"},
       {"distreg(", "DistReg"},
       {"circulant(", "Circulant"},
       {"cayley(", "Cayley"}}};
  std::string letters;
  for (const auto& entry : kOperators)
    if (recipe.find(entry.first) != recipe.npos) letters += entry.second;
  if (!letters.empty()) return letters;
  for (const auto& family : kFamilies)
    if (recipe.starts_with(family.first)) return family.second;
  return "other graph";
}

const Design* Fastest(const std::vector<Design>& designs, int32_t mebibytes) {
  const Design* best = nullptr;
  Rational best_us;
  for (const Design& design : designs) {
    const Rational us = direct::AllReduceUs(design, mebibytes);
    if (best != nullptr && us >= best_us) continue;
    best = &design;
    best_us = us;
  }
  return best;
}

double Milliseconds(const Design& design, int32_t mebibytes) {
  return direct::AllReduceUs(design, mebibytes).ToDouble() / 1000;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const auto largest = static_cast<int32_t>(
      options.max_ranks == 0 ? kLargest : std::min<int64_t>(options.max_ranks, kMaxDesignRanks));
  const auto step = static_cast<size_t>(std::max<int64_t>(options.step, 1));
  const Result<std::vector<SizedFrontier>> all = FindAllFrontiers({direct::kTableDegree}, largest);
  if (!all) return tl::unexpected(all.error());

  ResultTable wins{.title = "Sizes N at which a construction is the fastest",
                   .label_name = "construction",
                   .columns = {}};
  ResultTable most{.title = "The most popular construction",
                   .label_name = "size M",
                   .columns = {{.name = "construction"}}};
  std::map<std::string, std::array<int64_t, kSettings.size()>> counts;
  ExperimentResult result;
  for (size_t i = 0; i < kSettings.size(); ++i) {
    const Setting& setting = kSettings[i];
    std::map<std::string, ChartSeries> series;
    ChartSeries both_ways{.name = "best bidirectional", .line = false, .grey = true};
    std::string favourite;
    // An odd part of them, since line graphs stand at multiples of four only.
    const size_t draw_every = step * ((all->size() / step / kDrawn) | 1);
    for (size_t index = 0; index < all->size(); index += step) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const SizedFrontier& sized = (*all)[index];
      if (const Design* best = Fastest(sized.all_reduce, setting.mebibytes)) {
        const std::string name = ConstructionOf(best->recipe);
        const int64_t count = ++counts[name][i];
        if (favourite.empty() || count > counts[favourite][i]) favourite = name;
        if (index % draw_every == 0) {
          ChartSeries& points = series[name];
          points.name = name;
          points.line = false;
          points.points.emplace_back(sized.ranks, Milliseconds(*best, setting.mebibytes));
        }
      }
      if (index % draw_every != 0) continue;
      if (const Design* best = Fastest(sized.bidirectional, setting.mebibytes))
        both_ways.points.emplace_back(sized.ranks, Milliseconds(*best, setting.mebibytes));
    }
    wins.columns.push_back({.name = fmt::format("M = {} MiB", setting.mebibytes)});
    most.rows.push_back(
        {fmt::format("{} MiB", setting.mebibytes), {Word(favourite, setting.most)}});
    Chart chart{
        .title = fmt::format("Fastest all-reduce of {} MiB, d = 4, alpha = 10 us, 100 Gbit/s",
                             setting.mebibytes),
        .x_label = "ranks N",
        .y_label = "all-reduce time (ms)",
        .y_min = setting.y_min};
    if (!both_ways.points.empty()) chart.series.push_back(std::move(both_ways));
    for (auto& entry : series) chart.series.push_back(std::move(entry.second));
    result.charts.push_back(std::move(chart));
  }
  for (const auto& entry : counts) {
    ResultRow row{entry.first, {}};
    for (int64_t count : entry.second) row.cells.push_back(Figure(count));
    wins.rows.push_back(std::move(row));
  }
  result.tables = {most, wins};
  result.notes = {
      fmt::format(
          "All N up to {} and the whole frontier of each; time TL + TB of reduce-scatter and "
          "all-gather, each with its own cost where a network is not reverse-symmetric, as the "
          "finder predicts them exactly.",
          largest),
      "L line graph, P Cartesian power, C product of different graphs, D degree expansion, B made "
      "bidirectional; without a letter the family of the graph itself. Of equally fast ones the "
      "one with fewer steps counts.",
      "Cayley: digraphs of our own search, which the paper does not have. They take the place that "
      "circulants have in the paper at 100 MiB.",
      fmt::format("At most every {}th N is drawn.", (kLargest / kDrawn) | 1)};
  return result;
}

}  // namespace
}  // namespace direct_figure15

Experiment DirectFigure15() {
  return {
      "direct-fig15", "[direct-connect] figure 15",
      "the fastest all-reduce of 1 and 100 MiB at each N up to 2000, and what construction it is",
      direct_figure15::Run};
}

}  // namespace tutti
