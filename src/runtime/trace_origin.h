// When a trace of executed instructions begins.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "tutti/runtime/executor.h"

namespace tutti {

// Whatever the times were counted from: from now on from the first start of all ranks.
inline void CountFromFirstStart(std::vector<RunEvent>& trace) {
  double first = std::numeric_limits<double>::infinity();
  for (const RunEvent& event : trace) first = std::min(first, event.start_s);
  for (RunEvent& event : trace) {
    event.start_s -= first;
    event.end_s -= first;
  }
}

}  // namespace tutti
