#include "training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cells.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/base/units.h"
#include "tutti/training/training.h"
#include "tutti/training/training_workload.h"

namespace tutti::tacos {
namespace {

constexpr double kMsPerPs = 1e-9;

// A group's networks, ready to run on.
struct Fabric {
  std::vector<Network> basic, ten, themis;  // basic: one, or none
  std::vector<NodeId> place;
};

Status AddNetworks(const std::vector<const char*>& expressions, std::vector<Network>& networks) {
  for (const char* expression : expressions) {
    Result<Network> network = MakeNetwork(expression);
    if (!network) return tl::unexpected(network.error());
    networks.push_back(*std::move(network));
  }
  return {};
}

Result<Fabric> MakeFabric(const GroupNetwork& group) {
  Fabric fabric;
  if (group.basic == nullptr) return fabric;
  const std::vector<const char*> basic = {group.basic};
  if (const Status added = AddNetworks(basic, fabric.basic); !added)
    return tl::unexpected(added.error());
  if (const Status added = AddNetworks(group.ten.empty() ? basic : group.ten, fabric.ten); !added)
    return tl::unexpected(added.error());
  if (const Status added = AddNetworks(group.themis.empty() ? basic : group.themis, fabric.themis);
      !added)
    return tl::unexpected(added.error());
  fabric.place = FirstDimensionFastest(group.lengths);
  return fabric;
}

enum Way : uint8_t { kRing, kOneWayRing, kThemis, kTacos, kBound, kIdeal, kNumWays };
constexpr std::array<const char*, kNumWays> kWayNames = {"Ring",  "Ring, one way", "Themis",
                                                         "TACOS", "Bound",         "Ideal"};

// Those that a figure shows, in its order.
std::vector<Way> WaysOf(TrainingUnit unit) {
  if (unit == TrainingUnit::kRing) return {kRing, kOneWayRing, kThemis, kTacos, kBound, kIdeal};
  return {kOneWayRing, kThemis, kTacos, kBound, kIdeal};
}

Way UnitWay(TrainingUnit unit) { return unit == TrainingUnit::kTacos ? kTacos : kRing; }

// What no schedule on any of the networks beats.
double BoundSeconds(const std::vector<Network>& networks, int64_t size_bytes) {
  double least = networks.front().BoundSeconds(size_bytes);
  for (const Network& network : networks) least = std::min(least, network.BoundSeconds(size_bytes));
  return least;
}

Result<double> AllReduceSeconds(Way way, const TrainingCase& test, const Fabric& fabric,
                                const RunOptions& how) {
  if (way == kIdeal) return fabric.basic.front().IdealSeconds(how.size_bytes);
  if (way == kBound) return BoundSeconds(fabric.ten, how.size_bytes);
  Result<Outcome> outcome = [&] {
    switch (way) {
      case kRing:
        return RunBasic(fabric.basic.front(), Basic::kRing, how, fabric.place);
      case kOneWayRing:
        return RunBasic(fabric.basic.front(), Basic::kOneWayRing, how, fabric.place);
      case kThemis:
        return RunFastest(fabric.themis, "themis", test.themis_chunks, how);
      default:
        break;
    }
    return RunFastest(fabric.ten, "ten", test.ten_chunks, how);
  }();
  if (!outcome) return tl::unexpected(outcome.error());
  return outcome->time_s;
}

struct Trained {
  const char* name = "";  // of the case
  std::array<TrainingTimeline, kNumWays> lines;

