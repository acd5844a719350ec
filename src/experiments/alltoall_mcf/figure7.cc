// [alltoall-mcf] figure 7: how long it takes to find an all-to-all, by every method there is.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "mcf.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/flow/concurrent_flow_lp.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace mcf_figure7 {
namespace {

using namespace mcf;

// A method that took a quarter of it is not asked for more ranks.
constexpr double kPatience = 60;
constexpr double kLargePatience = 600;
constexpr int64_t kUsualLargest = 1000;

double Since(std::chrono::steady_clock::time_point before) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

Status Program(const Topology& topology, FlowProgram program) {
  const Result<double> f = SolveConcurrentFlowProgram(topology, program);
  if (!f) return tl::unexpected(f.error());
  return {};
}

Status Flow(const Topology& topology, double gap, bool exact) {
  ConcurrentFlowOptions options;
  options.gap = gap;
  options.exact = exact;
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
  if (!flow) return tl::unexpected(flow.error());
  if (exact && flow->f_lower != flow->f_upper) return MakeError(ErrorCode::kNotFound, "no proof");
  return {};
}

Status Routes(const Topology& topology, std::string_view router) {
  const Result<Outcome> outcome = Route(topology, {router, router}, 0);
  if (!outcome) return tl::unexpected(outcome.error());
  return {};
}

Status Steps(const Topology& topology) {
  const Result<const Synthesizer*> synthesizer = FindSynthesizer("tsmcf");
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllToAll, topology.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, topology, *collective, {});
  if (!schedule) return tl::unexpected(schedule.error());
  return {};
}

struct TimedMethod {
  std::string_view name;
  Status (*run)(const Topology& topology);
  std::string_view paper;  // at 1000 ranks
  int32_t max_ranks = 0;   // 0: as many as its time allows
};
// The paper's first, then ours.
constexpr int32_t kMaxExactRanks = 200;
constexpr int32_t kMaxIlpRanks = 44;  // as far as the paper's
const std::array<TimedMethod, 10> kMethods = {
    {{"LP a pair (MCF-original)",
      [](const Topology& t) { return Program(t, FlowProgram::kPerPair); }, ""},
     {"LP a source (MCF-decomp)",
      [](const Topology& t) { return Program(t, FlowProgram::kPerSource); }, "2400"},
     {"FPTAS, eps 0.05", [](const Topology& t) { return Routes(t, "fptas"); }, ""},
     {"ILP-disjoint", [](const Topology& t) { return Routes(t, "ilp-disjoint"); }, "",
      kMaxIlpRanks},
     {"flow, 1 %", [](const Topology& t) { return Flow(t, 1e-2, false); }, ""},
     {"flow, 0.1 %", [](const Topology& t) { return Flow(t, 1e-3, false); }, ""},
     {"flow, exact", [](const Topology& t) { return Flow(t, 1e-4, true); }, "", kMaxExactRanks},
     {"mcf-extp", [](const Topology& t) { return Routes(t, "mcf-extp"); }, ""},
     {"pmcf", [](const Topology& t) { return Routes(t, "pmcf"); }, ""},
     {"tsmcf", Steps, ""}}};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const double patience = options.large ? kLargePatience : kPatience;
  ResultTable table{
      .title = "Seconds to solve all-to-all on genkautz(4,N)", .label_name = "N", .columns = {}};
  ExperimentResult result;
  Chart chart{.title = "Seconds to solve all-to-all on genkautz(4,N)",
              .x_label = "ranks N",
              .y_label = "seconds",
              .log_x = true,
              .log_y = true};
  for (const TimedMethod& method : kMethods) {
    table.columns.push_back(
        {.name = std::string(method.name), .unit = "s", .digits = 4, .timed = true});
    chart.series.push_back({.name = std::string(method.name)});
  }
  std::array<double, kMethods.size()> last{};
  constexpr std::array<int32_t, 13> kRanks = {8,   12,  16,  24,   30,   44,  50,
                                              100, 200, 500, 1000, 2000, 4096};
  for (const int32_t ranks : WithProgress("networks of figure 7", kRanks)) {
    if (!WithinSize(options, ranks) || (ranks > kUsualLargest && !options.large)) continue;
    const Result<Topology> topology = ParseTopology(fmt::format("genkautz(4,{})", ranks));
    if (!topology) return tl::unexpected(topology.error());
    ResultRow row{std::to_string(ranks), {}};
    for (size_t i = 0; i < kMethods.size(); ++i) {
      const TimedMethod& method = kMethods[i];
      const std::string paper = ranks == 1000 ? std::string(method.paper) : "";
      // Growth is at least quadratic: what took a quarter of the patience is not doubled.
      if (last[i] > patience / 4 || (method.max_ranks > 0 && ranks > method.max_ranks)) {
        row.cells.push_back(Word("-", paper));
        continue;
      }
      const auto before = std::chrono::steady_clock::now();
      const Status status = method.run(*topology);
      last[i] = Since(before);
      if (!status) {
        if (status.error().code == ErrorCode::kCancelled) return tl::unexpected(status.error());
        row.cells.push_back(Word(ErrorWord(status.error()), paper));
        continue;
      }
      row.cells.push_back(Figure(Rational::FromDouble(last[i]), paper));
      chart.series[i].points.emplace_back(ranks, last[i]);
    }
    table.rows.push_back(std::move(row));
  }
  std::erase_if(chart.series, [](const ChartSeries& series) { return series.points.empty(); });
  if (!chart.series.empty()) result.charts = {std::move(chart)};
  result.tables = {table};
  result.notes = {
      fmt::format("Wall time on this machine, once each. Where a column ends, the method took more "
                  "than {} s for the N before and at least four times as much is expected for the "
                  "next (--large: {} s, and N up to 4096); ILP-disjoint is asked up to {} ranks as "
                  "in the paper, the exact flow up to {}.",
                  patience / 4, kLargePatience / 4, kMaxIlpRanks, kMaxExactRanks),
      "The paper's MCF-decomp is its master program and N child programs run in parallel on N "
      "cores: 40 minutes at N = 1000. \"LP a source\" is the master program alone, by CLP. Its "
      "MCF-original fails beyond N = 100, its FPTAS is slower than MCF-decomp, its ILP-disjoint "
      "ends at N = 44, TACCL at N = 32, SCCL before N = 16.",
      "The flow's gap is proven in whole numbers; mcf-extp takes the flow to 0.1 % and peels paths "
      "from it, every routing is judged within the time."};
  return result;
}

}  // namespace
}  // namespace mcf_figure7

Experiment McfFigure7() {
  return {"mcf-fig7", "[alltoall-mcf] figure 7",
          "seconds of every method on generalized Kautz graphs of 8 to 1000 ranks",
          mcf_figure7::Run};
}

}  // namespace tutti
