#include "tutti/coll/slots.h"

#include "tutti/base/check.h"

namespace tutti {
namespace {

using SideOf = Collective::Ranks (Collective::*)(ShardId) const;
constexpr SideOf kInput = &Collective::contributors, kOutput = &Collective::destinations;

// Rank i has shard i, and no other, on this side.
bool IsOfOwners(const Collective& collective, SideOf side) {
  return collective.num_shards() > 1 && !collective.is_all_to_all() &&
         (collective.*side)(ShardId{0}) != (collective.*side)(ShardId{1});
}

int32_t NumSlots(const Collective& collective, SideOf side, NodeId rank) {
  if (collective.num_shards() == 1 || IsOfOwners(collective, side)) return 1;
  if (collective.is_all_to_all()) return collective.num_ranks();
  return (collective.*side)(ShardId{0}).Contains(rank) ? collective.num_shards() : 0;
}

}  // namespace

int32_t NumInputSlots(const Collective& collective, NodeId rank) {
  return NumSlots(collective, kInput, rank);
}

int32_t NumOutputSlots(const Collective& collective, NodeId rank) {
  return NumSlots(collective, kOutput, rank);
}

int32_t InputSlot(const Collective& collective, NodeId rank, ShardId shard) {
  if (!collective.contributors(shard).Contains(rank)) return -1;
  if (collective.is_all_to_all()) return shard.value % collective.num_ranks();
  return IsOfOwners(collective, kInput) ? 0 : shard.value;
}

int32_t OutputSlot(const Collective& collective, NodeId rank, ShardId shard) {
  if (!collective.destinations(shard).Contains(rank)) return -1;
  if (collective.is_all_to_all()) return shard.value / collective.num_ranks();
  return IsOfOwners(collective, kOutput) ? 0 : shard.value;
}

ShardId InputShard(const Collective& collective, NodeId rank, int32_t slot) {
  TUTTI_DCHECK(0 <= slot && slot < NumInputSlots(collective, rank));
  if (collective.is_all_to_all()) return ShardId{rank.value * collective.num_ranks() + slot};
  return ShardId{IsOfOwners(collective, kInput) ? rank.value : slot};
}

ShardId OutputShard(const Collective& collective, NodeId rank, int32_t slot) {
  TUTTI_DCHECK(0 <= slot && slot < NumOutputSlots(collective, rank));
  if (collective.is_all_to_all()) return ShardId{slot * collective.num_ranks() + rank.value};
  return ShardId{IsOfOwners(collective, kOutput) ? rank.value : slot};
}

bool HasInPlaceForm(const Collective& collective) { return !collective.is_all_to_all(); }

int32_t InPlaceInputSlot(const Collective& collective, NodeId rank, int32_t output_slot) {
  if (!HasInPlaceForm(collective) || output_slot < 0 ||
      output_slot >= NumOutputSlots(collective, rank))
    return -1;
  return InputSlot(collective, rank, OutputShard(collective, rank, output_slot));
}

}  // namespace tutti
