// What every part of the verifier reads: the inputs, the transfers grouped by shard, and their
// times on one integer clock.
//
// Model       A send reads its sender's state at Start(); what it carries is there from Arrival()
//             on. At one instant arrivals come before sends. A step schedule is put on the same
//             clock: step t starts at 2 t and its messages arrive at 2 t + 1.
// Invariants  OfShard(s) lists the transfers of s that are sound (S2), ascending in Start(), ties
//             by index.
// Complexity  O(transfers + shards) to build; 4 bytes a transfer, 8 more when timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "findings.h"
#include "tutti/sched/schedule.h"

namespace tutti::verify {

inline int64_t StartOfStep(int32_t step) { return 2 * int64_t{step}; }
inline int64_t ArrivalOfStep(int32_t step) { return StartOfStep(step) + 1; }

class Problem {
 public:
  // The caller has checked what concerns the schedule as a whole (FaultOfWhole in structure.h);
  // the arguments must outlive the problem. Unsound transfers are left out and go to `findings`.
  Problem(const Topology& topology, const Collective& collective, const Schedule& schedule,
          Findings& findings);

  const Topology& topology() const { return topology_; }
  const Collective& collective() const { return collective_; }
  const Schedule& schedule() const { return schedule_; }
  bool timed() const { return schedule_.kind == ScheduleKind::kTimed; }
  const Transfer& transfer(uint32_t index) const { return schedule_.transfers[index]; }
  // Not excluded by rule V1.
  bool sound(uint32_t index) const { return sound_[index]; }
  int64_t num_sound() const { return static_cast<int64_t>(order_.size()); }

  std::span<const uint32_t> OfShard(ShardId shard) const {
    const size_t first = first_[shard.index()], last = first_[shard.index() + 1];
    return {order_.data() + first, last - first};
  }
  int64_t Start(uint32_t index) const {
    return timed() ? schedule_.start_ps[index] : StartOfStep(transfer(index).step);
  }
  int64_t Arrival(uint32_t index) const {
    return timed() ? arrival_ps_[index] : ArrivalOfStep(transfer(index).step);
  }

 private:
  void CheckTransfer(size_t index, Findings& findings);
  void GroupByShard();
  void ComputeArrivals();

  const Topology& topology_;
  const Collective& collective_;
  const Schedule& schedule_;
  std::vector<bool> sound_;
  std::atomic<bool> descends_ = false;  // somewhere against S3
  std::vector<uint32_t> order_;
  std::vector<size_t> first_;
  std::vector<int64_t> arrival_ps_;
};

}  // namespace tutti::verify
