#include "tacos.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "messages.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/synth/ten.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti::tacos {
namespace {

constexpr double kPerGigabyte = 1e-9, kMilli = 1e3, kMicro = 1e6;
constexpr int32_t kBins = 200;            // of a curve over time
constexpr double kMaxSearchSeconds = 60;  // of what searches by integer programs

Status Prove(const Topology& topology, const Schedule& schedule) {
  const VerifyReport report = Verify(topology, schedule.collective, schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (report.verified()) return {};
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("the schedule of '{}' on {} is not correct: {}", schedule.algorithm,
                               topology.name(), report.violations.front().message));
}

struct Made {
  Schedule schedule;
  double seconds = 0;
};

Result<Made> Make(const Topology& topology, CollectiveKind kind, std::string_view algorithm,
                  int32_t chunks, const RunOptions& options) {
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  const Result<Collective> collective =
      Collective::Make(kind, topology.num_ranks(),
                       {.all_reduce_shards = (*synthesizer)->one_shard_all_reduce ? 1 : 0});
  if (!collective) return tl::unexpected(collective.error());
  const auto before = std::chrono::steady_clock::now();
  const SynthOptions wanted{.chunks = std::max(0, chunks),
                            .size_bytes = options.size_bytes,
                            .link_model = options.link_model,
                            .auto_chunks = chunks == kAutoChunks,
                            .max_seconds = kMaxSearchSeconds};
  Result<Schedule> schedule =
      RunSynthesizer(**synthesizer, topology, *collective, OptionsFor(**synthesizer, wanted));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!schedule) return tl::unexpected(schedule.error());
  return Made{std::move(*schedule), elapsed.count()};
}

SimOptions SimulatorOptions(const RunOptions& options, bool record) {
  return {.size_bytes = options.size_bytes,
          .link_model = options.link_model,
          .step_mode = StepMode::kEager,
          .record_messages = record};
}

// The network that a basic algorithm was made for, with the links of `network`.
std::string LogicalNetwork(Basic basic, const Topology& network) {
  const int32_t ranks = network.num_ranks();
  const LinkSpec& link = network.spec(LinkId{0});
  const std::string links = fmt::format("alpha={},bw={}", FormatDurationPs(link.alpha_ps),
                                        FormatBandwidth(link.bandwidth));
  switch (basic) {
    case Basic::kRing:
      return fmt::format("ring({},{})", ranks, links);
    case Basic::kOneWayRing:
      return fmt::format("uniring(1,{},{})", ranks, links);
    case Basic::kDirect:
    case Basic::kRhd:
    case Basic::kDbt:
      break;
  }
  return fmt::format("complete({},{})", ranks, links);
}

std::string_view AlgorithmOf(Basic basic) {
  switch (basic) {
    case Basic::kRing:
      return "ring";
    case Basic::kOneWayRing:
      return "uniring";
    case Basic::kDirect:
      return "direct";
    case Basic::kRhd:
      return "rhd";
    case Basic::kDbt:
      break;
  }
  return "dbt";
}

}  // namespace

std::span<const NamedNetwork> MotivatingNetworks() {
  static constexpr std::array<NamedNetwork, 4> kNetworks = {{{"FC", "complete(64)"},
                                                             {"Ring", "ring(64)"},
                                                             {"2D Mesh", "mesh(8,8)"},
                                                             {"3D HC", "mesh(4,4,4)"}}};
  return kNetworks;
}

std::vector<int32_t> TenChunks(const Topology& topology, const ExperimentOptions& options) {
  constexpr int64_t kDeliveries = int64_t{1} << 15;
  const int64_t pairs = int64_t{topology.num_ranks()} * topology.num_ranks();
  std::set<int32_t> chunks = {1};
  for (int32_t count : {2, 4, 8, 16})
    if (options.large || pairs * count <= kDeliveries) chunks.insert(count);
  const int32_t even = EvenChunks(topology);
  for (int32_t count : {even, 2 * even})
    if (options.large || pairs * count <= 2 * kDeliveries) chunks.insert(count);
  return {chunks.begin(), chunks.end()};
}

