#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "tutti/synth/synthesizer.h"

namespace tutti {
namespace {

// One row an option.
struct Row {
  SynthOption option;
  // "'bfb' <lacks>; ten <have>"
  std::string_view lacks, have;
  bool (*is_set)(const SynthOptions&);
  void (*reset)(SynthOptions&);
};

template <auto kField>
constexpr Row RowOf(SynthOption option, std::string_view lacks, std::string_view have) {
  return {option, lacks, have,
          [](const SynthOptions& options) { return options.*kField != SynthOptions().*kField; },
          [](SynthOptions& options) { options.*kField = SynthOptions().*kField; }};
}

constexpr std::array kRows{
    RowOf<&SynthOptions::tries>(SynthOption::kTries, "has no variants to try", "has"),
    RowOf<&SynthOptions::auto_chunks>(SynthOption::kAutoChunks,
                                      "cannot choose the number of chunks", "can"),
    RowOf<&SynthOptions::policy>(SynthOption::kPolicy, "has no policies", "has"),
    RowOf<&SynthOptions::waiting>(SynthOption::kWaiting, "has no links that wait", "has"),
    RowOf<&SynthOptions::final_pass>(SynthOption::kFinalPass, "has no final pass", "has"),
    RowOf<&SynthOptions::steps>(SynthOption::kSteps, "cannot be given a number of steps", "can"),
    RowOf<&SynthOptions::max_chunks>(SynthOption::kMaxChunks, "takes no limit of chunks", "does"),
    RowOf<&SynthOptions::max_seconds>(SynthOption::kMaxSeconds, "takes no time limit", "does"),
    RowOf<&SynthOptions::trees>(SynthOption::kTrees, "packs no trees", "does"),
    RowOf<&SynthOptions::multicast>(SynthOption::kMulticast, "has no use for multicast", "has"),
};

std::string NamesWith(SynthOption option) {
  std::string names;
  for (const Synthesizer& synthesizer : Synthesizers())
    if (synthesizer.Has(option))
      names += (names.empty() ? "" : ", ") + std::string(synthesizer.name);
  return names;
}

}  // namespace

bool Synthesizer::Has(SynthOption option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

bool Synthesizer::Makes(CollectiveKind kind) const {
  return std::find(collectives.begin(), collectives.end(), kind) != collectives.end();
}

Status CheckSynthOptions(const Synthesizer& synthesizer, const SynthOptions& options) {
  for (const Row& row : kRows)
    if (!synthesizer.Has(row.option) && row.is_set(options))
      return InvalidArgument(fmt::format("'{}' {}; {} {}", synthesizer.name, row.lacks,
                                         NamesWith(row.option), row.have));
  return {};
}

SynthOptions OptionsFor(const Synthesizer& synthesizer, SynthOptions options) {
  for (const Row& row : kRows)
    if (!synthesizer.Has(row.option)) row.reset(options);
  return options;
}

}  // namespace tutti
