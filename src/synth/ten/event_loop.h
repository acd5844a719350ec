// RunEvents: links that carry one chunk at a time, asked what they take whenever something changed.
//
// Model       A link is busy for hold_ps; what it carries has arrived travel_ps after its start.
//             All that happens at one instant happens before any link chooses. Then every idle link
//             chooses that has become free, or at whose tail something arrived, in the order of
//             matcher.Before(); one that takes nothing is asked again when something arrives there.
// Matcher     uint32_t Choose(uint32_t link)           a chunk, or kNoChunk
//             LinkTime TimeOf(uint32_t link, uint32_t chunk)
//             void Start(uint32_t link, uint32_t chunk)
//             void Arrive(uint32_t link, uint32_t chunk)
//             bool Before(uint32_t link, uint32_t other)
//             void SetNetworkIdle(bool)   nothing is on its way: whoever waits, waits in vain
//             int64_t num_left()   transfers still to be started
// Complexity  O(transfers (log links + out-degree)) calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <vector>

#include "ten/link_time.h"
#include "ten/rounds.h"
#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/progress.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::ten {

// One chunk on its way. Ascending start from call to call.
using SendSink = std::function<void(LinkId link, uint32_t chunk, int64_t start_ps)>;

// When the last chunk has arrived; max_ps + 1 when that is later than max_ps. kCancelled.
template <class Matcher>
Result<int64_t> RunEvents(const Topology& topology, Matcher& matcher, int64_t max_ps,
                          const SendSink& sink) {
  enum Kind : uint8_t { kArrives, kArrivesAndFrees, kFrees };
  struct Event {
    int64_t time;
    uint32_t link, chunk;
    Kind kind;
    bool operator>(const Event& other) const {
      return std::tie(time, link, kind) > std::tie(other.time, other.link, other.kind);
    }
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  const auto num_links = static_cast<size_t>(topology.num_links());
  std::vector<bool> is_busy(num_links, false), is_asked(num_links, true);
  std::vector<uint32_t> asked(num_links);
  std::iota(asked.begin(), asked.end(), uint32_t{0});
  const auto ask = [&](uint32_t link) {
    if (is_busy[link] || is_asked[link]) return;
    is_asked[link] = true;
    asked.push_back(link);
  };
  ProgressScope progress("matching", matcher.num_left());
  int64_t now = 0, end = 0;
  for (uint32_t instants = 1;; ++instants) {
    if ((instants & 0xfff) == 0 && CancelRequested()) return tl::unexpected(CancelledError());
    std::sort(asked.begin(), asked.end(),
              [&matcher](uint32_t a, uint32_t b) { return matcher.Before(a, b); });
    for (uint32_t link : asked) {
      is_asked[link] = false;
      const uint32_t chunk = matcher.Choose(link);
      if (chunk == kNoChunk) continue;
      const LinkTime time = matcher.TimeOf(link, chunk);
      end = std::max(end, now + time.travel_ps);
      if (end > max_ps) return max_ps + 1;
      matcher.Start(link, chunk);
      progress.Add(1);
      if (sink) sink(LinkId{static_cast<int32_t>(link)}, chunk, now);
      is_busy[link] = true;
      if (time.hold_ps == time.travel_ps) {
        events.push({now + time.hold_ps, link, chunk, kArrivesAndFrees});
      } else {
        events.push({now + time.hold_ps, link, chunk, kFrees});
        events.push({now + time.travel_ps, link, chunk, kArrives});
      }
    }
    if (matcher.num_left() == 0) return end;
    asked.clear();
    matcher.SetNetworkIdle(events.empty());
    if (events.empty()) {
      for (uint32_t link = 0; link < num_links; ++link) ask(link);
      continue;
    }
    now = events.top().time;
    while (!events.empty() && events.top().time == now) {
      const Event event = events.top();
      events.pop();
      if (event.kind != kArrives) {
        is_busy[event.link] = false;
        ask(event.link);
      }
      if (event.kind == kFrees) continue;
      matcher.Arrive(event.link, event.chunk);
      const LinkId link{static_cast<int32_t>(event.link)};
      for (LinkId out : topology.OutLinks(topology.head(link)))
        ask(static_cast<uint32_t>(out.value));
    }
  }
}

}  // namespace tutti::ten
