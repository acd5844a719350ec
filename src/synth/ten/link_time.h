// How long one chunk takes on a link.
#pragma once

#include <cstdint>
#include <limits>

#include "tutti/sched/schedule.h"

namespace tutti::ten {

struct LinkTime {
  int64_t hold_ps = 1;    // >= 1: the link is busy
  int64_t travel_ps = 1;  // >= hold_ps: the chunk has arrived
};

// A link that takes longer is as good as none.
inline constexpr int64_t kLongestPs = std::numeric_limits<int64_t>::max() / 4;

// Time of a transfer of a timed schedule, for its size and link model. At most kLongestPs.
LinkTime LinkTimeOf(const Schedule& schedule, const Topology& topology, const Transfer& transfer);

}  // namespace tutti::ten
