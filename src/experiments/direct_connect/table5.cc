// [direct-connect] table 5: the best bidirectional networks of degree 4 on the 12-node testbed.
#include <fmt/format.h>

#include <array>

#include "direct.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace direct_table5 {
namespace {

struct PaperRow {
  int32_t ranks;
  const char* name;        // as the paper writes it
  const char* expression;  // as Tutti does
  int32_t tl;              // of the all-reduce
};
// Table 5; every network is bandwidth-optimal.
constexpr std::array<PaperRow, 8> kTable5 = {{
    {5, "K5", "complete(5)", 2},
    {6, "K3 * 2", "degree(complete(3),2)", 4},
    {7, "C(7,{2,3})", "circulant(7,2,3)", 4},
    {8, "K4,4", "bipartite(4)", 4},
    {9, "H(2,3)", "hamming(2,3)", 4},
    {10, "BiRing(2,5) * 2", "degree(biring(2,5),2)", 4},
    {11, "C(11,{2,3})", "circulant(11,2,3)", 4},
    {12, "C(12,{2,3})", "circulant(12,2,3)", 4},
}};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ResultTable table{.title = "Steps and bandwidth time of the whole all-reduce",
                    .label_name = "topology",
                    .columns = {{.name = "N"},
                                {.name = "paper's name"},
                                {.name = "TL", .unit = "steps"},
                                {.name = "TB", .unit = "M/B", .style = FigureStyle::kExact}}};
  ProgressScope progress("all-reduces of table 5", kTable5.size());
  for (const PaperRow& row : kTable5) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (!direct::WithinSize(options, row.ranks)) continue;
    const Result<Topology> topology = ParseTopology(row.expression);
    if (!topology) return tl::unexpected(topology.error());
    const Result<StepCost> cost =
        direct::MeasureSchedule(*topology, CollectiveKind::kAllReduce, "bfb");
    if (!cost) return tl::unexpected(cost.error());
    table.rows.push_back(
        {row.expression,
         {direct::Figure(topology->num_ranks()), direct::Word(row.name),
          direct::Figure(cost->tl, std::to_string(row.tl)),
          direct::Figure(cost->tb, Rational(int64_t{2} * (row.ranks - 1), row.ranks).ToString())}});
    progress.Add(1);
  }
  return ExperimentResult{
      .tables = {table},
      .notes = {"Degree 4. Every schedule is made by `-a bfb` and proven by the verifier; a TB of "
                "2 (N-1)/N is optimal, which the paper says of all eight."}};
}

}  // namespace
}  // namespace direct_table5

Experiment DirectTable5() {
  return {"direct-table5", "[direct-connect] table 5",
          "all-reduce on the best networks of 5 to 12 ranks and degree 4", direct_table5::Run};
}

}  // namespace tutti