  double CommunicationPs(Way way) const {
    return static_cast<double>(lines[way].iteration_ps - lines[way].compute_ps);
  }
  // With so much computation that TACOS communicates `ratio` times as long.
  double ScaledPs(Way way, double ratio) const {
    return CommunicationPs(way) + CommunicationPs(kTacos) / ratio;
  }
};

Result<Trained> Train(const TrainingCase& test, TrainingUnit unit, LinkModel model) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const Result<TrainingWorkload> workload = LoadTrainingWorkload(test.workload);
  if (!workload) return tl::unexpected(workload.error());
  const Result<Fabric> data = MakeFabric(test.data);
  if (!data) return tl::unexpected(data.error());
  const Result<Fabric> tensor = MakeFabric(test.tensor);
  if (!tensor) return tl::unexpected(tensor.error());
  const Result<std::vector<TrainingStep>> steps =
      MakeTrainingSteps(*workload,
                        {.batch = workload->batch,
                         .tensor = workload->tensor,
                         .replicas = test.ranks / workload->tensor},
                        kA100Fp16);
  if (!steps) return tl::unexpected(steps.error());
  Trained trained{.name = test.name, .lines = {}};
  for (const Way way : WaysOf(unit)) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    std::optional<Error> fault;
    const auto asked = [&](const Fabric& fabric) {
      return [&, ps_of_size = std::map<int64_t, int64_t>()](int64_t bytes) mutable {
        const auto [known, is_new] = ps_of_size.emplace(bytes, 0);
        if (fault || !is_new) return known->second;
        const Result<double> seconds =
            AllReduceSeconds(way, test, fabric, {.size_bytes = bytes, .link_model = model});
        if (!seconds)
          fault = seconds.error();
        else
          known->second = std::llround(*seconds * static_cast<double>(kPicosecondsPerSecond));
        return known->second;
      };
    };
    const CollectiveTimes times{.all_reduce_ps = asked(*data),
                                .tensor_all_reduce_ps = asked(*tensor)};
    trained.lines[way] = SimulateTraining(*steps, times, kOneBucket);
    if (fault) return tl::unexpected(*fault);
  }
  return trained;
}

double Share(double part, double whole) { return whole > 0 ? kPercent * part / whole : kPercent; }

ResultTable BreakdownTable(const Trained& trained, TrainingUnit unit, std::string_view model) {
  const auto ms = [](const char* name) {
    return ResultColumn{.name = name, .unit = "ms", .digits = 2};
  };
  const Way unit_way = UnitWay(unit);
  ResultTable table{
      .title = fmt::format("{}: one iteration, links {}", trained.name, model),
      .label_name = "all-reduce by",
      .columns = {ms("iteration"), ms("forward"), ms("backward"), ms("results and their gradients"),
                  ms("weight gradients"),
                  ResultColumn{.name = fmt::format("over {}", kWayNames[unit_way]), .digits = 3},
                  ResultColumn{.name = "communication of the ideal", .unit = "%", .digits = 2},
                  ResultColumn{.name = "iteration of the ideal", .unit = "%", .digits = 2}}};
  const auto ideal_ps = static_cast<double>(trained.lines[kIdeal].iteration_ps);
  const auto unit_ps = static_cast<double>(trained.lines[unit_way].iteration_ps);
  for (const Way way : WaysOf(unit)) {
    const TrainingTimeline& line = trained.lines[way];
    const auto in_ms = [](int64_t ps) { return Measured(kMsPerPs * static_cast<double>(ps)); };
    const auto iteration_ps = static_cast<double>(line.iteration_ps);
    table.rows.push_back(
        {kWayNames[way],
         {in_ms(line.iteration_ps), in_ms(line.compute_ps - line.backward_compute_ps),
          in_ms(line.backward_compute_ps), in_ms(line.tensor_ps), in_ms(line.exposed_all_reduce_ps),
          Measured(iteration_ps / unit_ps),
          Measured(Share(trained.CommunicationPs(kIdeal), trained.CommunicationPs(way))),
          Measured(Share(ideal_ps, iteration_ps))}});
  }
  return table;
}

// Averages over the cases; times by `ps`.
using TimeOf = std::function<double(const Trained&, Way)>;
ResultTable AverageTable(std::string title, const std::vector<Trained>& all,
                         const TrainingPrinted& printed, TrainingUnit unit, const TimeOf& ps) {
  Average communication, end_to_end, over_ring, over_one_way, over_themis, share;
  for (const Trained& trained : all) {
    const double tacos = ps(trained, kTacos);
    communication.Add(Share(trained.CommunicationPs(kIdeal), trained.CommunicationPs(kTacos)));
    end_to_end.Add(Share(ps(trained, kIdeal), tacos));
    if (unit == TrainingUnit::kRing) over_ring.Add(ps(trained, kRing) / tacos);
    over_one_way.Add(ps(trained, kOneWayRing) / tacos);
    over_themis.Add(ps(trained, kThemis) / tacos);
    share.Add(Share(trained.CommunicationPs(kTacos), tacos));
  }
  const double ratio =
      (kPercent - printed.end_to_end) / (printed.end_to_end - printed.communication);
  ResultTable table{.title = std::move(title),
                    .label_name = "average",
                    .columns = {{.name = "figure", .digits = 2}}};
  table.rows = {
      {"TACOS of the ideal, communication (%)", {communication.Cell(printed.communication_text)}},
      {"TACOS of the ideal, iteration (%)", {end_to_end.Cell(printed.end_to_end_text)}},
      {"TACOS times as fast as Ring, one way", {over_one_way.Cell(printed.over_ring)}},
      {"TACOS times as fast as Themis", {over_themis.Cell(printed.over_themis)}},
      {"share of communication with TACOS (%)", {share.Cell()}},
      {"the share that the paper's efficiencies imply (%)",
       {Measured(kPercent * ratio / (1 + ratio))}}};
  if (unit == TrainingUnit::kRing)
    table.rows.insert(table.rows.begin() + 2,
                      {"TACOS times as fast as Ring", {over_ring.Cell(printed.over_ring)}});
  return table;
}

