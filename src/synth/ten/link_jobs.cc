#include "ten/link_jobs.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "ten/instant_queue.h"
#include "tutti/base/progress.h"
#include "tutti/base/random.h"

namespace tutti::ten {
namespace {

// Passes without gain after which the order is shaken, and by which part of the whole time. Of 8
// to 128 parts 8 to 16 gained most on dragonflies and boxes of unequal links.
constexpr int32_t kPatience = 2;
constexpr int64_t kShake = 12;

// Who comes after whom, in one direction of time.
struct Followers {
  std::vector<uint32_t> first, follower;  // of job j: follower[first[j]] .. follower[first[j + 1]]
  std::vector<uint32_t> num_needed;

  Followers(const LinkJobs& jobs, bool backward)
      : first(jobs.size() + 1, 0), follower(jobs.needs().size()), num_needed(jobs.size(), 0) {
    for (const auto& [earlier, later] : jobs.needs()) {
      ++first[(backward ? later : earlier) + 1];
      ++num_needed[backward ? earlier : later];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    for (const auto& [earlier, later] : jobs.needs())
      follower[next[backward ? later : earlier]++] = backward ? earlier : later;
  }
};

// One pass over all jobs. Backward, a job waits its travel without holding (travel - hold) before
// it may start instead of after it has ended: the mirror image of the same job.
class Pass {
 public:
  Pass(const LinkJobs& jobs, const Followers& followers, bool backward,
       const std::vector<int64_t>& order)
      : followers_(followers), backward_(backward), links_(jobs.num_links()) {
    times_.start_ps.resize(jobs.size());
    jobs_.reserve(jobs.size());
    for (uint32_t job = 0; job < jobs.size(); ++job) {
      const LinkTime& time = jobs.time(job);
      jobs_.push_back({order[job], time.hold_ps, time.travel_ps - time.hold_ps, jobs.link(job),
                       followers.num_needed[job]});
    }
  }

  JobTimes Run() {
    for (uint32_t job = 0; job < jobs_.size(); ++job)
      if (followers_.num_needed[job] == 0) Satisfied(job);
    for (;;) {
      for (uint32_t link : touched_) StartNext(links_[link]);
      touched_.clear();
      if (events_.empty()) return std::move(times_);
      const std::vector<Event>& events = events_.Take();
      now_ = events.front().time;
      for (const Event& event : events) HandleEvent(event);
    }
  }

 private:
  // All that is asked of a job, side by side: jobs are met in no order of memory.
  struct Job {
    int64_t order, hold_ps, alpha_ps;
    uint32_t link;
    uint32_t missing;  // of what it needs
  };
  struct Link {
    std::vector<std::pair<int64_t, uint32_t>> waiting;  // order and job, a heap
    bool is_busy = false;
  };
  enum Kind : uint8_t { kEnds, kFrees, kArrives, kMayStart };
  struct Event {
    int64_t time;
    uint32_t job;
    Kind kind;
  };

  // All that the job needs has arrived.
  void Satisfied(uint32_t index) {
    const Job& job = jobs_[index];
    if (job.link == LinkJobs::kNoLink) {
      times_.start_ps[index] = now_;
      Release(index);
    } else if (backward_ && job.alpha_ps > 0) {
      events_.Push({now_ + job.alpha_ps, index, kMayStart});
    } else {
      Enqueue(index);
    }
  }

  void Release(uint32_t index) {
    times_.end_ps = std::max(times_.end_ps, now_);
    for (uint32_t k = followers_.first[index]; k < followers_.first[index + 1]; ++k)
      if (const uint32_t follower = followers_.follower[k]; --jobs_[follower].missing == 0)
        Satisfied(follower);
  }

  void Enqueue(uint32_t index) {
    const Job& job = jobs_[index];
    Link& link = links_[job.link];
    link.waiting.emplace_back(job.order, index);
    std::push_heap(link.waiting.begin(), link.waiting.end(), std::greater<>());
    if (!link.is_busy) touched_.push_back(job.link);
  }

  void StartNext(Link& link) {
    if (link.is_busy || link.waiting.empty()) return;
    std::pop_heap(link.waiting.begin(), link.waiting.end(), std::greater<>());
    const uint32_t index = link.waiting.back().second;
    link.waiting.pop_back();
    link.is_busy = true;
    times_.start_ps[index] = now_;
    const Job& job = jobs_[index];
    if (backward_ || job.alpha_ps == 0) {
      events_.Push({now_ + job.hold_ps, index, kEnds});
    } else {
      events_.Push({now_ + job.hold_ps, index, kFrees});
      events_.Push({now_ + job.hold_ps + job.alpha_ps, index, kArrives});
    }
  }

  void HandleEvent(const Event& event) {
    if (event.kind == kMayStart) return Enqueue(event.job);
    if (event.kind != kArrives) {
      const uint32_t link = jobs_[event.job].link;
      links_[link].is_busy = false;
      touched_.push_back(link);
    }
    if (event.kind != kFrees) Release(event.job);
  }

