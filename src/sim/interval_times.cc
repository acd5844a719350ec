#include "interval_times.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace tutti::sim {
namespace {

// A grid may take this many cells for each transfer of its shard.
constexpr int64_t kCellsPerTransfer = 4;

int32_t GridOf(int32_t grid, int32_t bound) {
  return bound % grid == 0 ? grid : std::gcd(grid, bound);
}

}  // namespace

ShardLayouts::ShardLayouts(const Topology& topology, const Schedule& schedule)
    : layouts_(static_cast<size_t>(schedule.collective.num_shards())) {
  std::vector<int64_t> transfers(layouts_.size(), 0);
  for (Layout& layout : layouts_) layout.cell_units = schedule.units_per_shard;
  for (const Transfer& transfer : schedule.transfers) {
    int32_t& grid = layouts_[transfer.shard.index()].cell_units;
    if (transfer.units() != schedule.units_per_shard && grid > 1)
      grid = GridOf(GridOf(grid, transfer.begin), transfer.end);
    ++transfers[transfer.shard.index()];
  }
  for (size_t s = 0; s < layouts_.size(); ++s) {
    Layout& layout = layouts_[s];
    layout.cells = schedule.units_per_shard / layout.cell_units;
    if (int64_t{layout.cells} * topology.num_nodes() <= kCellsPerTransfer * transfers[s]) continue;
    layout = Layout{};
    const int64_t buckets = std::min<int64_t>(transfers[s], topology.num_nodes());
    layout.bucket_mask = std::bit_ceil(static_cast<uint32_t>(std::max<int64_t>(buckets, 1))) - 1;
  }
}

IntervalTimes::IntervalTimes(const Topology& topology, const Schedule& schedule,
                             const ShardLayouts& layouts, Side side)
    : layouts_(layouts), base_(layouts.size()) {
  size_t cells = 0, buckets = 0;
  for (size_t s = 0; s < base_.size(); ++s) {
    const ShardLayouts::Layout& layout = layouts.of(ShardId{static_cast<int32_t>(s)});
    const bool grid = layout.cell_units > 0;
    base_[s] = grid ? cells : buckets;
    if (grid)
      cells += static_cast<size_t>(layout.cells) * static_cast<size_t>(topology.num_nodes());
    else
      buckets += size_t{layout.bucket_mask} + 1;
  }
  cells_.assign(cells, 0);
  buckets_.resize(buckets);
  if (buckets == 0) return;
  // Each list gets the room it will need: count, then lay them out one after the other.
  for (const Transfer& transfer : schedule.transfers) {
    const ShardLayouts::Layout& layout = layouts.of(transfer.shard);
    if (layout.cell_units > 0) continue;
    const NodeId node =
        side == Side::kTail ? topology.tail(transfer.link) : topology.head(transfer.link);
    ++buckets_[BucketOf(layout, {node, transfer.shard})].first;
  }
  uint32_t next = 0;
  for (Bucket& bucket : buckets_) next += std::exchange(bucket.first, next);
  entries_.resize(next);
}

double IntervalTimes::Latest(const Place& place) const {
  const ShardLayouts::Layout& layout = layouts_.of(place.shard);
  double latest = 0;
  if (layout.cell_units > 0) {
    const double* cell = cells_.data() + FirstCell(layout, place);
    for (size_t i = CellCount(layout, place); i > 0; --i) latest = std::max(latest, *cell++);
    return latest;
  }
  const Bucket bucket = buckets_[BucketOf(layout, place)];
  const Entry* entry = entries_.data() + bucket.first;
  for (uint32_t i = 0; i < bucket.filled; ++i, ++entry)
    if (entry->node == place.node && entry->begin < place.end && place.begin < entry->end)
      latest = std::max(latest, entry->time);
  return latest;
}

uint32_t IntervalTimes::Add(const Place& place, double time) {
  const ShardLayouts::Layout& layout = layouts_.of(place.shard);
  if (layout.cell_units > 0) {
    Raise(place, 0, time);
    return 0;
  }
  Bucket& bucket = buckets_[BucketOf(layout, place)];
  const uint32_t handle = bucket.first + bucket.filled++;
  entries_[handle] = {place.node, place.begin, place.end, time};
  return handle;
}

void IntervalTimes::Raise(const Place& place, uint32_t handle, double time) {
  const ShardLayouts::Layout& layout = layouts_.of(place.shard);
  if (layout.cell_units == 0) {
    entries_[handle].time = std::max(entries_[handle].time, time);
    return;
  }
  double* cell = cells_.data() + FirstCell(layout, place);
  for (size_t i = CellCount(layout, place); i > 0; --i, ++cell) *cell = std::max(*cell, time);
}

}  // namespace tutti::sim
