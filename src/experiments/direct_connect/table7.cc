// [direct-connect] table 7: the Pareto frontier at N = 32 .. 1024 and degree 4.
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "direct.h"
#include "frontier.h"
#include "networks.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/expand_cost.h"

namespace tutti {
namespace direct_table7 {
namespace {

using direct::Figure;
using direct::Word;

ResultTable TableOf(const char* title, const std::vector<ResultColumn>& more_columns) {
  ResultTable table{.title = title, .label_name = "topology", .columns = {{.name = "N"}}};
  for (const ResultColumn& column : direct::FigureColumns()) table.columns.push_back(column);
  for (const ResultColumn& column : more_columns) table.columns.push_back(column);
  return table;
}

ResultTable DominatingTable() {
  return {.title = "Networks of ours that dominate one of table 7",
          .label_name = "topology",
          .columns = {{.name = "N"},
                      {.name = "TL", .unit = "steps"},
                      {.name = "TB", .unit = "M/B", .digits = 4},
                      {.name = "dominated"},
                      {.name = "its TL", .unit = "steps"},
                      {.name = "its TB", .unit = "M/B", .digits = 4}}};
}

// Fills the tables, one size after the other.
class Filler {
 public:
  Status AddSize(const direct::PrintedNetwork& bound);
  ExperimentResult Finish(const ExperimentOptions& options) &&;

 private:
  // What the printed networks of one size turned out to be.
  struct Printed {
    std::vector<direct::PrintedCost> costs;
    std::map<std::string, direct::NetworkFigures> figures;  // by recipe
  };
  Status AddPrinted(const direct::PrintedNetwork& network, const std::vector<Design>& frontier,
                    Printed& printed);
  Status AddSuspected();
  void AddBound(const direct::PrintedNetwork& bound);
  Status AddFound(const Design& design, int32_t ranks, const Printed& printed);

