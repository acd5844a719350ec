// tutti design: the table and the JSON.
#include <fmt/format.h>

#include <utility>

#include "design.h"
#include "tutti/base/units.h"
#include "tutti/bounds/bounds.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::cli {
namespace {

std::string Fixed(const Rational& value) { return fmt::format("{:.4f}", value.ToDouble()); }

std::string MarksOf(const DesignCost& cost, const DesignCost& bound) {
  std::string marks;
  if (cost.tl == bound.tl) marks += "Moore ";
  if (cost.tb == bound.tb) marks += "bandwidth ";
  if (!marks.empty()) marks.pop_back();
  return marks.empty() ? "-" : marks;
}

std::vector<std::string> RowOf(const ShownDesigns& shown, size_t index, const DesignCost& bound) {
  const Design& design = shown.designs[index];
  const DesignCost cost = shown.CostOf(design);
  std::vector<std::string> row{design.recipe,
                               fmt::to_string(index + 1),
                               fmt::to_string(cost.tl),
                               Fixed(cost.tb),
                               Fixed(cost.tb / bound.tb),
                               fmt::to_string(design.diameter),
                               design.bidirectional ? "both ways" : "one way",
                               design.algorithm};
  if (!shown.flows.empty()) {
    row.push_back(fmt::format("{:.4g}", shown.flows[index].lower.ToDouble()));
    row.push_back(fmt::format("{:.4g}", shown.flows[index].upper.ToDouble()));
  }
  if (!shown.sizes.empty()) row.push_back(Seconds(shown.seconds[index].ToDouble()));
  row.push_back(MarksOf(cost, bound));
  return row;
}

std::vector<std::string> BoundRow(const ShownDesigns& shown, const DesignCost& bound) {
  const Design& first = shown.designs.front();
  const bool halves = shown.costed() == CollectiveKind::kAllReduce;
  std::vector<std::string> row{halves ? "bound of both halves" : "bound",
                               "",
                               fmt::to_string(bound.tl),
                               Fixed(bound.tb),
                               Fixed(Rational(1)),
                               fmt::to_string(halves ? bound.tl / 2 : bound.tl),
                               "",
                               ""};
  if (!shown.flows.empty())
    row.insert(row.end(),
               {"", fmt::format("{:.4g}", MooreFlow(first.ranks, first.degree).ToDouble())});
  if (!shown.sizes.empty()) row.push_back(Seconds(shown.bound_seconds.ToDouble()));
  row.push_back("");
  return row;
}

void PrintBest(const DesignFlags& flags, const ShownDesigns& shown) {
  const Design& best = shown.designs[*shown.best];
  fmt::print("\n{} {}", flags.pick != 0 ? "picked" : "best", best.recipe);
  if (!shown.sizes.empty()) {
    const Rational& seconds = shown.seconds[*shown.best];
    fmt::print(" for {}: {}, {} of what the bound would allow", Name(shown.collective),
               Seconds(seconds.ToDouble()), Percent((shown.bound_seconds / seconds).ToDouble()));
  }
  fmt::print("\n");
  for (const std::string& reason : best.reasons) fmt::print("  {}\n", reason);
}

Json JsonOf(const ShownDesigns& shown, const Design& design, const DesignCost& bound) {
  const DesignCost cost = shown.CostOf(design);
  const auto half = [](const DesignCost& part) {
    return Json{{"tl", part.tl}, {"tb", cli::ToJson(part.tb)}};
  };
  Json out;
  out["recipe"] = design.recipe;
  out["algorithm"] = design.algorithm;
  out["ranks"] = design.ranks;
  out["degree"] = design.degree;
  out["diameter"] = design.diameter;
  out["tl"] = cost.tl;
  out["tl_bound"] = bound.tl;
  out["tb"] = cli::ToJson(cost.tb);
  out["tb_bound"] = cli::ToJson(bound.tb);
  out["all_gather"] = half({design.tl, design.tb});
  out["reduce_scatter"] = half(design.reduce_scatter);
  out["bidirectional"] = design.bidirectional;
  out["reverse_symmetric"] = design.reverse_symmetric;
  out["moore_optimal"] = cost.tl == bound.tl;
  out["bandwidth_optimal"] = cost.tb == bound.tb;
  out["reasons"] = design.reasons;
  return out;
}

}  // namespace

