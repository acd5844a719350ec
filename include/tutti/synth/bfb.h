// Breadth-first broadcast: every shard spreads from its source along shortest paths, one hop a step,
// and what a rank receives in a step is balanced over its in-links as well as that allows.
//
// Model       All-gather, or broadcast from one root. Steps are hop distances, so TL is the
// diameter.
//             In each step each receiver's slowest in-link is as fast as possible (exactly: the
//             linear program of the paper, solved by counting sources per set of in-links); on
//             networks with several alphas and bandwidths for options.size_bytes, and a link whose
//             alpha alone would dominate is not used.
// Units       A shard is cut into the fewest equal units for which every step still takes exactly
//             the optimal time: on equal links the least common multiple of the denominators of the
//             steps' largest loads. More than kBfbMaxUnits are never used by default, nor, with
//             options.element_bytes, units of less than WorthwhileChunkBytes(): then it is the best
//             schedule in at most so many whole units (E.2), and options.notes says what finer ones
//             would save. With options.chunks it is the best one in so many.
// Complexity  n ranks, m links, d in-links at most: O(n (n + m)) for the search, plus O(2^d d) (d
// <=
//             10) or a few max-flows a receiver and step, once for receivers that look alike.
//             Memory 24 bytes a transfer; without a schedule O(n) a thread.
// Threads     Receivers in parallel (base/parallel.h); the same bytes for any number of threads.
// Errors      kInfeasible: the network has switches. kInvalidArgument: options.chunks < 0.
//             kResourceExhausted: the schedule does not fit in memory. kCancelled.
// Reference   [direct-connect] section 6, appendix E.
#pragma once

#include <cstdint>
#include <optional>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

inline constexpr int64_t kBfbMaxUnits = 1'000'000;

// `collective` is an all-gather or a broadcast. Other collectives: through the registry, which
// derives them (DeriveFromForward).
Result<Schedule> MakeBfb(const Topology& topology, const Collective& collective,
                         const SynthOptions& options);

struct BfbCost {
  int32_t tl = 0;              // steps
  std::optional<Rational> tb;  // in M/B; none where alphas differ, which it then depends on
  Rational seconds;            // for options.size_bytes
  int32_t units_per_shard = 1;
  bool exact = true;  // in so many whole units every step takes the time of the linear program
};
// The cost of the schedule that MakeBfb makes, without making it.
Result<BfbCost> ComputeBfbCost(const Topology& topology, const Collective& collective,
                               const SynthOptions& options);

}  // namespace tutti