  const Followers& followers_;
  bool backward_;
  std::vector<Job> jobs_;
  std::vector<Link> links_;
  std::vector<uint32_t> touched_;
  InstantQueue<Event> events_;
  int64_t now_ = 0;
  JobTimes times_;
};

// How long after the start of each job the last that waits for it can have arrived at the earliest.
std::vector<int64_t> LongestWays(const LinkJobs& jobs, const Followers& backward) {
  std::vector<int64_t> longest(jobs.size(), 0);
  std::vector<uint32_t> missing = backward.num_needed, done;
  for (uint32_t job = 0; job < jobs.size(); ++job)
    if (missing[job] == 0) done.push_back(job);
  for (size_t k = 0; k < done.size(); ++k) {
    const uint32_t job = done[k];
    longest[job] += jobs.time(job).travel_ps;
    for (uint32_t i = backward.first[job]; i < backward.first[job + 1]; ++i) {
      const uint32_t before = backward.follower[i];
      longest[before] = std::max(longest[before], longest[job]);
      if (--missing[before] == 0) done.push_back(before);
    }
  }
  return longest;
}

// As early as can be where each link does its jobs in the order of `times`.
JobTimes InOrderOf(const LinkJobs& jobs, const Followers& forward, const JobTimes& times) {
  std::vector<uint32_t> by_start;
  for (uint32_t job = 0; job < jobs.size(); ++job)
    if (jobs.link(job) != LinkJobs::kNoLink) by_start.push_back(job);
  std::sort(by_start.begin(), by_start.end(), [&times](uint32_t a, uint32_t b) {
    return std::pair(times.start_ps[a], a) < std::pair(times.start_ps[b], b);
  });
  std::vector<uint32_t> missing = forward.num_needed, done;
  std::vector<uint32_t> next(jobs.size(), LinkJobs::kNoLink);  // on the same link
  std::vector<uint32_t> last(jobs.num_links(), LinkJobs::kNoLink);
  for (const uint32_t job : by_start) {
    uint32_t& before = last[jobs.link(job)];
    if (before != LinkJobs::kNoLink) {
      next[before] = job;
      ++missing[job];
    }
    before = job;
  }
  JobTimes result{0, std::vector<int64_t>(jobs.size(), 0)};
  const auto not_before = [&](uint32_t job, int64_t time) {
    result.start_ps[job] = std::max(result.start_ps[job], time);
    if (--missing[job] == 0) done.push_back(job);
  };
  for (uint32_t job = 0; job < jobs.size(); ++job)
    if (missing[job] == 0) done.push_back(job);
  for (size_t k = 0; k < done.size(); ++k) {
    const uint32_t job = done[k];
    const int64_t arrival = result.start_ps[job] + jobs.time(job).travel_ps;
    result.end_ps = std::max(result.end_ps, arrival);
    for (uint32_t i = forward.first[job]; i < forward.first[job + 1]; ++i)
      not_before(forward.follower[i], arrival);
    if (next[job] != LinkJobs::kNoLink)
      not_before(next[job], result.start_ps[job] + jobs.time(job).hold_ps);
  }
  return result;
}

Result<JobTimes> Search(const LinkJobs& jobs, const TimingOptions& options) {
  const Followers forward(jobs, false), backward(jobs, true);
  const std::vector<int64_t> longest = LongestWays(jobs, backward);
  std::vector<int64_t> order(jobs.size());
  for (size_t job = 0; job < jobs.size(); ++job) order[job] = jobs.later_ps(job) - longest[job];
  JobTimes best{std::numeric_limits<int64_t>::max(), {}};
  Random random(options.seed);
  bool turned = false;
  int64_t recent = std::numeric_limits<int64_t>::max();  // the best since the last shake
  int32_t vain = 0;
  ProgressScope progress("timing", options.passes);
  for (int32_t pass = 0; pass < options.passes && best.end_ps > options.enough_ps;
       ++pass, progress.Add(1)) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    JobTimes times = Pass(jobs, turned ? backward : forward, turned, order).Run();
    // Time runs the other way next: what ended last goes first.
    for (size_t job = 0; job < jobs.size(); ++job)
      order[job] = -(times.start_ps[job] + jobs.time(job).hold_ps);
    vain = times.end_ps < recent ? 0 : vain + 1;
    recent = std::min(recent, times.end_ps);
    if (times.end_ps < best.end_ps) {
      best = std::move(times);
      if (turned)
        for (size_t job = 0; job < jobs.size(); ++job)
          best.start_ps[job] = best.end_ps - best.start_ps[job] - jobs.time(job).hold_ps;
    }
    turned = !turned;
    if (vain < kPatience) continue;
    vain = 0;
    recent = std::numeric_limits<int64_t>::max();
    turned = false;
    const auto shake = static_cast<uint64_t>(best.end_ps / kShake + 1);
    for (size_t job = 0; job < jobs.size(); ++job)
      order[job] = best.start_ps[job] + static_cast<int64_t>(random.Below(shake));
  }
  return best;
}

}  // namespace

uint32_t LinkJobs::Add(uint32_t link, LinkTime time, int64_t later_ps) {
  later_ps_.push_back(later_ps);
  link_.push_back(link);
  time_.push_back(time);
  return static_cast<uint32_t>(link_.size() - 1);
}

void LinkJobs::Need(uint32_t earlier, uint32_t later) { needs_.emplace_back(earlier, later); }

LinkJobs LinkJobs::Held() const {
  LinkJobs held = *this;
  for (LinkTime& time : held.time_) time.hold_ps = time.travel_ps;
  return held;
}

Result<JobTimes> TimeJobs(const LinkJobs& jobs, const TimingOptions& options) {
  bool are_held = true;
  for (size_t job = 0; job < jobs.size() && are_held; ++job)
    are_held = jobs.time(job).hold_ps == jobs.time(job).travel_ps;
  if (are_held) return Search(jobs, options);
  TimingOptions half = options;
  half.passes = (options.passes + 1) / 2;
  Result<JobTimes> best = Search(jobs, half);
  if (!best || best->end_ps <= options.enough_ps) return best;
  const Result<JobTimes> held = Search(jobs.Held(), half);
  if (!held) return held;
  JobTimes in_order = InOrderOf(jobs, Followers(jobs, false), *held);
  if (in_order.end_ps < best->end_ps) *best = std::move(in_order);
  return best;
}

}  // namespace tutti::ten
