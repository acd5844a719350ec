#include "registry.h"

#include <fmt/format.h>

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

Result<Schedule> RunSynthesizer(const Synthesizer& synthesizer, const Topology& topology,
                                const Collective& collective, const SynthOptions& options) {
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
  return synthesizer.synthesize(topology, collective, options);
}

}  // namespace tutti
