#include "tutti/sim/cluster_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/sim/fair_sharing.h"

namespace tutti {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

Status CheckJobs(const Topology& topology, std::span<const ClusterJob> jobs,
                 const ClusterOptions& options) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    const ClusterJob& job = jobs[i];
    if (job.ranks < 1 || job.ranks > topology.num_ranks())
      return InvalidArgument(fmt::format("job {} wants {} ranks; the cluster has {}", i, job.ranks,
                                         topology.num_ranks()));
    if (job.iterations < 1)
      return InvalidArgument(
          fmt::format("job {} has {} iterations, wanted at least 1", i, job.iterations));
    if (!std::isfinite(job.arrival_s) || !std::isfinite(job.gap_s) || job.arrival_s < 0 ||
        job.gap_s < 0)
      return InvalidArgument(
          fmt::format("job {} arrives at {} s with gaps of {} s, wanted 0 or more", i,
                      job.arrival_s, job.gap_s));
  }
  const auto ranks = static_cast<size_t>(topology.num_ranks());
  for (const auto* groups : {&options.rack, &options.host})
    if (!groups->empty() && groups->size() != ranks)
      return InvalidArgument(
          fmt::format("racks or hosts of {} ranks, wanted {}", groups->size(), ranks));
  return {};
}

class Simulation {
 public:
  Simulation(const Topology& topology, std::span<const ClusterJob> jobs,
             const ClusterOptions& options, ClusterStrategy& strategy)
      : jobs_(jobs),
        options_(options),
        strategy_(strategy),
        sharing_(Capacities(topology)),
        random_(options.seed),
        free_(static_cast<size_t>(topology.num_ranks()), true),
        states_(jobs.size()) {
    report_.jobs.resize(jobs.size());
    queue_.resize(jobs.size());
    std::iota(queue_.begin(), queue_.end(), 0);
    std::stable_sort(queue_.begin(), queue_.end(), [&](int32_t a, int32_t b) {
      return jobs[static_cast<size_t>(a)].arrival_s < jobs[static_cast<size_t>(b)].arrival_s;
    });
  }

