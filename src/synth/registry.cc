#include "registry.h"

#include <fmt/format.h>

#include <string>

namespace tutti {

std::span<const Synthesizer> Synthesizers() {
  // One line a synthesizer.
  static const std::vector<Synthesizer> kTable = {};
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

}  // namespace tutti
