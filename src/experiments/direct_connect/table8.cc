// [direct-connect] table 8: distance-regular graphs of degree 4.
#include <fmt/format.h>

#include <array>

#include "direct.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/graph/distance_regular.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace direct_table8 {
namespace {

using direct::Figure;
using direct::Word;

struct PaperRow {
  int32_t ranks;
  const char *name, *expression, *tl, *moore, *bidirectional_moore;
};
constexpr std::array<PaperRow, 15> kTable8 = {{
    {6, "Octahedron J(4,2)", "distreg(octahedron)", "2", "2", "2"},
    {9, "Paley graph P9 = H(2,3)", "distreg(paley9)", "2", "2", "2"},
    {10, "K5,5-I", "distreg(k55minus)", "3", "2", "2"},
    {14, "Distance-3 graph of Heawood graph", "distreg(heawood3)", "3", "2", "2"},
    {15, "Line graph of Petersen graph", "distreg(line_petersen)", "3", "2", "2"},
    {16, "4-cube Q4 = H(4,2)", "distreg(cube4)", "4", "2", "2"},
    {21, "Line graph of Heawood graph", "distreg(line_heawood)", "3", "2", "3"},
    {26, "Incidence graph of PG(2,3)", "distreg(pg23)", "3", "3", "3"},
    {32, "Incidence graph of AG(2,4) minus a parallel class", "distreg(ag24minus)", "4", "3", "3"},
    {35, "Odd graph O4", "distreg(odd4)", "3", "3", "3"},
    {45, "Line graph of Tutte's 8-cage", "distreg(line_tutte8)", "4", "3", "3"},
    {70, "Doubled Odd Graph D(O4)", "distreg(doubled_odd4)", "7", "3", "4"},
    {80, "Incidence graph of GQ(3,3)", "distreg(gq33)", "4", "3", "4"},
    {189, "Line graph of Tutte's 12-cage", "distreg(line_tutte12)", "6", "4", "5"},
    {728, "Incidence graph of GH(3,3)", "distreg(gh33)", "6", "5", "6"},
}};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ResultTable table{.title = "All-gather by BFB on distance-regular graphs of degree 4",
                    .label_name = "topology",
                    .columns = {{.name = "paper's name"},
                                {.name = "N"},
                                {.name = "TL", .unit = "steps"},
                                {.name = "TL*", .unit = "steps"},
                                {.name = "TL**", .unit = "steps"},
                                {.name = "TB", .unit = "M/B", .style = FigureStyle::kExact},
                                {.name = "intersection array"}}};
  ProgressScope progress("distance-regular graphs of table 8", kTable8.size());
  for (const PaperRow& row : kTable8) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (!direct::WithinSize(options, row.ranks)) continue;
    const Result<Topology> topology = ParseTopology(row.expression);
    if (!topology) return tl::unexpected(topology.error());
    const Result<StepCost> cost =
        direct::MeasureSchedule(*topology, CollectiveKind::kAllGather, "bfb");
    if (!cost) return tl::unexpected(cost.error());
    const DistanceRegularity counted = CheckDistanceRegular(topology->graph());
    const int64_t n = topology->num_ranks();
    table.rows.push_back(
        {row.expression,
         {Word(row.name), Figure(n, std::to_string(row.ranks)), Figure(cost->tl, row.tl),
          Figure(MooreBoundSteps(n, 4), row.moore),
          Figure(BidirectionalMooreBoundSteps(n, 4), row.bidirectional_moore),
          Figure(cost->tb, BestTb(row.ranks).ToString()),
          Word(counted.array ? counted.array->ToString() : "not distance-regular")}});
    progress.Add(1);
  }
  return ExperimentResult{
      .tables = {table},
      .notes = {
          "Each graph is built from its definition and found to be distance-regular by "
          "counting; every schedule is proven by the verifier. TL* and TL** are the Moore "
          "bounds of directed and of bidirectional networks. The paper proves TB = (N-1)/N for "
          "all of them."}};
}

}  // namespace
}  // namespace direct_table8

Experiment DirectTable8() {
  return {"direct-table8", "[direct-connect] table 8",
          "steps and bandwidth time of the fifteen distance-regular graphs of degree 4",
          direct_table8::Run};
}

}  // namespace tutti
