// Boxes, switches and rails: the proven limit of all-gather, what spanning trees reach of it, and how
// long they take to make.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cells.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace clusters_figures {
namespace {

constexpr int64_t kSize = int64_t{1} << 30;
constexpr int64_t kRanksByDefault = 128;

struct Made {
  Schedule schedule;
  double synthesis_s = 0;
};

// As many trees as the optimum takes, rather than what is fastest at a size.
constexpr int32_t kAllTrees = 1 << 20;

// Proven, or an error.
Result<Made> MakeProven(std::string_view algorithm, const Topology& topology,
                        const Collective& collective, int32_t trees = 0) {
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  const auto before = std::chrono::steady_clock::now();
  Result<Schedule> schedule =
      RunSynthesizer(**synthesizer, topology, collective, {.size_bytes = kSize, .trees = trees});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(topology, collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' on {}: {}", algorithm, topology.name(),
                                 report.violations.front().message));
  return Made{*std::move(schedule), elapsed.count()};
}

Collective AllGatherOn(const Topology& topology) {
  return *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
}

// What the busiest link carries, seconds a byte of a shard.
Rational BusiestLink(const Topology& topology, const Schedule& schedule) {
  std::vector<int64_t> units(static_cast<size_t>(topology.num_links()), 0);
  for (const Transfer& transfer : schedule.transfers)
    units[transfer.link.index()] += transfer.units();
  Rational busiest;
  for (LinkId link : topology.Links())
    busiest = std::max(busiest, Rational(units[link.index()], schedule.units_per_shard) /
                                    Rational(topology.bandwidth(link)));
  return busiest;
}

// --- The limit -----------------------------------------------------------------------------------

// 1/x: shards that the busiest link carries where all links are alike.
struct PrintedLimit {
  const char *expression, *limit;
};
constexpr std::array<PrintedLimit, 12> kLimits = {{{"uniring(1,8)", "7"},
                                                   {"ring(8)", "7/2"},
                                                   {"mesh(4)", "3"},
                                                   {"mesh(3,3)", "4"},
                                                   {"mesh(4,4)", "15/2"},
                                                   {"torus(3,3)", "2"},
                                                   {"torus(4,4)", "15/4"},
                                                   {"hypercube(3)", "7/3"},
                                                   {"hypercube(4)", "15/4"},
                                                   {"complete(8)", "1"},
                                                   {"bipartite(4)", "7/4"},
                                                   {"switch(8)", "7"}}};
// The rfs is two boxes of four fully joined ranks, each rank on a rail of its own.
constexpr std::array<const char*, 15> kMachines = {"dgx_a100(2)",
                                                   "dgx_a100(4)",
                                                   "dgx_a100(16)",
                                                   "dgx_a100(128)",
                                                   "dgx_h100(2)",
                                                   "dgx_h100(16)",
                                                   "dgx_h100(128)",
                                                   "mi250(2)",
                                                   "mi250(16)",
                                                   "nvl72(2)",
                                                   "rfs(1,4,2,bw=[1,300,25]GB/s)",
                                                   "rail(4,4)",
                                                   "fat_tree(8)",
                                                   "dragonfly(5,4)",
                                                   "random_regular(4,30)"};

