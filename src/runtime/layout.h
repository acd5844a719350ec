// Layout: where the buffers of every rank lie in the shared mapping of `tutti run`.
//
// Model       Each rank has an input, an output and a scratch buffer, whose slots a SlotMap of
//             rounded sizes gives. Buffers start on a page and have a guard of kGuardBytes before
//             and behind them, which nobody may touch. In place, input and output overlap so that
//             the slots of InPlaceInputSlot coincide.
// Units       Offsets are bytes from the start of the data area, sizes are elements.
// Invariants  L1  The input of rank r in slot i is what r contributes to InputShard(r, i); after
//                 the run, output slot i holds OutputShard(r, i) complete.
//             L2  Guards and buffers of all ranks are disjoint, but for input and output in place.
// Errors      those of SlotMap.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "slot_map.h"
#include "tutti/base/result.h"
#include "tutti/lower/plan.h"
#include "tutti/runtime/executor.h"

namespace tutti {

class Layout {
 public:
  static constexpr int64_t kGuardBytes = 4096;

  // `only`: a rank whose buffers alone have a place, those of the others have none.
  static Result<Layout> Make(const Plan& plan, const RunOptions& options,
                             std::optional<int32_t> only = std::nullopt);

  const SlotMap& slots() const { return slots_; }
  int32_t element_bytes() const { return slots_.element_bytes(); }
  bool in_place() const { return slots_.in_place(); }
  // Bytes of the data area.
  int64_t total_bytes() const { return total_bytes_; }
  // [M] as nccl-tests counts it, of what really runs.
  int64_t size_bytes() const { return size_bytes_; }
  int64_t ElementsOf(int64_t weight) const { return slots_.ElementsOf(weight); }

  int32_t NumSlots(int32_t rank, Buffer buffer) const { return slots_.NumSlots(rank, buffer); }
  // Elements in a slot; offset of its first byte.
  int64_t SlotElements(int32_t rank, Buffer buffer, int32_t slot) const {
    return slots_.SlotElements(rank, buffer, slot);
  }
  int64_t SlotOffset(int32_t rank, Buffer buffer, int32_t slot) const {
    return BufferOffset(rank, buffer) + slots_.SlotStart(rank, buffer, slot) * element_bytes();
  }
  int64_t BufferOffset(int32_t rank, Buffer buffer) const {
    return offsets_[static_cast<size_t>(rank)][static_cast<size_t>(buffer)];
  }
  int64_t BufferBytes(int32_t rank, Buffer buffer) const {
    return slots_.BufferElements(rank, buffer) * element_bytes();
  }
  // The stretches of memory of a rank that lie between two guards.
  struct Area {
    int64_t offset = 0, bytes = 0;
  };
  const std::vector<Area>& AreasOf(int32_t rank) const { return areas_[static_cast<size_t>(rank)]; }
  int32_t AliasOfInput(int32_t rank, int32_t input_slot) const {
    return slots_.AliasOfInput(rank, input_slot);
  }

 private:
  explicit Layout(SlotMap slots) : slots_(std::move(slots)) {}
  Status PlaceRank(int32_t rank);
  // Takes room for `bytes` of the last rank between two guards; the offset of the first byte.
  int64_t Take(int64_t bytes);

  SlotMap slots_;
  int64_t total_bytes_ = 0, size_bytes_ = 0;
  std::vector<std::array<int64_t, 3>> offsets_;  // of the buffers of a rank
  std::vector<std::vector<Area>> areas_;
};

}  // namespace tutti
