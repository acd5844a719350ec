// [mccs] figure 8: several tenants on the testbed in four ways, each one's bus bandwidth.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mccs/testbed.h"
#include "registry.h"

namespace tutti {
namespace mccs_figure8 {
namespace {

using namespace mccs;

constexpr std::array<const char*, 3> kPolicies = {"named-ring", "locality-ring", "ffa"};

// [policy][tenant][seed], Mbit/s.
using Rates = std::array<std::vector<std::vector<double>>, kPolicies.size()>;

Result<Rates> Measure(const SetUp& set_up, const ExperimentOptions& options,
                      std::vector<TestbedOutcome>& all) {
  constexpr double kPhase_s = 1.2;
  Rates rates;
  for (auto& of_policy : rates) of_policy.resize(set_up.tenants.size());
  std::vector<TestbedRun> runs;
  for (int32_t seed = 1; seed <= kSeeds; ++seed) {
    TestbedRun run{.seed = seed, .tenants = set_up.tenants, .steps = {}, .last_s = kPhase_s};
    for (const char* policy : kPolicies)
      run.steps.push_back({run.steps.empty() ? 0 : kPhase_s, ApplyPolicy(policy)});
    runs.push_back(std::move(run));
  }
  const Result<std::vector<TestbedOutcome>> outcomes = RunTestbeds(runs, options, 1);
  if (!outcomes) return tl::unexpected(outcomes.error());
  all.insert(all.end(), outcomes->begin(), outcomes->end());
  for (const TestbedOutcome& outcome : *outcomes)
    for (size_t phase = 0; phase < kPolicies.size(); ++phase)
      for (size_t t = 0; t < set_up.tenants.size(); ++t) {
        const TestbedTenant& tenant = set_up.tenants[t];
        rates[phase][t].push_back(
            BusMbit(tenant, MedianOf(outcome.CollectiveTimes(tenant.name, phase))));
      }
  return rates;
}

Result<ExperimentResult> RunFigure8(const ExperimentOptions& options) {
  ResultTable table{.title = "Bus bandwidth of tenants that share the testbed, Mbit/s",
                    .label_name = "set-up, tenant (ranks)",
                    .columns = {}};
  for (const char* name : {"ring by ranks, ECMP", "ring of the network, ECMP", "flows assigned"}) {
    table.columns.push_back({.name = name, .digits = 1, .timed = true});
    table.columns.push_back({.name = fmt::format("95 %, {}", name)});
  }
  table.columns.push_back({.name = "fair", .digits = 1});
  table.columns.push_back({.name = "of fair", .unit = "%", .digits = 1, .timed = true});
  Chart shares{.title = "What each tenant gets: ring by ranks, ring of the network, flows assigned",
               .x_label = "",
               .y_label = "bus bandwidth, Mbit/s",
               .series = {{.name = "A"}, {.name = "B"}, {.name = "C"}}};
  std::vector<double> gains;
  std::vector<TestbedOutcome> outcomes;
  int32_t number = 0;
  for (const SetUp& set_up : SetUps()) {
    ++number;
    const Result<Rates> rates = Measure(set_up, options, outcomes);
    if (!rates) return tl::unexpected(rates.error());
    for (size_t t = 0; t < set_up.tenants.size(); ++t) {
      ResultRow row{fmt::format("{}, {} ({})", number, set_up.tenants[t].name,
                                set_up.tenants[t].ranks.size()),
                    {}};
      for (const auto& of_policy : *rates) {
        const Estimate estimate = EstimateOf(of_policy[t]);
        row.cells.push_back(Number(estimate.mean));
        row.cells.push_back(Half(estimate));
      }
      row.cells.push_back(Number(set_up.fair_mbit[t]));
      row.cells.push_back(Number(100 * EstimateOf(rates->back()[t]).mean / set_up.fair_mbit[t]));
      table.rows.push_back(std::move(row));
    }
    for (size_t policy = 0; policy < kPolicies.size(); ++policy) {
      const auto bar = static_cast<double>(shares.bars.size());
      shares.bars.push_back(fmt::format("{}: {}", number, kPolicies[policy]));
      for (size_t t = 0; t < shares.series.size(); ++t)
        shares.series[t].points.emplace_back(
            bar, t < set_up.tenants.size() ? EstimateOf((*rates)[policy][t]).mean : 0);
    }
    // All tenants together, seed by seed.
    for (int32_t seed = 0; seed < kSeeds; ++seed) {
      double slow = 0, fast = 0;
      for (size_t t = 0; t < set_up.tenants.size(); ++t) {
        slow += rates->front()[t][static_cast<size_t>(seed)];
        fast += rates->back()[t][static_cast<size_t>(seed)];
      }
      if (slow > 0) gains.push_back(fast / slow);
    }
  }
  const Estimate gain = EstimateOf(gains);
  ResultTable sum{.title = "All tenants together",
                  .label_name = "what",
                  .columns = {{.name = "times", .digits = 2, .timed = true}, {.name = "95 %"}},
                  .rows = {{"flows assigned over the ring by ranks, mean of all set-ups and seeds",
                            {Number(gain.mean, "1.75"), Half(gain)}}}};
  ExperimentResult result;
  result.tables = {std::move(table), std::move(sum)};
  result.charts = {std::move(shares)};
  result.notes = {
      fmt::format(
          "{} seeds of the switches' hash; all-reduces of 1 MB one after the other by every "
          "tenant; in each run the three ways "
          "take turns, 1.2 s each, changed by the controller for all tenants while collectives "
          "run.",
          kSeeds),
      "Fair: links shared in proportion to NICs (the paper: 2:1:1 in set-up 3, where ECMP gave "
      "1.7:1)."};
  for (std::string& note : NotesOf(outcomes)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace
}  // namespace mccs_figure8

Experiment MccsFigure8() {
  return {"mccs-fig8", "[mccs] figure 8",
          "tenants that share the testbed in four ways: who gets what", mccs_figure8::RunFigure8};
}

}  // namespace tutti
