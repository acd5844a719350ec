// Beyond [mccs]: a link between leaf and spine of the testbed is lost while a tenant communicates; what its connections do by
// themselves, what rings on the route that is left have, and what the schedule that a following controller makes for it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mccs/testbed.h"
#include "registry.h"

namespace tutti {
namespace mccs_lost_link {
namespace {

using namespace mccs;

constexpr const char* kCut = R"({"cut": ["L0", "S0"]})";
constexpr const char* kMend = R"({"mend": true})";
// Rings of the network by the other spine, one by either NIC of a host.
constexpr const char* kRingsOnWhatIsLeft =
    R"({"install": {"tenant": "A", "rings": [[0,1,4,5,2,3,6,7], [1,0,5,4,3,2,7,6]], "route": 1}})";
// What is measured of a phase: its end, when all has settled.
constexpr double kSettled_s = 2;

TestbedTenant TenantA() {
  TestbedTenant tenant{.name = "A", .ranks = {}};
  for (const int32_t host : {0, 2, 1, 3})
    for (const int32_t device : {0, 1}) tenant.ranks.push_back({host, device});
  return tenant;
}

TestbedRun ByHand(int32_t seed) {
  return {.seed = seed,
          .tenants = {TenantA()},
          .steps = {{0, ApplyPolicy("ffa")}, {2.5, kCut}, {3, kRingsOnWhatIsLeft}, {2.5, kMend}},
          .last_s = 0.5};
}

TestbedRun Followed(int32_t seed) {
  return {.seed = seed,
          .tenants = {TenantA()},
          .steps = {{0, ApplyPolicy("ffa")}, {2.5, kCut}, {6, kMend}},
          .last_s = 5,
          .follow_s = 1};
}

// Seconds of a collective at the end of the phase after a step.
double TimeAtEnd(const TestbedOutcome& outcome, const TestbedTenant& tenant, size_t phase) {
  const double to =
      phase + 1 < outcome.steps.size() ? outcome.steps[phase + 1].first : outcome.end_s;
  const double from = std::max(outcome.steps[phase].second, to - kSettled_s);
  return MedianOf(outcome.CollectiveTimes(tenant.name, from, to));
}

double RateAtEnd(const TestbedOutcome& outcome, const TestbedTenant& tenant, size_t phase) {
  return BusMbit(tenant, TimeAtEnd(outcome, tenant, phase));
}

// Seconds from the cut to the end of the first collective that is as fast as those at the end of its phase.
double SecondsUntilSettled(const TestbedOutcome& outcome, const TestbedTenant& tenant,
                           double rate) {
  constexpr double kAsFast = 0.9;
  const double cut_s = outcome.steps[1].first;
  for (const Iteration& iteration : outcome.tenants.at(tenant.name))
    if (iteration.begin_s >= cut_s &&
        BusMbit(tenant, iteration.end_s - iteration.begin_s) >= kAsFast * rate)
      return iteration.end_s - cut_s;
  return outcome.end_s - cut_s;
}

// The collective that ran when the link was cut, or the longest in the second after it.
double LongestAtCut(const TestbedOutcome& outcome, const TestbedTenant& tenant) {
  const double cut_s = outcome.steps[1].first;
  double longest = 0;
  for (const Iteration& iteration : outcome.tenants.at(tenant.name))
    if (iteration.end_s >= cut_s && iteration.begin_s <= cut_s + 1)
      longest = std::max(longest, iteration.end_s - iteration.begin_s);
  return longest;
}

ChartSeries DrawnRun(const TestbedOutcome& outcome, const TestbedTenant& tenant, std::string name) {
  ChartSeries series{.name = std::move(name)};
  const double from_s = outcome.steps[0].second;
  for (const Iteration& iteration : outcome.tenants.at(tenant.name))
    if (iteration.begin_s >= from_s && iteration.end_s <= outcome.end_s)
      series.points.emplace_back(iteration.begin_s - from_s,
                                 BusMbit(tenant, iteration.end_s - iteration.begin_s));
  return series;
}

Result<ExperimentResult> RunLostLink(const ExperimentOptions& options) {
  constexpr double kMs = 1e3;
  const TestbedTenant tenant = TenantA();
  std::vector<TestbedRun> runs;
  for (int32_t seed = 1; seed <= kSeeds; ++seed) {
    runs.push_back(ByHand(seed));
    runs.push_back(Followed(seed));
  }
  const Result<std::vector<TestbedOutcome>> outcomes = RunTestbeds(runs, options, 1);
  if (!outcomes) return tl::unexpected(outcomes.error());
  std::vector<double> whole, alone, rings, made, back, gains, settled_s, longest_ms, held_ms;
  for (size_t i = 0; i < outcomes->size(); i += 2) {
    const TestbedOutcome& by_hand = (*outcomes)[i];
    const TestbedOutcome& followed = (*outcomes)[i + 1];
    whole.push_back(RateAtEnd(followed, tenant, 0));
    alone.push_back(RateAtEnd(by_hand, tenant, 1));
    rings.push_back(RateAtEnd(by_hand, tenant, 2));
    made.push_back(RateAtEnd(followed, tenant, 1));
    back.push_back(RateAtEnd(followed, tenant, 2));
    if (rings.back() > 0) gains.push_back(made.back() / rings.back());
    settled_s.push_back(SecondsUntilSettled(followed, tenant, made.back()));
    longest_ms.push_back(kMs * LongestAtCut(followed, tenant));
    held_ms.push_back(longest_ms.back() - kMs * TimeAtEnd(by_hand, tenant, 1));
  }
  const auto row = [](const std::string& label, const std::vector<double>& values) {
    const Estimate estimate = EstimateOf(values);
    return ResultRow{label, {Number(estimate.mean), Half(estimate)}};
  };
  ExperimentResult result;
  result.tables = {
      {.title = "Eight ranks, the link between L0 and S0 lost: bus bandwidth",
       .label_name = "what",
       .columns = {{.name = "bus bandwidth", .unit = "Mbit/s", .digits = 1, .timed = true},
                   {.name = "95 %"}},
       .rows = {row("rings, all links there", whole),
                row("link lost: connections by themselves, on the other route", alone),
                row("rings installed on the route that is left", rings),
                row("schedule made for what is left, by the controller that follows", made),
                row("rings, the link back", back)}},
      {.title = "And the controller that follows",
       .label_name = "what",
       .columns = {{.name = "value", .digits = 2, .timed = true}, {.name = "95 %"}},
       .rows = {row("schedule made over rings on the route that is left, times", gains),
                row("cut to the first collective at the speed of the schedule made, s", settled_s),
                row("longest collective at the cut, ms", longest_ms),
                row("and beyond one on the other route, ms", held_ms)}}};
  constexpr double kTop = 2 * kNicMbit;
  const TestbedOutcome& drawn = (*outcomes)[1];
  const double from_s = drawn.steps[0].second;
  result.charts = {
      {.title = "One run: a link of the testbed is lost, and comes back",
       .x_label = "seconds",
       .y_label = "bus bandwidth, Mbit/s",
       .y_min = 0,
       .series = {DrawnRun(drawn, tenant, "the controller follows"),
                  CommandLineAt(drawn.steps[1].first - from_s, kTop, "link lost, then back"),
                  CommandLineAt(drawn.steps[2].first - from_s, kTop, "")}}};
  result.notes = {
      fmt::format("{} seeds of the switches' hash; all-reduces of 1 MB one after the other; "
                  "medians of the last {:.0f} "
                  "seconds of a phase. The link drops all it is given, both ways, without a word.",
                  kSeeds, kSettled_s),
      "With one link of two between the racks nothing has more than 175 Mbit/s: what the ranks of "
      "one rack have "
      "must get to the other once, by 100 Mbit/s, and bus bandwidth counts 2 (N - 1) / N bytes a "
      "byte. Rings carry "
      "that much over it and have 100.",
      "The controller looks once a second."};
  for (std::string& note : NotesOf(*outcomes)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace
}  // namespace mccs_lost_link

Experiment MccsLostLink() {
  return {
      "mccs-lost-link", "[mccs] beyond",
      "a link of the testbed lost and back, while a tenant communicates and a controller follows",
      mccs_lost_link::RunLostLink};
}

}  // namespace tutti
