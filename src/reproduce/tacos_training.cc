#include "tacos_training.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cells.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/base/units.h"
#include "tutti/sim/training.h"
#include "tutti/sim/training_workload.h"

namespace tutti::tacos {
namespace {

constexpr double kPercent = 100, kMsPerPs = 1e-9;

// A group's networks, ready to run on.
struct Fabric {
  std::vector<Network> networks;
  std::vector<NodeId> place;
};

Result<Fabric> MakeFabric(const GroupNetwork& group) {
  Fabric fabric;
  for (const char* expression : group.expressions) {
    Result<Network> network = MakeNetwork(expression);
    if (!network) return tl::unexpected(network.error());
    fabric.networks.push_back(*std::move(network));
  }
  fabric.place = FirstDimensionFastest(group.lengths);
  return fabric;
}

enum Way : uint8_t { kRing, kOneWayRing, kThemis, kTacos, kIdeal, kNumWays };
constexpr std::array<const char*, kNumWays> kWayNames = {"Ring", "Ring, one way", "Themis", "TACOS",
                                                         "Ideal"};

Result<double> AllReduceSeconds(Way way, const TrainingCase& test, const Fabric& fabric,
                                const RunOptions& how) {
  if (way == kIdeal) return fabric.networks.front().IdealSeconds(how.size_bytes);
  Result<Outcome> outcome = [&] {
    switch (way) {
      case kRing:
        return RunBasic(fabric.networks.front(), Basic::kRing, how, fabric.place);
      case kOneWayRing:
        return RunBasic(fabric.networks.front(), Basic::kOneWayRing, how, fabric.place);
      case kThemis:
        return RunFastest(fabric.networks, "themis", test.themis_chunks, how);
      default:
        break;
    }
    return RunFastest(fabric.networks, "ten", test.ten_chunks, how);
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

Result<Trained> Train(const TrainingCase& test, LinkModel model) {
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
  for (uint8_t i = 0; i < kNumWays; ++i) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const auto way = static_cast<Way>(i);
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
  const Way unit_way = unit == TrainingUnit::kTacos ? kTacos : kRing;
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
  for (uint8_t i = 0; i < kNumWays; ++i) {
    const auto way = static_cast<Way>(i);
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
                         const TrainingPrinted& printed, const TimeOf& ps) {
  Average communication, end_to_end, over_ring, over_one_way, over_themis, share;
  for (const Trained& trained : all) {
    const double tacos = ps(trained, kTacos);
    communication.Add(Share(trained.CommunicationPs(kIdeal), trained.CommunicationPs(kTacos)));
    end_to_end.Add(Share(ps(trained, kIdeal), tacos));
    over_ring.Add(ps(trained, kRing) / tacos);
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
      {"TACOS times as fast as Ring", {over_ring.Cell()}},
      {"TACOS times as fast as Ring, one way", {over_one_way.Cell(printed.over_ring)}},
      {"TACOS times as fast as Themis", {over_themis.Cell(printed.over_themis)}},
      {"share of communication with TACOS (%)",
       {share.Cell(fmt::format("{:.1f}", kPercent * ratio / (1 + ratio)))}}};
  return table;
}

Chart BreakdownChart(const std::vector<Trained>& all, TrainingUnit unit, std::string_view model) {
  Chart chart{.title = fmt::format("One iteration, links {}", model),
              .x_label = "",
              .y_label = unit == TrainingUnit::kTacos ? "time over TACOS" : "time over Ring"};
  const Way unit_way = unit == TrainingUnit::kTacos ? kTacos : kRing;
  std::array<ChartSeries, 4> parts = {{{.name = "forward"},
                                       {.name = "backward"},
                                       {.name = "results and their gradients"},
                                       {.name = "weight gradients"}}};
  for (const Trained& trained : all) {
    const auto unit_ps = static_cast<double>(trained.lines[unit_way].iteration_ps);
    for (uint8_t i = 0; i < kNumWays; ++i) {
      const TrainingTimeline& line = trained.lines[i];
      const std::array<int64_t, 4> ps = {line.compute_ps - line.backward_compute_ps,
                                         line.backward_compute_ps, line.tensor_ps,
                                         line.exposed_all_reduce_ps};
      const auto bar = static_cast<double>(chart.bars.size());
      for (size_t part = 0; part < ps.size(); ++part)
        parts[part].points.emplace_back(bar, static_cast<double>(ps[part]) / unit_ps);
      const std::string_view name = trained.name;
      chart.bars.push_back(fmt::format("{}: {}", name.substr(0, name.find(',')), kWayNames[i]));
    }
  }
  chart.series.assign(parts.begin(), parts.end());
  return chart;
}

TrainingCase WithMore(TrainingCase test) {
  const auto append = [](auto& to, const auto& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  append(test.data.expressions, test.more_expressions);
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
      const Result<Trained> trained = Train(options.large ? WithMore(test) : test, model.model);
      if (!trained) return tl::unexpected(trained.error());
      all.push_back(*trained);
      breakdowns.push_back(BreakdownTable(*trained, unit, model.name));
      progress.Add(1);
    }
    result.tables.push_back(
        AverageTable(fmt::format("Links {}, computation as modelled", model.name), all, printed,
                     [](const Trained& trained, Way way) {
                       return static_cast<double>(trained.lines[way].iteration_ps);
                     }));
    const double ratio =
        (kPercent - printed.end_to_end) / (printed.end_to_end - printed.communication);
    result.tables.push_back(AverageTable(
        fmt::format("Links {}, computation scaled to the paper's share", model.name), all, printed,
        [ratio](const Trained& trained, Way way) { return trained.ScaledPs(way, ratio); }));
    if (!all.empty()) result.charts.push_back(BreakdownChart(all, unit, model.name));
  }
  result.tables.insert(result.tables.end(), breakdowns.begin(), breakdowns.end());
  return result;
}

}  // namespace tutti::tacos
