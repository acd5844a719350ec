#include "layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {
namespace {

using Kind = CollectiveKind;
__extension__ using Wide = __int128;

constexpr int64_t kPage = 4096;
constexpr int64_t kMaxBytes = int64_t{1} << 62;

Status TooLarge() {
  return MakeError(ErrorCode::kResourceExhausted, "the buffers of all ranks exceed 2^62 bytes");
}

}  // namespace

ShardId InputShard(const Collective& collective, int32_t rank, int32_t slot) {
  switch (collective.kind()) {
    case Kind::kAllGather:
    case Kind::kGather:
      return {rank};
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return {rank * collective.num_ranks() + slot};
    default:
      return {slot};
  }
}

ShardId OutputShard(const Collective& collective, int32_t rank, int32_t slot) {
  switch (collective.kind()) {
    case Kind::kReduceScatter:
    case Kind::kScatter:
      return {rank};
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return {slot * collective.num_ranks() + rank};
    default:
      return {slot};
  }
}

int32_t NumInputSlots(const Collective& collective, int32_t rank) {
  switch (collective.kind()) {
    case Kind::kReduceScatter:
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return collective.num_ranks();
    case Kind::kAllReduce:
      return collective.num_shards();
    case Kind::kScatter:
      return rank == collective.root().value ? collective.num_ranks() : 0;
    default:
      return 1;
  }
}

int32_t NumOutputSlots(const Collective& collective, int32_t rank) {
  switch (collective.kind()) {
    case Kind::kAllGather:
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return collective.num_ranks();
    case Kind::kAllReduce:
      return collective.num_shards();
    case Kind::kGather:
      return rank == collective.root().value ? collective.num_ranks() : 0;
    default:
      return 1;
  }
}

bool HasInPlaceForm(const Collective& collective) {
  return collective.kind() != Kind::kAllToAll && collective.kind() != Kind::kAllToAllV;
}

int64_t Layout::ElementsOf(int64_t weight) const {
  if (weight == 0) return 0;
  const Wide elements =
      Wide{wanted_bytes_} * weight / (Wide{weight_of_size_} * Wide{element_bytes_});
  return std::max<int64_t>(1, static_cast<int64_t>(std::min<Wide>(elements, kMaxBytes)));
}

int64_t Layout::Take(int64_t bytes) {
  const int64_t offset = total_bytes_ + kGuardBytes;
  total_bytes_ = (offset + bytes + kGuardBytes + kPage - 1) / kPage * kPage;
  areas_.back().push_back({offset, bytes});
  return offset;
}

Status Layout::PlaceSlots(Place& place, int32_t slots, const std::vector<int64_t>& weights) {
  if (slots < 0) return InvalidArgument(fmt::format("a buffer has {} slots", slots));
  if (!weights.empty() && weights.size() != static_cast<size_t>(slots))
    return InvalidArgument(
        fmt::format("a buffer has {} slots and {} weights", slots, weights.size()));
  place.first.assign(1, 0);
  for (int32_t slot = 0; slot < slots; ++slot) {
    const int64_t weight = weights.empty() ? 1 : weights[static_cast<size_t>(slot)];
    if (weight < 0)
      return InvalidArgument(fmt::format("slot {} has the negative weight {}", slot, weight));
    const Wide end = Wide{place.first.back()} + ElementsOf(weight);
    if (end * element_bytes_ > kMaxBytes / 8) return TooLarge();
    place.first.push_back(static_cast<int64_t>(end));
  }
  return {};
}

Status Layout::PlaceApart(int32_t rank) {
  for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput})
    places_.back()[static_cast<size_t>(buffer)].offset = Take(BufferBytes(rank, buffer));
  return {};
}

// Input and output of a rank as one piece of memory: the offset between the two follows from the
// slots that coincide, and has to be the same for all of them. A rank without such slots (of a
// broadcast, all but the root) has two buffers.
Status Layout::PlaceInPlace(const Plan& plan, int32_t rank) {
  Place& input = places_.back()[0];
  Place& output = places_.back()[1];
  std::vector<int32_t> alias(input.first.size() - 1, -1);
  bool found = false;
  int64_t shift = 0;  // elements from the start of the output to that of the input
  for (int32_t slot = 0; slot < NumSlots(rank, Buffer::kOutput); ++slot) {
    const int32_t twin = InPlaceInputSlot(plan.collective, NodeId{rank}, slot);
    if (twin < 0) continue;
    if (twin >= NumSlots(rank, Buffer::kInput))
      return InvalidArgument(
          fmt::format("in place, output slot {} is input slot {}, which is not there", slot, twin));
    const int64_t here =
        output.first[static_cast<size_t>(slot)] - input.first[static_cast<size_t>(twin)];
    const bool same_size =
        SlotElements(rank, Buffer::kOutput, slot) == SlotElements(rank, Buffer::kInput, twin);
    if (!same_size || (found && here != shift))
      return InvalidArgument(
          fmt::format("{} cannot run in place: the blocks of rank {} differ in size",
                      Name(plan.collective.kind()), rank));
    shift = here;
    found = true;
    alias[static_cast<size_t>(twin)] = slot;
  }
  alias_.push_back(std::move(alias));
  if (!found) return PlaceApart(rank);
  const int64_t low = std::min<int64_t>(0, shift);
  const int64_t high = std::max(output.first.back(), shift + input.first.back());
  const int64_t base = Take((high - low) * element_bytes_);
  output.offset = base - low * element_bytes_;
  input.offset = output.offset + shift * element_bytes_;
  return {};
}

