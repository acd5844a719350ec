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
// Complexity  Numbers of chunks and variants of trees are tried within a fixed amount of work,
//             about three times 6 * 10^6 passes over a job (a chunk has two a rank) and 4 * 10^7
//             links looked at for trees: seconds. What is more than that for a single attempt,
//             about 2 * 10^6 jobs, is left as it is. Memory about 100 bytes a job.
// Threads     One.
// Reference   [tacos] IV.E concatenates; this is the deviation.
#pragma once

#include <cstdint>

#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::ten {

// `concatenated` is an all-reduce of this network by DeriveFromForward. With options.chunks 0 the
// number of chunks is chosen. kCancelled.
Result<Schedule> OverlapAllReduce(const Topology& topology, const Collective& collective,
                                  const SynthOptions& options, Schedule concatenated);

// About, on one core, where it does not find that there is nothing to gain.
int64_t OverlapWorkNs(const Topology& topology, const Collective& collective,
                      const SynthOptions& options);

}  // namespace tutti::ten