Result<ResultRow> LimitRow(const std::string& expression, const std::string& printed) {
  const Result<Topology> topology = ParseTopology(expression);
  if (!topology) return tl::unexpected(topology.error());
  const Collective collective = AllGatherOn(*topology);
  const Result<Bounds> bounds = ComputeBounds(*topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  const Result<Made> made = MakeProven("forest", *topology, collective, kAllTrees);
  if (!made) return tl::unexpected(made.error());
  const Rational unit(topology->bandwidth(LinkId{0}));
  const Rational limit = bounds->cut->shards_out / bounds->cut->capacity_out * unit;
  const Rational reached = BusiestLink(*topology, made->schedule) * unit;
  return ResultRow{expression,
                   {Figure(topology->num_ranks()), Figure(limit, printed), Figure(reached, printed),
                    Word(reached == limit ? "yes" : "no", "yes"), Word(bounds->bandwidth_reason)}};
}

Result<ExperimentResult> RunLimits(const ExperimentOptions& options) {
  ResultTable table{.title = "All-gather: the cut, and the busiest link under the trees",
                    .label_name = "network",
                    .columns = {{.name = "ranks"},
                                {.name = "1/x of the cut", .style = FigureStyle::kExact},
                                {.name = "1/x of the trees", .style = FigureStyle::kExact},
                                {.name = "optimal"},
                                {.name = "the cut"}}};
  std::vector<PrintedLimit> cases(kLimits.begin(), kLimits.end());
  for (const char* machine : kMachines) cases.push_back({machine, ""});
  ProgressScope progress("networks", static_cast<int64_t>(cases.size()));
  for (const PrintedLimit& one : cases) {
    progress.Add(1);
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Result<Topology> topology = ParseTopology(one.expression);
    if (!topology) return tl::unexpected(topology.error());
    if (!WithinSize(options, topology->num_ranks())) continue;
    const Result<ResultRow> row = LimitRow(one.expression, one.limit);
    if (!row) return tl::unexpected(row.error());
    table.rows.push_back(*row);
  }
  return ExperimentResult{
      .tables = {table},
      .notes = {"1/x in shards over the network's first link: of the cut, ranks inside over "
                "capacity out; of the trees, what the busiest link carries in a schedule that was "
                "made and proven. Both are exact. The printed values are those of the published "
                "limit on networks of equal links."}};
}

// --- What is reached -----------------------------------------------------------------------------

constexpr std::array<CollectiveKind, 4> kCollectives = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
    CollectiveKind::kBroadcast};
constexpr std::array<const char*, 10> kClusters = {
    "switch(8)",    "dgx_a100(2)", "dgx_a100(4)", "dgx_a100(16)", "dgx_h100(2)",
    "dgx_h100(16)", "mi250(2)",    "rail(4,4)",   "fat_tree(4)",  "spine_leaf(4,4,4)"};

// Percent of the proven bound at kSize; a word where the algorithm makes none.
Result<ResultCell> ShareOfBound(std::string_view algorithm, const Topology& topology,
                                const Collective& collective, const Bounds& bounds) {
  const Result<Made> made = MakeProven(algorithm, topology, collective);
  if (!made && made.error().code == ErrorCode::kCancelled) return tl::unexpected(made.error());
  if (!made) return Word("none");
  const Rational seconds = PredictedSeconds(topology, made->schedule, kSize);
  return Figure(Rational(100) * bounds.Limit(kSize) / seconds);
}

