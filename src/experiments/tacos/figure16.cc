// [tacos] figure 16: BlueConnect and Themis on a 3-D torus and a 3-D mesh.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace tacos_figure16 {
namespace {

using namespace tacos;

constexpr int64_t kRanks = 64;
constexpr std::array<NamedNetwork, 2> kNetworks = {
    {{"3D Torus", "torus(4,4,4,alpha=0.7us,bw=25GB/s)"},
     {"3D HC", "mesh(4,4,4,alpha=0.7us,bw=25GB/s)"}}};
constexpr std::array<int64_t, 3> kSizes = {1'000'000, 64'000'000, kGigabyte};
constexpr int64_t kSmallest = kSizes.front(), kLargest = kSizes.back();

struct Contender {
  const char* name;
  std::string_view algorithm;
  int32_t chunks;  // 0: those of `ten` are tried
};
constexpr std::array<Contender, 4> kContenders = {{{"BlueConnect, 4 chunks", "blueconnect", 4},
                                                   {"Themis, 4 chunks", "themis", 4},
                                                   {"Themis, 64 chunks", "themis", 64},
                                                   {"TACOS (-a ten)", "ten", 0}}};
constexpr size_t kThemis64 = 2, kTen = 3;

constexpr std::array<const char*, 4> kNotes = {
    "The paper prints neither the lengths of its networks nor its sizes: 4 x 4 x 4 and 1 MB to 1 "
    "GB are ours, and so are the averages over them. `normalised` is the bandwidth over that of "
    "TACOS. Links pipelined is what the paper's simulator does; held, where every message of a "
    "chunk keeps its link for alpha too, is what 64 chunks of a small size suffer from.",
    "Themis and BlueConnect go both ways along the lines of a mesh, where the paper's 49 % "
    "suggest that it ran rings which come back over the whole line: ours are faster there.",
    "BlueConnect and Themis serve a dimension with one chunk at a time: with 4 of them a "
    "dimension waits while another is busy.",
    "The paper's 98.44 % of links in use is an average over its networks and cannot be of a mesh "
    "as such: on the 4 x 4 x 4 mesh the ideal itself, which counts a corner's three links, needs "
    "two thirds of all links only. Utilisation is of all links here."};

// What the paper says of a network, under one link model.
struct Summary {
  Average ten, themis, busy, over_themis;
  double themis_small = 0;

