// [alltoall-mcf] figure 6: a 3-D FFT over 27 ranks with the routes of a flow and with those of
// SSSP.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "fabric.h"
#include "mcf.h"
#include "registry.h"
#include "tuna/fourier_kernel.h"
#include "tutti/base/cancel.h"
#include "tutti/sim/flow_simulator.h"
#include "tutti/topo/expression.h"
#include "tutti/training/fourier.h"

namespace tutti {
namespace mcf_figure6 {
namespace {

using namespace mcf;

constexpr int32_t kRanks = 27;
constexpr int32_t kThreads = 32;
constexpr std::array<int32_t, 3> kGrids = {432, 864, 1296};
constexpr std::array<Method, 2> kMethods = {{{"MCF-extP", "mcf-extp"}, {"SSSP", "sssp"}}};

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ResultTable table{
      .title = "3-D FFT over slabs, 27 ranks of 32 threads",
      .label_name = "network, grid, routes",
      .columns = {{.name = "2-D and pack", .unit = "ms", .digits = 1, .timed = true},
                  {.name = "all-to-all", .unit = "ms", .digits = 1},
                  {.name = "unpack and 1-D", .unit = "ms", .digits = 1, .timed = true},
                  {.name = "total", .unit = "ms", .digits = 1, .timed = true}}};
  ResultTable claims{.title = "Time that the routes of the flow save, largest grid",
                     .label_name = "network",
                     .columns = {{.name = "of the total", .unit = "%", .digits = 1, .timed = true},
                                 {.name = "of the all-to-all", .unit = "%", .digits = 1}}};
  struct Case {
    const char* name;
    std::string expression;
    const char* saved;
  };
  const std::string torus = kFabrics.back().Routed();
  const std::array<Case, 2> cases = {
      {{"3x3x3 torus", torus, "<= 20"},
       {"3x3x3 torus less 3 links", fmt::format("without({},links=3)", torus), "<= 14.9"}}};
  std::vector<FourierKernel> kernels;
  for (const int32_t n : kGrids) {
    if (!WithinSize(options, kRanks)) break;
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Result<FourierKernel> kernel = MeasureFourierKernel(n);
    if (!kernel) return tl::unexpected(kernel.error());
    kernels.push_back(*kernel);
  }
  for (const Case& one : cases) {
    if (!WithinSize(options, kRanks)) break;
    const Result<Topology> topology = ParseTopology(one.expression);
    if (!topology) return tl::unexpected(topology.error());
    std::array<FourierTimes, kMethods.size()> largest;
    for (size_t i = 0; i < kMethods.size(); ++i) {
      const Result<Outcome> outcome = Route(*topology, kMethods[i], 0);
      if (!outcome) return tl::unexpected(outcome.error());
      for (size_t grid = 0; grid < kGrids.size(); ++grid) {
        const FourierJob job{kGrids[grid], kRanks, kThreads};
        const Result<int64_t> bytes = FourierSendBytes(job);
        if (!bytes) return tl::unexpected(bytes.error());
        FlowSimOptions simulate;
        simulate.size_bytes = *bytes;
        const Result<FlowSimReport> report = SimulateRouting(*topology, outcome->routing, simulate);
        if (!report) return tl::unexpected(report.error());
        const Result<FourierTimes> times = TimeOfFourier(job, kernels[grid], report->time_s);
        if (!times) return tl::unexpected(times.error());
        largest[i] = *times;
        const auto milliseconds = [](double seconds) {
          return Figure(Rational::FromDouble(seconds * 1e3));
        };
        table.rows.push_back({fmt::format("{}, {}^3, {}", one.name, kGrids[grid], kMethods[i].name),
                              {milliseconds(times->planes_s), milliseconds(times->all_to_all_s),
                               milliseconds(times->lines_s), milliseconds(times->total_s())}});
      }
    }
    const auto saved = [&](double own, double other) {
      return Rational::FromDouble(100 * (1 - own / other));
    };
    claims.rows.push_back({one.name,
                           {Figure(saved(largest[0].total_s(), largest[1].total_s()), one.saved),
                            Figure(saved(largest[0].all_to_all_s, largest[1].all_to_all_s))}});
  }
  ExperimentResult result;
  result.tables = {claims, table};
  result.notes = {
      "Transforms and copies of one thread are measured on this machine with FFTW (FFTW_ESTIMATE, "
      "the median of several runs) and shared by 32 threads, each at full speed; the all-to-all is "
      "simulated at flow level as mcf-fig4. A slower processor makes the share of the routes "
      "smaller."};
  return result;
}

}  // namespace
}  // namespace mcf_figure6

Experiment McfFigure6() {
  return {"mcf-fig6", "[alltoall-mcf] figure 6",
          "time of a 3-D FFT on 27 ranks with the routes of a flow and of SSSP", mcf_figure6::Run};
}

}  // namespace tutti
