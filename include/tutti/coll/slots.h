// Slots: which blocks the buffers of a rank hold before and after a collective.
//
// Model       A buffer is a row of slots; a slot holds one shard. Input slot i of rank r is what r
//             contributes to InputShard(r, i); output slot i is where OutputShard(r, i) ends:
//               collective      input slots               output slots
//               all-gather      1                         N, slot i: shard i
//               reduce-scatter  N, slot i: shard i        1
//               all-reduce      num_shards                num_shards
//               broadcast       1 (read at the root)      1
//               reduce          1                         1 (written at the root)
//               gather          1                         N at the root, 0 elsewhere
//               scatter         N at the root, 0 else     1
//               all-to-all(v)   N, slot d: shard r*N+d    N, slot s: shard s*N+r
//             as MPI and NCCL have it. It follows from the collective's contributors and destinations.
//             With groups N is a group's size and r the position in it; a rank has the slots of its
//             groups, one group after the other, and one in no group has none.
// Complexity  O(1) each; with groups O(groups log k + k).
#pragma once

#include <cstdint>

#include "tutti/base/ids.h"
#include "tutti/coll/collective.h"

namespace tutti {

int32_t NumInputSlots(const Collective& collective, NodeId rank);
int32_t NumOutputSlots(const Collective& collective, NodeId rank);
// -1 where the rank has no such slot for that shard.
int32_t InputSlot(const Collective& collective, NodeId rank, ShardId shard);
int32_t OutputSlot(const Collective& collective, NodeId rank, ShardId shard);
// The inverse: slot in [0, NumInputSlots()) or [0, NumOutputSlots()).
ShardId InputShard(const Collective& collective, NodeId rank, int32_t slot);
ShardId OutputShard(const Collective& collective, NodeId rank, int32_t slot);

// All but all-to-all(v), and but those of groups that share a rank.
bool HasInPlaceForm(const Collective& collective);
// The input slot of `rank` that its output slot `output_slot` aliases when the call is in place, or
// -1. Where a slot has a partner both hold the same shard.
int32_t InPlaceInputSlot(const Collective& collective, NodeId rank, int32_t output_slot);

}  // namespace tutti
