// What ranks did, in the form in which simulated messages are shown.
//
// Model       A message between two ranks is on the first link from one to the other. Where some
//             pair has no link (switches lie between) the pairs themselves are the links.
// Complexity  O(messages log messages).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/page/page.h"

namespace tutti {

struct ExecutedRun {
  std::vector<std::pair<int32_t, int32_t>> pairs;  // links of its own; empty: the topology's
  SimReport report;                                // messages by start; first_transfer is 0
};

ExecutedRun RunOf(const Topology& topology, const Collective& collective, int64_t size_bytes,
                  const std::vector<PageExecuted>& messages);

}  // namespace tutti
