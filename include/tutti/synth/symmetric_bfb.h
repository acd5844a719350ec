// BFB on networks with translations: one receiver's problem is everyone's, so one search and one
// rank's loads make the schedule of all, in the form of sched/symmetric.h.
//
// Model       Receiver 0 gets the part c of the shard of v over in-link l in step t; the
//             translation that takes v to 0 takes that to what becomes of shard 0. Same optimal TL
//             and TB as MakeBfb, since every receiver has the loads of rank 0. Reductions are the
//             reverse of an all-gather on the transpose.
// Units       As MakeBfb; an all-reduce whose halves need different numbers takes a common one.
// Complexity  n ranks, m links, d in-links: O(n + m) for the search, plus O(2^d d) (d <= 10) or a
//             few max-flows a step. Nothing of size n^2.
// Errors      kInfeasible: the network has switches or host limits. kInvalidArgument: a collective
//             without a symmetric form, options.chunks < 0. kResourceExhausted, kCancelled.
// Reference   [direct-connect] section 6, appendix E.
#pragma once

#include "tutti/base/result.h"
#include "tutti/sched/symmetric.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

// `translations` are those of `topology`.
Result<SymmetricSchedule> MakeSymmetricBfb(const Topology& topology,
                                           const Translations& translations,
                                           const Collective& collective,
                                           const SynthOptions& options);

}  // namespace tutti
