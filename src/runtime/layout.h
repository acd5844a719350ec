// Layout: where every element of every rank's buffers lies in the shared mapping.
//
// Model       Each rank has an input, an output and a scratch buffer made of slots; a slot of
//             weight w holds ElementsOf(w) elements, at least one unless w is 0. Buffers start on a
//             page and have a guard of kGuardBytes before and behind them, which nobody may touch.
//             In place, input and output overlap so that the slots of InPlaceInputSlot coincide.
// Units       Offsets are bytes from the start of the data area, sizes are elements.
// Invariants  L1  The input of rank r in slot i is what r contributes to InputShard(r, i); after
//                 the run, output slot i holds OutputShard(r, i) complete.
//             L2  Guards and buffers of all ranks are disjoint, but for input and output in place.
// Errors      kInvalidArgument: slots that the plan's collective does not have, a negative size, in
//             place where the collective has no such form; kResourceExhausted: sizes beyond 2^62.
// Reference   include/tutti/lower/plan.h "Addresses", "Buffers", "In place"
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/plan.h"
#include "tutti/runtime/executor.h"

namespace tutti {

class Layout {
 public:
  static constexpr int64_t kGuardBytes = 4096;

  static Result<Layout> Make(const Plan& plan, const RunOptions& options);

  int32_t element_bytes() const { return element_bytes_; }
  bool in_place() const { return in_place_; }
  // Bytes of the data area.
  int64_t total_bytes() const { return total_bytes_; }
  // [M] as nccl-tests counts it, of what really runs.
  int64_t size_bytes() const { return size_bytes_; }
  int64_t ElementsOf(int64_t weight) const;

  int32_t NumSlots(int32_t rank, Buffer buffer) const {
    return static_cast<int32_t>(Of(rank, buffer).first.size()) - 1;
  }
  // Elements in a slot; offset of its first byte.
  int64_t SlotElements(int32_t rank, Buffer buffer, int32_t slot) const {
    const auto& first = Of(rank, buffer).first;
    return first[static_cast<size_t>(slot) + 1] - first[static_cast<size_t>(slot)];
  }
  int64_t SlotOffset(int32_t rank, Buffer buffer, int32_t slot) const {
    const Place& place = Of(rank, buffer);
    return place.offset + place.first[static_cast<size_t>(slot)] * element_bytes_;
  }
  int64_t BufferBytes(int32_t rank, Buffer buffer) const {
    return Of(rank, buffer).first.back() * element_bytes_;
  }
  // The stretches of memory of a rank that lie between two guards.
  struct Area {
    int64_t offset = 0, bytes = 0;
  };
  const std::vector<Area>& AreasOf(int32_t rank) const { return areas_[static_cast<size_t>(rank)]; }
  // The output slot that an input slot is the same memory as, -1 where there is none.
  int32_t AliasOfInput(int32_t rank, int32_t input_slot) const {
    const auto& alias = alias_[static_cast<size_t>(rank)];
    return alias.empty() ? -1 : alias[static_cast<size_t>(input_slot)];
  }

 private:
  struct Place {
    int64_t offset = 0;
    std::vector<int64_t> first{0};  // prefix sums of slot elements
  };

  const Place& Of(int32_t rank, Buffer buffer) const {
    return places_[static_cast<size_t>(rank)][static_cast<size_t>(buffer)];
  }
  Status AddRank(const Plan& plan, int32_t rank);
  Status PlaceSlots(Place& place, int32_t slots, const std::vector<int64_t>& weights);
  // L1: each slot is as large as its shard.
  Status CheckShards(const Collective& collective, int32_t rank, Buffer buffer) const;
  Status PlaceApart(int32_t rank);
  Status PlaceInPlace(const Plan& plan, int32_t rank);
  // Takes room for `bytes` of the last rank between two guards; the offset of the first byte.
  int64_t Take(int64_t bytes);

  int64_t wanted_bytes_ = 0, weight_of_size_ = 1;
  int32_t element_bytes_ = 1;
  bool in_place_ = false;
  int64_t total_bytes_ = 0, size_bytes_ = 0;
  std::vector<std::array<Place, 3>> places_;
  std::vector<std::vector<Area>> areas_;
  std::vector<std::vector<int32_t>> alias_;  // by rank and input slot; empty out of place
};

// L1: the shard a slot belongs to, and how many slots the collective gives a rank.
ShardId InputShard(const Collective& collective, int32_t rank, int32_t slot);
ShardId OutputShard(const Collective& collective, int32_t rank, int32_t slot);
int32_t NumInputSlots(const Collective& collective, int32_t rank);
int32_t NumOutputSlots(const Collective& collective, int32_t rank);

}  // namespace tutti
