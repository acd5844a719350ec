#include "frontier.h"

#include <fmt/format.h>

#include "direct.h"

namespace tutti::direct {

Result<std::vector<Design>> FrontierOf(int32_t ranks, CollectiveKind collective) {
  return FindFrontier(
      {.ranks = ranks, .degree = kTableDegree, .collective = collective, .bases = {}});
}

bool Dominates(const Cost& a, const Cost& b) { return a.tl <= b.tl && a.tb <= b.tb && !(a == b); }

std::string Standing(const Cost& ours, const std::vector<PrintedCost>& printed) {
  int same = 0, dominated = 0, better = 0;
  for (const PrintedCost& other : printed) {
    same += ours == other.cost ? 1 : 0;
    dominated += Dominates(ours, other.cost) ? 1 : 0;
    better += Dominates(other.cost, ours) ? 1 : 0;
  }
  if (better > 0) return fmt::format("beaten by {} of {}", better, printed.size());
  if (dominated > 0) return fmt::format("dominates {} of {}", dominated, printed.size());
  return same > 0 ? "same cost as one" : "adds to the frontier";
}

std::string Reached(const Cost& printed, const std::vector<Design>& frontier) {
  for (const Design& design : frontier)
    if (Cost{design.tl, design.tb} == printed) return "same cost";
  for (const Design& design : frontier)
    if (Dominates({design.tl, design.tb}, printed)) return "dominated by " + design.recipe;
  return "missed";
}

ResultCell Reasons::Cell(const std::string& whose, const Error& error, std::string paper) {
  std::string& names = by_message_[error.message];
  if (names.find(whose) == names.npos) names += (names.empty() ? "" : ", ") + whose;
  return Word("none", std::move(paper));
}

void Reasons::AppendTo(std::vector<std::string>& notes) const {
  for (const auto& entry : by_message_)
    notes.push_back(fmt::format("None for {}: {}.", entry.second, entry.first));
}

std::vector<ResultColumn> FigureColumns() {
  return {{.name = "TL", .unit = "steps"},
          {.name = "TB", .unit = "M/B", .digits = 4},
          {.name = "diameter"},
          {.name = "f", .style = FigureStyle::kScientific, .digits = 3}};
}

ResultCell FlowCell(const std::string& recipe, const Result<Flow>& flow, std::string paper,
                    Reasons& reasons) {
  if (!flow) return reasons.Cell(recipe, flow.error(), std::move(paper));
  return {.ours = flow->lower, .limit = flow->upper, .paper = std::move(paper)};
}

void AppendFigures(const std::string& recipe, const NetworkFigures& figures,
                   const PrintedNetwork& printed, Reasons& reasons,
                   std::vector<ResultCell>& cells) {
  if (figures.cost) {
    cells.push_back(Figure(figures.cost->tl, printed.tl));
    cells.push_back(Figure(figures.cost->tb, printed.tb));
  } else {
    cells.push_back(reasons.Cell(recipe, figures.cost.error(), printed.tl));
    cells.push_back(reasons.Cell(recipe, figures.cost.error(), printed.tb));
  }
  cells.push_back(figures.diameter
                      ? Figure(*figures.diameter, printed.diameter)
                      : reasons.Cell(recipe, figures.diameter.error(), printed.diameter));
  cells.push_back(FlowCell(recipe, figures.flow, printed.flow, reasons));
}

bool HasPrintedCost(const NetworkFigures& figures, const PrintedNetwork& printed) {
  if (!figures.cost) return false;
  const auto tl = Compare(Figure(figures.cost->tl, printed.tl));
  const auto tb = Compare(Figure(figures.cost->tb, printed.tb));
  return tl && tl->agrees && tb && tb->agrees;
}

}  // namespace tutti::direct
