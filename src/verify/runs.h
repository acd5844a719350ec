// Rules V2, V3, V4 and V6, one shard at a time. Two paths, since most shards have one contributor:
// then a node holds an interval or not, and the time of arrival says it all.
//
// Threads  A run object is scratch for one thread; shards may be given to several in any order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "contribution_sets.h"
#include "findings.h"
#include "intervals.h"
#include "problem.h"

namespace tutti::verify {

// By kind, the first stretch of neighbouring intervals where one transfer breaks a rule.
class FaultsOfTransfer {
 public:
  // Returns whether this began a new stretch, so that the caller may add what is costly to find.
  Finding* Add(ViolationKind kind, size_t interval, const Intervals& intervals);
  void Flush(const Problem& problem, uint32_t index, NodeId node, int64_t time, Findings& findings);

 private:
  static constexpr size_t kMaxKinds = 4;
  std::array<Finding, kMaxKinds> found_;
  size_t size_ = 0;
};

// Shards with one contributor: what each node holds is when it arrived.
class HoldingRun {
 public:
  explicit HoldingRun(const Problem& problem);
  void Run(ShardId shard, Findings& findings);

 private:
  void Apply(uint32_t index, const Collective::Ranks& destinations, Findings& findings);
  void CheckEnd(ShardId shard, const Collective::Ranks& destinations, Findings& findings) const;
  void Reset(std::span<const uint32_t> transfers, NodeId source);
  int64_t* Row(NodeId node) { return arrived_.data() + node.index() * intervals_.count(); }
  const int64_t* Row(NodeId node) const {
    return arrived_.data() + node.index() * intervals_.count();
  }

  const Problem& problem_;
  Intervals intervals_;
  std::vector<int64_t> arrived_;  // [node, interval]; kAtTheEnd for never, and between runs
  int64_t missing_ = 0;           // (destination, interval) pairs
};

// Shards with many contributors: each node holds a set of contributions.
class ReducingRun {
 public:
  // Asks which transfer first brings a contribution to a place.
  struct Probe {
    NodeId node;
    int32_t unit;
    int32_t contributor;
    int64_t transfer = -1;  // the answer
  };

  explicit ReducingRun(const Problem& problem);
  void Run(ShardId shard, Findings& findings, Probe* probe = nullptr);

 private:
  void Start(ShardId shard);
  int64_t StartOf(size_t local) const {
    return problem_.timed() ? problem_.Start(transfers_[local]) : StartOfStep(sent_[local].step);
  }
  int64_t ArrivalOf(size_t local) const {
    return problem_.timed() ? problem_.Arrival(transfers_[local])
                            : ArrivalOfStep(sent_[local].step);
  }
  void Send(size_t local, Findings& findings);
  void Arrive(size_t local, Findings& findings, Probe* probe);
  void CopyInto(size_t cell, size_t local, size_t interval, SetRef carried);
  void ReduceInto(size_t cell, size_t interval, SetRef carried);
  bool Clashes(size_t cell, size_t local) const;
  // The index of the transfer that wrote last, or -1.
  int64_t LastWriter(size_t cell) const {
    const int64_t local = last_writer_[cell];
    return local < 0 ? -1 : int64_t{transfers_[static_cast<size_t>(local)]};
  }
  void AddClash(size_t cell, size_t local, size_t interval, SetRef carried);
  void CheckEnd(ShardId shard, Findings& findings) const;
  void Finish();

  const Problem& problem_;
  Intervals intervals_;
  ContributionSets sets_;
  std::vector<SetRef> held_;          // [node, interval]
  std::vector<int64_t> last_writer_;  // [node, interval]: a place in transfers_, or -1
  std::span<const uint32_t> transfers_;
  std::vector<Transfer>
      sent_;  // the same, side by side: the schedule has those of a shard far apart
  std::vector<uint32_t> by_arrival_;  // places in transfers_
  std::vector<size_t> first_carried_;
  std::vector<SetRef> carried_;  // what each transfer took along, interval by interval
  FaultsOfTransfer faults_;
};

}  // namespace tutti::verify
