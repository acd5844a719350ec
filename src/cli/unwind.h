// --unwind: networks with switches, taken apart into links between ranks.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::cli {

inline constexpr std::string_view kTrySeveral = "auto";

struct Unwound {
  Topology topology;
  int32_t degree = 0;                               // 0: it had no switches
  std::vector<std::pair<int32_t, double>> tried{};  // degree, predicted seconds; where several were
};

// `how` is a degree or `auto`: degrees 1, 2, 4, ... and the largest there is, of which the one with
// the fastest schedule of `synthesizer` for the options' size stays (of equal ones the smallest).
// Networks without switches stay what they are under `auto`. kInvalidArgument: no such degree; what
// the operator unwind of the expression language says; what the synthesizer says on every degree.
Result<Unwound> Unwind(const std::string& expression, const std::string& how,
                       const Synthesizer& synthesizer, const CollectiveFlags& collective,
                       const SynthOptions& options);

// `degree` as Unwind reads it, auto aside.
Result<Unwound> UnwindBy(const std::string& expression, const std::string& degree);

// "unwound with degree 2: 1.234 ms (degree 1: ..., degree 4: ...)".
std::string UnwoundText(const Unwound& unwound);
// Key `unwind`.
void DescribeUnwound(const Unwound& unwound, Json& out);

}  // namespace tutti::cli
