// Stored schedules: bandwidth-optimal all-gathers found by search, for graphs on which
// breadth-first broadcast is not bandwidth-optimal: diamond, debruijn_mod(d,n) and their
// transposes.
//
// Model       The network is recognised by its links alone, whatever its ranks are numbered and
//             whichever bandwidth and alpha all its links have; what is stored is carried over by
//             an isomorphism. TL is that of [direct-connect] Table 9, TB = (N - 1) / N exactly, in
//             the fewest chunks that allow for it.
// Complexity  One isomorphism search on 16 ranks at most: microseconds.
// Threads     None of its own; the same bytes on every machine.
// Errors      kInfeasible: no schedule is stored for this network. kInvalidArgument: the collective
//             is no all-gather, or options.chunks is no multiple of what the schedule needs.
// Reference   [direct-connect] Table 9, figures 19 and 20; docs/results/direct-connect-bases.md.
#pragma once

#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

// `collective` is an all-gather. Reduce-scatter and all-reduce: through the registry, which derives
// them (DeriveFromForward).
Result<Schedule> MakeStored(const Topology& topology, const Collective& collective,
                            const SynthOptions& options);

}  // namespace tutti
