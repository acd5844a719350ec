// OverlapAllReduce: an all-reduce whose chunks are still being reduced while others are spread
// already.
//
// Model       Reduce-scatter + all-gather keeps half of the links of an uneven network waiting: a
//             rank with few links sends in the first half what it receives in the second. Here
//             every chunk has a tree that reduces it to a root and a tree that spreads it from
//             there (tree_packing.h), and all chunks share the links at once (link_jobs.h). The
//             two trees of each chunk of the reduce-scatter + all-gather are timed the same way.
//             What ends first is kept, so the result is never slower than what it was given.
// Units       Where all links are equal, rounds and a step schedule, as reduce-scatter + all-gather
//             has there; otherwise a timed schedule.
// Complexity  Chunks and variants are tried within a fixed amount of work, 10^7 passes over a job
//             (two jobs a chunk and rank) and as many links looked at for trees, which is seconds;
//             what needs more than that for a single attempt is left as it is.
// Threads     One.
// Reference   [tacos] IV.E concatenates; this is the deviation.
#pragma once

#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::ten {

// `concatenated` is an all-reduce of this network by DeriveFromForward. With options.chunks 0 the
// number of chunks is chosen. kCancelled.
Result<Schedule> OverlapAllReduce(const Topology& topology, const Collective& collective,
                                  const SynthOptions& options, Schedule concatenated);

}  // namespace tutti::ten
