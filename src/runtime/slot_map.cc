#include "slot_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory_limits.h"

namespace tutti {
namespace {

__extension__ using Wide = __int128;

int64_t Clamped(Wide elements) { return static_cast<int64_t>(std::min<Wide>(elements, kMaxBytes)); }

}  // namespace

Result<SlotMap> SlotMap::ForCount(const Plan& plan, int64_t count, int32_t element_bytes,
                                  bool in_place) {
  if (count < 0) return InvalidArgument(fmt::format("the count is negative: {}", count));
  SlotMap map;
  map.size_ = count;
  map.element_bytes_ = element_bytes;
  map.in_place_ = in_place;
  return Fill(std::move(map), plan);
}

Result<SlotMap> SlotMap::Rounded(const Plan& plan, int64_t size_bytes, int32_t element_bytes,
                                 bool in_place) {
  if (size_bytes < 0) return InvalidArgument(fmt::format("the size is negative: {}", size_bytes));
  SlotMap map;
  map.rounded_ = true;
  map.size_ = size_bytes;
  map.element_bytes_ = element_bytes;
  map.in_place_ = in_place;
  return Fill(std::move(map), plan);
}

Result<SlotMap> SlotMap::Fill(SlotMap map, const Plan& plan) {
  const Collective& collective = plan.collective;
  const int32_t ranks = collective.num_ranks();
  if (plan.ranks.size() != static_cast<size_t>(ranks))
    return InvalidArgument(fmt::format("the plan has instructions for {} ranks, its collective {}",
                                       plan.ranks.size(), ranks));
  if (map.in_place_ && !HasInPlaceForm(collective))
    return InvalidArgument(fmt::format("{} has no form in place", Name(collective.kind())));
  map.weight_of_size_ = collective.weight_of_size();
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const Status added = map.AddRank(plan, rank);
    if (!added) return Within(fmt::format("rank {}", rank), added.error());
  }
  return map;
}

int64_t SlotMap::ElementsOf(int64_t weight) const {
  if (weight == 0) return 0;
  const Wide elements = Wide{size_} * weight / (Wide{weight_of_size_} * Wide{element_bytes_});
  return std::max<int64_t>(1, Clamped(elements));
}

int64_t SlotMap::ShardElements(const Collective& collective, ShardId shard) const {
  if (rounded_) return ElementsOf(collective.weight(shard));
  if (!collective.equal_weights())
    return Clamped(Wide{size_} * collective.weight(shard) / weight_of_size_);
  const int64_t position = shard.value % weight_of_size_;
  return Clamped(Wide{size_} * (position + 1) / weight_of_size_ -
                 Wide{size_} * position / weight_of_size_);
}

Status SlotMap::AddSlot(Starts& starts, int64_t elements) const {
  const Wide end = Wide{starts.back()} + elements;
  if (end * element_bytes_ > kMaxBytes / 8)
    return MakeError(ErrorCode::kResourceExhausted, "the buffers of all ranks exceed 2^62 bytes");
  starts.push_back(static_cast<int64_t>(end));
  return {};
}

Status SlotMap::AddByWeight(Starts& starts, int32_t slots,
                            const std::vector<int64_t>& weights) const {
  if (slots < 0) return InvalidArgument(fmt::format("a buffer has {} slots", slots));
  if (!weights.empty() && weights.size() != static_cast<size_t>(slots))
    return InvalidArgument(
        fmt::format("a buffer has {} slots and {} weights", slots, weights.size()));
  for (int32_t slot = 0; slot < slots; ++slot) {
    const int64_t weight = weights.empty() ? 1 : weights[static_cast<size_t>(slot)];
    if (weight < 0)
      return InvalidArgument(fmt::format("slot {} has the negative weight {}", slot, weight));
    const Status added = AddSlot(starts, ElementsOf(weight));
    if (!added) return added;
  }
  return {};
}