  ResultTable paper_ =
      TableOf("The paper's networks, made and measured", {{.name = "tutti design"}});
  ResultTable found_ =
      TableOf("What `tutti design` finds", {{.name = "schedule"}, {.name = "beside table 7"}});
  ResultTable dominating_ = DominatingTable();
  direct::Reasons reasons_;
  ProgressScope progress_{"networks of table 7",
                          static_cast<int64_t>(2 * direct::PrintedNetworks().size())};
};

Status Filler::AddPrinted(const direct::PrintedNetwork& network,
                          const std::vector<Design>& frontier, Printed& printed) {
  const Result<direct::NetworkFigures> figures = direct::MeasureNetwork(network.recipe, "expand");
  if (!figures) return tl::unexpected(figures.error());
  ResultRow row{network.recipe, {Figure(network.ranks)}};
  direct::AppendFigures(network.recipe, *figures, network, reasons_, row.cells);
  if (direct::HasPrintedCost(*figures, network)) {
    const direct::Cost cost{figures->cost->tl, figures->cost->tb};
    printed.costs.push_back({network.recipe, cost});
    row.cells.push_back(Word(direct::Reached(cost, frontier)));
  } else {
    row.cells.push_back(Word("not compared"));
  }
  paper_.rows.push_back(std::move(row));
  printed.figures.emplace(network.recipe, *figures);
  progress_.Add(1);
  return {};
}

Status Filler::AddSuspected() {
  const direct::PrintedNetwork& network = direct::kSuspected;
  const Result<direct::NetworkFigures> figures = direct::MeasureNetwork(network.recipe, "expand");
  if (!figures) return tl::unexpected(figures.error());
  ResultRow row{fmt::format("{} instead", network.recipe), {Figure(network.ranks)}};
  direct::AppendFigures(network.recipe, *figures, network, reasons_, row.cells);
  row.cells.push_back(Word(""));
  paper_.rows.push_back(std::move(row));
  return {};
}

void Filler::AddBound(const direct::PrintedNetwork& bound) {
  const int32_t moore = MooreBoundSteps(bound.ranks, direct::kTableDegree);
  paper_.rows.push_back(
      {"theoretical bound",
       {Figure(bound.ranks), Figure(moore, bound.tl), Figure(BestTb(bound.ranks), bound.tb),
        Figure(moore, bound.diameter),
        Figure(MooreFlow(bound.ranks, direct::kTableDegree), bound.flow), Word("")}});
}

Status Filler::AddFound(const Design& design, int32_t ranks, const Printed& printed) {
  const auto known = printed.figures.find(design.recipe);
  const Result<direct::NetworkFigures> figures =
      known != printed.figures.end() ? Result<direct::NetworkFigures>(known->second)
                                     : direct::MeasureNetwork(design.recipe, design.algorithm);
  if (!figures) return tl::unexpected(figures.error());
  const direct::Cost cost{design.tl, design.tb};
  const bool proven = figures->cost && direct::Cost{figures->cost->tl, figures->cost->tb} == cost;
  ResultRow row{design.recipe,
                {Figure(ranks), Figure(design.tl), Figure(design.tb), Figure(design.diameter)}};
  row.cells.push_back(direct::FlowCell(design.recipe, figures->flow, "", reasons_));
  row.cells.push_back(proven          ? Word("proven")
                      : figures->cost ? Word("other cost")
                                      : reasons_.Cell(design.recipe, figures->cost.error()));
  row.cells.push_back(Word(direct::Standing(cost, printed.costs)));
  found_.rows.push_back(std::move(row));
  for (const direct::PrintedCost& other : printed.costs)
    if (proven && direct::Dominates(cost, other.cost))
      dominating_.rows.push_back(
          {design.recipe,
           {Figure(ranks), Figure(design.tl), Figure(design.tb), Word(other.recipe),
            Figure(other.cost.tl), Figure(other.cost.tb)}});
  progress_.Add(1);
  return {};
}

Status Filler::AddSize(const direct::PrintedNetwork& bound) {
  const Result<std::vector<Design>> frontier = direct::FrontierOf(bound.ranks);
  if (!frontier) return tl::unexpected(frontier.error());
  Printed printed;
  for (const direct::PrintedNetwork& network : direct::PrintedNetworks())
    if (network.ranks == bound.ranks)
      if (const Status added = AddPrinted(network, *frontier, printed); !added) return added;
  if (bound.ranks == direct::kSuspected.ranks)
    if (const Status added = AddSuspected(); !added) return added;
  AddBound(bound);
  for (const Design& design : *frontier)
    if (const Status added = AddFound(design, bound.ranks, printed); !added) return added;
  return {};
}

ExperimentResult Filler::Finish(const ExperimentOptions& options) && {
  ExperimentResult result{.tables = {std::move(paper_), std::move(found_)}};
  result.notes = {
      "TL and TB are those of the all-gather, counted on a schedule that was made and proven by "
      "the verifier. A network dominates another of its size if neither TL nor TB is larger and "
      "one is smaller; costs are compared as exact fractions.",
      fmt::format("f is reached by a flow in hand and proven to be at most {:.2f} % below the best "
                  "possible.",
                  100 * direct::kFlowGap)};
  if (direct::WithinSize(options, direct::kSuspected.ranks))
    result.notes.emplace_back(direct::kSuspectedNote);
  if (dominating_.rows.empty())
    result.notes.emplace_back("No network of ours dominates one of table 7.");
  else
    result.tables.push_back(std::move(dominating_));
  reasons_.AppendTo(result.notes);
  return result;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  Filler filler;
  for (const direct::PrintedNetwork& bound : direct::PrintedBounds()) {
    if (!direct::WithinSize(options, bound.ranks)) continue;
    if (const Status added = filler.AddSize(bound); !added) return tl::unexpected(added.error());
  }
  return std::move(filler).Finish(options);
}

}  // namespace
}  // namespace direct_table7

Experiment DirectTable7() {
  return {
      "direct-table7", "[direct-connect] table 7",
      "Pareto frontier at N = 32 .. 1024, degree 4: steps, bandwidth time, diameter, all-to-all "
      "flow",
      direct_table7::Run};
}

}  // namespace tutti