Result<std::vector<ResultRow>> RowsOf(const std::string& expression) {
  const Result<Topology> topology = ParseTopology(expression);
  if (!topology) return tl::unexpected(topology.error());
  std::vector<ResultRow> rows;
  for (CollectiveKind kind : kCollectives) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Collective collective = *Collective::Make(kind, topology->num_ranks());
    const Result<Bounds> bounds = ComputeBounds(*topology, collective);
    if (!bounds) return tl::unexpected(bounds.error());
    const Rational busbw = collective.BusFactor() * Rational(kSize) / bounds->Limit(kSize);
    ResultRow row{fmt::format("{}: {}", expression, Name(kind)),
                  {Figure(topology->num_ranks()), Figure(busbw / Rational(1'000'000'000))}};
    for (const std::string_view algorithm : {"forest", "ten", "ring"}) {
      const Result<ResultCell> cell = ShareOfBound(algorithm, *topology, collective, *bounds);
      if (!cell) return tl::unexpected(cell.error());
      row.cells.push_back(*cell);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<ExperimentResult> RunCollectives(const ExperimentOptions& options) {
  ResultTable table{.title = "Collectives of 1 GiB, share of the proven bound",
                    .label_name = "network: collective",
                    .columns = {{.name = "ranks"},
                                {.name = "busbw at the bound", .unit = "GB/s", .digits = 1},
                                {.name = "forest", .unit = "%", .digits = 1},
                                {.name = "ten", .unit = "%", .digits = 1},
                                {.name = "ring", .unit = "%", .digits = 1}}};
  ProgressScope progress("networks", static_cast<int64_t>(kClusters.size()));
  for (const char* expression : kClusters) {
    progress.Add(1);
    const Result<Topology> topology = ParseTopology(expression);
    if (!topology) return tl::unexpected(topology.error());
    const int64_t ranks = topology->num_ranks();
    if (!WithinSize(options, ranks) || (ranks >= kRanksByDefault && !options.large)) continue;
    const Result<std::vector<ResultRow>> rows = RowsOf(expression);
    if (!rows) return tl::unexpected(rows.error());
    table.rows.insert(table.rows.end(), rows->begin(), rows->end());
  }
  return ExperimentResult{
      .tables = {table},
      .notes = {fmt::format("Links held: every message of a chunk keeps its link for alpha and "
                            "bytes/bandwidth. 'none': the algorithm makes no such schedule on a "
                            "network with switches as they are. {} ranks and more with --large.",
                            kRanksByDefault)}};
}

// --- Growth --------------------------------------------------------------------------------------

struct GrowthCase {
  const char *expression, *printed_s;
};
constexpr std::array<GrowthCase, 6> kGrowth = {{{"dgx_h100(2)", "7"},
                                                {"dgx_h100(4)", "60"},
                                                {"dgx_h100(16)", ""},
                                                {"dgx_h100(32)", ""},
                                                {"dgx_h100(64)", ""},
                                                {"dgx_h100(128)", ""}}};

Result<ExperimentResult> RunGrowth(const ExperimentOptions& options) {
  ResultTable table{.title = "Seconds to make an all-gather of 1 GiB to the optimal rate",
                    .label_name = "network",
                    .columns = {{.name = "ranks"},
                                {.name = "seconds", .digits = 2, .timed = true},
                                {.name = "transfers"},
                                {.name = "of the proven bound", .unit = "%", .digits = 1}}};
  ProgressScope progress("networks", static_cast<int64_t>(kGrowth.size()));
  for (const GrowthCase& one : kGrowth) {
    progress.Add(1);
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Result<Topology> topology = ParseTopology(one.expression);
    if (!topology) return tl::unexpected(topology.error());
    if (!WithinSize(options, topology->num_ranks())) continue;
    const Collective collective = AllGatherOn(*topology);
    const Result<Bounds> bounds = ComputeBounds(*topology, collective);
    if (!bounds) return tl::unexpected(bounds.error());
    const Result<Made> made = MakeProven("forest", *topology, collective, kAllTrees);
    if (!made) return tl::unexpected(made.error());
    const Rational seconds = PredictedSeconds(*topology, made->schedule, kSize);
    table.rows.push_back({one.expression,
                          {Figure(topology->num_ranks()),
                           Figure(Rational::FromDouble(made->synthesis_s), one.printed_s),
                           Figure(static_cast<int64_t>(made->schedule.transfers.size())),
                           Figure(Rational(100) * bounds->Limit(kSize) / seconds)}});
  }
  return ExperimentResult{
      .tables = {table},
      .notes = {"Without the proof by the verifier, which every row passed as well. The seconds "
                "beside ours were measured of a reference implementation in Python on other "
                "machines of as many GPUs in two and four boxes."}};
}

}  // namespace
}  // namespace clusters_figures

Experiment ClustersLimits() {
  return {"clusters-limits", "[forestcoll] optimality",
          "the tightest cut of networks with and without switches, and trees that reach it",
          clusters_figures::RunLimits};
}
Experiment ClustersCollectives() {
  return {"clusters-collectives", "[forestcoll] real machines",
          "what forest, ten and ring reach of the proven bound on real machines",
          clusters_figures::RunCollectives};
}
Experiment ClustersGrowth() {
  return {"clusters-growth", "[forestcoll] real machines",
          "how long spanning trees take to make, up to 1,024 GPUs", clusters_figures::RunGrowth};
}

}  // namespace tutti
