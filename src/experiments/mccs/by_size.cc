// Beyond [mccs]: schedules of few steps beside the rings, on the testbed, by size.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mccs/testbed.h"
#include "registry.h"

namespace tutti {
namespace mccs_by_size {
namespace {

using namespace mccs;

constexpr std::array<int64_t, 4> kBytes = {64, 4'096, 65'536, 1'048'576};
constexpr std::array<const char*, 3> kWays = {
    R"({"apply": {"policy": "named-ring", "by_size": false}})",
    R"({"apply": {"policy": "ffa", "by_size": false}})",
    R"({"apply": {"policy": "ffa", "by_size": true}})"};

// The testbed's with what its links take: 14 steps of a ring over four links each last 5.2 ms at 64 bytes.
constexpr const char* kNetworkWithAlphas =
    "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),"
    "oversubscription=2,alpha=100us)";

TestbedTenant TenantOf(int64_t bytes) {
  TestbedTenant tenant{.name = "A", .ranks = {}, .bytes = bytes};
  for (const int32_t host : {0, 2, 1, 3})
    for (const int32_t device : {0, 1}) tenant.ranks.push_back({host, device});
  return tenant;
}

Result<ExperimentResult> RunBySize(const ExperimentOptions& options) {
  constexpr double kPhase_s = 1, kMs = 1e3;
  ResultTable table{
      .title = "All-reduce of 8 ranks on the testbed", .label_name = "bytes", .columns = {}};
  for (const char* name : {"ring by ranks, ECMP", "ffa", "ffa by size"}) {
    table.columns.push_back({.name = name, .unit = "ms", .digits = 2, .timed = true});
    table.columns.push_back({.name = fmt::format("95 %, {}", name)});
  }
  table.columns.push_back({.name = "gain over ffa", .digits = 2, .timed = true});
  table.columns.push_back({.name = "95 %, gain"});
  for (const int64_t bytes : kBytes) {
    const TestbedTenant tenant = TenantOf(bytes);
    std::array<std::vector<double>, kWays.size()> ms;
    std::vector<double> gains;
    std::vector<TestbedRun> runs;
    for (int32_t seed = 1; seed <= kSeeds; ++seed) {
      TestbedRun run{.network = kNetworkWithAlphas,
                     .seed = seed,
                     .tenants = {tenant},
                     .steps = {},
                     .last_s = kPhase_s};
      for (const char* way : kWays) run.steps.push_back({run.steps.empty() ? 0 : kPhase_s, way});
      runs.push_back(std::move(run));
    }
    const Result<std::vector<TestbedOutcome>> outcomes = RunTestbeds(runs, options, 1);
    if (!outcomes) return tl::unexpected(outcomes.error());
    for (const TestbedOutcome& outcome : *outcomes) {
      for (size_t way = 0; way < kWays.size(); ++way)
        ms[way].push_back(kMs * MedianOf(outcome.CollectiveTimes(tenant.name, way)));
      if (ms[2].back() > 0) gains.push_back(ms[1].back() / ms[2].back());
    }
    ResultRow row{std::to_string(bytes), {}};
    for (const std::vector<double>& of_way : ms) {
      const Estimate estimate = EstimateOf(of_way);
      row.cells.push_back(Number(estimate.mean));
      row.cells.push_back(Half(estimate));
    }
    const Estimate gain = EstimateOf(gains);
    row.cells.push_back(Number(gain.mean));
    row.cells.push_back(Half(gain));
    table.rows.push_back(std::move(row));
  }
  ExperimentResult result;
  result.tables = {std::move(table)};
  result.notes = {
      fmt::format("{} seeds of the switches' hash; in each the three ways take turns, a second "
                  "each, changed by the controller while collectives run; medians of a phase, then "
                  "mean and 95 % interval over seeds.",
                  kSeeds),
      "The controller is told that a link takes 100 us (14 steps of a ring over four links each "
      "last "
      "5.2 ms at 64 bytes). By size: beside the rings every rank sends to every other at once, "
      "where that is predicted "
      "to take less with the network's alphas and each connection's fair share of its links. "
      "Those connections are not pinned."};
  return result;
}

}  // namespace
}  // namespace mccs_by_size

Experiment MccsBySize() {
  return {"mccs-by-size", "[mccs] 6.2",
          "schedules of few steps beside the rings, by size, on the testbed",
          mccs_by_size::RunBySize};
}

}  // namespace tutti
