// The judge of symmetric schedules (sched/symmetric.h): proves the schedule of all ranks from that
// of one.
//
// Rules       Z1 structure: Y1, the right network and collective; an all-gather copies, a
//             reduce-scatter reduces, an all-reduce does both. Z2 symmetry: every generator takes
//             links to links of equal bandwidth and alpha, together they take rank 0 to every rank,
//             and no product of them leaves one rank in its place and moves another. Z3 copies: a
//             sender holds, fully arrived, what it sends; every rank gets every part of the shard
//             once. Z4 reductions: every rank but 0 sends every part once, after all that it gets
//             of it has arrived, and rank 0 keeps it. In an all-reduce rank 0 sends a part only
//             when all reductions of it have arrived there.
// Why this is enough  Z2 says that there is exactly one product of generators that takes rank 0 to
//             u, and that it is a symmetry; it takes a proof of shard 0 to one of shard u. (No rank
//             is left alone: with c_i the map that continues rank 0 -> g_i(0) along the generators,
//             all c_i commute with all generators. They then reach every rank, so what leaves one
//             rank in place leaves all.) Z4 is Z3 read backwards ([direct-connect] theorem 1). It
//             is stricter than the rules of verifier.h: of a reduction only trees towards rank 0
//             pass.
// Independence  Shares no code with synth nor with topo/translations.h.
// Complexity  T transfers of one shard, k generators, n ranks, m links: O(T log T + k m log(degree)
//             + k^2 n) time, O(T + n) memory.
#pragma once

#include "tutti/sched/symmetric.h"
#include "tutti/verify/verifier.h"

namespace tutti {

// Violation::transfer is an index into the root's transfers; `deliveries` counts those of all
// ranks.
VerifyReport VerifySymmetric(const Topology& topology, const Collective& collective,
                             const SymmetricSchedule& schedule, const VerifyOptions& options = {});

}  // namespace tutti
