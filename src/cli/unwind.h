// --unwind: networks with switches, taken apart into links between ranks.
#pragma once

#include <string>
#include <string_view>

#include "common.h"
#include "tutti/advise/unwinding.h"

namespace tutti::cli {

inline constexpr std::string_view kTrySeveral = "auto";

// `how`: a degree, or `auto` for the best (UnwindBest). kInvalidArgument: no such degree.
Result<Unwound> Unwind(const std::string& expression, std::string_view how,
                       const Synthesizer* synthesizer, const CollectiveFlags& collective,
                       const SynthOptions& options);

// Whether `-a auto` looks for an unwinding by itself.
bool TriesUnwindings(const Topology& topology, const CollectiveFlags& collective);

// Why nothing reduces on a network with switches, and what does.
Error SwitchesDoNotReduce(const Topology& topology, CollectiveKind kind);

// "unwound with degree 2, of 1 (1.234 ms), 2 (1.100 ms)".
std::string UnwoundText(const Unwound& unwound);
// Key `unwind`.
void DescribeUnwound(const Unwound& unwound, Json& out);

}  // namespace tutti::cli
