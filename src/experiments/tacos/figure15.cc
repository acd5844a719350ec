// [tacos] figure 15: all-reduce on a DragonFly, a 2-D switch and a 3D-RFS of unlike links.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace tacos_figure15 {
namespace {

using namespace tacos;

constexpr int64_t kSize = kGigabyte;

// What the printed bandwidths may be.
constexpr std::array<std::string_view, 4> kReadings = {
    "of a rank", "of a link", "of a rank, the other way round", "of a link, the other way round"};

struct Case {
  std::string_view name;
  std::string_view expression;  // that is run
  int64_t ranks;
  std::array<int32_t, 3> lengths;  // of its dimensions, where they number the ranks
  bool switches = false;
  bool drawn = false;
  bool averaged = true;
  std::string_view family = {}, bandwidths = {}, other_way = {};  // of its readings, if any
};
constexpr std::array<Case, 5> kCases = {{{"DragonFly, 5 groups of 4",
                                          "dragonfly(5,4,bw=[400,200]GB/s)",
                                          20,
                                          {},
                                          false,
                                          true,
                                          true,
                                          "dragonfly(5,4",
                                          "[400,200]",
                                          "[200,400]"},
                                         {"DragonFly, 4 groups of 5",
                                          "dragonfly(4,5,bw=[400,200]GB/s)",
                                          20,
                                          {},
                                          false,
                                          false,
                                          true,
                                          "dragonfly(4,5",
                                          "[400,200]",
                                          "[200,400]"},
                                         {"2D Switch",
                                          "switch2d(8,4,bw=[300,25]GB/s)",
                                          32,
                                          {8, 4, 1},
                                          true,
                                          false,
                                          true,
                                          "switch2d(8,4",
                                          "[300,25]",
                                          "[25,300]"},
                                         {"3D-RFS",
                                          "rfs(2,4,8,bw=[200,100,50]GB/s)",
                                          64,
                                          {2, 4, 8},
                                          true,
                                          true,
                                          true,
                                          "rfs(2,4,8",
                                          "[200,100,50]",
                                          "[50,100,200]"},
                                         {"3D-RFS, switches fastest",
                                          "rfs(2,4,8,bw=[50,100,200]GB/s)",
                                          64,
                                          {2, 4, 8},
                                          true,
                                          false,
                                          false}}};
constexpr std::array<int32_t, 3> kDegrees = {1, 2, 4};
constexpr std::array<Basic, 3> kBasics = {Basic::kRing, Basic::kOneWayRing, Basic::kDirect};
constexpr const char *kEfficiency = "90.84", *kSpeedup = "2.56";
constexpr size_t kRing = 0, kDirect = 2;  // in kBasics

constexpr std::array<const char*, 5> kNotes = {
    "alpha = 0.5 us. `normalised` is the bandwidth over that of TACOS. The paper's figure has "
    "no numbers; its size is not printed (1 GB here), nor whether 4 x 5 means four groups or "
    "five: both are run, and both are in the averages. Basic algorithms cross the network with "
    "its switches as messages merged with nothing; schedules run on an unwinding, the best of "
    "degrees 1, 2 and 4.",
    "Readings: the bandwidths are what a rank has in a dimension, shared over its links there, "
    "or what each link has; of the dimensions in the order of the lengths, or the other way "
    "round. 'Any all-reduce' is proven for the network before it is unwound: cut the ranks "
    "into k groups, and every byte must come into groups 2 (k - 1) times. 8 x 4 ranks of "
    "300 + 25 GB/s, a group for each switch of 8: 6 GB over 32 x 25 GB/s take 7500 us, and the "
    "ideal says 5961 us. 2 x 4 x 8 ranks of 200 + 100 + 50 GB/s, a group for each pair of the "
    "first dimension: 62 GB over 64 x 150 GB/s take 6458 us, and the ideal says 5625 us.",
    "So the paper's 90 % can be of a DragonFly where the bandwidths are of a rank (or of a link, "
    "the other way round), of the 3D-RFS only the other way round, where the switches have 200 "
    "GB/s of a rank and the rings 50 (run as the last case, which is not in the averages; table "
    "V speaks against it), and of the 2D Switch in no reading: it would take 28.7 GB/s of a "
    "rank where the paper prints 25.",
    "The drawing: how busy each link is on average (b), DragonFly of 5 groups and 3D-RFS.",
    "TACCL-like is an integer program: with --large it gets its minute on each network."};

// What reduce-scatter followed by all-gather, and what any all-reduce, can reach of the ideal.
Result<ResultRow> ReadingRow(std::string_view name, const std::string& expression,
                             std::string_view reading) {
  const Result<Network> network = MakeNetwork(expression);
  if (!network) return tl::unexpected(network.error());
  const Bounds& bounds = network->bounds;
  const double latency_s = network->IdealSeconds(0);
  const double ideal_s = network->IdealSeconds(kSize);
  const double bound_s = network->BoundSeconds(kSize);
  const double parts_s =
      (bounds.rsag_seconds_per_byte.value_or(bounds.seconds_per_byte) * Rational(kSize))
          .ToDouble() +
      latency_s;
  return ResultRow{
      fmt::format("{}: {}", name, expression),
      {Word(std::string(reading)), Measured(1e6 * ideal_s), Measured(100 * ideal_s / parts_s),
       Measured(100 * ideal_s / bound_s), Word(ideal_s / bound_s > 0.9 ? "yes" : "no", "yes")}};
}

ResultTable ReadingsTable() {
  return {
      .title = "What each reading of the bandwidths allows for",
      .label_name = "network",
      .columns = {
          {.name = "reading"},
          {.name = "ideal", .unit = "us", .digits = 1},
          {.name = "reduce-scatter + all-gather, at most", .unit = "% of the ideal", .digits = 1},
          {.name = "any all-reduce, at most", .unit = "% of the ideal", .digits = 1},
          {.name = "more than 90 % possible"}}};
}

Status AddReadings(const Case& one, ResultTable& readings) {
  if (one.family.empty()) return {};
  for (size_t k = 0; k < kReadings.size(); ++k) {
    const std::string expression =
        fmt::format("{},{}={}GB/s)", one.family, k % 2 == 0 ? "bw" : "bw_per_link",
                    k < 2 ? one.bandwidths : one.other_way);
    Result<ResultRow> row = ReadingRow(one.name, expression, kReadings[k]);
    if (!row) return tl::unexpected(row.error());
    readings.rows.push_back(*std::move(row));
  }
  return {};
}

// Those that are possible.
std::vector<Network> Unwindings(const Case& one) {
  std::vector<Network> unwound;
  for (int32_t degree : kDegrees) {
    Result<Network> next = MakeNetwork(fmt::format("unwind({},degree={})", one.expression, degree));
    if (next) unwound.push_back(*std::move(next));
  }
  return unwound;
}

struct NamedOutcome {
  std::string name;
  Result<Outcome> outcome;
};

// TACOS is the last and has an outcome; others may have an error that is not kCancelled.
Result<std::vector<NamedOutcome>> RunAlgorithms(const Case& one, const Network& network,
                                                const ExperimentOptions& options) {
  const std::vector<Network> unwound = one.switches ? Unwindings(one) : std::vector<Network>();
  const std::span<const Network> direct =
      one.switches ? std::span<const Network>(unwound) : std::span(&network, 1);
  // Members of a group are neighbours in number; dimensions are counted as the paper does.
  const std::vector<NodeId> place =
      one.switches ? FirstDimensionFastest(one.lengths) : std::vector<NodeId>();
  std::vector<NamedOutcome> outcomes;
  for (Basic basic : kBasics)
    outcomes.push_back({std::string(Name(basic)), RunBasic(network, basic, {}, place)});
  if (options.large)
    outcomes.push_back(
        {"TACCL (-a taccl-like)", RunFastest(direct.front(), "taccl-like", std::array{1}, {})});
  outcomes.push_back(
      {"TACOS (-a ten)", RunFastest(direct, "ten", TenChunks(network.topology, options), {})});
  if (!outcomes.back().outcome) return tl::unexpected(outcomes.back().outcome.error());
  for (const NamedOutcome& each : outcomes)
    if (!each.outcome && each.outcome.error().code == ErrorCode::kCancelled)
      return tl::unexpected(each.outcome.error());
  return outcomes;
}

void AddOutcomes(const Case& one, const Network& network, const std::vector<NamedOutcome>& outcomes,
                 ResultTable& table, std::vector<std::string>& notes) {
  const Outcome& ten = *outcomes.back().outcome;
  for (const auto& [name, outcome] : outcomes) {
    table.rows.push_back(
        OutcomeRow(fmt::format("{}: {}", one.name, name), outcome, network, kSize, ten.time_s));
    if (!outcome)
      notes.push_back(fmt::format("{}: {}: {}", one.name, name, outcome.error().message));
  }
  if (one.switches)
    notes.push_back(fmt::format("{}: -a ten is fastest on {}.", one.name, ten.network));
}

// How busy each link is, on the network that the algorithm ran on.
Status AddCharts(const Case& one, const Network& network, const std::vector<NamedOutcome>& outcomes,
                 std::vector<Chart>& charts) {
  for (const NamedOutcome& each : outcomes) {
    if (!each.outcome || each.name == Name(Basic::kOneWayRing)) continue;
    const bool unwinds = one.switches && &each == &outcomes.back();
    const Result<Network> on = unwinds ? MakeNetwork(each.outcome->network) : network;
    if (!on) return tl::unexpected(on.error());
    charts.push_back(
        {.title = fmt::format("{}: {}", one.name, each.name),
         .x_label = "to node",
         .y_label = "from node",
         .heat = LoadMap(on->topology, each.outcome->report.link_busy_s, each.outcome->time_s)});
    charts.back().heat->low = "link never busy";
    charts.back().heat->high = "busy all the time";
  }
  return {};
}

// What the paper says of the figure: of TACOS.
struct Averages {
  Average speedup, efficiency, bound_efficiency;

