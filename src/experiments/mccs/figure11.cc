// [mccs] figure 11: locality rings and fair flow assignment on a cluster of 768 ranks and 50 jobs,
// in every reading that the paper leaves open.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mccs/mccs.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace mccs_figure11 {
namespace {

using namespace mccs;

constexpr int32_t kRacks = 24;

struct Reading {
  const char* name;
  int32_t rings;
  NicChoice nics;
  FlowCoupling coupling = FlowCoupling::kLockStep;
  bool large = false;  // minutes
};
constexpr std::array<Reading, 7> kReadings = {
    {{"2 rings, each rank's own NIC", 2, NicChoice::kOwn},
     {"4 rings, each rank's own NIC", 4, NicChoice::kOwn},
     {"16 rings, each rank's own NIC", 16, NicChoice::kOwn},
     {"16 rings, all NICs of a host by turns", 16, NicChoice::kBalanced},
     {"16 rings, NIC of the host by chance", 16, NicChoice::kRandom, FlowCoupling::kLockStep, true},
     {"4 rings, all NICs of a host by turns", 4, NicChoice::kBalanced, FlowCoupling::kLockStep,
      true},
     {"4 rings, own NIC, flows not in lock step", 4, NicChoice::kOwn, FlowCoupling::kIndependent,
      true}}};

struct PaperFigures {
  Placement placement;
  const char *name, *rings, *assigned;
  double rings_value, assigned_value;
};
constexpr std::array<PaperFigures, 2> kPaper = {
    {{Placement::kRandom, "random", "2.6", "3.3", 2.6, 3.3},
     {Placement::kCompact, "compact", "3.3", "3.4", 3.3, 3.4}}};

using Times = std::vector<std::vector<double>>;

// Results of one reading and placement.
struct Outcome {
  Times one_ring, as_many, rings, assigned;
  double Distance(const PaperFigures& paper) const {
    return std::abs(std::log(SpeedUp(one_ring, rings).mean / paper.rings_value)) +
           std::abs(std::log(SpeedUp(one_ring, assigned).mean / paper.assigned_value));
  }
};

Result<Outcome> Measure(const Cluster& cluster, const Reading& reading, Placement placement) {
  Run run{.policy = "random-ring",
          .rings = 1,
          .nics = reading.nics == NicChoice::kRandom ? NicChoice::kRandom : NicChoice::kOwn,
          .placement = placement,
          .coupling = reading.coupling};
  Outcome outcome;
  const auto measure = [&](std::string_view policy, Times* times) -> Status {
    run.policy = policy;
    Result<Times> measured = JobTimes(cluster, run, kSeeds);
    if (!measured) return tl::unexpected(measured.error());
    *times = *std::move(measured);
    return {};
  };
  Status status = measure("random-ring", &outcome.one_ring);
  run.rings = reading.rings;
  run.nics = reading.nics;
  if (status) status = measure("random-ring", &outcome.as_many);
  if (status) status = measure("locality-ring", &outcome.rings);
  if (status) status = measure("ffa", &outcome.assigned);
  if (!status) return tl::unexpected(status.error());
  return outcome;
}

ResultTable TableOf(const PaperFigures& paper) {
  return {.title = fmt::format("Speed-up of a job's all-reduces, {} placement", paper.name),
          .label_name = "reading",
          .columns = {{.name = "OR / one random ring", .digits = 2},
                      {.name = "95 %"},
                      {.name = "OR+FFA / one random ring", .digits = 2},
                      {.name = "95 % "},
                      {.name = "OR+FFA / as many random rings", .digits = 2},
                      {.name = "95 %  "},
                      {.name = "distance", .digits = 2}}};
}

// Over all jobs of all seeds, sorted: which share has at most so much.
ChartSeries Cdf(std::string name, const Times& slow, const Times& fast) {
  std::vector<double> ratios;
  for (size_t seed = 0; seed < slow.size(); ++seed)
    for (size_t job = 0; job < slow[seed].size(); ++job)
      ratios.push_back(slow[seed][job] / fast[seed][job]);
  std::sort(ratios.begin(), ratios.end());
  ChartSeries series{.name = std::move(name)};
  for (size_t i = 0; i < ratios.size(); ++i)
    series.points.emplace_back(ratios[i],
                               static_cast<double>(i + 1) / static_cast<double>(ratios.size()));
  return series;
}

void AddRow(const Reading& reading, const PaperFigures& paper, const Outcome& outcome,
            ResultTable& table) {
  const Estimate rings = SpeedUp(outcome.one_ring, outcome.rings);
  const Estimate assigned = SpeedUp(outcome.one_ring, outcome.assigned);
  const Estimate fair = SpeedUp(outcome.as_many, outcome.assigned);
  table.rows.push_back(
      {reading.name,
       {Number(rings.mean, paper.rings), Half(rings), Number(assigned.mean, paper.assigned),
        Half(assigned), Number(fair.mean), Half(fair), Number(outcome.Distance(paper))}});
}

Result<ExperimentResult> RunFigure11(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const auto racks = static_cast<int32_t>(
      options.max_ranks == 0 ? kRacks : std::min<int64_t>(kRacks, options.max_ranks / kRanksARack));
  ExperimentResult result;
  for (const PaperFigures& paper : kPaper) result.tables.push_back(TableOf(paper));
  result.notes = {
      fmt::format(
          "{} racks of 4 hosts of 8 GPUs, 16 spines; 50 jobs, {} seeds: means over seeds of "
          "the mean over jobs, with the 95 % interval. OR: locality rings over ECMP; FFA: "
          "flows pinned by turns over the jobs. `distance`: |ln(ours / paper)| of both "
          "figures of a placement; the nearest reading of both together is named below.",
          std::max(racks, 0), kSeeds),
      "As many random rings is the fair baseline: it has the same number of connections and the "
      "same NICs, and no knowledge of the network.",
      "Flows of a ring move in lock step (a pipeline with a bounded window): a ring is as fast as "
      "its slowest flow. Some readings, one where every flow runs on its own, only with --large.",
      "Edges inside a host are free. If a job waits for ranks the next ones wait behind it."};
  if (racks < 2) return result;
  const Result<Cluster> cluster = MakeCluster(racks);
  if (!cluster) return tl::unexpected(cluster.error());
  ProgressScope progress("simulating clusters", static_cast<int64_t>(kReadings.size() * 2));
  const Reading* nearest = nullptr;
  double least = 0;
  for (const Reading& reading : kReadings) {
    if (reading.large && !options.large) continue;
    double distance = 0;
    std::vector<Chart> charts;
    for (size_t p = 0; p < kPaper.size(); ++p) {
      const Result<Outcome> outcome = Measure(*cluster, reading, kPaper[p].placement);
      if (!outcome) return tl::unexpected(outcome.error());
      AddRow(reading, kPaper[p], *outcome, result.tables[p]);
      distance += outcome->Distance(kPaper[p]);
      charts.push_back({.title = fmt::format("{} placement; {}", kPaper[p].name, reading.name),
                        .x_label = "speed-up over one random ring",
                        .y_label = "share of the jobs"});
      charts.back().series = {Cdf("OR", outcome->one_ring, outcome->rings),
                              Cdf("OR+FFA", outcome->one_ring, outcome->assigned)};
      progress.Add(1);
    }
    if (nearest != nullptr && distance >= least) continue;
    nearest = &reading;
    least = distance;
    result.charts = std::move(charts);
  }
  result.notes.push_back(
      fmt::format("Nearest to the paper in all four figures: {}.", nearest->name));
  return result;
}

}  // namespace
}  // namespace mccs_figure11

Experiment MccsFigure11() {
  return {"mccs-fig11", "[mccs] figure 11",
          "rings that know the network, on a simulated cluster of 768 ranks and 50 jobs",
          mccs_figure11::RunFigure11};
}

}  // namespace tutti
