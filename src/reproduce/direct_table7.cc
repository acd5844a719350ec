// [direct-connect] table 7: the Pareto frontier at N = 32 .. 1024 and degree 4.
#include <fmt/format.h>

#include <map>

#include "direct.h"
#include "direct_frontier.h"
#include "direct_networks.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/coll/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/expand_cost.h"

namespace tutti {
namespace {

using direct::Figure;
using direct::Word;

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ResultTable paper{.title = "The paper's networks, made and measured",
                    .label_name = "topology",
                    .columns = {{.name = "N"}}};
  for (const ResultColumn& column : direct::FigureColumns()) paper.columns.push_back(column);
  paper.columns.push_back({.name = "tutti design"});
  ResultTable found{
      .title = "What `tutti design` finds", .label_name = "topology", .columns = {{.name = "N"}}};
  for (const ResultColumn& column : direct::FigureColumns()) found.columns.push_back(column);
  found.columns.push_back({.name = "schedule"});
  found.columns.push_back({.name = "beside table 7"});
  ResultTable dominating{.title = "Networks of ours that dominate one of table 7",
                         .label_name = "topology",
                         .columns = {{.name = "N"},
                                     {.name = "TL", .unit = "steps"},
                                     {.name = "TB", .unit = "M/B", .digits = 4},
                                     {.name = "dominated"},
                                     {.name = "its TL", .unit = "steps"},
                                     {.name = "its TB", .unit = "M/B", .digits = 4}}};
  direct::Reasons reasons;
  ProgressScope progress("networks of table 7",
                         static_cast<int64_t>(2 * direct::PrintedNetworks().size()));
  for (const direct::PrintedNetwork& bound : direct::PrintedBounds()) {
    const int32_t ranks = bound.ranks;
    if (!direct::WithinSize(options, ranks)) continue;
    const Result<std::vector<Design>> frontier = direct::FrontierOf(ranks);
    if (!frontier) return tl::unexpected(frontier.error());

    std::vector<direct::PrintedCost> printed_costs;
    std::map<std::string, direct::NetworkFigures> measured;
    for (const direct::PrintedNetwork& network : direct::PrintedNetworks()) {
      if (network.ranks != ranks) continue;
      const Result<direct::NetworkFigures> figures =
          direct::MeasureNetwork(network.recipe, "expand");
      if (!figures) return tl::unexpected(figures.error());
      ResultRow row{network.recipe, {Figure(ranks)}};
      direct::AppendFigures(network.recipe, *figures, network, reasons, row.cells);
      if (direct::HasPrintedCost(*figures, network)) {
        const direct::Cost cost{figures->cost->tl, figures->cost->tb};
        printed_costs.push_back({network.recipe, cost});
        row.cells.push_back(Word(direct::Reached(cost, *frontier)));
      } else {
        row.cells.push_back(Word("not compared"));
      }
      paper.rows.push_back(std::move(row));
      measured.emplace(network.recipe, *figures);
      progress.Add(1);
    }
    if (ranks == direct::kSuspected.ranks) {
      const Result<direct::NetworkFigures> figures =
          direct::MeasureNetwork(direct::kSuspected.recipe, "expand");
      if (!figures) return tl::unexpected(figures.error());
      ResultRow row{fmt::format("{} instead", direct::kSuspected.recipe), {Figure(ranks)}};
      direct::AppendFigures(direct::kSuspected.recipe, *figures, direct::kSuspected, reasons,
                            row.cells);
      row.cells.push_back(Word(""));
      paper.rows.push_back(std::move(row));
    }
    const int32_t moore = MooreBoundSteps(ranks, direct::kTableDegree);
    paper.rows.push_back({"theoretical bound",
                          {Figure(ranks), Figure(moore, bound.tl), Figure(BestTb(ranks), bound.tb),
                           Figure(moore, bound.diameter),
                           Figure(MooreFlow(ranks, direct::kTableDegree), bound.flow), Word("")}});

    for (const Design& design : *frontier) {
      const auto known = measured.find(design.recipe);
      const Result<direct::NetworkFigures> figures =
          known != measured.end() ? Result<direct::NetworkFigures>(known->second)
                                  : direct::MeasureNetwork(design.recipe, design.algorithm);
      if (!figures) return tl::unexpected(figures.error());
      const direct::Cost cost{design.tl, design.tb};
      const bool proven =
          figures->cost && direct::Cost{figures->cost->tl, figures->cost->tb} == cost;
      const std::string standing = direct::Standing(cost, printed_costs);
      ResultRow row{design.recipe, {Figure(ranks), Figure(design.tl), Figure(design.tb)}};
      row.cells.push_back(Figure(design.diameter));
      row.cells.push_back(direct::FlowCell(design.recipe, figures->flow, "", reasons));
      row.cells.push_back(proven          ? Word("proven")
                          : figures->cost ? Word("other cost")
                                          : reasons.Cell(design.recipe, figures->cost.error()));
      row.cells.push_back(Word(standing));
      found.rows.push_back(std::move(row));
      for (const direct::PrintedCost& other : printed_costs)
        if (proven && direct::Dominates(cost, other.cost))
          dominating.rows.push_back(
              {design.recipe,
               {Figure(ranks), Figure(design.tl), Figure(design.tb), Word(other.recipe),
                Figure(other.cost.tl), Figure(other.cost.tb)}});
      progress.Add(1);
    }
  }
  ExperimentResult result{.tables = {paper, found}};
  if (!dominating.rows.empty()) result.tables.push_back(dominating);
  result.notes = {
      "TL and TB are those of the all-gather, counted on a schedule that was made and proven by "
      "the "
      "verifier. A network dominates another of its size if neither TL nor TB is larger and one is "
      "smaller; costs are compared as exact fractions.",
      fmt::format("f is reached by a flow in hand and proven to be at most {:.2f} % below the best "
                  "possible.",
                  100 * direct::kFlowGap)};
  if (direct::WithinSize(options, direct::kSuspected.ranks))
    result.notes.push_back(direct::kSuspectedNote);
  if (dominating.rows.empty())
    result.notes.push_back("No network of ours dominates one of table 7.");
  reasons.AppendTo(result.notes);
  return result;
}

}  // namespace

Experiment DirectTable7() {
  return {
      "direct-table7", "[direct-connect] table 7",
      "Pareto frontier at N = 32 .. 1024, degree 4: steps, bandwidth time, diameter, all-to-all "
      "flow",
      Run};
}

}  // namespace tutti
