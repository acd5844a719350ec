// TimeJobs: when each of many messages holds its link, given what must have arrived before it may
// start.
//
// Model       A job holds one link for hold_ps and has arrived travel_ps after its start. A job may
//             start when all that it needs have arrived; a link does one job at a time. A job
//             without a link takes no time: it only joins what it needs.
// Method      List scheduling: an idle link starts, of its jobs that may start, the first in an
//             order. The order of the first pass is by the longest path to the end, less what is
//             asked to be later; every further pass runs time the other way around, what ended
//             last going first (forward-backward improvement), so that jobs move into the gaps of
//             the links that bind. Where that gains nothing any more, the order of the best is
//             shaken. Passes in both directions are schedules; the best of all is kept.
//             Where messages arrive later than their link is free, half of the passes pretend that
//             they hold it until then; the order on each link that comes of it is then followed
//             as early as can be. A link thus waits for what is about to arrive, which an idle
//             link that starts whatever it has never does.
// Complexity  O(passes * (jobs log jobs + needs)), memory O(jobs + needs).
// Threads     One.
// Reference   [tacos] section IV for the network in time. Forward-backward improvement: Li and
//             Willis, European Journal of Operational Research 56 (1992).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ten/event_loop.h"
#include "tutti/base/result.h"

namespace tutti::ten {

class LinkJobs {
 public:
  static constexpr uint32_t kNoLink = 0xffffffff;

  explicit LinkJobs(size_t num_links) : num_links_(num_links) {}

  // In the order of the first pass the job counts as if it had `later_ps` less to follow.
  uint32_t Add(uint32_t link, LinkTime time, int64_t later_ps);
  uint32_t AddJoin() { return Add(kNoLink, {0, 0}, 0); }
  // `later` needs `earlier`. No circles.
  void Need(uint32_t earlier, uint32_t later);
  // The same where every job holds its link until it has arrived.
  LinkJobs Held() const;

  size_t num_links() const { return num_links_; }
  size_t size() const { return link_.size(); }
  uint32_t link(size_t job) const { return link_[job]; }
  const LinkTime& time(size_t job) const { return time_[job]; }
  int64_t later_ps(size_t job) const { return later_ps_[job]; }
  const std::vector<std::pair<uint32_t, uint32_t>>& needs() const { return needs_; }

 private:
  size_t num_links_;
  std::vector<uint32_t> link_;
  std::vector<LinkTime> time_;
  std::vector<int64_t> later_ps_;
  std::vector<std::pair<uint32_t, uint32_t>> needs_;  // earlier, later
};

struct JobTimes {
  int64_t end_ps = 0;
  std::vector<int64_t> start_ps;  // of each job
};

struct TimingOptions {
  int32_t passes = 1;     // at most; >= 1
  int64_t enough_ps = 0;  // no more passes once the end is no later
  uint64_t seed = 1;
};

// kCancelled.
Result<JobTimes> TimeJobs(const LinkJobs& jobs, const TimingOptions& options);

}  // namespace tutti::ten
