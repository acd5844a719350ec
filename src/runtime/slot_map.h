// SlotMap: how many elements each slot of a plan's buffers has, and where it starts in its buffer.
//
// Model       Two rules give a shard its elements.
//             For a count C of elements that M stands for, with S shards in M (weight_of_size):
//             the shard at position p of M has floor((p + 1) C / S) - floor(p C / S), so that any C
//             works and nothing is rounded away; shards of a demand have floor(C * weight / S).
//             Rounded, as nccl-tests does: every shard of weight w has floor(M w / S) bytes in
//             whole elements, at least one unless w is 0.
//             A slot has the elements of its shard; scratch slots name theirs
//             (RankPlan::scratch_shards).
// In place    Input and output are one piece of memory in which the slots of InPlaceInputSlot
//             coincide; a rank without such slots (of a broadcast, all but the root) has two.
// Units       Elements, from the start of the buffer. Pure in its arguments: no address.
// Complexity  O(slots) time and memory.
// Errors      kInvalidArgument: slots that the plan's collective does not have, a negative count,
//             in place where there is no such form, scratch slots of unknown shards where shards
//             differ; kResourceExhausted: sizes beyond 2^62 bytes.
// Reference   include/tutti/lower/plan.h "Addresses", "Buffers", "In place"
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/plan.h"

namespace tutti {

class SlotMap {
 public:
  static Result<SlotMap> ForCount(const Plan& plan, int64_t count, int32_t element_bytes,
                                  bool in_place);
  static Result<SlotMap> Rounded(const Plan& plan, int64_t size_bytes, int32_t element_bytes,
                                 bool in_place);

  int32_t element_bytes() const { return element_bytes_; }
  bool in_place() const { return in_place_; }
  // Rounded only: elements of a shard of this weight.
  int64_t ElementsOf(int64_t weight) const;

  int32_t NumSlots(int32_t rank, Buffer buffer) const {
    return static_cast<int32_t>(Of(rank, buffer).size()) - 1;
  }
  int64_t SlotElements(int32_t rank, Buffer buffer, int32_t slot) const {
    const auto& first = Of(rank, buffer);
    return first[static_cast<size_t>(slot) + 1] - first[static_cast<size_t>(slot)];
  }
  int64_t SlotStart(int32_t rank, Buffer buffer, int32_t slot) const {
    return Of(rank, buffer)[static_cast<size_t>(slot)];
  }
  int64_t BufferElements(int32_t rank, Buffer buffer) const { return Of(rank, buffer).back(); }
  // The output slot that an input slot is the same memory as, -1 where there is none.
  int32_t AliasOfInput(int32_t rank, int32_t input_slot) const {
    const auto& alias = alias_[static_cast<size_t>(rank)];
    return alias.empty() ? -1 : alias[static_cast<size_t>(input_slot)];
  }
  // From the first element of the output to that of the input where they are one piece of memory.
  std::optional<int64_t> InputShift(int32_t rank) const {
    return shift_[static_cast<size_t>(rank)];
  }

 private:
  using Starts = std::vector<int64_t>;  // prefix sums of slot elements

  static Result<SlotMap> Fill(SlotMap map, const Plan& plan);
  const Starts& Of(int32_t rank, Buffer buffer) const {
    return starts_[static_cast<size_t>(rank)][static_cast<size_t>(buffer)];
  }
  // By count; with `rounded_`, by weight.
  int64_t ShardElements(const Collective& collective, ShardId shard) const;
  Status AddRank(const Plan& plan, int32_t rank);
  Status AddSlot(Starts& starts, int64_t elements) const;
  Status AddByWeight(Starts& starts, int32_t slots, const std::vector<int64_t>& weights) const;
  Status AddScratch(const Plan& plan, const RankPlan& rank_plan);
  // Each slot is as large as its shard.
  Status CheckShards(const Collective& collective, int32_t rank, Buffer buffer) const;
  Status FindAliases(const Plan& plan, int32_t rank);

  bool rounded_ = false, in_place_ = false;
  int64_t size_ = 0;  // rounded: bytes, else elements
  int64_t weight_of_size_ = 1;
  int32_t element_bytes_ = 1;
  std::vector<std::array<Starts, 3>> starts_;
  std::vector<std::vector<int32_t>> alias_;  // by rank and input slot; empty out of place
  std::vector<std::optional<int64_t>> shift_;
};

}  // namespace tutti
