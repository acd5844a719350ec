// For every node and every part of every shard: the latest time at which something happened to it
// (its arrival, or its being read). This is what eager simulation asks for each transfer.
//
// Model       Add(place, t) notes that what lies in [begin, end) of a shard at a node happened at
//             t; Latest(place) is the largest t of all that overlap the place, 0 without any.
// Complexity  A shard whose chunk ends lie on a coarse grid has one number a (node, grid cell):
//             both calls cost the cells of the place. Other shards have a list a node: Add O(1),
//             Latest O(entries at that node). Memory at most 32 + 8 bytes a transfer and place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/sched/schedule.h"

namespace tutti::sim {

// How the parts of each shard are stored, from the transfers of a schedule.
class ShardLayouts {
 public:
  struct Layout {
    // Units a grid cell; 0 where a grid would take too much room.
    int32_t cell_units = 0;
    int32_t cells = 0;         // a node
    uint32_t bucket_mask = 0;  // lists: nodes that agree on these bits share one
  };

  ShardLayouts(const Topology& topology, const Schedule& schedule);

  const Layout& of(ShardId shard) const { return layouts_[shard.index()]; }
  size_t size() const { return layouts_.size(); }

 private:
  std::vector<Layout> layouts_;
};

struct Place {
  NodeId node;
  ShardId shard;
  int32_t begin = 0, end = 0;
};

class IntervalTimes {
 public:
  enum class Side : uint8_t { kTail, kHead };

  // Room for one Add a transfer of the schedule, at its tail or at its head. `layouts` must outlive
  // this.
  IntervalTimes(const Topology& topology, const Schedule& schedule, const ShardLayouts& layouts,
                Side side);

  double Latest(const Place& place) const;
  // Returns a handle for Raise.
  uint32_t Add(const Place& place, double time);
  // What Add of this place noted happened later than was thought.
  void Raise(const Place& place, uint32_t handle, double time);

 private:
  struct Bucket {
    uint32_t first = 0, filled = 0;
  };
  struct Entry {
    NodeId node;
    int32_t begin, end;
    double time;
  };

  size_t FirstCell(const ShardLayouts::Layout& layout, const Place& place) const {
    return base_[place.shard.index()] + place.node.index() * static_cast<size_t>(layout.cells) +
           (layout.cells == 1 ? 0 : static_cast<size_t>(place.begin / layout.cell_units));
  }
  static size_t CellCount(const ShardLayouts::Layout& layout, const Place& place) {
    return layout.cells == 1 ? 1
                             : static_cast<size_t>((place.end - place.begin) / layout.cell_units);
  }
  size_t BucketOf(const ShardLayouts::Layout& layout, const Place& place) const {
    return base_[place.shard.index()] +
           (static_cast<uint32_t>(place.node.value) & layout.bucket_mask);
  }

  const ShardLayouts& layouts_;
  std::vector<size_t> base_;  // by shard: its first cell, or its first bucket
  std::vector<double> cells_;
  std::vector<Bucket> buckets_;
  std::vector<Entry> entries_;
};

}  // namespace tutti::sim