  void Add(const Network& network, int64_t size, const std::vector<Outcome>& outcomes) {
    const double ten_s = outcomes[kTen].time_s, themis_s = outcomes[kThemis64].time_s;
    const double ideal_s = network.IdealSeconds(size);
    ten.Add(100 * ideal_s / ten_s);
    themis.Add(100 * ideal_s / themis_s);
    over_themis.Add(themis_s / ten_s);
    if (size == kSmallest) themis_small = 100 * ideal_s / themis_s;
    if (size == kLargest) busy.Add(100 * MeanUtilisation(outcomes[kTen]));
  }
};
using Summaries = std::array<Summary, kNetworks.size()>;

// A row of what the paper says: which figure of which network.
struct PaperClaim {
  const char* label;
  size_t network;  // of kNetworks
  ResultCell (*cell)(const Summary& summary);
  const char* paper;
};
ResultCell TenCell(const Summary& s) { return s.ten.Cell(); }
ResultCell ThemisCell(const Summary& s) { return s.themis.Cell(); }
ResultCell ThemisSmallCell(const Summary& s) { return Measured(s.themis_small); }
ResultCell OverThemisCell(const Summary& s) { return s.over_themis.Cell(); }
ResultCell BusyCell(const Summary& s) { return s.busy.Cell(); }
constexpr std::array<PaperClaim, 8> kClaims = {
    {{"3D Torus: TACOS of the ideal, average (%)", 0, TenCell, "95.90"},
     {"3D HC: TACOS of the ideal, average (%)", 1, TenCell, "98.10"},
     {"3D Torus: Themis, 64 chunks, of the ideal at 1 MB (%)", 0, ThemisSmallCell, "64.37"},
     {"3D Torus: Themis, 64 chunks, of the ideal, average (%)", 0, ThemisCell, ""},
     {"3D HC: Themis, 64 chunks, of the ideal, average (%)", 1, ThemisCell, "49.43"},
     {"3D HC: TACOS over Themis, 64 chunks", 1, OverThemisCell, "2.01"},
     {"3D Torus: links busy under TACOS at 1 GB, on average over its time (%)", 0, BusyCell,
      "98.44"},
     {"3D HC: links busy under TACOS at 1 GB, on average over its time (%)", 1, BusyCell,
      "98.44"}}};

// A column for each link model.
ResultTable ClaimsTable(std::span<const Summaries> summaries, bool measured) {
  ResultTable table{
      .title = "What the paper says of the figure", .label_name = "quantity", .columns = {}};
  for (const NamedLinkModel& model : kLinkModels)
    table.columns.push_back({.name = fmt::format("links {}", model.name), .digits = 2});
  if (!measured) return table;
  for (const PaperClaim& claim : kClaims) {
    ResultRow row{.label = claim.label, .cells = {}};
    for (const Summaries& of_networks : summaries) {
      row.cells.push_back(claim.cell(of_networks[claim.network]));
      row.cells.back().paper = claim.paper;
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// In the order of kContenders.
Result<std::vector<Outcome>> RunContenders(const Network& network, int64_t size,
                                           const NamedLinkModel& model,
                                           const ExperimentOptions& options) {
  std::vector<Outcome> outcomes;
  for (const Contender& contender : kContenders) {
    const std::vector<int32_t> chunks = contender.chunks == 0
                                            ? TenChunks(network.topology, options)
                                            : std::vector<int32_t>{contender.chunks};
    Result<Outcome> outcome =
        RunFastest(network, contender.algorithm, chunks,
                   {.size_bytes = size, .link_model = model.model, .record = size == kLargest});
    if (!outcome) return tl::unexpected(outcome.error());
    outcomes.push_back(*std::move(outcome));
  }
  return outcomes;
}

// The rows of one network, and the chart of its largest size.
Result<Chart> AddNetwork(const NamedNetwork& named, const NamedLinkModel& model,
                         const ExperimentOptions& options, ResultTable& table, Summary& summary) {
  const Result<Network> network = MakeNetwork(named.expression);
  if (!network) return tl::unexpected(network.error());
  Chart chart{.title = fmt::format("Links in use during an all-reduce of 1 GB on {}, {}",
                                   named.name, model.name),
              .x_label = "time / that of TACOS",
              .y_label = "links busy (%)",
              .y_min = 0};
  for (int64_t size : kSizes) {
    const Result<std::vector<Outcome>> outcomes = RunContenders(*network, size, model, options);
    if (!outcomes) return tl::unexpected(outcomes.error());
    const double ten_s = (*outcomes)[kTen].time_s;
    for (size_t i = 0; i < kContenders.size(); ++i) {
      const Outcome& outcome = (*outcomes)[i];
      table.rows.push_back(
          OutcomeRow(fmt::format("{} {}: {}", named.name, SizeText(size), kContenders[i].name),
                     outcome, *network, size, ten_s));
      if (size == kLargest)
        chart.series.push_back(UtilisationSeries(kContenders[i].name, outcome, ten_s));
    }
    summary.Add(*network, size, *outcomes);
  }
  return chart;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const bool measured = WithinSize(options, kRanks);
  ExperimentResult result{.notes = {kNotes.begin(), kNotes.end()}};
  std::array<Summaries, kLinkModels.size()> summaries;
  ProgressScope progress("networks of figure 16", std::ssize(kLinkModels) * std::ssize(kNetworks));
  for (size_t m = 0; m < kLinkModels.size(); ++m) {
    const NamedLinkModel& model = kLinkModels[m];
    ResultTable table{
        .title = fmt::format("All-reduce, alpha = 0.7 us, 25 GB/s, links {}", model.name),
        .label_name = "network, size, algorithm",
        .columns = OutcomeColumns()};
    for (size_t n = 0; n < kNetworks.size() && measured; ++n) {
      Result<Chart> chart = AddNetwork(kNetworks[n], model, options, table, summaries[m][n]);
      if (!chart) return tl::unexpected(chart.error());
      result.charts.push_back(*std::move(chart));
      progress.Add(1);
    }
    result.tables.push_back(std::move(table));
  }
  result.tables.insert(result.tables.begin(), ClaimsTable(summaries, measured));
  return result;
}

}  // namespace
}  // namespace tacos_figure16

Experiment TacosFigure16() {
  return {"tacos-fig16", "[tacos] figure 16",
          "BlueConnect, Themis with 4 and 64 chunks and TACOS on a 3-D torus and a 3-D mesh",
          tacos_figure16::Run};
}

}  // namespace tutti
