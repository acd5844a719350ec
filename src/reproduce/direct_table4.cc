// [direct-connect] table 4: what collectives take on the frontier of N = 1024 and degree 4.
#include <fmt/format.h>

#include <array>

#include "circulant_flow.h"
#include "direct.h"
#include "direct_baselines.h"
#include "direct_frontier.h"
#include "direct_networks.h"
#include "registry.h"
#include "tutti/base/progress.h"
#include "tutti/coll/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/expand_cost.h"

namespace tutti {
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

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  if (!direct::WithinSize(options, kRanks))
    return ExperimentResult{
        .tables = {{.title = "Frontier at N = 1024", .label_name = "topology", .columns = {}}},
        .notes = {"Table 4 is of 1024 ranks, more than were asked for."}};
  ResultTable paper{.title = "The paper's networks of 1024 ranks, made and measured",
                    .label_name = "topology",
                    .columns = direct::FigureColumns()};
  for (const ResultColumn& column : TimeColumns()) paper.columns.push_back(column);
  direct::Reasons reasons;
  ProgressScope progress("networks of table 4", 2 * static_cast<int64_t>(kTimes.size()) + 2);
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
    paper.rows.push_back(std::move(row));
    progress.Add(1);
  }
  const direct::PrintedNetwork& bound = direct::PrintedBounds().back();
  const int32_t moore = MooreBoundSteps(kRanks, direct::kTableDegree);
  const Rational limit = MooreFlow(kRanks, direct::kTableDegree);
  paper.rows.push_back(
      {"theoretical bound",
       {Figure(moore, bound.tl), Figure(BestTb(kRanks), bound.tb), Figure(moore, bound.diameter),
        Figure(limit, bound.flow),
        Figure(direct::AllReduceUs(moore, BestTb(kRanks)), kBound.all_reduce),
        Figure(direct::AllToAllUs(kRanks, direct::kTableDegree, limit), kBound.all_to_all)}});

  ResultTable baselines{.title = "Baselines of the caption",
                        .label_name = "network and schedule",
                        .columns = TimeColumns()};
  const std::string ring = direct::ShiftedRing(kRanks);
  const Result<Rational> ring_flow =
      direct::CirculantFlow(kRanks, 1, direct::ShiftedRingStride(kRanks));
  if (!ring_flow) return tl::unexpected(ring_flow.error());
  baselines.rows.push_back(
      {fmt::format("shifted ring, {}", ring),
       {Figure(direct::ShiftedRingAllReduceUs(kRanks), kShiftedRing.all_reduce),
        Figure(direct::AllToAllUs(kRanks, direct::kTableDegree, *ring_flow),
               kShiftedRing.all_to_all)}});
  progress.Add(1);
  const Result<Topology> trees = direct::DoubleBinaryTree(kRanks);
  if (!trees) return tl::unexpected(trees.error());
  const Result<direct::Flow> trees_flow = direct::ComputeFlow(*trees);
  if (!trees_flow && trees_flow.error().code == ErrorCode::kCancelled)
    return tl::unexpected(trees_flow.error());
  const direct::TreeTime two_tree = direct::TwoTreeAllReduce(kRanks);
  const direct::TreeTime one_pass = direct::TreesInOnePass(kRanks);
  baselines.rows.push_back(
      {fmt::format("double binary tree, two-tree algorithm, k = {}", two_tree.pieces),
       {Figure(two_tree.us, kTrees.all_reduce),
        AllToAllCell(trees->name(), trees_flow, kTrees.all_to_all, reasons)}});
  baselines.rows.push_back({fmt::format("the same trees in one pass, k = {}", one_pass.pieces),
                            {Figure(one_pass.us), Word("")}});
  progress.Add(1);

  const Result<std::vector<Design>> frontier = direct::FrontierOf(kRanks);
  if (!frontier) return tl::unexpected(frontier.error());
  ResultTable found{.title = "What `tutti design` finds",
                    .label_name = "topology",
                    .columns = direct::FigureColumns()};
  for (const ResultColumn& column : TimeColumns()) found.columns.push_back(column);
  for (const Design& design : *frontier) {
    const Result<direct::NetworkFigures> figures =
        direct::MeasureNetwork(design.recipe, design.algorithm);
    if (!figures) return tl::unexpected(figures.error());
    ResultRow row{design.recipe, {}};
    direct::AppendFigures(design.recipe, *figures, {kRanks, "", "", "", "", ""}, reasons,
                          row.cells);
    row.cells.push_back(figures->cost
                            ? Figure(direct::AllReduceUs(figures->cost->tl, figures->cost->tb))
                            : reasons.Cell(design.recipe, figures->cost.error()));
    row.cells.push_back(AllToAllCell(design.recipe, figures->flow, "", reasons));
    found.rows.push_back(std::move(row));
    progress.Add(1);
  }
  ExperimentResult result{.tables = {paper, baselines, found}};
  result.notes = {
      "alpha = 10 us, M/B = 1 MiB / 100 Gbit/s = 83.886 us. All-reduce: 2 (TL + TB) of the "
      "all-gather, whose schedule was made and proven. All-to-all: M/N over f B/d, without alpha, "
      "f "
      "as in table 7.",
      direct::kSuspectedNote,
      "Shifted ring: 2 ((N-1) alpha + (N-1)/N M/B). The paper's figure is what N alpha and M/B = "
      "80 "
      "us (10^6 bytes) give: 20639.8. Its all-to-all is that of the strides 1 and 3.",
      "Double binary tree: the paper prints no formula. The two-tree algorithm (Sanders, Speck, "
      "Traeff), reduce and then broadcast, takes 2 (2h + k - 1) (alpha + 2M/(Bk)) with h = 10 "
      "levels and the best number k of pieces. Sending down what has reached the root while the "
      "rest is on its way up halves that.",
  };
  reasons.AppendTo(result.notes);
  return result;
}

}  // namespace

Experiment DirectTable4() {
  return {"direct-table4", "[direct-connect] table 4",
          "all-reduce and all-to-all times on the frontier of 1024 ranks, degree 4, and baselines",
          Run};
}

}  // namespace tutti
