// [mccs] figure 3: flows between racks of a ring of hosts in any order, over the fewest possible.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "mccs/mccs.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace mccs_figure3 {
namespace {

using namespace mccs;

constexpr std::array<int64_t, 2> kHostsARack = {2, 4};
constexpr std::array<int64_t, 7> kHosts = {2, 4, 8, 16, 32, 64, 128};
constexpr int64_t kGpusAHost = 8;
constexpr int32_t kDraws = 200;  // a seed

// Hosts as ranks, `k` a rack; the mean over draws of the ratio, a value a seed.
Result<Estimate> Simulate(int64_t hosts, int64_t k) {
  const Result<Topology> topology = ParseTopology(fmt::format("spine_leaf({},2,{})", hosts / k, k));
  if (!topology) return tl::unexpected(topology.error());
  const Result<ClusterView> view = ClusterView::Make(*topology);
  if (!view) return tl::unexpected(view.error());
  std::vector<int32_t> ranks(static_cast<size_t>(hosts));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto fewest =
      static_cast<double>(CrossRackFlows(*view, LocalityRings(*view, ranks, 1).front()));
  std::vector<double> means;
  for (int32_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    double sum = 0;
    for (const std::vector<int32_t>& ring : RandomRings(ranks, kDraws, random))
      sum += CrossRackFlows(*view, ring) / fewest;
    means.push_back(sum / kDraws);
  }
  return EstimateOf(means);
}

Result<ExperimentResult> RunFigure3(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable table{.title = "Flows between racks of a random ring of hosts over the fewest",
                    .label_name = "GPUs (hosts)",
                    .columns = {}};
  Chart chart{.title = "Flows between racks over the fewest",
              .x_label = "GPUs of the job",
              .y_label = "random ring / best ring",
              .log_x = true};
  for (const int64_t k : kHostsARack) {
    table.columns.push_back(
        {.name = fmt::format("{} hosts a rack", k), .style = FigureStyle::kExact});
    table.columns.push_back({.name = fmt::format("as a number, {}", k), .digits = 3});
    table.columns.push_back({.name = fmt::format("simulated, {}", k), .digits = 3});
    table.columns.push_back({.name = fmt::format("95 %, {}", k)});
    chart.series.push_back({.name = fmt::format("{} hosts a rack", k)});
  }
  for (const int64_t hosts : kHosts) {
    if (!WithinSize(options, hosts * kGpusAHost)) continue;
    ResultRow row{fmt::format("{} ({})", hosts * kGpusAHost, hosts), {}};
    for (size_t i = 0; i < kHostsARack.size(); ++i) {
      const int64_t k = kHostsARack[i];
      if (hosts <= k) {  // one rack
        for (int32_t cell = 0; cell < 4; ++cell) row.cells.push_back(Word("-"));
        continue;
      }
      const Result<Estimate> simulated = Simulate(hosts, k);
      if (!simulated) return tl::unexpected(simulated.error());
      const Rational exact(k * (hosts - k), hosts - 1);
      row.cells.push_back(Figure(exact));
      row.cells.push_back(Figure(exact, hosts == kHosts.back() ? std::to_string(k) : ""));
      row.cells.push_back(Number(simulated->mean));
      row.cells.push_back(Word(fmt::format("+- {:.3f}", simulated->half)));
      chart.series[i].points.emplace_back(hosts * kGpusAHost, exact.ToDouble());
    }
    table.rows.push_back(std::move(row));
  }
  ExperimentResult result;
  const bool any = !chart.series.front().points.empty();
  if (any) {
    std::erase_if(chart.series, [](const ChartSeries& one) { return one.points.empty(); });
    result.charts.push_back(std::move(chart));
  }
  result.tables = {std::move(table)};
  result.notes = {
      "h hosts, k a rack, racks full: an edge of a random ring leaves its rack with probability "
      "(h - k) / (h - 1), the best ring has h / k such edges: k (h - k) / (h - 1).",
      fmt::format("Simulated: {} seeds of {} rings each, ranks placed and counted by the policies "
                  "that the controller uses; mean and 95 % interval.",
                  kSeeds, kDraws),
      "The paper says that the ratio grows to 2 and 4. Its production trace is not public."};
  return result;
}

}  // namespace
}  // namespace mccs_figure3

Experiment MccsFigure3() {
  return {"mccs-fig3", "[mccs] figure 3",
          "flows between racks of rings that do not know the network, over the fewest",
          mccs_figure3::RunFigure3};
}

}  // namespace tutti