Chart BreakdownChart(const std::vector<Trained>& all, TrainingUnit unit, std::string_view model) {
  Chart chart{.title = fmt::format("One iteration, links {}", model),
              .x_label = "",
              .y_label = fmt::format("time over {}", kWayNames[UnitWay(unit)])};
  const Way unit_way = UnitWay(unit);
  std::array<ChartSeries, 4> parts = {{{.name = "forward"},
                                       {.name = "backward"},
                                       {.name = "results and their gradients"},
                                       {.name = "weight gradients"}}};
  for (const Trained& trained : all) {
    const auto unit_ps = static_cast<double>(trained.lines[unit_way].iteration_ps);
    for (const Way way : WaysOf(unit)) {
      const TrainingTimeline& line = trained.lines[way];
      const std::array<int64_t, 4> ps = {line.compute_ps - line.backward_compute_ps,
                                         line.backward_compute_ps, line.tensor_ps,
                                         line.exposed_all_reduce_ps};
      const auto bar = static_cast<double>(chart.bars.size());
      for (size_t part = 0; part < ps.size(); ++part)
        parts[part].points.emplace_back(bar, static_cast<double>(ps[part]) / unit_ps);
      const std::string_view name = trained.name;
      chart.bars.push_back(fmt::format("{}: {}", name.substr(0, name.find(',')), kWayNames[way]));
    }
  }
  chart.series.assign(parts.begin(), parts.end());
  return chart;
}

TrainingCase WithMore(TrainingCase test) {
  const auto append = [](auto& to, const auto& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  append(test.data.ten, test.more_ten);
  append(test.data.themis, test.more_themis);
  append(test.ten_chunks, test.more_ten_chunks);
  append(test.themis_chunks, test.more_themis_chunks);
  return test;
}

}  // namespace

Result<ExperimentResult> RunTraining(std::span<const TrainingCase> cases,
                                     const TrainingPrinted& printed, TrainingUnit unit,
                                     const ExperimentOptions& options) {
  ExperimentResult result;
  ProgressScope progress("iterations of training",
                         static_cast<int64_t>(cases.size() * kLinkModels.size()));
  std::vector<ResultTable> breakdowns;
  for (const NamedLinkModel& model : kLinkModels) {
    std::vector<Trained> all;
    for (const TrainingCase& test : cases) {
      if (!WithinSize(options, test.ranks)) continue;
      const Result<Trained> trained =
          Train(options.large ? WithMore(test) : test, unit, model.model);
      if (!trained) return tl::unexpected(trained.error());
      all.push_back(*trained);
      breakdowns.push_back(BreakdownTable(*trained, unit, model.name));
      progress.Add(1);
    }
    result.tables.push_back(
        AverageTable(fmt::format("Links {}, computation as modelled", model.name), all, printed,
                     unit, [](const Trained& trained, Way way) {
                       return static_cast<double>(trained.lines[way].iteration_ps);
                     }));
    const double ratio =
        (kPercent - printed.end_to_end) / (printed.end_to_end - printed.communication);
    result.tables.push_back(AverageTable(
        fmt::format("Links {}, computation scaled to the paper's share", model.name), all, printed,
        unit, [ratio](const Trained& trained, Way way) { return trained.ScaledPs(way, ratio); }));
    if (!all.empty()) result.charts.push_back(BreakdownChart(all, unit, model.name));
  }
  result.tables.insert(result.tables.end(), breakdowns.begin(), breakdowns.end());
  return result;
}

}  // namespace tutti::tacos