DesignCost BoundOf(const ShownDesigns& shown, const DesignFlags& flags) {
  const Design& first = shown.designs.front();
  const DesignCost half{flags.one_way ? MooreBoundSteps(first.ranks, first.degree)
                                      : BidirectionalMooreBoundSteps(first.ranks, first.degree),
                        BestTb(first.ranks)};
  if (shown.costed() != CollectiveKind::kAllReduce) return half;
  return {2 * half.tl, Rational(2) * half.tb};
}

void PrintDesigns(const DesignFlags& flags, const ShownDesigns& shown,
                  const std::vector<WrittenFile>& written) {
  const DesignCost bound = BoundOf(shown, flags);
  std::vector<std::string> header{"recipe", "#", "TL", "TB", "TB/TB*", "diameter", "links", "by"};
  if (!shown.flows.empty()) header.insert(header.end(), {"f", "f <="});
  if (!shown.sizes.empty()) header.push_back("time");
  header.push_back("optimal in");
  Table table(header, Table::Last::kProse);
  for (size_t i = 0; i < shown.designs.size(); ++i) table.AddRow(RowOf(shown, i, bound));
  table.AddRow(BoundRow(shown, bound));
  const Design& first = shown.designs.front();
  fmt::print("{} ranks, {} ports each, {}: TL steps, TB in M/B of the {}\n", first.ranks,
             first.degree, flags.one_way ? "one-way fibres" : "two-way cables",
             Name(shown.costed()));
  if (shown.by_flow)
    fmt::print("frontier in TL, TB and f, of {} networks; f of {} of them was solved\n",
               shown.by_flow->looked_at, shown.by_flow->solved);
  if (!shown.sizes.empty() || !flags.output.empty())
    fmt::print("links of {} and {} each way, {} a rank\n", FormatDurationPs(shown.link.alpha_ps),
               FormatBandwidth(shown.link.bandwidth),
               BytesPerSecond(static_cast<double>(shown.link.bandwidth) * first.degree));
  fmt::print("{}", table.ToString());
  if (shown.best) PrintBest(flags, shown);
  for (const WrittenFile& file : written) fmt::print("written to {}: {}\n", file.path, file.what);
  fmt::print("{}", flags.html.Text());
}

void PrintDesignsJson(const DesignFlags& flags, const ShownDesigns& shown,
                      const std::vector<WrittenFile>& written, double seconds) {
  const Design& first = shown.designs.front();
  const DesignCost bound = BoundOf(shown, flags);
  Json out;
  out["ranks"] = first.ranks;
  out["degree"] = first.degree;
  out["bidirectional"] = !flags.one_way;
  out["collective"] = Name(shown.collective);
  out["tl_bound"] = bound.tl;
  out["tb_bound"] = cli::ToJson(bound.tb);
  out["from_database"] = shown.from_database;
  out["dimensions"] = Json::array({"tl", "tb"});
  if (shown.by_flow) out["dimensions"].push_back("f");
  if (shown.by_flow) {
    out["networks"] = shown.by_flow->looked_at;
    out["flows_solved"] = shown.by_flow->solved;
  }
  out["frontier"] = Json::array();
  for (size_t i = 0; i < shown.designs.size(); ++i) {
    Json row = JsonOf(shown, shown.designs[i], bound);
    if (!shown.flows.empty()) {
      const FlowLimits& flow = shown.flows[i];
      row["f"] = cli::ToJson(flow.lower);
      row["f_upper"] = cli::ToJson(flow.upper);
      row["gap"] = ((flow.upper - flow.lower) / flow.upper).ToDouble();
    }
    if (!shown.sizes.empty()) row["time_s"] = shown.seconds[i].ToDouble();
    out["frontier"].push_back(std::move(row));
  }
  if (!shown.flows.empty()) out["f_bound"] = cli::ToJson(MooreFlow(first.ranks, first.degree));
  out["alpha_s"] = Rational(shown.link.alpha_ps, kPicosecondsPerSecond).ToDouble();
  out["link_bandwidth"] = shown.link.bandwidth;
  out["bandwidth"] = shown.link.bandwidth * first.degree;
  if (!shown.sizes.empty()) out["bound_s"] = shown.bound_seconds.ToDouble();
  out["best"] = shown.best ? Json(*shown.best) : Json(nullptr);
  if (!written.empty()) {
    out["files"] = Json::array();
    for (const WrittenFile& file : written) out["files"].push_back(file.path);
  }
  out["synthesis_s"] = seconds;
  out["peak_rss_bytes"] = PeakRssBytes();
  Print(out);
}

}  // namespace tutti::cli
