#include "ten/compact.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "ten/calendar.h"
#include "ten/dataflow.h"
#include "ten/link_time.h"

namespace tutti::ten {
namespace {

__extension__ using WidePs = __int128;

// Pushing to and fro stops earlier when it saves nothing.
constexpr int kMaxPushes = 8;

// What both kinds of schedules share.
class Work {
 public:
  Work(const Topology& topology, const Schedule& schedule, std::vector<Job> jobs)
      : topology_(topology),
        schedule_(schedule),
        jobs_(std::move(jobs)),
        before_(jobs_),
        dataflow_(topology, schedule, jobs_) {
    for (uint32_t i = 0; i < jobs_.size(); ++i)
      if (jobs_[i].is_needed) needed_.push_back(i);
  }

 protected:
  size_t LinkOf(uint32_t job) const { return schedule_.transfers[job].link.index(); }

  // The first time at which what it sends is there, and its place at the receiver.
  int64_t ReadyAt(uint32_t job) const {
    int64_t ready = std::max<int64_t>(
        0, jobs_[job].arrives_not_before - (jobs_[job].arrival - jobs_[job].start));
    for (const uint32_t supplier : dataflow_.Suppliers(job))
      ready = std::max(ready, jobs_[supplier].arrival);
    return ready;
  }

  void MoveTo(uint32_t job, int64_t start) {
    jobs_[job].arrival += start - jobs_[job].start;
    jobs_[job].start = start;
  }

  // The needed transfers at their times, in a canonical order.
  Compacted Finish() {
    Compacted result{schedule_};
    Schedule& schedule = result.schedule;
    std::sort(needed_.begin(), needed_.end(), [this](uint32_t a, uint32_t b) {
      const Transfer &x = schedule_.transfers[a], &y = schedule_.transfers[b];
      return std::tie(jobs_[a].start, x.link, x.shard, x.begin, a) <
             std::tie(jobs_[b].start, y.link, y.shard, y.begin, b);
    });
    result.num_dropped = static_cast<int64_t>(jobs_.size() - needed_.size());
    schedule.transfers.clear();
    schedule.start_ps.clear();
    for (const uint32_t job : needed_) {
      schedule.transfers.push_back(schedule_.transfers[job]);
      if (jobs_[job].start != before_[job].start) ++result.num_moved;
    }
    return result;
  }

  const Topology& topology_;
  const Schedule& schedule_;
  std::vector<Job> jobs_;
  const std::vector<Job> before_;
  Dataflow dataflow_;
  std::vector<uint32_t> needed_;
};

class TimedWork : public Work {
 public:
  TimedWork(const Topology& topology, const Schedule& schedule)
      : Work(topology, schedule, JobsOf(topology, schedule)) {
    for (const Transfer& transfer : schedule.transfers)
      hold_.push_back(LinkTimeOf(schedule, topology, transfer).hold_ps);
  }

  Compacted Run() {
    PushToTheBegin();
    if (MayPushToTheEnd()) {
      MakeConsumers();
      for (int push = 0; push < kMaxPushes; ++push) {
        const std::vector<Job> kept = jobs_;
        const int64_t end = End();
        PushToTheEnd(end);
        PushToTheBegin();
        if (End() < end) continue;
        jobs_ = kept;
        break;
      }
    }
    Compacted result = Finish();
    for (const uint32_t job : needed_) result.schedule.start_ps.push_back(jobs_[job].start);
    return result;
  }

 private:
  static std::vector<Job> JobsOf(const Topology& topology, const Schedule& schedule) {
    std::vector<Job> jobs(schedule.transfers.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].start = schedule.start_ps[i];
      jobs[i].arrival =
          jobs[i].start + LinkTimeOf(schedule, topology, schedule.transfers[i]).travel_ps;
    }
    return jobs;
  }

  int64_t End() const {
    int64_t end = 0;
    for (const uint32_t job : needed_) end = std::max(end, jobs_[job].arrival);
    return end;
  }

  bool MayPushToTheEnd() const {
    return std::none_of(needed_.begin(), needed_.end(), [this](uint32_t job) {
      return jobs_[job].stays || jobs_[job].arrives_not_before > 0;
    });
  }

  void MakeConsumers() {
    first_consumer_.assign(jobs_.size() + 1, 0);
    for (const uint32_t job : needed_)
      for (const uint32_t supplier : dataflow_.Suppliers(job))
        ++first_consumer_[size_t{supplier} + 1];
    std::partial_sum(first_consumer_.begin(), first_consumer_.end(), first_consumer_.begin());
    consumer_.resize(first_consumer_.back());
    std::vector<uint32_t> next(first_consumer_.begin(), first_consumer_.end() - 1);
    for (const uint32_t job : needed_)
      for (const uint32_t supplier : dataflow_.Suppliers(job)) consumer_[next[supplier]++] = job;
  }

  // In order of their start each is put as early as can be. Its own place is free when its turn
  // comes: on its link only those have moved that came before, and they moved to before.
  void PushToTheBegin() {
    std::vector<Calendar> calendars(static_cast<size_t>(topology_.num_links()));
    for (const uint32_t job : needed_)
      if (jobs_[job].stays) calendars[LinkOf(job)].Take(jobs_[job].start, hold_[job]);
    std::sort(needed_.begin(), needed_.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(jobs_[a].start, a) < std::pair(jobs_[b].start, b);
    });
    for (const uint32_t job : needed_) {
      if (jobs_[job].stays) continue;
      Calendar& calendar = calendars[LinkOf(job)];
      const int64_t start =
          std::min(jobs_[job].start, calendar.FirstFree(ReadyAt(job), hold_[job]));
      calendar.Take(start, hold_[job]);
      MoveTo(job, start);
    }
  }

