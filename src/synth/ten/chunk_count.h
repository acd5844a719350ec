// WithBestChunkCount: tries several numbers of chunks and keeps the one that is predicted to be
// fastest for the size at hand.
//
// Model       1, 2, 3, 4, 6, 8, 12, ...: powers of two, three times those, and EvenChunks() of
//             synth/ten.h. With more chunks
//             alpha is paid more often, with fewer links are idle at the begin and at the end, so
//             the time falls and then rises: two numbers in a row that save nothing end the search.
//             Of equal times the smaller number stays. Of large networks numbers are compared by
//             two tries each; what was found is then made with as many as asked for.
// Complexity  Schedules of at most kMostTransfers transfers together, besides the first, which is
//             of one chunk.
// Threads     As the maker.
// Errors      Those of the first schedule; where a later one fails, the best so far stays.
#pragma once

#include <functional>

#include "tutti/synth/synthesizer.h"

namespace tutti::ten {

// `make` gets the options with the number of chunks.
Result<Schedule> WithBestChunkCount(
    const Topology& topology, const Collective& collective, const SynthOptions& options,
    const std::function<Result<Schedule>(const SynthOptions&)>& make);

}  // namespace tutti::ten