  Result<ClusterReport> Run() {
    for (;;) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      if (Status status = StartJobs(); !status) return tl::unexpected(status.error());
      StartCollectives();
      if (changed_) {
        sharing_.Update();
        ++report_.events;
        changed_ = false;
      }
      const double next_s = NextEvent();
      if (next_s == kNever) break;
      Advance(next_s);
    }
    if (queued_ < queue_.size())
      return InvalidArgument(
          fmt::format("{} jobs never end: a link of theirs moves nothing", running_.size()));
    return std::move(report_);
  }

 private:
  struct State {
    double next_start_s = kNever;  // of its next collective
    double collective_start_s = 0;
    int32_t done = 0;    // iterations
    int32_t moving = 0;  // users of the collective under way
  };
  struct Mover {  // a channel or a flow under way
    int32_t job, user;
    double bytes_left, bytes;
  };

  static std::vector<double> Capacities(const Topology& topology) {
    std::vector<double> capacity;
    for (const LinkId link : topology.Links())
      capacity.push_back(static_cast<double>(topology.bandwidth(link)));
    return capacity;
  }
  State& StateOf(int32_t job) { return states_[static_cast<size_t>(job)]; }
  const ClusterJob& JobOf(int32_t job) const { return jobs_[static_cast<size_t>(job)]; }

  // Those that have arrived and find room, in order: nobody overtakes.
  Status StartJobs() {
    while (queued_ < queue_.size()) {
      const int32_t job = queue_[queued_];
      if (JobOf(job).arrival_s > now_s_) return {};
      const auto placed = PlaceJob(free_, JobOf(job).ranks, options_, random_);
      if (!placed) return {};
      for (const NodeId rank : *placed) free_[rank.index()] = false;
      if (Status status = strategy_.Join(job, *placed); !status) return status;
      ClusterJobReport& report = report_.jobs[static_cast<size_t>(job)];
      report.start_s = now_s_;
      report.ranks = *placed;
      StateOf(job).next_start_s = now_s_;
      running_.insert(std::lower_bound(running_.begin(), running_.end(), job), job);
      ++queued_;
    }
    return {};
  }

  // A collective that moves nothing over the network ends at once.
  void StartCollectives() {
    const std::vector<int32_t> running = running_;
    for (const int32_t job : running) {
      State& state = StateOf(job);
      if (state.next_start_s > now_s_) continue;
      state.next_start_s = kNever;
      state.collective_start_s = now_s_;
      for (const ClusterChannel& channel : strategy_.Channels(job)) StartChannel(job, channel);
      if (state.moving == 0) EndCollective(job);
    }
  }

  void StartChannel(int32_t job, const ClusterChannel& channel) {
    std::vector<ResourceUse> uses;
    const auto start = [&] {
      if (uses.empty() || channel.flow_bytes <= 0) return;
      movers_.push_back({job, sharing_.Add(uses), channel.flow_bytes, channel.flow_bytes});
      ++StateOf(job).moving;
      changed_ = true;
      uses.clear();
    };
    for (const std::vector<LinkId>& flow : channel.flows) {
      for (const LinkId link : flow) uses.push_back({link.value, 1});
      if (options_.coupling == FlowCoupling::kIndependent) start();
    }
    start();
  }

  void EndCollective(int32_t job) {
    State& state = StateOf(job);
    ClusterJobReport& report = report_.jobs[static_cast<size_t>(job)];
    report.collective_s += now_s_ - state.collective_start_s;
    if (++state.done < JobOf(job).iterations) {
      state.next_start_s = now_s_ + JobOf(job).gap_s;
      return;
    }
    report.collective_s /= JobOf(job).iterations;
    report.end_s = report_.time_s = now_s_;
    for (const NodeId rank : report.ranks) free_[rank.index()] = true;
    strategy_.Leave(job);
    running_.erase(std::lower_bound(running_.begin(), running_.end(), job));
    room_ = true;
  }

  double NextEvent() {
    // A job that left or a collective that took no time may let something start at once.
    if (std::exchange(room_, false)) return now_s_;
    double next_s = kNever;
    if (queued_ < queue_.size() && JobOf(queue_[queued_]).arrival_s > now_s_)
      next_s = JobOf(queue_[queued_]).arrival_s;
    for (const int32_t job : running_) next_s = std::min(next_s, StateOf(job).next_start_s);
    for (const Mover& mover : movers_) {
      const double rate = sharing_.rate(mover.user);
      if (rate > 0) next_s = std::min(next_s, now_s_ + mover.bytes_left / rate);
    }
    return next_s;
  }

  void Advance(double next_s) {
    const double step_s = next_s - now_s_;
    now_s_ = next_s;
    std::vector<int32_t> ended;
    std::erase_if(movers_, [&](Mover& mover) {
      mover.bytes_left -= sharing_.rate(mover.user) * step_s;
      if (mover.bytes_left > mover.bytes * 1e-9) return false;
      sharing_.Remove(mover.user);
      changed_ = true;
      if (--StateOf(mover.job).moving == 0) ended.push_back(mover.job);
      return true;
    });
    std::sort(ended.begin(), ended.end());
    for (const int32_t job : ended) EndCollective(job);
  }

  std::span<const ClusterJob> jobs_;
  const ClusterOptions& options_;
  ClusterStrategy& strategy_;
  FairSharing sharing_;
  Random random_;
  std::vector<bool> free_;
  std::vector<State> states_;
  std::vector<int32_t> queue_, running_;
  size_t queued_ = 0;  // of queue_, those that have started
  std::vector<Mover> movers_;
  double now_s_ = 0;
  bool changed_ = false, room_ = false;
  ClusterReport report_;
};

}  // namespace

Result<ClusterReport> SimulateCluster(const Topology& topology, std::span<const ClusterJob> jobs,
                                      const ClusterOptions& options, ClusterStrategy& strategy) {
  if (Status status = CheckJobs(topology, jobs, options); !status)
    return tl::unexpected(status.error());
  return Simulation(topology, jobs, options, strategy).Run();
}

}  // namespace tutti
