#include "registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

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
  const double to_all =
      (collective.contributors(first).all ? 1 : 0) + (collective.destinations(first).all ? 1 : 0);
  const int64_t usual = collective.num_shards() == 1 ? kPipelined : 1;
  const double chunks = static_cast<double>(options.chunks > 0 ? options.chunks : usual);
  const double deliveries =
      std::max(1.0, to_all * collective.num_ranks()) * collective.num_shards() * chunks;
  return {.work_ns = static_cast<int64_t>(std::min(kMost, deliveries * static_cast<double>(ns)))};
}

namespace {

// Names of those that have what `flag` says.
std::string NamesWith(bool Synthesizer::*flag) {
  std::string names;
  for (const Synthesizer& synthesizer : Synthesizers())
    if (synthesizer.*flag) names += (names.empty() ? "" : ", ") + std::string(synthesizer.name);
  return names;
}

}  // namespace

Status CheckSynthOptions(const Synthesizer& synthesizer, const SynthOptions& options) {
  if (!synthesizer.has_policies && (!options.policy.empty() || options.waiting != Waiting::kAuto))
    return InvalidArgument(fmt::format("'{}' has no {}; {} has", synthesizer.name,
                                       options.policy.empty() ? "links that wait" : "policies",
                                       NamesWith(&Synthesizer::has_policies)));
  if (!synthesizer.counts_chunks && options.auto_chunks)
    return InvalidArgument(
        fmt::format("'{}' cannot choose the number of chunks; {} can. Give a number, or none",
                    synthesizer.name, NamesWith(&Synthesizer::counts_chunks)));
  return {};
}

Result<Schedule> RunSynthesizer(const Synthesizer& synthesizer, const Topology& topology,
                                const Collective& collective, const SynthOptions& options) {
  if (const Status has = CheckSynthOptions(synthesizer, options); !has)
    return tl::unexpected(has.error());
  std::string makes;
  bool found = false;
  for (CollectiveKind kind : synthesizer.collectives) {
    found = found || kind == collective.kind();
    makes += makes.empty() ? "" : ", ";
    makes += Name(kind);
  }
  if (!found)
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
  Result<Schedule> schedule = synthesizer.synthesize(topology, collective, options);
  if (schedule && schedule->kind == ScheduleKind::kTimed && topology.has_host_limits())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes a timed schedule here, which knows no host limits; "
                                 "'tsmcf' and 'direct' keep to them",
                                 synthesizer.name));
  return schedule;
}

}  // namespace tutti
