#include "registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "groups.h"
#include "tutti/base/units.h"

namespace tutti {

std::span<const Synthesizer> Synthesizers() {
  // One line a synthesizer.
  // clang-format off
  static const std::vector<Synthesizer> kTable = {
      BfbSynthesizer(),
      TenSynthesizer(),
      RingSynthesizer(),
      UniringSynthesizer(),
      DirectSynthesizer(),
      RhdSynthesizer(),
      DbtSynthesizer(),
      BruckSynthesizer(),
      TorusDimsSynthesizer(),
      ExpandSynthesizer(),
      StoredSynthesizer(),
      BlueConnectSynthesizer(),
      ThemisSynthesizer(),
      CCubeSynthesizer(),
      MultiTreeSynthesizer(),
      TtoSynthesizer(),
      TacclLikeSynthesizer(),
      TsmcfSynthesizer(),
      McfSynthesizer(),
      ForestSynthesizer(),
      StepLpSynthesizer(),
  };
  // clang-format on
  return kTable;
}

Result<const Synthesizer*> FindSynthesizer(std::string_view name) {
  std::string accepted;
  for (const Synthesizer& synthesizer : Synthesizers()) {
    if (synthesizer.name == name) return &synthesizer;
    accepted += accepted.empty() ? "" : ", ";
    accepted += synthesizer.name;
  }
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("unknown algorithm '{}'; accepted are {}", name, accepted));
}

Forecast ForecastByDeliveries(const Collective& collective, const SynthOptions& options,
                              int64_t ns) {
  constexpr int64_t kPipelined = 256;  // chunks that one shard may be cut into by default
  constexpr double kMost = 9e18;
  const ShardId first{0};
  const double to_all = (collective.contributors(first).several() ? 1 : 0) +
                        (collective.destinations(first).several() ? 1 : 0);
  const int64_t usual = collective.num_shards() == 1 ? kPipelined : 1;
  const double chunks = static_cast<double>(options.chunks > 0 ? options.chunks : usual);
  const double deliveries =
      std::max(1.0, to_all * collective.num_ranks()) * collective.num_shards() * chunks;
  return {.work_ns = static_cast<int64_t>(std::min(kMost, deliveries * static_cast<double>(ns)))};
}

int64_t MostChunks(const Collective& collective, int64_t size_bytes, int64_t smallest_bytes) {
  int64_t heaviest = collective.demand().empty() ? 1 : 0;
  for (int64_t weight : collective.demand()) heaviest = std::max(heaviest, weight);
  for (const Collective::Group& group : collective.groups())
    heaviest = std::max(heaviest, collective.weight(ShardId{group.first_shard}));
  const Rational shard = Rational(size_bytes) * Rational(heaviest, collective.weight_of_size());
  const Rational chunks = (shard / Rational(std::max<int64_t>(1, smallest_bytes))).Floor();
  return std::max<int64_t>(1, chunks.Num64().value_or(size_bytes));
}

int64_t WorthwhileChunkBytes(const Topology& topology) {
  constexpr int64_t kPartOfAlpha = 16;
  std::optional<Rational> least;
  for (LinkId link : topology.Links()) {
    const Rational bytes = Rational(topology.bandwidth(link)) *
                           Rational(topology.alpha_ps(link), kPicosecondsPerSecond * kPartOfAlpha);
    if (!least || bytes < *least) least = bytes;
  }
  if (!least) return 1;
  return std::max<int64_t>(1, least->Floor().Num64().value_or(1));
}

namespace {

bool IsBelowElement(const Collective& collective, const SynthOptions& options, int64_t chunks) {
  return options.element_bytes > 0 && chunks > 1 &&
         chunks > MostChunks(collective, options.size_bytes, options.element_bytes);
}

std::string MakersOfGroups() {
  std::string names;
  for (const Synthesizer& each : Synthesizers())
    if (each.groups != GroupUse::kNone)
      names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

std::string BelowElement(const Collective& collective, const SynthOptions& options,
                         int64_t chunks) {
  return fmt::format(
      "{} chunks a shard of size {} are less than one element of {} byte{} each, at "
      "most {} {}",
      chunks, FormatSize(options.size_bytes), options.element_bytes,
      options.element_bytes == 1 ? "" : "s",
      MostChunks(collective, options.size_bytes, options.element_bytes), "exist");
}

}  // namespace

Result<Schedule> RunSynthesizer(const Synthesizer& synthesizer, const Topology& topology,
                                const Collective& collective, const SynthOptions& options) {
  if (const Status has = CheckSynthOptions(synthesizer, options); !has)
    return tl::unexpected(has.error());
  std::string makes;
  for (CollectiveKind kind : synthesizer.collectives) {
    makes += makes.empty() ? "" : ", ";
    makes += Name(kind);
  }
  if (!synthesizer.Makes(collective.kind()))
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes no {}; it makes {}", synthesizer.name,
                                 Name(collective.kind()), makes));
  if (collective.num_ranks() != topology.num_ranks())
    return InvalidArgument(fmt::format("the collective is for {} ranks, the network has {}",
                                       collective.num_ranks(), topology.num_ranks()));
  if (topology.num_ranks() == 1) {
    Schedule nothing_to_do{.collective = collective};
    nothing_to_do.topology_fingerprint = topology.Fingerprint();
    nothing_to_do.algorithm = synthesizer.name;
    nothing_to_do.seed = options.seed;
    return nothing_to_do;
  }
  if (collective.has_groups() && synthesizer.groups == GroupUse::kNone)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes schedules of all ranks only; of groups do {}",
                                 synthesizer.name, MakersOfGroups()));
  if (IsBelowElement(collective, options, options.chunks))
    return InvalidArgument(BelowElement(collective, options, options.chunks));
  Result<Schedule> schedule = collective.has_groups()
                                  ? SynthesizeOfGroups(synthesizer, topology, collective, options)
                                  : synthesizer.synthesize(topology, collective, options);
  if (schedule && IsBelowElement(schedule->collective, options, schedule->units_per_shard))
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("'{}' cuts shards into what does not exist: {}", synthesizer.name,
                    BelowElement(schedule->collective, options, schedule->units_per_shard)));
  if (schedule && schedule->kind == ScheduleKind::kTimed && topology.has_host_limits())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes a timed schedule here, which knows no host limits; "
                                 "'tsmcf' and 'direct' keep to them",
                                 synthesizer.name));
  return schedule;
}

}  // namespace tutti
