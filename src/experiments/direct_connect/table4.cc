// [direct-connect] table 4: what collectives take on the frontier of N = 1024 and degree 4.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "alltoall_mcf/circulant_flow.h"
#include "baselines.h"
#include "direct.h"
#include "frontier.h"
#include "networks.h"
#include "registry.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/expand_cost.h"

namespace tutti {
namespace direct_table4 {
namespace {

using direct::Figure;
using direct::Word;

constexpr int32_t kRanks = 1024;

// Microseconds, in the order of table 7's rows of N = 1024.
struct PaperTimes {
  const char *all_reduce, *all_to_all;
};
constexpr std::array<PaperTimes, 5> kTimes = {{{"323.5", "409.1"},
                                               {"291.0", "403.5"},
                                               {"328.4", "446.6"},
                                               {"387.8", "529.9"},
                                               {"567.6", "1174.4"}}};
constexpr PaperTimes kBound = {"267.6", "382.3"};
// Beside table 4, in its caption.
constexpr PaperTimes kShiftedRing = {"20640", "10738"}, kTrees = {"1434", "21475"};

std::vector<ResultColumn> TimeColumns() {
  return {{.name = "all-reduce", .unit = "us", .digits = 1},
          {.name = "all-to-all", .unit = "us", .digits = 1}};
}

ResultCell AllToAllCell(const std::string& whose, const Result<direct::Flow>& flow,
                        const char* paper, direct::Reasons& reasons) {
  if (!flow) return reasons.Cell(whose, flow.error(), paper);
  return {.ours = direct::AllToAllUs(kRanks, direct::kTableDegree, flow->lower),
          .limit = direct::AllToAllUs(kRanks, direct::kTableDegree, flow->upper),
          .paper = paper};
}

ResultTable NetworksTable(const char* title) {
  ResultTable table{.title = title, .label_name = "topology", .columns = direct::FigureColumns()};
  for (const ResultColumn& column : TimeColumns()) table.columns.push_back(column);
  return table;
}

ResultRow BoundRow() {
  const direct::PrintedNetwork& bound = direct::PrintedBounds().back();
  const int32_t moore = MooreBoundSteps(kRanks, direct::kTableDegree);
  const Rational flow = MooreFlow(kRanks, direct::kTableDegree);
  return {"theoretical bound",
          {Figure(moore, bound.tl), Figure(BestTb(kRanks), bound.tb), Figure(moore, bound.diameter),
           Figure(flow, bound.flow),
           Figure(direct::AllReduceUs(moore, BestTb(kRanks)), kBound.all_reduce),
           Figure(direct::AllToAllUs(kRanks, direct::kTableDegree, flow), kBound.all_to_all)}};
}

Result<ResultTable> PaperTable(direct::Reasons& reasons, ProgressScope& progress) {
  ResultTable table = NetworksTable("The paper's networks of 1024 ranks, made and measured");
  size_t index = 0;
  for (const direct::PrintedNetwork& network : direct::PrintedNetworks()) {
    if (network.ranks != kRanks) continue;
    const PaperTimes& times = kTimes[index++];
    const Result<direct::NetworkFigures> figures = direct::MeasureNetwork(network.recipe, "expand");
    if (!figures) return tl::unexpected(figures.error());
    ResultRow row{network.recipe, {}};
    direct::AppendFigures(network.recipe, *figures, network, reasons, row.cells);
    row.cells.push_back(
        figures->cost
            ? Figure(direct::AllReduceUs(figures->cost->tl, figures->cost->tb), times.all_reduce)
            : reasons.Cell(network.recipe, figures->cost.error(), times.all_reduce));
    row.cells.push_back(AllToAllCell(network.recipe, figures->flow, times.all_to_all, reasons));
    table.rows.push_back(std::move(row));
    progress.Add(1);
  }
  table.rows.push_back(BoundRow());
  return table;
}

Result<ResultRow> ShiftedRingRow() {
  const Result<Rational> flow = direct::CirculantFlow(kRanks, 1, direct::ShiftedRingStride(kRanks));
  if (!flow) return tl::unexpected(flow.error());
  return ResultRow{
      fmt::format("shifted ring, {}", direct::ShiftedRing(kRanks)),
      {Figure(direct::ShiftedRingAllReduceUs(kRanks), kShiftedRing.all_reduce),
       Figure(direct::AllToAllUs(kRanks, direct::kTableDegree, *flow), kShiftedRing.all_to_all)}};
}

Result<ResultRow> TwoTreeRow(direct::Reasons& reasons) {
  const Result<Topology> trees = direct::DoubleBinaryTree(kRanks);
  if (!trees) return tl::unexpected(trees.error());
  const Result<direct::Flow> flow = direct::ComputeFlow(*trees);
  if (!flow && flow.error().code == ErrorCode::kCancelled) return tl::unexpected(flow.error());
  const direct::TreeTime time = direct::TwoTreeAllReduce(kRanks);
  return ResultRow{fmt::format("double binary tree, two-tree algorithm, k = {}", time.pieces),
                   {Figure(time.us, kTrees.all_reduce),
                    AllToAllCell(trees->name(), flow, kTrees.all_to_all, reasons)}};
}

Result<ResultTable> BaselinesTable(direct::Reasons& reasons, ProgressScope& progress) {
  ResultTable table{.title = "Baselines of the caption",
                    .label_name = "network and schedule",
                    .columns = TimeColumns()};
  Result<ResultRow> ring = ShiftedRingRow();
  if (!ring) return tl::unexpected(ring.error());
  table.rows.push_back(*std::move(ring));
  progress.Add(1);
  Result<ResultRow> trees = TwoTreeRow(reasons);
  if (!trees) return tl::unexpected(trees.error());
  table.rows.push_back(*std::move(trees));
  const direct::TreeTime one_pass = direct::TreesInOnePass(kRanks);
  table.rows.push_back({fmt::format("the same trees in one pass, k = {}", one_pass.pieces),
                        {Figure(one_pass.us), Word("")}});
  progress.Add(1);
  return table;
}

Result<ResultTable> FoundTable(direct::Reasons& reasons, ProgressScope& progress) {
  const Result<std::vector<Design>> frontier = direct::FrontierOf(kRanks);
  if (!frontier) return tl::unexpected(frontier.error());
  ResultTable table = NetworksTable("What `tutti design` finds");
  for (const Design& design : *frontier) {
    const Result<direct::NetworkFigures> figures =
        direct::MeasureNetwork(design.recipe, design.algorithm);
    if (!figures) return tl::unexpected(figures.error());
    ResultRow row{design.recipe, {}};
    direct::AppendFigures(design.recipe, *figures, {kRanks, "", "", "", "", ""}, reasons,
                          row.cells);
    row.cells.push_back(Figure(direct::AllReduceUs(design)));
    row.cells.push_back(AllToAllCell(design.recipe, figures->flow, "", reasons));
    table.rows.push_back(std::move(row));
    progress.Add(1);
  }
  return table;
}

constexpr std::array<const char*, 4> kNotes = {
    "alpha = 10 us, M/B = 1 MiB / 100 Gbit/s = 83.886 us. All-reduce: as in the paper "
    "2 (TL + TB) of the all-gather, whose schedule was made and proven; of what `tutti design` "
    "finds, TL + TB of the reduce-scatter and of the all-gather. All-to-all: M/N over f B/d, "
    "without alpha, f as in table 7.",
    direct::kSuspectedNote,
    "Shifted ring: 2 ((N-1) alpha + (N-1)/N M/B). The paper's figure is what N alpha and M/B = 80 "
    "us (10^6 bytes) give: 20639.8. Its all-to-all is that of the strides 1 and 3.",
    "Double binary tree: the paper prints no formula. The two-tree algorithm (Sanders, Speck, "
    "Traeff), reduce and then broadcast, takes 2 (2h + k - 1) (alpha + 2M/(Bk)) with h = 10 "
    "levels and the best number k of pieces. Sending down what has reached the root while the "
    "rest is on its way up halves that."};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  if (!direct::WithinSize(options, kRanks))
    return ExperimentResult{
        .tables = {{.title = "Frontier at N = 1024", .label_name = "topology", .columns = {}}},
        .notes = {"Table 4 is of 1024 ranks, more than were asked for."}};
  direct::Reasons reasons;
  ProgressScope progress("networks of table 4", 2 * static_cast<int64_t>(kTimes.size()) + 2);
  const Result<ResultTable> paper = PaperTable(reasons, progress);
  if (!paper) return tl::unexpected(paper.error());
  const Result<ResultTable> baselines = BaselinesTable(reasons, progress);
  if (!baselines) return tl::unexpected(baselines.error());
  const Result<ResultTable> found = FoundTable(reasons, progress);
  if (!found) return tl::unexpected(found.error());
  ExperimentResult result{.tables = {*paper, *baselines, *found},
                          .notes = {kNotes.begin(), kNotes.end()}};
  reasons.AppendTo(result.notes);
  return result;
}

}  // namespace
}  // namespace direct_table4

Experiment DirectTable4() {
  return {"direct-table4", "[direct-connect] table 4",
          "all-reduce and all-to-all times on the frontier of 1024 ranks, degree 4, and baselines",
          direct_table4::Run};
}

}  // namespace tutti
