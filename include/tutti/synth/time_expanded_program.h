// What `-a taccl-like` does, with what it has proven: an integer program over the time-expanded
// network (src/synth/baselines/taccl_like.cc says which). For networks of about 16 ranks.
//
// Errors   kInfeasible: switches, another collective than all-gather, too large, or no answer
//          within the limits; the message says what was proven. kCancelled.
#pragma once

#include <cstdint>

#include "tutti/synth/synthesizer.h"

namespace tutti {

// The search ends by nodes of the integer programs, so that the answer is the same everywhere; this
// is only so that it ends at all. Where it was the clock that ended it, the remark says so.
inline constexpr double kTimeExpandedSeconds = 900;
inline constexpr int32_t kTimeExpandedNodes = 2000;  // of each number of slots

struct TimeExpandedAnswer {
  Schedule schedule;
  int32_t slots = 0;      // that it takes
  int32_t min_slots = 0;  // none takes fewer: by distances and links, or as the solver says
  bool by_clock = false;  // a limit of time was hit: another machine may find another answer
  double Gap() const { return static_cast<double>(slots - min_slots) / static_cast<double>(slots); }
};

// `forward` is an all-gather; options.chunks 0 is one a shard.
Result<TimeExpandedAnswer> SolveTimeExpanded(const Topology& topology, const Collective& forward,
                                             const SynthOptions& options, double seconds);

}  // namespace tutti
