// ForwardBuilder: turns "rank a gives rank b this part of shard s" into transfers over links.
//
// Model       Copies that go to everyone: all-gather and broadcast. What reduces is the reverse of
//             these (DeriveFromForward); for blocks with one destination see block_router.h. A
//             logical send between nodes that are not adjacent takes a shortest path, unit by unit,
//             each hop a step later. Nodes on the way (switches too) keep what they forward, so a
//             send starts at the nearest node of its path that has the unit in time, and a unit
//             that is already there, or on its way and not late, is not sent again. One that would
//             come late is brought forward. Among equally short paths one from a node that has the
//             unit in time wins, then the link with the least load (bytes / bandwidth) in that
//             step, then the smaller id.
// Units       Unit k of a shard is [k, k + 1) / units_per_shard of it. Steps from 0.
// Invariants  F1  Each node gets each unit at most once (rule V3 of the verifier).
//             F2  A transfer's sender has the unit before the transfer's step.
// Complexity  A send of one unit over D hops: O(D * in-degree). Memory 24 bytes a transfer, 4 bytes
//             a (shard, node, unit), 4 bytes a (step, link) where paths were chosen, 4 N bytes a
//             source of long sends.
// Reference   [direct-connect] 3.1 for transfers and steps.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "classic/link_index.h"
#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti::classic {

// A part of a shard, in units.
struct Part {
  int32_t begin = 0, end = 0;
};

class ForwardBuilder {
 public:
  // `topology` and `collective` must outlive the builder. kResourceExhausted when the transfers or
  // units would not fit into 32-bit counts.
  static Result<ForwardBuilder> Make(const Topology& topology, const Collective& collective,
                                     int32_t units_per_shard);

  int32_t units_per_shard() const { return units_; }
  Part Whole() const { return {0, units_}; }
  const Topology& topology() const { return *topology_; }

  // First step in which `node` can send all of `part`; kNever while it is not promised all of it.
  static constexpr int32_t kNever = INT32_MAX;
  int32_t Ready(NodeId node, ShardId shard, Part part) const;

  // Gives `to` the part by step start + distance; `from` has it by `start`. Returns the first step
  // in which `to` can send it.
  int32_t Send(NodeId from, NodeId to, ShardId shard, Part part, int32_t start);
  // The same over one given link, in step `start` exactly, unless the head has it by then.
  int32_t SendOver(LinkId link, ShardId shard, Part part, int32_t start);

  Schedule Finish(std::string_view algorithm, uint64_t seed) &&;

  // Hops from `from` to every node.
  const std::vector<int32_t>& Distances(NodeId from);
  const LinkIndex& links() const { return links_; }

 private:
  ForwardBuilder(const Topology& topology, const Collective& collective, int32_t units);

  static constexpr int32_t kAbsent = -1, kInitial = -2;
  struct Hop {
    LinkId link;
    bool held = false;  // the tail has the unit in time: the way starts here
  };

  size_t Slot(NodeId node, ShardId shard, int32_t unit) const;
  int32_t ReadyUnit(NodeId node, ShardId shard, int32_t unit) const;
  void SendUnit(NodeId from, NodeId to, ShardId shard, int32_t unit, int32_t arrival);
  Hop BestHop(NodeId from, NodeId to, ShardId shard, int32_t unit, int32_t step) const;
  // One unit more weighs less on `a` than on `b`.
  bool IsLighter(LinkId a, LinkId b, int32_t step) const;
  void Deliver(LinkId link, ShardId shard, int32_t unit, int32_t step);
  uint32_t& Load(int32_t step, LinkId link);
  uint32_t LoadOf(int32_t step, LinkId link) const;

  const Topology* topology_;
  const Collective* collective_;
  LinkIndex links_;
  int32_t units_;
  std::vector<Transfer> transfers_;  // one unit each until Finish()
  std::vector<int32_t> delivery_;    // per slot: index into transfers_, or kAbsent, kInitial
  std::vector<uint32_t> load_;       // per step and link
  std::vector<std::vector<int32_t>> distances_;  // per source, empty until needed
};

// A step schedule of these transfers in any order. Steps without a transfer are taken out;
// transfers of neighbouring intervals that follow each other within a step are joined.
Schedule FinishSchedule(const Topology& topology, const Collective& collective,
                        int32_t units_per_shard, std::vector<Transfer> transfers,
                        std::string_view algorithm, uint64_t seed);

}  // namespace tutti::classic
