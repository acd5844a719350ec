// Beats: a thread of this process that says every second, on the links of its ranks, that the process is there.
//
// Model       What it says costs nothing where the rank computes: the rank's own thread need not come by. It begins
//             with the first link, and ends with the process. A child that was forked has none, until it
//             joins something itself.
// Threads     A BeatingLink is read by its rank alone; who sends holds its mutex.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "control_link.h"

namespace tutti::bootstrap {

struct BeatingLink {
  explicit BeatingLink(ControlLink of_rank) : link(std::move(of_rank)) {}

  ControlLink link;
  std::mutex sending;
};

inline constexpr int kBeatMs = 1000;

// Until the link is gone.
void BeatOn(const std::shared_ptr<BeatingLink>& link);

}  // namespace tutti::bootstrap
