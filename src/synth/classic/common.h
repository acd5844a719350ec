// What the classic algorithms share.
#pragma once

#include <functional>
#include <string_view>

#include "classic/forward_builder.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::classic {

// Makes a schedule of copies only.
using ForwardMaker =
    std::function<Result<Schedule>(const Topology&, const Collective&, const SynthOptions&)>;

// `make` for what copies, its reverse for what reduces; sets algorithm and seed. kInfeasible for
// what reduces on a network with switches: they would have to reduce. kCancelled when the user
// interrupted; loops of `make` that may run for seconds then end early, whatever they leave.
Result<Schedule> MakeClassic(std::string_view algorithm, const Topology& topology,
                             const Collective& collective, const SynthOptions& options,
                             const ForwardMaker& make);

// options.chunks where given, else `fallback`. kInvalidArgument when it is no multiple of
// `multiple`; `why` says what the multiple comes from: "2 rings".
Result<int32_t> ChunksOf(const SynthOptions& options, int32_t fallback, int32_t multiple,
                         std::string_view algorithm, std::string_view why);

// Chunks a piece of `bytes` should be cut into to go down a pipeline of `depth` hops, so that
// (depth + chunks - 1) * (alpha + bytes / chunks / bandwidth) is least: for the largest alpha and
// smallest bandwidth of the network, at least 1, at most 256 and so many elements as there are.
// Exact integers throughout.
int32_t PipelineChunks(const Topology& topology, int64_t bytes, int32_t depth,
                       int32_t element_bytes = 0);

}  // namespace tutti::classic