  void Add(const Network& network, const std::vector<NamedOutcome>& outcomes) {
    const Outcome& ten = *outcomes.back().outcome;
    for (size_t i : {kRing, kDirect}) speedup.Add(outcomes[i].outcome->time_s / ten.time_s);
    efficiency.Add(network.IdealSeconds(kSize) / ten.time_s);
    bound_efficiency.Add(ten.bound_s / ten.time_s);
  }
  ResultTable Table() const {
    const auto percent = [](const Average& average, const char* paper) {
      ResultCell cell = average.Cell(paper);
      if (cell.ours) *cell.ours *= Rational(100);
      return cell;
    };
    return {.title = "What the paper says of the figure",
            .label_name = "quantity",
            .columns = {{.name = "figure", .digits = 2}},
            .rows = {{"TACOS over Ring and Direct, average", {speedup.Cell(kSpeedup)}},
                     {"TACOS of the ideal, average (%)", {percent(efficiency, kEfficiency)}},
                     {"TACOS of the proven bound, average (%)", {percent(bound_efficiency, "")}}}};
  }
};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable table{.title = "All-reduce of 1 GB",
                    .label_name = "network, algorithm",
                    .columns = OutcomeColumns()};
  ResultTable readings = ReadingsTable();
  Averages averages;
  ExperimentResult result{.notes = {kNotes.begin(), kNotes.end()},
                          .charts_a_row = static_cast<int32_t>(kBasics.size())};
  for (const Case& one : WithProgress("networks of figure 15", kCases)) {
    if (!WithinSize(options, one.ranks)) continue;
    if (const Status added = AddReadings(one, readings); !added)
      return tl::unexpected(added.error());
    const Result<Network> network = MakeNetwork(one.expression);
    if (!network) return tl::unexpected(network.error());
    const Result<std::vector<NamedOutcome>> outcomes = RunAlgorithms(one, *network, options);
    if (!outcomes) return tl::unexpected(outcomes.error());
    AddOutcomes(one, *network, *outcomes, table, result.notes);
    if (one.averaged) averages.Add(*network, *outcomes);
    if (!one.drawn) continue;
    if (const Status added = AddCharts(one, *network, *outcomes, result.charts); !added)
      return tl::unexpected(added.error());
  }
  result.tables = {averages.Table(), std::move(table), std::move(readings)};
  return result;
}

}  // namespace
}  // namespace tacos_figure15

Experiment TacosFigure15() {
  return {"tacos-fig15", "[tacos] figure 15",
          "all-reduce on DragonFly, 2-D switch and 3D-RFS, and which reading of them can be the "
          "paper's",
          tacos_figure15::Run};
}

}  // namespace tutti
