// [mccs] figure 6: one tenant on the testbed, its bus bandwidth without knowledge of the network, with rings that know it, and
// with flows that are assigned, too.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mccs/testbed.h"
#include "registry.h"

namespace tutti {
namespace mccs_figure6 {
namespace {

using namespace mccs;

struct Case {
  int32_t ranks;
  const char* collective;
  int64_t paper_bytes;
  // The paper's, at the largest size: all of it over topology-unaware, rings alone, flows alone.
  const char *all = "", *rings = "", *flows = "";
};

constexpr int64_t kMB = 1'000'000;
constexpr std::array<Case, 8> kCases = {{
    {4, "all-reduce", 32 * kMB},
    {4, "all-reduce", 128 * kMB},
    {4, "all-reduce", 512 * kMB, "1.6", "1.56"},
    {4, "all-gather", 512 * kMB},
    {8, "all-reduce", 32 * kMB},
    {8, "all-reduce", 128 * kMB},
    {8, "all-reduce", 512 * kMB, "2.4", "1.78", "1.46"},
    {8, "all-gather", 512 * kMB},
}};

constexpr std::array<const char*, 3> kPolicies = {"named-ring", "locality-ring", "ffa"};

TestbedTenant TenantOf(const Case& of) {
  TestbedTenant tenant{
      .name = "A",
      .ranks = {},
      .bytes = static_cast<int64_t>(static_cast<double>(of.paper_bytes) / kScaleDown),
      .collective = of.collective};
  for (const int32_t host : {0, 2, 1, 3})
    for (int32_t device = 0; device < of.ranks / 4; ++device)
      tenant.ranks.push_back({host, device});
  return tenant;
}

// Mbit/s by policy and seed.
using Rates = std::array<std::vector<double>, kPolicies.size()>;

// Adds what the cases with so many ranks measured, in the order of kCases, and what ran.
Status Measure(int32_t ranks, const ExperimentOptions& options, std::vector<Rates>& rates,
               std::vector<TestbedOutcome>& all) {
  constexpr double kPhase_s = 1;
  std::vector<TestbedRun> runs;
  for (const Case& of : kCases) {
    if (of.ranks != ranks) continue;
    for (int32_t seed = 1; seed <= kSeeds; ++seed) {
      TestbedRun run{.seed = seed, .tenants = {TenantOf(of)}, .steps = {}, .last_s = kPhase_s};
      for (const char* policy : kPolicies)
        run.steps.push_back({run.steps.empty() ? 0 : kPhase_s, ApplyPolicy(policy)});
      runs.push_back(std::move(run));
    }
  }
  const Result<std::vector<TestbedOutcome>> outcomes =
      RunTestbeds(runs, options, ranks == 4 ? 2 : 1);
  if (!outcomes) return tl::unexpected(outcomes.error());
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i % kSeeds == 0) rates.emplace_back();
    const TestbedTenant& tenant = runs[i].tenants.front();
    for (size_t phase = 0; phase < kPolicies.size(); ++phase)
      rates.back()[phase].push_back(
          BusMbit(tenant, MedianOf((*outcomes)[i].CollectiveTimes(tenant.name, phase))));
  }
  all.insert(all.end(), outcomes->begin(), outcomes->end());
  return {};
}

std::vector<double> Ratios(const std::vector<double>& fast, const std::vector<double>& slow) {
  std::vector<double> ratios;
  for (size_t i = 0; i < fast.size(); ++i) ratios.push_back(slow[i] > 0 ? fast[i] / slow[i] : 0);
  return ratios;
}

// Bus bandwidth by size, of all-reduces of so many ranks.
Chart ChartOf(int32_t ranks) {
  return {.title = fmt::format("All-reduce of {} ranks", ranks),
          .x_label = "bytes of the paper's collective, MB (ours: over 500)",
          .y_label = "bus bandwidth, Mbit/s",
          .log_x = true,
          .y_min = 0,
          .series = {{.name = "ring by ranks, ECMP"},
                     {.name = "ring of the network, ECMP"},
                     {.name = "and flows assigned"},
                     {.name = "the network's limit", .grey = true}}};
}

Result<ExperimentResult> RunFigure6(const ExperimentOptions& options) {
  std::vector<Rates> measured;
  std::vector<TestbedOutcome> outcomes;
  for (const int32_t ranks : {4, 8})
    if (const Status status = Measure(ranks, options, measured, outcomes); !status)
      return tl::unexpected(status.error());
  ResultTable busbw{.title = "Bus bandwidth of one tenant on the testbed, Mbit/s",
                    .label_name = "ranks, collective, bytes (the paper's / 500)",
                    .columns = {}};
  for (const char* name :
       {"ring by ranks, ECMP", "ring of the network, ECMP", "and flows assigned"}) {
    busbw.columns.push_back({.name = name, .digits = 1, .timed = true});
    busbw.columns.push_back({.name = fmt::format("95 %, {}", name)});
  }
  busbw.columns.push_back(
      {.name = "of the network's limit", .unit = "%", .digits = 1, .timed = true});
  ResultTable gains{.title = "Times faster than the ring by ranks",
                    .label_name = busbw.label_name,
                    .columns = {{.name = "all", .digits = 2, .timed = true},
                                {.name = "95 %"},
                                {.name = "ring alone", .digits = 2, .timed = true},
                                {.name = "95 % "},
                                {.name = "flows beside the ring", .digits = 2, .timed = true},
                                {.name = "95 %  "}}};
  std::vector<Chart> charts = {ChartOf(4), ChartOf(8)};
  for (size_t c = 0; c < kCases.size(); ++c) {
    const Case& of = kCases[c];
    const TestbedTenant tenant = TenantOf(of);
    const Rates& rates = measured[c];
    const std::string label = fmt::format("{}, {}, {}", of.ranks, of.collective, tenant.bytes);
    ResultRow row{label, {}};
    for (const std::vector<double>& of_policy : rates) {
      const Estimate estimate = EstimateOf(of_policy);
      row.cells.push_back(Number(estimate.mean));
      row.cells.push_back(Half(estimate));
    }
    const double limit = kNicMbit * of.ranks / 4;
    if (of.collective == std::string_view("all-reduce")) {
      Chart& chart = charts[of.ranks == 4 ? 0 : 1];
      const double x = static_cast<double>(of.paper_bytes) / kMB;
      for (size_t policy = 0; policy < kPolicies.size(); ++policy)
        chart.series[policy].points.emplace_back(x, EstimateOf(rates[policy]).mean);
      chart.series.back().points.emplace_back(x, limit);
    }
    row.cells.push_back(Number(100 * EstimateOf(rates[2]).mean / limit));
    busbw.rows.push_back(std::move(row));
    ResultRow gain{label, {}};
    for (const auto& [fast, slow, paper] :
         {std::tuple(2, 0, of.all), std::tuple(1, 0, of.rings), std::tuple(2, 1, of.flows)}) {
      const Estimate estimate =
          EstimateOf(Ratios(rates[static_cast<size_t>(fast)], rates[static_cast<size_t>(slow)]));
      gain.cells.push_back(Number(estimate.mean, paper));
      gain.cells.push_back(Half(estimate));
    }
    gains.rows.push_back(std::move(gain));
  }
  ExperimentResult result;
  result.tables = {std::move(busbw), std::move(gains)};
  result.charts = std::move(charts);
  result.notes = {fmt::format("{} seeds of the switches' hash; in each the three ways take turns "
                              "in one run, a second each, changed by the "
                              "controller while collectives run; medians of a phase, then mean and "
                              "95 % interval over seeds.",
                              kSeeds),
                  "All three have as many rings (routes times ranks in a host) and connections. "
                  "The tenant names its hosts H0, H2, H1, H3, "
                  "of racks 0, 1, 0, 1.",
                  "The network's limit: each host's NICs, 100 Mbit/s a rank in it."};
  for (std::string& note : NotesOf(outcomes)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace
}  // namespace mccs_figure6

Experiment MccsFigure6() {
  return {"mccs-fig6", "[mccs] figure 6",
          "one tenant on a testbed of namespaces: rings and flows that know the network",
          mccs_figure6::RunFigure6};
}

}  // namespace tutti
