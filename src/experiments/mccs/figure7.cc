// [mccs] figure 7: others take three quarters of the links that a ring uses; the ring is reversed at run time.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mccs/testbed.h"
#include "registry.h"

namespace tutti {
namespace {

using namespace mccs;

// Routes of the testbed's circle of leaves: 0 clockwise, 1 the other way.
constexpr const char* kClockwise =
    R"({"install": {"tenant": "A", "rings": [[0,1,2,3]], "route": 0}})";
constexpr const char* kReversed =
    R"({"install": {"tenant": "A", "rings": [[3,2,1,0]], "route": 1}})";
constexpr const char* kBackground =
    R"({"background": {"from": "H0", "to": "H1", "flows": 3, "port": 50900}})";

struct Measured {
  double before = 0, taken = 0, back = 0;  // Mbit/s of bus bandwidth
  double first_fast_s = 0;  // from the command to the end of the first collective at 95 %
  double change_s = 0;
  Chart over_time;
};

// Of one run: each collective by when it began.
Chart OverTime(const TestbedOutcome& outcome, const TestbedTenant& tenant) {
  const double from_s = outcome.steps[0].second;
  Chart chart{.title = "One run: a ring of four hosts, others on a link of it, the ring reversed",
              .x_label = "seconds",
              .y_label = "bus bandwidth, Mbit/s",
              .y_min = 0,
              .series = {{.name = "bus bandwidth"}}};
  for (const Iteration& iteration : outcome.tenants.at(tenant.name))
    if (iteration.begin_s >= from_s)
      chart.series[0].points.emplace_back(iteration.begin_s - from_s,
                                          BusMbit(tenant, iteration.end_s - iteration.begin_s));
  chart.series.push_back(
      CommandLineAt(outcome.steps[1].second - from_s, kNicMbit, "others send, then reversed"));
  chart.series.push_back(CommandLineAt(outcome.steps[2].first - from_s, kNicMbit, ""));
  return chart;
}

Result<Measured> MeasureSeed(int32_t seed, const TestbedTenant& tenant) {
  constexpr double kPhase_s = 2.5;
  const Result<TestbedOutcome> outcome =
      RunTestbed({.switches = "ring",
                  // Four racks with two ways from each to each, as the circle has.
                  .network = "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(4,2))",
                  .seed = seed,
                  .tenants = {tenant},
                  .steps = {{0, kClockwise}, {kPhase_s, kBackground}, {kPhase_s, kReversed}},
                  .last_s = kPhase_s});
  if (!outcome) return tl::unexpected(outcome.error());
  Measured measured;
  const auto rate = [&](size_t phase) {
    return BusMbit(tenant, MedianOf(outcome->CollectiveTimes(tenant.name, phase)));
  };
  measured.before = rate(0);
  measured.taken = rate(1);
  measured.back = rate(2);
  const auto [told_s, done_s] = outcome->steps[2];
  measured.change_s = done_s - told_s;
  measured.over_time = OverTime(*outcome, tenant);
  constexpr double kBack = 0.95;
  for (const Iteration& iteration : outcome->tenants.at(tenant.name))
    if (iteration.begin_s >= told_s && measured.first_fast_s == 0 &&
        BusMbit(tenant, iteration.end_s - iteration.begin_s) >= kBack * measured.before)
      measured.first_fast_s = iteration.end_s - told_s;
  return measured;
}

Result<ExperimentResult> RunFigure7(const ExperimentOptions&) {
  constexpr double kPaperBefore = 5.9, kPaperTaken = 1.7;
  const TestbedTenant tenant{
      .name = "A", .ranks = {{0, 0}, {1, 0}, {2, 0}, {3, 0}}, .bytes = 256'000};
  std::vector<double> before, taken, back, kept, returned, first, change;
  Chart over_time;
  for (int32_t seed = 1; seed <= kSeeds; ++seed) {
    const Result<Measured> measured = MeasureSeed(seed, tenant);
    if (!measured) return tl::unexpected(measured.error());
    if (seed == 1) over_time = measured->over_time;
    before.push_back(measured->before);
    taken.push_back(measured->taken);
    back.push_back(measured->back);
    kept.push_back(100 * measured->taken / measured->before);
    returned.push_back(100 * measured->back / measured->before);
    first.push_back(1e3 * measured->first_fast_s);
    change.push_back(1e3 * measured->change_s);
  }
  ResultTable table{
      .title = "A ring of four hosts over a circle of switches, and others on its links",
      .label_name = "what",
      .columns = {
          {.name = "ours", .digits = 1, .timed = true}, {.name = "95 %"}, {.name = "wanted"}}};
  const auto row = [&table](const std::string& label, const std::vector<double>& values,
                            const std::string& paper, const std::string& wanted) {
    const Estimate estimate = EstimateOf(values);
    table.rows.push_back({label, {Number(estimate.mean, paper), Half(estimate), Word(wanted)}});
  };
  row("bus bandwidth, Mbit/s", before, "", "100");
  row("three connections of others on a link of the ring", taken, "", "25");
  row("ring reversed", back, "", "95 % of before");
  row("kept while others send, % of before", kept,
      fmt::format("{:.1f}", 100 * kPaperTaken / kPaperBefore), "");
  row("back after the reversal, % of before", returned, "100.0", ">= 95");
  row("command to the end of the first fast collective, ms", first, "", "< 100");
  row("command to its answer, ms", change, "", "");
  ExperimentResult result;
  result.tables = {std::move(table)};
  result.charts = {std::move(over_time)};
  result.notes = {
      fmt::format("{} runs. All-reduce of {} bytes by four ranks, one ring; others: three TCP "
                  "connections from H0 to H1, which with the "
                  "ring's own share the link by four: three quarters are taken, as in the paper.",
                  kSeeds, tenant.bytes),
      "A collective that runs at the command ends on the old ring, at a quarter of the speed: with "
      "the time of one fast collective it "
      "is most of the time to the first fast one."};
  return result;
}

}  // namespace

Experiment MccsFigure7() {
  return {"mccs-fig7", "[mccs] figure 7",
          "a ring slowed by others' traffic and reversed at run time, on the testbed", RunFigure7};
}

}  // namespace tutti