  // The same with time running backwards from `end`, on calendars that hold negative times.
  void PushToTheEnd(int64_t end) {
    std::vector<Calendar> calendars(static_cast<size_t>(topology_.num_links()));
    std::sort(needed_.begin(), needed_.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(jobs_[a].arrival, a) > std::pair(jobs_[b].arrival, b);
    });
    for (const uint32_t job : needed_) {
      int64_t arrival = end;
      for (uint32_t c = first_consumer_[job]; c < first_consumer_[size_t{job} + 1]; ++c)
        arrival = std::min(arrival, jobs_[consumer_[c]].start);
      const int64_t latest = arrival - (jobs_[job].arrival - jobs_[job].start);
      Calendar& calendar = calendars[LinkOf(job)];
      const int64_t hold = hold_[job];
      const int64_t start =
          std::max(jobs_[job].start, -calendar.FirstFree(-latest - hold, hold) - hold);
      calendar.Take(-start - hold, hold);
      MoveTo(job, start);
    }
  }

  std::vector<int64_t> hold_;
  std::vector<uint32_t> first_consumer_, consumer_;
};

class StepWork : public Work {
 public:
  StepWork(const Topology& topology, const Schedule& schedule)
      : Work(topology, schedule, JobsOf(schedule)),
        busiest_(static_cast<size_t>(schedule.num_steps)),
        loads_(static_cast<size_t>(topology.num_links())) {
    for (const uint32_t job : needed_) loads_[LinkOf(job)][StepOf(job)] += LoadOf(job);
    // As they were before anything was dropped: then no step costs more than it did.
    std::vector<std::map<int32_t, WidePs>> loads(loads_.size());
    for (uint32_t job = 0; job < jobs_.size(); ++job)
      loads[LinkOf(job)][StepOf(job)] += LoadOf(job);
    for (size_t link = 0; link < loads.size(); ++link)
      for (const auto& [step, load] : loads[link]) {
        Busiest& busiest = busiest_[static_cast<size_t>(step)];
        const LinkSpec& spec = topology_.spec(LinkId{static_cast<int32_t>(link)});
        const WidePs more = load * busiest.spec.bandwidth - busiest.load * spec.bandwidth;
        if (more > 0 || (more == 0 && spec.alpha_ps > busiest.spec.alpha_ps))
          busiest = {load, spec};
      }
  }

  Compacted Run() {
    std::sort(needed_.begin(), needed_.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(jobs_[a].start, a) < std::pair(jobs_[b].start, b);
    });
    for (const uint32_t job : needed_)
      if (!jobs_[job].stays) MoveForward(job);
    Compacted result = Finish();
    Schedule& schedule = result.schedule;
    int32_t step = -1;
    int64_t before = -1;
    for (size_t i = 0; i < needed_.size(); ++i) {
      if (jobs_[needed_[i]].start != before) ++step;
      before = jobs_[needed_[i]].start;
      schedule.transfers[i].step = step;
    }
    schedule.num_steps = step + 1;
    return result;
  }

 private:
  struct Busiest {
    WidePs load = 0;  // in units times weights
    LinkSpec spec{.bandwidth = 1, .alpha_ps = 0};
  };

  static std::vector<Job> JobsOf(const Schedule& schedule) {
    std::vector<Job> jobs(schedule.transfers.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].start = schedule.transfers[i].step;
      jobs[i].arrival = jobs[i].start + 1;
    }
    return jobs;
  }

  int32_t StepOf(uint32_t job) const { return static_cast<int32_t>(jobs_[job].start); }
  WidePs LoadOf(uint32_t job) const {
    const Transfer& transfer = schedule_.transfers[job];
    return WidePs{transfer.units()} * schedule_.collective.weight(transfer.shard);
  }

  // Whether the link with `load` would cost the step no more than its busiest link.
  bool Fits(LinkId link, int32_t step, WidePs load) const {
    const Busiest& busiest = busiest_[static_cast<size_t>(step)];
    const LinkSpec& spec = topology_.spec(link);
    return spec.alpha_ps <= busiest.spec.alpha_ps &&
           load * busiest.spec.bandwidth <= busiest.load * spec.bandwidth;
  }

  void MoveForward(uint32_t job) {
    const LinkId link = schedule_.transfers[job].link;
    std::map<int32_t, WidePs>& loads = loads_[link.index()];
    const int32_t from = StepOf(job);
    const WidePs load = LoadOf(job);
    auto there = loads.lower_bound(static_cast<int32_t>(ReadyAt(job)));
    for (auto step = static_cast<int32_t>(ReadyAt(job)); step < from; ++step) {
      while (there != loads.end() && there->first < step) ++there;
      const bool is_used = there != loads.end() && there->first == step;
      if (!Fits(link, step, load + (is_used ? there->second : 0))) continue;
      loads[step] += load;
      loads[from] -= load;
      MoveTo(job, step);
      return;
    }
  }

  std::vector<Busiest> busiest_;                  // link of each step
  std::vector<std::map<int32_t, WidePs>> loads_;  // of each link, by step
};

}  // namespace

Compacted Compact(const Topology& topology, const Schedule& schedule) {
  if (schedule.kind == ScheduleKind::kTimed) return TimedWork(topology, schedule).Run();
  return StepWork(topology, schedule).Run();
}

}  // namespace tutti::ten