Status Layout::CheckShards(const Collective& collective, int32_t rank, Buffer buffer) const {
  const bool input = buffer == Buffer::kInput;
  for (int32_t slot = 0; slot < NumSlots(rank, buffer); ++slot) {
    const ShardId shard =
        input ? InputShard(collective, rank, slot) : OutputShard(collective, rank, slot);
    const int64_t want = ElementsOf(collective.weight(shard));
    const int64_t got = SlotElements(rank, buffer, slot);
    if (want != got)
      return InvalidArgument(fmt::format("{} slot {} holds {} elements, its shard has {}",
                                         input ? "input" : "output", slot, got, want));
  }
  return {};
}

Status Layout::AddRank(const Plan& plan, int32_t rank) {
  const RankPlan& rank_plan = plan.ranks[static_cast<size_t>(rank)];
  const int32_t inputs = NumInputSlots(plan.collective, rank);
  const int32_t outputs = NumOutputSlots(plan.collective, rank);
  if (rank_plan.input_slots != inputs || rank_plan.output_slots != outputs)
    return InvalidArgument(
        fmt::format("{} gives it {} input and {} output slots, the plan {} and {}",
                    Name(plan.collective.kind()), inputs, outputs, rank_plan.input_slots,
                    rank_plan.output_slots));
  areas_.emplace_back();
  auto& places = places_.emplace_back();
  Status placed = PlaceSlots(places[0], inputs, rank_plan.input_weights);
  if (placed) placed = PlaceSlots(places[1], outputs, rank_plan.output_weights);
  if (placed) placed = PlaceSlots(places[2], rank_plan.scratch_slots, rank_plan.scratch_weights);
  if (!placed) return placed;
  placed = CheckShards(plan.collective, rank, Buffer::kInput);
  if (placed) placed = CheckShards(plan.collective, rank, Buffer::kOutput);
  if (!placed) return placed;
  if (in_place_) {
    placed = PlaceInPlace(plan, rank);
  } else {
    alias_.emplace_back();
    placed = PlaceApart(rank);
  }
  if (!placed) return placed;
  places[2].offset = Take(BufferBytes(rank, Buffer::kScratch));
  return total_bytes_ < kMaxBytes / 2 ? Status() : TooLarge();
}

Result<Layout> Layout::Make(const Plan& plan, const RunOptions& options) {
  if (options.size_bytes < 0)
    return InvalidArgument(fmt::format("the size is negative: {}", options.size_bytes));
  const Collective& collective = plan.collective;
  const int32_t ranks = collective.num_ranks();
  if (plan.ranks.size() != static_cast<size_t>(ranks))
    return InvalidArgument(fmt::format("the plan has instructions for {} ranks, its collective {}",
                                       plan.ranks.size(), ranks));
  if (options.in_place && !HasInPlaceForm(collective))
    return InvalidArgument(fmt::format("{} has no form in place", Name(collective.kind())));
  Layout layout;
  layout.wanted_bytes_ = options.size_bytes;
  layout.weight_of_size_ = collective.weight_of_size();
  layout.element_bytes_ = SizeOf(options.type);
  layout.in_place_ = options.in_place;
  int64_t largest_input = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const Status added = layout.AddRank(plan, rank);
    if (!added) return Within(fmt::format("rank {}", rank), added.error());
    largest_input = std::max(largest_input, layout.BufferBytes(rank, Buffer::kInput));
  }
  // M is what a rank sends where slots differ, and a number of equal shards everywhere else.
  layout.size_bytes_ =
      collective.kind() == Kind::kAllToAllV
          ? largest_input
          : layout.ElementsOf(1) * collective.weight_of_size() * layout.element_bytes_;
  return layout;
}

}  // namespace tutti