double Network::IdealSeconds(int64_t size_bytes) const {
  const double latency =
      static_cast<double>(bounds.latency_ps) / static_cast<double>(kPicosecondsPerSecond);
  if (!bounds.ideal_seconds_per_byte) return latency;
  return (*bounds.ideal_seconds_per_byte * Rational(size_bytes)).ToDouble() + latency;
}

Result<Network> MakeNetwork(std::string_view expression, CollectiveKind kind) {
  Result<Topology> topology = ParseTopology(expression);
  if (!topology) return tl::unexpected(topology.error());
  const Result<Collective> collective = Collective::Make(kind, topology->num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  Result<Bounds> bounds = BoundsOf(*topology, *collective);
  if (!bounds) return tl::unexpected(bounds.error());
  return Network{std::move(*topology), kind, std::move(*bounds)};
}

// More chunks after so many that were no faster are not tried.
constexpr int32_t kSlowerInARow = 2;

Result<Outcome> RunFastest(std::span<const Network> networks, std::string_view algorithm,
                           std::span<const int32_t> chunks, const RunOptions& options) {
  std::optional<Outcome> best;
  std::optional<Schedule> best_schedule;
  const Network* best_network = nullptr;
  Error last{ErrorCode::kInvalidArgument, "no network or number of chunks to try"};
  for (const Network& network : networks) {
    double network_best_s = std::numeric_limits<double>::infinity();
    int32_t slower = 0;  // one after the other
    for (int32_t count : chunks) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      Result<Made> made = Make(network.topology, network.kind, algorithm, count, options);
      if (!made) {
        last = made.error();
        if (last.code == ErrorCode::kCancelled) return tl::unexpected(last);
        continue;
      }
      Result<SimReport> report =
          Simulate(network.topology, made->schedule, SimulatorOptions(options, /*record=*/false));
      if (!report) return tl::unexpected(report.error());
      slower = report->time_s >= network_best_s ? slower + 1 : 0;
      network_best_s = std::min(network_best_s, report->time_s);
      if (slower == kSlowerInARow) break;
      if (best && report->time_s >= best->time_s) continue;
      best = Outcome{.time_s = report->time_s,
                     .synthesis_s = made->seconds,
                     .bound_s = network.BoundSeconds(options.size_bytes),
                     .chunks = count == kAutoChunks ? made->schedule.units_per_shard : count,
                     .network = network.topology.name(),
                     .report = std::move(*report)};
      best_schedule = std::move(made->schedule);
      best_network = &network;
    }
  }
  if (!best) return tl::unexpected(last);
  if (const Status proven = Prove(best_network->topology, *best_schedule); !proven)
    return tl::unexpected(proven.error());
  if (options.record) {
    Result<SimReport> report =
        Simulate(best_network->topology, *best_schedule, SimulatorOptions(options, true));
    if (!report) return tl::unexpected(report.error());
    best->report = std::move(*report);
  }
  return *std::move(best);
}

std::string_view Name(Basic basic) {
  switch (basic) {
    case Basic::kRing:
      return "Ring";
    case Basic::kOneWayRing:
      return "Ring, one way";
    case Basic::kDirect:
      return "Direct";
    case Basic::kRhd:
      return "RHD";
    case Basic::kDbt:
      break;
  }
  return "DBT";
}

Result<Outcome> RunBasic(const Network& network, Basic basic, const RunOptions& options,
                         std::span<const NodeId> place) {
  const Result<Topology> logical = ParseTopology(LogicalNetwork(basic, network.topology));
  if (!logical) return tl::unexpected(logical.error());
  const Result<Made> made =
      Make(*logical, CollectiveKind::kAllReduce, AlgorithmOf(basic), 0, options);
  if (!made) return tl::unexpected(made.error());
  if (const Status proven = Prove(*logical, made->schedule); !proven)
    return tl::unexpected(proven.error());
  Result<SimReport> report = SimulateMessages(
      network.topology, {.topology = *logical, .schedule = made->schedule, .place = place},
      SimulatorOptions(options, options.record));
  if (!report) return tl::unexpected(report.error());
  return Outcome{.time_s = report->time_s,
                 .synthesis_s = made->seconds,
                 .bound_s = network.BoundSeconds(options.size_bytes),
                 .network = network.topology.name(),
                 .report = std::move(*report)};
}

