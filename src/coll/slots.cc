#include "tutti/coll/slots.h"

#include <algorithm>

#include "tutti/base/check.h"

namespace tutti {
namespace {

using SideOf = Collective::Ranks (Collective::*)(ShardId) const;
constexpr SideOf kInput = &Collective::contributors, kOutput = &Collective::destinations;

// What the slots of a rank depend on: a group and its shards, all ranks where there are no groups.
struct Part {
  const Collective& collective;
  int32_t index, num_ranks, num_shards;
  ShardId first;
};

int32_t NumParts(const Collective& collective) {
  return collective.has_groups() ? static_cast<int32_t>(collective.groups().size()) : 1;
}

Part PartOf(const Collective& collective, int32_t index) {
  if (!collective.has_groups())
    return {collective, 0, collective.num_ranks(), collective.num_shards(), ShardId{0}};
  const auto groups = collective.groups();
  const auto g = static_cast<size_t>(index);
  const int32_t first = groups[g].first_shard;
  const int32_t end = g + 1 < groups.size() ? groups[g + 1].first_shard : collective.num_shards();
  return {collective, index, groups[g].size(), end - first, ShardId{first}};
}

// The rank's place in the part, or -1.
int32_t PositionIn(const Part& part, NodeId rank) {
  if (!part.collective.has_groups()) return rank.value;
  const Collective::Group& group = part.collective.groups()[static_cast<size_t>(part.index)];
  if (!std::binary_search(group.sorted.begin(), group.sorted.end(), rank)) return -1;
  const auto at = std::find(group.members.begin(), group.members.end(), rank);
  return static_cast<int32_t>(at - group.members.begin());
}

// Each rank has one shard, and no other, on this side.
bool IsOfOwners(const Part& part, SideOf side) {
  return part.num_shards > 1 && !part.collective.is_all_to_all() &&
         (part.collective.*side)(part.first) !=
             (part.collective.*side)(ShardId{part.first.value + 1});
}

int32_t NumSlots(const Part& part, SideOf side, NodeId rank) {
  if (PositionIn(part, rank) < 0) return 0;
  if (part.num_shards == 1 || IsOfOwners(part, side)) return 1;
  if (part.collective.is_all_to_all()) return part.num_ranks;
  return (part.collective.*side)(part.first).Contains(rank) ? part.num_shards : 0;
}

// Slots of the parts before this one: a rank's slots follow the order of its groups.
int32_t SlotsBefore(const Collective& collective, SideOf side, NodeId rank, int32_t part) {
  int32_t slots = 0;
  for (int32_t i = 0; i < part; ++i) slots += NumSlots(PartOf(collective, i), side, rank);
  return slots;
}

int32_t SlotOf(const Collective& collective, SideOf side, NodeId rank, ShardId shard) {
  if (!(collective.*side)(shard).Contains(rank)) return -1;
  const Part part = PartOf(collective, collective.GroupOf(shard));
  const int32_t local = shard.value - part.first.value;
  const int32_t before = SlotsBefore(collective, side, rank, part.index);
  if (collective.is_all_to_all())
    return before + (side == kInput ? local % part.num_ranks : local / part.num_ranks);
  return before + (IsOfOwners(part, side) ? 0 : local);
}

ShardId ShardOf(const Collective& collective, SideOf side, NodeId rank, int32_t slot) {
  for (int32_t i = 0; i < NumParts(collective); ++i) {
    const Part part = PartOf(collective, i);
    const int32_t slots = NumSlots(part, side, rank);
    if (slot >= slots) {
      slot -= slots;
      continue;
    }
    const int32_t position = PositionIn(part, rank), k = part.num_ranks;
    int32_t local = IsOfOwners(part, side) ? position : slot;
    if (collective.is_all_to_all())
      local = side == kInput ? position * k + slot : slot * k + position;
    return ShardId{part.first.value + local};
  }
  TUTTI_CHECK(false);
}

int32_t NumSlotsOf(const Collective& collective, SideOf side, NodeId rank) {
  return SlotsBefore(collective, side, rank, NumParts(collective));
}

}  // namespace

int32_t NumInputSlots(const Collective& collective, NodeId rank) {
  return NumSlotsOf(collective, kInput, rank);
}

int32_t NumOutputSlots(const Collective& collective, NodeId rank) {
  return NumSlotsOf(collective, kOutput, rank);
}

int32_t InputSlot(const Collective& collective, NodeId rank, ShardId shard) {
  return SlotOf(collective, kInput, rank, shard);
}

int32_t OutputSlot(const Collective& collective, NodeId rank, ShardId shard) {
  return SlotOf(collective, kOutput, rank, shard);
}

ShardId InputShard(const Collective& collective, NodeId rank, int32_t slot) {
  TUTTI_DCHECK(0 <= slot && slot < NumInputSlots(collective, rank));
  return ShardOf(collective, kInput, rank, slot);
}

ShardId OutputShard(const Collective& collective, NodeId rank, int32_t slot) {
  TUTTI_DCHECK(0 <= slot && slot < NumOutputSlots(collective, rank));
  return ShardOf(collective, kOutput, rank, slot);
}

bool HasInPlaceForm(const Collective& collective) {
  return !collective.is_all_to_all() && collective.groups_are_apart();
}

int32_t InPlaceInputSlot(const Collective& collective, NodeId rank, int32_t output_slot) {
  if (!HasInPlaceForm(collective) || output_slot < 0 ||
      output_slot >= NumOutputSlots(collective, rank))
    return -1;
  return InputSlot(collective, rank, OutputShard(collective, rank, output_slot));
}

}  // namespace tutti
