// BlockRouter: paths for blocks with one destination each: all-to-all(v), scatter, gather.
//
// Model       Every unit of every block leaves at step 0 and moves one hop a step along a shortest
//             path. First what passes through a node comes in equal parts from all nodes one hop
//             nearer to its source. Then unit after unit is routed anew with all others in place,
//             over the path that adds least to the sum over steps and links of load^2 / bandwidth,
//             until nothing gains or the work is spent. Blocks without bytes are not sent.
// Complexity  O(units * hops * in-degree), and for each of at most kMaxPasses passes O(links on the
//             shortest paths of the pair) a unit. Memory 4 bytes a unit and hop and a (step, link),
//             32 bytes a unit, 4 N bytes a source.
// Threads     One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti::classic {

class BlockRouter {
 public:
  // `topology` and `collective` must outlive the router. kResourceExhausted when units or hops
  // would not fit into 32-bit counts.
  static Result<BlockRouter> Make(const Topology& topology, const Collective& collective,
                                  int32_t units_per_shard);

  // One transfer a unit and hop.
  std::vector<Transfer> Route() &&;

 private:
  struct Unit {
    ShardId shard;
    int32_t index;
    size_t first_hop;  // into hops_
    int32_t num_hops;
    uint32_t weight;
  };

  BlockRouter(const Topology& topology, const Collective& collective, int32_t units);

  NodeId SourceOf(const Unit& unit) const { return collective_->contributors(unit.shard).one; }
  NodeId DestinationOf(const Unit& unit) const { return collective_->destinations(unit.shard).one; }

  void SplitEvenly(std::span<const Unit> units);
  void SplitAt(NodeId head, int32_t step, const std::vector<int32_t>& distance);
  // Routes every unit anew with all others in place; returns whether any way changed and work is
  // left.
  bool Improve();
  void FindPath(const Unit& unit, NodeId from, NodeId to);
  void Widen(const Unit& unit, const std::vector<int32_t>& distance, NodeId head, int32_t step);
  void AddLoads(const Unit& unit);
  void RemoveLoads(const Unit& unit);
  uint64_t CostOf(int32_t step, LinkId link, uint32_t weight) const;
  uint32_t& Load(int32_t step, LinkId link);

  const Topology* topology_;
  const Collective* collective_;
  std::vector<std::vector<int32_t>> distances_;  // by source; empty where nothing starts
  std::vector<uint64_t> slowness_;               // per link, relative to the fastest
  std::vector<Unit> units_;
  std::vector<LinkId> hops_;
  std::vector<uint32_t> load_;  // per step and link
  int64_t work_ = 0;

  std::vector<std::vector<const Unit*>> through_;  // scratch of SplitEvenly(), per node

  // Scratch of one search, backwards from the destination.
  std::vector<uint64_t> cost_;     // per node: of the best way on from here
  std::vector<LinkId> best_link_;  // per node: its first link
  std::vector<int32_t> seen_;      // per node: search that set the two above
  std::vector<NodeId> level_, next_level_;
  int32_t search_ = 0;
};

}  // namespace tutti::classic