std::vector<NodeId> FirstDimensionFastest(std::span<const int32_t> lengths) {
  int32_t ranks = 1;
  for (int32_t length : lengths) ranks *= length;
  std::vector<NodeId> place;
  for (int32_t i = 0; i < ranks; ++i) {
    int32_t rest = i, number = 0;
    for (int32_t length : lengths) {
      number = number * length + rest % length;
      rest /= length;
    }
    place.push_back(NodeId{number});
  }
  return place;
}

std::vector<ResultColumn> OutcomeColumns() {
  return {{.name = "time", .unit = "us", .digits = 2},
          {.name = "bandwidth", .unit = "GB/s", .digits = 2},
          {.name = "normalised", .digits = 2},
          {.name = "of the bound", .unit = "%", .digits = 2},
          {.name = "of the ideal", .unit = "%", .digits = 2},
          {.name = "chunks"},
          {.name = "synthesis", .unit = "ms", .digits = 2, .timed = true}};
}

ResultRow OutcomeRow(std::string label, const Result<Outcome>& outcome, const Network& network,
                     int64_t size_bytes, double normal_s, const PaperFigures& paper) {
  if (!outcome)
    return {std::move(label),
            {Word("none"), Word("none"), Word("none"), Word("none"), Word("none"), Word("-"),
             Word("-", paper.synthesis_ms)}};
  const double time_s = outcome->time_s;
  return {
      std::move(label),
      {Measured(kMicro * time_s), Measured(kPerGigabyte * static_cast<double>(size_bytes) / time_s),
       Measured(normal_s / time_s, paper.normalised),
       Measured(kPercent * outcome->bound_s / time_s),
       Measured(kPercent * network.IdealSeconds(size_bytes) / time_s, paper.of_ideal),
       outcome->chunks == 0 ? Word("-") : Figure(outcome->chunks),
       Measured(kMilli * outcome->synthesis_s, paper.synthesis_ms)}};
}

ResultCell Measured(double value, std::string paper) {
  return Figure(Rational::FromDouble(value), std::move(paper));
}

std::string SizeText(int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KB", "MB", "GB"};
  size_t unit = 0;
  for (; bytes % 1000 == 0 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

ChartSeries UtilisationSeries(std::string name, const Outcome& outcome, double unit_s) {
  ChartSeries series{.name = std::move(name)};
  for (const UtilisationBin& bin : UtilisationOverTime(outcome.report, kBins))
    series.points.emplace_back((bin.begin_s + bin.end_s) / 2 / unit_s, kPercent * bin.links_busy);
  return series;
}

double MeanUtilisation(const Outcome& outcome) {
  double busy_s = 0;
  for (double link_s : outcome.report.link_busy_s) busy_s += link_s;
  return busy_s / (static_cast<double>(outcome.report.link_busy_s.size()) * outcome.time_s);
}

HeatMap LoadMap(const Topology& topology, const std::vector<double>& link_value, double most) {
  const auto nodes = static_cast<size_t>(topology.num_nodes());
  HeatMap map{.columns = topology.num_nodes(), .cells = {}, .column_names = {}, .row_names = {}};
  map.cells.resize(nodes * nodes);
  for (LinkId link : topology.Links()) {
    std::optional<double>& cell =
        map.cells[topology.tail(link).index() * nodes + topology.head(link).index()];
    cell = cell.value_or(0) + link_value[link.index()] / most;
  }
  return map;
}

ResultCell Average::Cell(std::string paper) const {
  if (count_ == 0) return Word("-", std::move(paper));
  return Measured(sum_ / static_cast<double>(count_), std::move(paper));
}

}  // namespace tutti::tacos