Status SlotMap::AddScratch(const Plan& plan, const RankPlan& rank_plan) {
  Starts& starts = starts_.back()[static_cast<size_t>(Buffer::kScratch)];
  if (rounded_) return AddByWeight(starts, rank_plan.scratch_slots, rank_plan.scratch_weights);
  if (rank_plan.scratch_slots < 0)
    return InvalidArgument(fmt::format("a buffer has {} slots", rank_plan.scratch_slots));
  const Collective& collective = plan.collective;
  const auto& shards = rank_plan.scratch_shards;
  const bool known = shards.size() == static_cast<size_t>(rank_plan.scratch_slots);
  const bool alike = collective.equal_weights() && size_ % weight_of_size_ == 0;
  if (!known && (!shards.empty() || !alike))
    return InvalidArgument(
        fmt::format("its {} scratch slots name {} shards, so that {} elements cannot be cut into "
                    "shards that differ",
                    rank_plan.scratch_slots, shards.size(), size_));
  for (int32_t slot = 0; slot < rank_plan.scratch_slots; ++slot) {
    const int32_t shard = known ? shards[static_cast<size_t>(slot)] : 0;
    if (shard < 0 || shard >= collective.num_shards())
      return InvalidArgument(fmt::format("scratch slot {} holds shard {}; there are {} shards",
                                         slot, shard, collective.num_shards()));
    const Status added = AddSlot(starts, ShardElements(collective, ShardId{shard}));
    if (!added) return added;
  }
  return {};
}

Status SlotMap::CheckShards(const Collective& collective, int32_t rank, Buffer buffer) const {
  const bool input = buffer == Buffer::kInput;
  for (int32_t slot = 0; slot < NumSlots(rank, buffer); ++slot) {
    const ShardId shard = input ? InputShard(collective, NodeId{rank}, slot)
                                : OutputShard(collective, NodeId{rank}, slot);
    const int64_t want = ShardElements(collective, shard);
    const int64_t got = SlotElements(rank, buffer, slot);
    if (want != got)
      return InvalidArgument(fmt::format("{} slot {} holds {} elements, its shard has {}",
                                         input ? "input" : "output", slot, got, want));
  }
  return {};
}

// The offset between the two buffers follows from the slots that coincide, and has to be the same
// for all of them.
Status SlotMap::FindAliases(const Plan& plan, int32_t rank) {
  std::vector<int32_t>& alias = alias_.back();
  alias.assign(static_cast<size_t>(NumSlots(rank, Buffer::kInput)), -1);
  for (int32_t slot = 0; slot < NumSlots(rank, Buffer::kOutput); ++slot) {
    const int32_t twin = InPlaceInputSlot(plan.collective, NodeId{rank}, slot);
    if (twin < 0) continue;
    if (twin >= NumSlots(rank, Buffer::kInput))
      return InvalidArgument(
          fmt::format("in place, output slot {} is input slot {}, which is not there", slot, twin));
    const int64_t here =
        SlotStart(rank, Buffer::kOutput, slot) - SlotStart(rank, Buffer::kInput, twin);
    const bool same_size =
        SlotElements(rank, Buffer::kOutput, slot) == SlotElements(rank, Buffer::kInput, twin);
    if (!same_size || shift_.back().value_or(here) != here)
      return InvalidArgument(
          fmt::format("{} cannot run in place: the blocks of rank {} differ in size",
                      Name(plan.collective.kind()), rank));
    shift_.back() = here;
    alias[static_cast<size_t>(twin)] = slot;
  }
  return {};
}

Status SlotMap::AddRank(const Plan& plan, int32_t rank) {
  const Collective& collective = plan.collective;
  const RankPlan& rank_plan = plan.ranks[static_cast<size_t>(rank)];
  const int32_t inputs = NumInputSlots(collective, NodeId{rank});
  const int32_t outputs = NumOutputSlots(collective, NodeId{rank});
  if (rank_plan.input_slots != inputs || rank_plan.output_slots != outputs)
    return InvalidArgument(fmt::format(
        "{} gives it {} input and {} output slots, the plan {} and {}", Name(collective.kind()),
        inputs, outputs, rank_plan.input_slots, rank_plan.output_slots));
  auto& starts = starts_.emplace_back();
  for (Starts& buffer : starts) buffer.assign(1, 0);
  alias_.emplace_back();
  shift_.emplace_back();
  Status added;
  if (rounded_) {
    added = AddByWeight(starts[0], inputs, rank_plan.input_weights);
    if (added) added = AddByWeight(starts[1], outputs, rank_plan.output_weights);
  } else {
    for (int32_t slot = 0; added && slot < inputs; ++slot)
      added =
          AddSlot(starts[0], ShardElements(collective, InputShard(collective, NodeId{rank}, slot)));
    for (int32_t slot = 0; added && slot < outputs; ++slot)
      added = AddSlot(starts[1],
                      ShardElements(collective, OutputShard(collective, NodeId{rank}, slot)));
  }
  if (added) added = AddScratch(plan, rank_plan);
  if (added) added = CheckShards(collective, rank, Buffer::kInput);
  if (added) added = CheckShards(collective, rank, Buffer::kOutput);
  if (added && in_place_) added = FindAliases(plan, rank);
  return added;
}

}  // namespace tutti
