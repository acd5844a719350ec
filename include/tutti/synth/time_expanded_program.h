// What `-a taccl-like` does, with what it has proven: an integer program over the time-expanded
// network (src/synth/rivals/taccl_like.cc says which). For networks of about 16 ranks.
//
// Errors   kInfeasible: switches, or another collective than all-gather. kResourceExhausted: too
//          large, or no answer within the time; the message says what was proven. kCancelled.
#pragma once

#include <cstdint>

#include "tutti/synth/synthesizer.h"

namespace tutti {

inline constexpr double kTimeExpandedSeconds = 60;

struct TimeExpandedAnswer {
  Schedule schedule;
  int32_t slots = 0;        // that it takes
  int32_t least_slots = 0;  // none takes fewer: by distances and links, or as the solver says
  double Gap() const {
    return static_cast<double>(slots - least_slots) / static_cast<double>(slots);
  }
};

// `forward` is an all-gather; options.chunks 0 is one a shard. Which answer is found within the
// time depends on the machine; one that is found before is the same everywhere.
Result<TimeExpandedAnswer> SolveTimeExpanded(const Topology& topology, const Collective& forward,
                                             const SynthOptions& options, double seconds);

}  // namespace tutti
