// Where the values of one rank live while a schedule is lowered, and who touched them last.
//
// Model       For each shard that the rank meets, and each elementary interval of it (between
//             neighbouring ends of transfers): the *place* of its value. A place belongs to a
//             *cell*, the unit of hazards: input and output are one cell, since they may be the
//             same memory (InPlaceInputSlot); each scratch copy is one.
// Complexity  About 20 bytes an interval that the rank meets.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tutti/lower/plan.h"

namespace tutti::lower {

// kScratch + k is the k-th scratch copy: one is enough unless a value is overwritten while it is
// being sent.
using Place = uint8_t;
inline constexpr Place kNowhere = 0, kInInput = 1, kInOutput = 2, kInScratch = 3;
inline constexpr Place kMaxScratchCopies = 8;

struct Cell {
  Dependency writer{-1, -1};
  int32_t first_reader = -1;    // since the last write; see ReaderPool
  int32_t sends_under_way = 0;  // messages whose value was chosen and that are not emitted yet
};

class ReaderPool {
 public:
  void Add(Cell& cell, const Dependency& reader) {
    nodes_.push_back({reader, cell.first_reader});
    cell.first_reader = static_cast<int32_t>(nodes_.size()) - 1;
  }
  void AppendTo(const Cell& cell, std::vector<Dependency>& out) const {
    for (int32_t i = cell.first_reader; i >= 0; i = nodes_[static_cast<size_t>(i)].next)
      out.push_back(nodes_[static_cast<size_t>(i)].reader);
  }

 private:
  struct Node {
    Dependency reader;
    int32_t next;
  };
  std::vector<Node> nodes_;
};

struct ShardState {
  int32_t input_slot = -1, output_slot = -1;
  std::vector<int32_t> scratch_slot;     // one a scratch copy, -1 until used
  std::vector<Place> place;              // one an interval
  std::vector<std::vector<Cell>> cells;  // [0] input and output, [1 + k] scratch copy k

  Cell& cell(Place where, size_t interval) {
    return cells[where < kInScratch ? 0 : size_t{1} + where - kInScratch][interval];
  }
};

class RankState {
 public:
  RankState(const Collective& collective, NodeId rank) : collective_(&collective), rank_(rank) {}

  // `intervals`: of that shard.
  ShardState& Shard(ShardId shard, size_t intervals) {
    const auto [at, added] = shards_.try_emplace(shard.value);
    ShardState& state = at->second;
    if (!added) return state;
    state.input_slot = InputSlot(*collective_, rank_, shard);
    state.output_slot = OutputSlot(*collective_, rank_, shard);
    state.place.assign(intervals, state.input_slot >= 0 ? kInInput : kNowhere);
    state.cells.emplace_back(intervals);
    return state;
  }

  // Where to write a value of this interval: home if possible, and nowhere that a message still
  // reads. kNowhere: no place left.
  Place ChoosePlace(ShardId shard, ShardState& state, size_t interval) {
    if (state.output_slot >= 0 && state.cells[0][interval].sends_under_way == 0) return kInOutput;
    for (Place k = 0; k < kMaxScratchCopies; ++k) {
      if (k == state.scratch_slot.size()) {
        state.scratch_slot.push_back(num_scratch_slots());
        scratch_shards_.push_back(shard);
        state.cells.emplace_back(state.place.size());
      }
      const auto where = static_cast<Place>(kInScratch + k);
      if (state.cell(where, interval).sends_under_way == 0) return where;
    }
    return kNowhere;
  }

  int32_t num_scratch_slots() const { return static_cast<int32_t>(scratch_shards_.size()); }
  // The shard that each scratch slot holds.
  const std::vector<ShardId>& scratch_shards() const { return scratch_shards_; }

 private:
  const Collective* collective_;  // must outlive
  NodeId rank_;
  std::unordered_map<int32_t, ShardState> shards_;  // looked up only, never walked
  std::vector<ShardId> scratch_shards_;
};

}  // namespace tutti::lower
