// [direct-connect] table 6: how long the generation of an all-gather schedule takes.
#include <fmt/format.h>

#include <array>
#include <chrono>

#include "direct.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace direct_table6 {
namespace {

struct PaperRow {
  int32_t ranks;
  const char* expression;
  // Seconds. Of SCCL and TACCL the fastest of all numbers of chunks, TACCL with or without symmetry
  // given to it; "n/a": an error after its limit of 1800 s.
  const char *bfb, *sccl, *taccl;
};
constexpr std::array<PaperRow, 12> kTable6 = {{
    {4, "hypercube(2)", "< 0.01", "0.59", "0.50"},
    {8, "hypercube(3)", "< 0.01", "0.86", "7.39"},
    {16, "hypercube(4)", "< 0.01", "21.4", "1801"},
    {32, "hypercube(5)", "0.03", "> 10^4", "1802"},
    {64, "hypercube(6)", "0.17", "> 10^4", "n/a"},
    {1024, "hypercube(10)", "52.7", "> 10^4", "n/a"},
    {4, "torus(2,2)", "< 0.01", "0.61", "0.45"},
    {9, "torus(3,3)", "< 0.01", "1.00", "67.8"},
    {16, "torus(4,4)", "< 0.01", "17.5", "1801"},
    {25, "torus(5,5)", "0.01", "3286", "1802"},
    {36, "torus(6,6)", "0.03", "> 10^4", "n/a"},
    {2500, "torus(50,50)", "61.1", "> 10^4", "n/a"},
}};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ResultTable table{.title = "Seconds to generate an all-gather schedule",
                    .label_name = "topology",
                    .columns = {{.name = "N"},
                                {.name = "BFB", .unit = "s", .digits = 4, .timed = true},
                                {.name = "SCCL (paper)", .unit = "s"},
                                {.name = "TACCL (paper)", .unit = "s"}}};
  const Result<const Synthesizer*> bfb = FindSynthesizer("bfb");
  if (!bfb) return tl::unexpected(bfb.error());
  ProgressScope progress("schedules of table 6", kTable6.size());
  for (const PaperRow& row : kTable6) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (!direct::WithinSize(options, row.ranks)) continue;
    const Result<Topology> topology = ParseTopology(row.expression);
    if (!topology) return tl::unexpected(topology.error());
    const Result<Collective> collective =
        Collective::Make(CollectiveKind::kAllGather, topology->num_ranks());
    if (!collective) return tl::unexpected(collective.error());
    const auto before = std::chrono::steady_clock::now();
    const Result<Schedule> schedule = RunSynthesizer(**bfb, *topology, *collective, {});
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
    if (!schedule) return tl::unexpected(schedule.error());
    const VerifyReport report = Verify(*topology, *collective, *schedule);
    if (report.cancelled) return tl::unexpected(CancelledError());
    if (!report.verified())
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("the schedule on {} is not correct: {}", row.expression,
                                   report.violations.front().message));
    table.rows.push_back(
        {row.expression,
         {direct::Figure(row.ranks), direct::Figure(Rational::FromDouble(elapsed.count()), row.bfb),
          direct::Word(row.sccl), direct::Word(row.taccl)}});
    progress.Add(1);
  }
  return ExperimentResult{
      .tables = {table},
      .notes = {fmt::format("Ours: the schedule in memory, on {} threads of this machine; proving "
                            "it is not counted. The paper's BFB, SCCL and TACCL ran on the "
                            "authors' machine.",
                            NumThreads()),
                "SCCL and TACCL: the fastest of the paper's runs with 1 to 4 chunks a shard, TACCL "
                "with and without symmetry given to it; n/a: no solution within its 1800 s."}};
}

}  // namespace
}  // namespace direct_table6

Experiment DirectTable6() {
  return {"direct-table6", "[direct-connect] table 6",
          "seconds to generate all-gather schedules of hypercubes and tori, 4 to 2500 ranks",
          direct_table6::Run};
}

}  // namespace tutti
