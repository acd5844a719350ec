// [tacos] figure 19: synthesis time against the number of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/synth/ten.h"
#include "tutti/synth/time_expanded_program.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace tacos_figure19 {
namespace {

using namespace tacos;

struct Case {
  const char* expression;
  int32_t ranks;
  bool large = false;
  const char* hours = "";  // the paper's, 64 threads, all-reduce
};
constexpr std::array<Case, 6> kMeshes = {{{"mesh(8,8)", 64},
                                          {"mesh(16,16)", 256},
                                          {"mesh(32,32)", 1024},
                                          {"mesh(64,64)", 4096},
                                          {"mesh(100,100)", 10'000},
                                          {"mesh(200,200)", 40'000, true, "2.52"}}};
constexpr std::array<Case, 6> kCubes = {{{"mesh(4,4,4)", 64},
                                         {"mesh(6,6,6)", 216},
                                         {"mesh(10,10,10)", 1000},
                                         {"mesh(16,16,16)", 4096},
                                         {"mesh(21,21,21)", 9261},
                                         {"mesh(35,35,35)", 42'875, true, "3.29"}}};
constexpr std::array<Case, 5> kSmall = {{{"mesh(2,2)", 4},
                                         {"mesh(3,3)", 9},
                                         {"mesh(4,4)", 16},
                                         {"mesh(5,5)", 25, true},
                                         {"mesh(6,6)", 36, true}}};
constexpr int32_t kProvenRanks = 1024;  // up to here the schedules are made and proven, too
constexpr int32_t kFittedRanks = 1000;  // from here on growth is counted

double SecondsSince(std::chrono::steady_clock::time_point before) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

struct Timed {
  double seconds = 0;
  int64_t transfers = 0;
  int32_t steps = 0, min_steps = 0;
  bool proven = false;
};

int32_t LeastSteps(const Topology& topology) {
  int64_t ports = topology.num_links();
  for (NodeId rank : topology.Ranks()) ports = std::min<int64_t>(ports, topology.in_degree(rank));
  const auto rounds = static_cast<int32_t>((topology.num_ranks() - 1 + ports - 1) / ports);
  return std::max(rounds, Diameter(topology));
}

Result<Timed> TimeTen(const Case& one) {
  const Result<Topology> topology = ParseTopology(one.expression);
  if (!topology) return tl::unexpected(topology.error());
  const Result<Collective> all_gather =
      Collective::Make(CollectiveKind::kAllGather, topology->num_ranks());
  if (!all_gather) return tl::unexpected(all_gather.error());
  const SynthOptions options{.chunks = 1};
  const auto before = std::chrono::steady_clock::now();
  const Result<TenStreamed> made =
      StreamTen(*topology, *all_gather, options, {}, AvailableMemoryBytes());
  if (!made) return tl::unexpected(made.error());
  Timed timed{.seconds = SecondsSince(before),
              .transfers = made->num_transfers,
              .steps = made->header.num_steps,
              .min_steps = LeastSteps(*topology)};
  if (one.ranks > kProvenRanks) return timed;
  const Result<const Synthesizer*> ten = FindSynthesizer("ten");
  if (!ten) return tl::unexpected(ten.error());
  const Result<Schedule> schedule = RunSynthesizer(**ten, *topology, *all_gather, options);
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(*topology, *all_gather, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  timed.proven = report.verified() && schedule->num_steps == timed.steps;
  return timed;
}

ResultCell Answer(const Result<TimeExpandedAnswer>& taccl) {
  if (taccl) return Figure(taccl->slots);
  return Word("none in its minute");
}

// The exponent with which `points` grow from kFittedRanks on, from first to last.
std::optional<double> Exponent(const std::vector<std::pair<double, double>>& points) {
  std::optional<std::pair<double, double>> first;
  std::optional<double> exponent;
  for (const auto& point : points) {
    if (point.first < kFittedRanks) continue;
    if (!first)
      first = point;
    else
      exponent = std::log(point.second / first->second) / std::log(point.first / first->first);
  }
  return exponent;
}

ResultTable GrowthTable() {
  return {.title = "Seconds to match an all-gather, chunk 1",
          .label_name = "network",
          .columns = {{.name = "N"},
                      {.name = "seconds", .digits = 4, .timed = true},
                      {.name = "ns a transfer", .digits = 1, .timed = true},
                      {.name = "steps"},
                      {.name = "fewest possible"},
                      {.name = "proven"},
                      {.name = "paper, 64 threads", .unit = "hours", .digits = 5, .timed = true}}};
}

ResultTable ExponentsTable() {
  return {.title = "Growth from 1,000 ranks on",
          .label_name = "networks",
          .columns = {{.name = "exponent of N, seconds", .digits = 2, .timed = true},
                      {.name = "exponent of N, transfers", .digits = 2}}};
}

ResultTable ProgramTable() {
  return {.title = "Beside an integer program, all-gather",
          .label_name = "network",
          .columns = {{.name = "TACOS", .unit = "ms", .digits = 3, .timed = true},
                      {.name = "TACCL-like", .unit = "ms", .digits = 1, .timed = true},
                      {.name = "times as long", .digits = 0, .timed = true},
                      {.name = "steps, TACOS"},
                      {.name = "slots, TACCL-like"}}};
}

std::vector<std::string> Notes() {
  return {
      fmt::format("On {} threads of this machine. Counted: matching chunks to links, nothing kept "
                  "and no file written (cost only). The reduce-scatter half of the paper's "
                  "all-reduce is the same matching reversed. Up to {} ranks the schedule was made "
                  "and proven as well; larger ones are written and proven by `tutti synth -a ten "
                  "-o FILE` and `tutti verify`.",
                  NumThreads(), kProvenRanks),
      "--large adds 40,000 ranks (2-D mesh) and 42,875 (3-D mesh), minutes and gigabytes each, "
      "and larger integer programs, each with a minute. The paper's hours are of 64 threads; ours "
      "stand beside them in hours.",
      "Transfers grow with the square of N. What the seconds grow by beyond that is a transfer's "
      "own time (\"ns a transfer\"): it waits for memory where the tables leave the caches.",
      "The paper says that TACCL takes 1,000 to 100,000 times as long between 4 and 36 ranks."};
}

bool IsAskedFor(const Case& one, const ExperimentOptions& options) {
  return WithinSize(options, one.ranks) && (options.large || !one.large);
}

ResultRow GrowthRow(const Case& one, const Timed& timed) {
  const std::string hours = one.hours;
  const char* const proven = timed.proven ? "yes" : one.ranks > kProvenRanks ? "not here" : "no";
  return {one.expression,
          {Figure(one.ranks), Measured(timed.seconds),
           Measured(1e9 * timed.seconds / static_cast<double>(timed.transfers)),
           Figure(timed.steps), Figure(timed.min_steps), Word(proven),
           hours.empty() ? Word("") : Measured(timed.seconds / 3600, hours)}};
}

// The seconds of networks of one kind: their line in the chart.
Result<ChartSeries> AddGrowth(const char* name, std::span<const Case> cases,
                              const ExperimentOptions& options, ResultTable& growth,
                              ResultTable& exponents, ProgressScope& progress) {
  ChartSeries series{.name = name};
  std::vector<std::pair<double, double>> transfers;
  for (const Case& one : cases) {
    progress.Add(1);
    if (!IsAskedFor(one, options)) continue;
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Result<Timed> timed = TimeTen(one);
    if (!timed) return tl::unexpected(timed.error());
    growth.rows.push_back(GrowthRow(one, *timed));
    series.points.emplace_back(one.ranks, timed->seconds);
    transfers.emplace_back(one.ranks, static_cast<double>(timed->transfers));
  }
  if (const std::optional<double> exponent = Exponent(series.points))
    exponents.rows.push_back(
        {name, {Measured(*exponent, "2"), Figure(Rational::FromDouble(*Exponent(transfers)))}});
  return series;
}

// Beside an integer program, whose seconds are the line.
Result<ChartSeries> AddProgram(const ExperimentOptions& options, ResultTable& table,
                               ProgressScope& progress) {
  ChartSeries series{.name = "TACCL-like"};
  for (const Case& one : kSmall) {
    progress.Add(1);
    if (!IsAskedFor(one, options)) continue;
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Result<Timed> timed = TimeTen(one);
    if (!timed) return tl::unexpected(timed.error());
    const Result<Topology> topology = ParseTopology(one.expression);
    if (!topology) return tl::unexpected(topology.error());
    const auto before = std::chrono::steady_clock::now();
    const Result<TimeExpandedAnswer> taccl =
        SolveTimeExpanded(*topology, *Collective::Make(CollectiveKind::kAllGather, one.ranks),
                          {.chunks = 1}, kTimeExpandedSeconds);
    const double seconds = SecondsSince(before);
    if (!taccl && taccl.error().code == ErrorCode::kCancelled) return tl::unexpected(taccl.error());
    table.rows.push_back(
        {one.expression,
         {Measured(1e3 * timed->seconds), Measured(1e3 * seconds),
          Measured(seconds / timed->seconds), Figure(timed->steps), Answer(taccl)}});
    if (taccl) series.points.emplace_back(one.ranks, seconds);
  }
  return series;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable growth = GrowthTable(), exponents = ExponentsTable(), program = ProgramTable();
  Chart chart{.title = fmt::format("Synthesis of an all-gather on {} threads", NumThreads()),
              .x_label = "ranks N",
              .y_label = "seconds",
              .log_x = true,
              .log_y = true};
  ProgressScope progress("networks of figure 19",
                         static_cast<int64_t>(kMeshes.size() + kCubes.size() + kSmall.size()));
  for (const auto& [name, cases] : {std::pair("2D Mesh", std::span<const Case>(kMeshes)),
                                    std::pair("3D HC", std::span<const Case>(kCubes))}) {
    Result<ChartSeries> series = AddGrowth(name, cases, options, growth, exponents, progress);
    if (!series) return tl::unexpected(series.error());
    chart.series.push_back(*std::move(series));
  }
  Result<ChartSeries> series = AddProgram(options, program, progress);
  if (!series) return tl::unexpected(series.error());
  chart.series.push_back(*std::move(series));
  std::erase_if(chart.series, [](const ChartSeries& each) { return each.points.empty(); });
  ExperimentResult result{.tables = {growth, exponents, program}, .notes = Notes()};
  if (!chart.series.empty()) result.charts.push_back(std::move(chart));
  return result;
}

}  // namespace
}  // namespace tacos_figure19

Experiment TacosFigure19() {
  return {"tacos-fig19", "[tacos] figure 19",
          "synthesis time against the number of ranks: 2-D and 3-D meshes, and an integer program",
          tacos_figure19::Run};
}

}  // namespace tutti
