// Beyond [mccs]: what a schedule made for the network adds over its rings, with all links and with one
// lost.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mccs/mccs.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/control/connection_routes.h"
#include "tutti/sim/connection_simulator.h"
#include "tutti/sim/simulator.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace mccs_beyond {
namespace {

using namespace mccs;

constexpr int32_t kRanks = 16, kSpines = 4;
constexpr std::array<int64_t, 4> kSizes = {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20,
                                           int64_t{256} << 20};
constexpr std::array<int32_t, 7> kRings = {1, 2, 3, 4, 6, 8, 12};
// Bandwidth of a link between leaf and spine, of which each leaf has four below 4 x 25 GB/s.
struct FabricCase {
  const char *oversubscription, *up;
};
constexpr std::array<FabricCase, 2> kFabrics = {{{"2:1", "12.5"}, {"8:1", "3.125"}}};

std::string ExpressionOf(const FabricCase& fabric, bool lost) {
  const std::string whole =
      fmt::format("spine_leaf(4,{},4,bw=[25,25,{}]GB/s,alpha=1us)", kSpines, fabric.up);
  return lost ? fmt::format("without({},link=leaf1-spine0)", whole) : whole;
}

Result<Schedule> MakeProven(std::string_view algorithm, const Topology& network, int64_t size) {
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllReduce, network.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  const SynthOptions options =
      OptionsFor(**synthesizer, {.size_bytes = size, .element_bytes = 4, .auto_chunks = true});
  Result<Schedule> schedule = RunSynthesizer(**synthesizer, network, *collective, options);
  if (!schedule) return schedule;
  const VerifyReport report = Verify(network, schedule->collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the schedule of '{}' is not correct", algorithm));
  return schedule;
}

// A schedule between ranks with its connections on a fabric.
class OverFabric {
 public:
  static Result<OverFabric> Make(const Topology& fabric, Topology logical) {
    std::vector<Connection> connections;
    for (const LinkId link : logical.Links())
      connections.push_back({logical.tail(link), logical.head(link)});
    Result<ConnectionRoutes> routes = ConnectionRoutes::Make(fabric, connections);
    if (!routes) return tl::unexpected(routes.error());
    return OverFabric(fabric, std::move(logical), *std::move(routes));
  }

  const Topology& logical() const { return logical_; }

  Result<double> Pinned(const Schedule& schedule, int64_t size) const {
    const Result<std::vector<LinkPath>> paths = routes_.Fair();
    if (!paths) return tl::unexpected(paths.error());
    return Time(schedule, *paths, size);
  }
  Result<Estimate> Hashed(const Schedule& schedule, int64_t size) const {
    std::vector<double> times;
    for (int32_t seed = 1; seed <= kSeeds; ++seed) {
      const Result<double> time = Time(schedule, routes_.ByHash(static_cast<uint64_t>(seed)), size);
      if (!time) return tl::unexpected(time.error());
      times.push_back(*time);
    }
    return EstimateOf(times);
  }

 private:
  OverFabric(const Topology& fabric, Topology logical, ConnectionRoutes routes)
      : fabric_(&fabric), logical_(std::move(logical)), routes_(std::move(routes)) {}

  Result<double> Time(const Schedule& schedule, const std::vector<LinkPath>& paths,
                      int64_t size) const {
    return SimulateConnections(logical_, schedule, *fabric_, paths, size)
        .map([](const ConnectionSimReport& report) { return report.time_s; });
  }

  const Topology* fabric_;
  Topology logical_;
  ConnectionRoutes routes_;
};

Result<OverFabric> RingsOver(const Topology& fabric, int32_t rings) {
  return ParseTopology(fmt::format("uniring({},{})", rings, kRanks)).and_then([&](Topology ring) {
    return OverFabric::Make(fabric, std::move(ring));
  });
}

// Times of the rings of one size: by ECMP and pinned with as many as spines, pinned with the best number.
struct RingTimes {
  Estimate hashed;
  double pinned_s = 0, best_s = 0;
  int32_t best_rings = 0;
};

Result<RingTimes> TimeRings(const Topology& fabric, int64_t size) {
  RingTimes times;
  for (const int32_t rings : kRings) {
    const Result<OverFabric> over = RingsOver(fabric, rings);
    if (!over) return tl::unexpected(over.error());
    const Result<Schedule> schedule = MakeProven("ring", over->logical(), size);
    if (!schedule) return tl::unexpected(schedule.error());
    const Result<double> pinned = over->Pinned(*schedule, size);
    if (!pinned) return tl::unexpected(pinned.error());
    if (times.best_rings == 0 || *pinned < times.best_s) {
      times.best_s = *pinned;
      times.best_rings = rings;
    }
    if (rings != kSpines) continue;
    times.pinned_s = *pinned;
    const Result<Estimate> hashed = over->Hashed(*schedule, size);
    if (!hashed) return tl::unexpected(hashed.error());
    times.hashed = *hashed;
  }
  return times;
}

struct MadeTime {
  std::string algorithm;
  double time_s = 0;
  std::optional<Estimate> hashed = {};  // of schedules between ranks
};

// The fastest of what is made for the fabric: schedules through its switches, event by event, and
// schedules between ranks with pinned connections.
Result<MadeTime> TimeMade(const Topology& fabric, const OverFabric& pairs, int64_t size) {
  std::optional<MadeTime> best;
  const auto offer = [&](MadeTime made) {
    if (!best || made.time_s < best->time_s) best = std::move(made);
  };
  for (const char* algorithm : {"forest", "ten"}) {
    // Many chunks through switches take minutes to match, and forest is ahead there.
    if (algorithm == std::string_view("ten") && size > kSizes[1]) continue;
    const Result<Schedule> schedule = MakeProven(algorithm, fabric, size);
    if (!schedule) return tl::unexpected(schedule.error());
    const Result<SimReport> report =
        Simulate(fabric, *schedule, {.size_bytes = size, .step_mode = StepMode::kEager});
    if (!report) return tl::unexpected(report.error());
    offer({algorithm, report->time_s});
  }
  for (const char* algorithm : {"bfb", "rhd", "bruck"}) {
    const Result<Schedule> schedule = MakeProven(algorithm, pairs.logical(), size);
    if (!schedule) return tl::unexpected(schedule.error());
    const Result<double> pinned = pairs.Pinned(*schedule, size);
    if (!pinned) return tl::unexpected(pinned.error());
    if (best->time_s <= *pinned) continue;
    const Result<Estimate> hashed = pairs.Hashed(*schedule, size);
    if (!hashed) return tl::unexpected(hashed.error());
    offer({algorithm, *pinned, *hashed});
  }
  return *std::move(best);
}

constexpr double kMicrosecond = 1e6;

Result<ResultRow> RowOf(const FabricCase& fabric_case, bool lost, int64_t size) {
  const Result<Topology> fabric = ParseTopology(ExpressionOf(fabric_case, lost));
  if (!fabric) return tl::unexpected(fabric.error());
  const Result<OverFabric> pairs =
      ParseTopology(fmt::format("complete({})", kRanks)).and_then([&](Topology complete) {
        return OverFabric::Make(*fabric, std::move(complete));
      });
  if (!pairs) return tl::unexpected(pairs.error());
  const Result<Bounds> bounds =
      Collective::Make(CollectiveKind::kAllReduce, kRanks).and_then([&](const Collective& wanted) {
        return BoundsOf(*fabric, wanted);
      });
  if (!bounds) return tl::unexpected(bounds.error());
  const Result<RingTimes> rings = TimeRings(*fabric, size);
  if (!rings) return tl::unexpected(rings.error());
  const Result<MadeTime> made = TimeMade(*fabric, *pairs, size);
  if (!made) return tl::unexpected(made.error());
  const auto half = [](const Estimate& estimate) {
    return Word(fmt::format("+- {:.1f}", estimate.half * kMicrosecond));
  };
  return ResultRow{
      fmt::format(
          "{}, {}", fabric_case.oversubscription,
          size >= 1 << 20 ? fmt::format("{} MiB", size >> 20) : fmt::format("{} KiB", size >> 10)),
      {Number(rings->hashed.mean * kMicrosecond), half(rings->hashed),
       Number(rings->pinned_s * kMicrosecond), Number(rings->best_s * kMicrosecond),
       Word(std::to_string(rings->best_rings)), Word(made->algorithm),
       Number(made->time_s * kMicrosecond),
       made->hashed ? Number(made->hashed->mean * kMicrosecond) : Word("-"),
       made->hashed ? half(*made->hashed) : Word("-"), Number(rings->pinned_s / made->time_s),
       Number(rings->best_s / made->time_s), Number(bounds->Seconds(size) * kMicrosecond)}};
}

ResultTable TableOf(bool lost) {
  return {
      .title = lost ? "All-reduce of 16 ranks, the link between leaf1 and spine0 lost"
                    : "All-reduce of 16 ranks, all links there",
      .label_name = "oversubscription, size",
      .columns = {{.name = "4 rings, ECMP", .unit = "us", .digits = 1},
                  {.name = "95 %"},
                  {.name = lost ? "4 rings, FFA again" : "4 rings, FFA", .unit = "us", .digits = 1},
                  {.name = "best rings, FFA", .unit = "us", .digits = 1},
                  {.name = "how many"},
                  {.name = lost ? "made again" : "made"},
                  {.name = "its time", .unit = "us", .digits = 1},
                  {.name = "by ECMP", .unit = "us", .digits = 1},
                  {.name = "95 % "},
                  {.name = "gain over 4 rings", .digits = 2},
                  {.name = "over the best rings", .digits = 2},
                  {.name = "bound", .unit = "us", .digits = 1}}};
}

Result<ExperimentResult> RunBeyond(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ExperimentResult result;
  result.tables = {TableOf(false), TableOf(true)};
  result.notes = {
      "4 leaves of 4 hosts with one rank and 25 GB/s each, 4 spines, 1 us a link; oversubscription "
      "by "
      "the links between leaves and spines. Locality rings, one flow an edge and ring; FFA pins "
      "them "
      "(control/flow_assignment.h). Flows share links fairly, a ring's steps end with their last "
      "flow.",
      fmt::format(
          "ECMP: the mean over {} seeds with its 95 % interval. A schedule through switches "
          "(forest, ten) names its paths and has no draw.",
          kSeeds),
      "Made: the fastest of forest and ten (to 1 MiB) through the switches, simulated event by "
      "event "
      "with switches that store and forward whole chunks, and of bfb, rhd and bruck on "
      "complete(16) "
      "with connections pinned as those of the rings. Every schedule is verified. Made again: the "
      "same "
      "on the network without the link. Where the gain is below 1 the rings are better.",
      "Best rings: the fastest of 1, 2, 3, 4, 6, 8 and 12 rings of the same order. Bound: no "
      "schedule "
      "is faster."};
  if (!WithinSize(options, kRanks)) return result;
  ProgressScope progress("all-reduces on fabrics",
                         static_cast<int64_t>(2 * kFabrics.size() * kSizes.size()));
  for (const bool lost : {false, true})
    for (const FabricCase& fabric : kFabrics)
      for (const int64_t size : kSizes) {
        if (CancelRequested()) return tl::unexpected(CancelledError());
        Result<ResultRow> row = RowOf(fabric, lost, size);
        if (!row) return tl::unexpected(row.error());
        result.tables[lost ? 1 : 0].rows.push_back(*std::move(row));
        progress.Add(1);
      }
  return result;
}

}  // namespace
}  // namespace mccs_beyond

Experiment MccsBeyond() {
  return {"mccs-beyond", "[mccs] 6.5, beyond it",
          "a schedule made for the network beside locality rings, also when a link is lost",
          mccs_beyond::RunBeyond};
}

}  // namespace tutti
