// [tacos] figure 2: basic algorithms on four networks, and on a ring for several sizes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "registry.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace tacos_figure2 {
namespace {

using namespace tacos;

constexpr std::array<Basic, 5> kBasics = {Basic::kRing, Basic::kOneWayRing, Basic::kDirect,
                                          Basic::kRhd, Basic::kDbt};
constexpr const char* kOwn = "TACOS (-a ten)";

struct Entry {
  std::string algorithm;
  Outcome outcome;
};

Result<std::vector<Entry>> RunAll(const Network& network, const ExperimentOptions& experiment,
                                  const RunOptions& options) {
  std::vector<Entry> entries;
  for (Basic basic : kBasics) {
    Result<Outcome> outcome = RunBasic(network, basic, options);
    if (!outcome) return tl::unexpected(outcome.error());
    entries.push_back({std::string(Name(basic)), *std::move(outcome)});
  }
  Result<Outcome> own =
      RunFastest(network, "ten", TenChunks(network.topology, experiment), options);
  if (!own) return tl::unexpected(own.error());
  entries.push_back({kOwn, *std::move(own)});
  return entries;
}

double Seconds(const std::vector<Entry>& entries, std::string_view algorithm) {
  for (const Entry& entry : entries)
    if (entry.algorithm == algorithm) return entry.outcome.time_s;
  return 0;
}

ResultTable RatioTable() {
  return {.title = "What the paper says of the figure",
          .label_name = "bandwidth of one over that of the other",
          .columns = {{.name = "times", .digits = 2}}};
}

Result<ExperimentResult> RunA(const ExperimentOptions& options) {
  constexpr int64_t kSize = kGigabyte;
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable table{.title = "All-reduce of 1 GB on 64 ranks",
                    .label_name = "network, algorithm",
                    .columns = OutcomeColumns()};
  ResultTable ratios = RatioTable();
  struct Measurement {
    std::string label;
    std::vector<Entry> entries;
    Network network;
  };
  std::vector<Measurement> all;
  for (const NamedNetwork& named : MotivatingNetworks()) {
    if (!WithinSize(options, kMotivatingRanks)) break;
    Result<Network> network = MakeNetwork(named.expression);
    if (!network) return tl::unexpected(network.error());
    Result<std::vector<Entry>> entries = RunAll(*network, options, {.size_bytes = kSize});
    if (!entries) return tl::unexpected(entries.error());
    all.push_back({fmt::format("{} {}", named.name, named.expression), *std::move(entries),
                   *std::move(network)});
  }
  double slowest_s = 0;
  for (const Measurement& one : all)
    for (const Entry& entry : one.entries) slowest_s = std::max(slowest_s, entry.outcome.time_s);
  for (const Measurement& one : all)
    for (const Entry& entry : one.entries)
      table.rows.push_back(OutcomeRow(fmt::format("{}: {}", one.label, entry.algorithm),
                                      entry.outcome, one.network, kSize, slowest_s));
  if (!all.empty()) {
    const std::vector<Entry>&complete = all[0].entries, &ring = all[1].entries;
    const auto ratio = [&](const char* label, const std::vector<Entry>& entries,
                           std::string_view fast, std::string_view slow, const char* paper) {
      ratios.rows.push_back(
          {label, {Measured(Seconds(entries, slow) / Seconds(entries, fast), paper)}});
    };
    ratio("Ring over Direct, on Ring", ring, "Ring", "Direct", "16.71");
    ratio("Ring one way over Direct, on Ring", ring, "Ring, one way", "Direct", "");
    ratio("Direct over Ring one way, on FC", complete, "Direct", "Ring, one way", "62.63");
    ratio("Direct over Ring, on FC", complete, "Direct", "Ring", "");
    for (size_t i = 2; i < all.size(); ++i) {
      double basic_s = slowest_s;
      for (const Entry& entry : all[i].entries)
        if (entry.algorithm != kOwn) basic_s = std::min(basic_s, entry.outcome.time_s);
      ratios.rows.push_back(
          {fmt::format("TACOS over the best basic algorithm, on {}", all[i].label),
           {Measured(basic_s / Seconds(all[i].entries, kOwn))}});
    }
  }
  return ExperimentResult{
      .tables = {ratios, table},
      .notes = {
          "Links of alpha = 0.5 us and 50 GB/s. Basic algorithms run as messages that cross the "
          "network on fixed shortest paths and are merged with nothing. `normalised` as the paper: "
          "by the smallest bandwidth of the figure.",
          "The paper's 16.71 on Ring is that of a ring both ways, as its footnote 3 says; its "
          "62.63 "
          "on FC that of a ring one way (a ring both ways uses two of the 63 links of a rank, and "
          "Direct is half as many times faster)."}};
}

struct SizePoint {
  int64_t bytes;
  const char* best;  // the paper's word
};
constexpr std::array<SizePoint, 6> kSizes = {{{1'000, "Direct"},
                                              {32'000, ""},
                                              {1'000'000, ""},
                                              {32'000'000, ""},
                                              {256'000'000, ""},
                                              {kGigabyte, "Ring"}}};
constexpr int64_t kRingRanks = 128;

const Entry& Fastest(const std::vector<Entry>& entries) {
  const Entry* fastest = &entries.front();
  for (const Entry& entry : entries)
    if (entry.algorithm != kOwn && entry.outcome.time_s < fastest->outcome.time_s) fastest = &entry;
  return *fastest;
}

Result<ExperimentResult> RunB(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable best{.title = "The fastest basic algorithm on a ring of 128 ranks",
                   .label_name = "size",
                   .columns = {}};
  for (const NamedLinkModel& model : kLinkModels) {
    best.columns.push_back({.name = fmt::format("links {}", model.name)});
    best.columns.push_back({.name = fmt::format("Direct over Ring, {}", model.name), .digits = 3});
  }
  for (const SizePoint& size : kSizes) best.rows.push_back({SizeText(size.bytes), {}});
  ExperimentResult result;
  if (!WithinSize(options, kRingRanks)) best.rows.clear();
  for (const NamedLinkModel& model : WithProgress("link models of figure 2(b)", kLinkModels)) {
    if (!WithinSize(options, kRingRanks)) break;
    const Result<Network> network =
        MakeNetwork(fmt::format("ring({},alpha=30ns,bw=150GB/s)", kRingRanks));
    if (!network) return tl::unexpected(network.error());
    ResultTable table{
        .title = fmt::format("All-reduce on a ring of 128 ranks, links {}", model.name),
        .label_name = "size, algorithm",
        .columns = OutcomeColumns()};
    std::vector<std::vector<Entry>> all;
    double lowest = 0;  // bandwidth
    for (const SizePoint& size : WithProgress("sizes of figure 2(b)", kSizes)) {
      Result<std::vector<Entry>> entries =
          RunAll(*network, options, {.size_bytes = size.bytes, .link_model = model.model});
      if (!entries) return tl::unexpected(entries.error());
      for (const Entry& entry : *entries) {
        const double bandwidth = static_cast<double>(size.bytes) / entry.outcome.time_s;
        lowest = lowest == 0 ? bandwidth : std::min(lowest, bandwidth);
      }
      all.push_back(*std::move(entries));
    }
    for (size_t i = 0; i < kSizes.size(); ++i) {
      const SizePoint& size = kSizes[i];
      const double normal_s = static_cast<double>(size.bytes) / lowest;
      for (const Entry& entry : all[i])
        table.rows.push_back(
            OutcomeRow(fmt::format("{}: {}", SizeText(size.bytes), entry.algorithm), entry.outcome,
                       *network, size.bytes, normal_s));
      best.rows[i].cells.push_back(Word(Fastest(all[i]).algorithm, size.best));
      best.rows[i].cells.push_back(Measured(Seconds(all[i], "Ring") / Seconds(all[i], "Direct")));
    }
    result.tables.push_back(std::move(table));
    Chart chart{
        .title = fmt::format("All-reduce on ring(128), 30 ns, 150 GB/s, links {}", model.name),
        .x_label = "size (bytes)",
        .y_label = "bandwidth / the smallest",
        .log_x = true,
        .log_y = true};
    for (size_t k = 0; k < all[0].size(); ++k) {
      ChartSeries series{.name = all[0][k].algorithm};
      for (size_t i = 0; i < kSizes.size(); ++i) {
        const auto bytes = static_cast<double>(kSizes[i].bytes);
        series.points.emplace_back(bytes, bytes / all[i][k].outcome.time_s / lowest);
      }
      chart.series.push_back(std::move(series));
    }
    result.charts.push_back(std::move(chart));
  }
  result.tables.insert(result.tables.begin(), best);
  result.notes = {
      "Links of alpha = 30 ns and 150 GB/s. The paper says in words that Direct wins at 1 KB and "
      "Ring at 1 GB; the sizes between are ours. Basic algorithms as in tacos-fig2a.",
      "Direct can only win at 1 KB where a link takes the next message while the last one is still "
      "on its way (links pipelined, as in the paper's simulator): over every link go some thousand "
      "messages of 8 bytes, which with links held wait 30 ns for each other."};
  return result;
}

}  // namespace
}  // namespace tacos_figure2

Experiment TacosFigure2a() {
  return {"tacos-fig2a", "[tacos] figure 2(a)",
          "all-reduce of 1 GB: basic algorithms and TACOS on four networks of 64 ranks",
          tacos_figure2::RunA};
}
Experiment TacosFigure2b() {
  return {"tacos-fig2b", "[tacos] figure 2(b)",
          "all-reduce of 1 KB to 1 GB on a ring of 128 ranks: which basic algorithm is best",
          tacos_figure2::RunB};
}

}  // namespace tutti
