// [direct-connect] figure 18 and theorem 21: breadth-first broadcast on generalized Kautz graphs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "direct.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace direct_figure18 {
namespace {

constexpr std::array<int32_t, 4> kDegrees = {2, 4, 8, 16};
constexpr int64_t kLargest = 2000;
// "less than or equal to 2 TB* at all times"; theorem 21: TL <= TL* + alpha.
constexpr const char *kPaperRatio = "<= 2", *kPaperSteps = "<= 1";

struct Extremes {
  Rational ratio = 0;  // TB / TB*
  int32_t ratio_at = 0;
  int32_t steps = 0;  // TL - TL*
  int64_t sizes = 0;
};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const int64_t largest = options.max_ranks == 0 ? kLargest : options.max_ranks;
  const int64_t step = std::max<int64_t>(options.step, 1);
  ResultTable table{.title = "TB/TB* and TL - TL* over all N counted",
                    .label_name = "graphs",
                    .columns = {{.name = "graphs counted"},
                                {.name = "largest TB/TB*", .digits = 4},
                                {.name = "at N"},
                                {.name = "largest TL - TL*", .unit = "steps"}}};
  Chart chart{.title = "Generalized Kautz graphs: bandwidth time of the BFB all-gather",
              .x_label = "ranks N",
              .y_label = "TB / TB*"};
  ProgressScope progress("generalized Kautz graphs",
                         static_cast<int64_t>(kDegrees.size()) * largest);
  for (int32_t degree : kDegrees) {
    Extremes found;
    ChartSeries series{.name = fmt::format("d = {}", degree)};
    for (int64_t ranks = degree + 1; ranks <= largest; ranks += step) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const auto n = static_cast<int32_t>(ranks);
      const Result<Topology> topology = ParseTopology(fmt::format("genkautz({},{})", degree, n));
      if (!topology) return tl::unexpected(topology.error());
      const Result<BfbCost> cost =
          ComputeBfbCost(*topology, *Collective::Make(CollectiveKind::kAllGather, n), {});
      if (!cost) return tl::unexpected(cost.error());
      const Rational ratio = *cost->tb / BestTb(n);
      if (ratio > found.ratio) {
        found.ratio = ratio;
        found.ratio_at = n;
      }
      found.steps = std::max(found.steps, cost->tl - MooreBoundSteps(n, degree));
      ++found.sizes;
      series.points.emplace_back(static_cast<double>(n), ratio.ToDouble());
      progress.Add(step);
    }
    if (found.sizes == 0) continue;
    table.rows.push_back(
        {fmt::format("genkautz({},N), N <= {}", degree, largest),
         {direct::Figure(found.sizes), direct::Figure(found.ratio, kPaperRatio),
          direct::Figure(found.ratio_at), direct::Figure(found.steps, kPaperSteps)}});
    chart.series.push_back(std::move(series));
  }
  ExperimentResult result{.tables = {table}, .charts = {chart}};
  result.notes.push_back(
      "The exact cost of the breadth-first broadcast all-gather, TB* = (N-1)/N, TL* the Moore "
      "bound. The paper draws the ratio and says it is at most 2; theorem 21 says TL - TL* is at "
      "most 1.");
  if (step > 1) result.notes.push_back(fmt::format("Only every {}th N was counted.", step));
  return result;
}

}  // namespace
}  // namespace direct_figure18

Experiment DirectFigure18() {
  return {"direct-fig18", "[direct-connect] figure 18",
          "TB/TB* of generalized Kautz graphs of degree 2, 4, 8 and 16 up to 2000 ranks",
          direct_figure18::Run};
}

}  // namespace tutti
