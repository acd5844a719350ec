// WithBestChunkCount: tries several numbers of chunks and keeps the one that is predicted to be
// fastest for the size at hand.
//
// Model       1, 2, 3, 4, 6, 8, 12, .. and EvenChunks() of synth/ten.h times those, each at least
//             an element. With more chunks alpha is paid more often, while fewer links are idle at
//             the begin and at the end and loads come out more evenly: the time falls and rises
//             more than once, so that the search goes on for kMaxInVain numbers that save nothing,
//             and then between the best and the numbers beside it that were tried.
//             Numbers whose rounds alone take longer than the best are left out. Of equal times the
//             smaller number stays. Schedules of large networks are compared by two tries each; the
//             best numbers are then made with as many as asked for and finished, and the fastest is
//             kept.
// Complexity  kMaxMatched matched transfers, besides the first number, which is 1, and the best.
//             Work is counted, not timed: the same answer on every machine.
// Threads     As the maker.
// Errors      Those of the first schedule; where a later one fails, the best so far stays.
#pragma once

#include <functional>

#include "tutti/synth/synthesizer.h"

namespace tutti::ten {

// `make` gets the options with the number of chunks; `finish` improves what the best numbers made.
Result<Schedule> WithBestChunkCount(
    const Topology& topology, const Collective& collective, const SynthOptions& options,
    const std::function<Result<Schedule>(const SynthOptions&)>& make,
    const std::function<Result<Schedule>(Schedule)>& finish);

}  // namespace tutti::ten
