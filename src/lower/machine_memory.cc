#include "machine_memory.h"

#include <fmt/format.h>

#include "tutti/base/index.h"

namespace tutti::lower {

MachineMemory::MachineMemory(const Machine& machine, const MachineIndex& index,
                             HappensBefore& order, std::vector<PlanFault>& faults)
    : machine_(machine),
      index_(index),
      order_(order),
      faults_(faults),
      sets_(static_cast<int32_t>(machine.ranks.size())) {
  size_t next = 0;
  for (const MachineRank& rank : machine.ranks) {
    first_cell_.emplace_back();
    for (size_t b = 0; b < 3; ++b) {
      first_cell_.back()[b] = next;
      next += Index(rank.cells[b]);
    }
  }
  cells_.resize(next);
  for (int32_t r = 0; r < static_cast<int32_t>(machine.ranks.size()); ++r) Initialise(NodeId{r});
}

void MachineMemory::Initialise(NodeId rank) {
  const Collective& collective = machine_.collective;
  const auto& first = first_cell_[rank.index()];
  std::vector<size_t>& output = output_cell_.emplace_back();
  for (int32_t slot = 0; slot < NumOutputSlots(collective, rank); ++slot) {
    const int32_t alias = machine_.in_place ? InPlaceInputSlot(collective, rank, slot) : -1;
    output.push_back(alias >= 0 ? first[0] + Index(alias * machine_.cells_per_slot)
                                : first[1] + Index(slot * machine_.cells_per_slot));
  }
  for (int32_t slot = 0; slot < NumInputSlots(collective, rank); ++slot) {
    const ShardId shard = InputShard(collective, rank, slot);
    if (!collective.contributors(shard).Contains(rank)) continue;
    const int32_t own = sets_.Single(rank.value);
    for (int64_t c = 0; c < machine_.cells_per_slot; ++c)
      cells_[first[0] + Index(slot * machine_.cells_per_slot + c)].value = {
          shard.value * machine_.cells_per_slot + c, own, false};
  }
}

size_t MachineMemory::CellOf(int32_t rank, const Operand& operand, int64_t at) const {
  const int64_t offset = operand.offset + at;
  if (operand.buffer == Buffer::kOutput) {
    const std::vector<size_t>& output = output_cell_[Index(rank)];
    const auto slot = Index(offset / machine_.cells_per_slot);
    if (slot < output.size()) return output[slot] + Index(offset % machine_.cells_per_slot);
  }
  return first_cell_[Index(rank)][static_cast<size_t>(operand.buffer)] + Index(offset);
}

std::string MachineMemory::NameOf(const Value& value) const {
  return fmt::format("{} {} of shard {}", machine_.words.unit,
                     machine_.UnitOf(value.position % machine_.cells_per_slot),
                     value.position / machine_.cells_per_slot);
}

std::string MachineMemory::NameOfCell(const Operand& operand, int64_t at) const {
  return fmt::format("{} {}", machine_.words.buffers[static_cast<size_t>(operand.buffer)],
                     machine_.UnitOf(operand.offset + at));
}

Value MachineMemory::Read(int32_t rank, const Operand& operand, int64_t at, int32_t action) {
  Slot& slot = cells_[CellOf(rank, operand, at)];
  if (slot.writer >= 0) order_.Touch(slot.writer, action);
  readers_.push_back({action, slot.first_reader});
  slot.first_reader = static_cast<int32_t>(readers_.size()) - 1;
  if (slot.value.position < 0 && !slot.value.spoilt) {
    faults_.push_back(
        {fmt::format("{}: reads {} {}, which nothing has written", index_.NameOf(action),
                     machine_.words.unit, NameOfCell(operand, at))});
    return {-1, -1, true};
  }
  return slot.value;
}

void MachineMemory::Write(int32_t rank, const Operand& operand, int64_t at, int32_t action,
                          const Value& value) {
  const size_t cell = CellOf(rank, operand, at);
  Slot& slot = cells_[cell];
  if (slot.writer >= 0) order_.Touch(slot.writer, action);
  for (int32_t r = slot.first_reader; r >= 0; r = readers_[Index(r)].next) {
    const int32_t reader = readers_[Index(r)].action;
    order_.Touch(reader, action);
    if (reader == action && !index_.at(action).reads_dst &&
        CellOf(rank, index_.at(action).src, at) != cell)
      faults_.push_back(
          {fmt::format("{}: reads and overwrites {} {} in shifted ranges", index_.NameOf(action),
                       machine_.words.unit, NameOfCell(operand, at))});
  }
  slot.writer = action;
  slot.first_reader = -1;
  slot.value = value;
  if (machine_.keeps_phase && !value.spoilt) CheckHome(rank, operand, at, action, value);
}

void MachineMemory::CheckHome(int32_t rank, const Operand& operand, int64_t at, int32_t action,
                              const Value& value) {
  const int64_t offset = operand.offset + at;
  const auto& weights = machine_.ranks[Index(rank)].weights[static_cast<size_t>(operand.buffer)];
  const auto slot = Index(offset / machine_.cells_per_slot);
  const int64_t weight = weights.empty() ? 1 : weights[slot];
  const ShardId shard{static_cast<int32_t>(value.position / machine_.cells_per_slot)};
  const auto& scratch_shards = machine_.ranks[Index(rank)].scratch_shards;
  if (operand.buffer == Buffer::kScratch && !scratch_shards.empty() &&
      scratch_shards[slot] != shard.value)
    faults_.push_back(
        {fmt::format("{}: puts {} into scratch slot {}, which is of shard {}",
                     index_.NameOf(action), NameOf(value), slot, scratch_shards[slot])});
  if (value.position % machine_.cells_per_slot == offset % machine_.cells_per_slot &&
      weight == machine_.collective.weight(shard))
    return;
  faults_.push_back({fmt::format(
      "{}: puts {} of weight {} at {} {} of a slot of weight {}; sizes may differ there",
      index_.NameOf(action), NameOf(value), machine_.collective.weight(shard), machine_.words.unit,
      machine_.UnitOf(offset % machine_.cells_per_slot), weight)});
}

Value MachineMemory::Reduce(const Value& a, const Value& b, int32_t action) {
  if (a.spoilt || b.spoilt) return {-1, -1, true};
  if (a.position != b.position) {
    faults_.push_back(
        {fmt::format("{}: reduces {} with {}", index_.NameOf(action), NameOf(a), NameOf(b))});
    return {-1, -1, true};
  }
  const int32_t united = sets_.Unite(a.set, b.set);
  if (united >= 0) return {a.position, united, false};
  faults_.push_back(
      {fmt::format("{}: counts the contribution of {} {} to {} twice", index_.NameOf(action),
                   machine_.words.rank, sets_.FirstShared(a.set, b.set), NameOf(a))});
  return {-1, -1, true};
}

void MachineMemory::CheckResults() {
  const Collective& collective = machine_.collective;
  for (int32_t r = 0; r < static_cast<int32_t>(machine_.ranks.size()); ++r) {
    for (int32_t s = 0; s < NumOutputSlots(collective, NodeId{r}); ++s) {
      const ShardId shard = OutputShard(collective, NodeId{r}, s);
      if (!collective.destinations(shard).Contains(NodeId{r}) || collective.weight(shard) == 0)
        continue;
      const Collective::Ranks from = collective.contributors(shard);
      const int32_t wanted = sets_.Of(from);
      for (int64_t c = 0; c < machine_.cells_per_slot; ++c) {
        const Operand operand{Buffer::kOutput, s * machine_.cells_per_slot};
        const Value& got = cells_[CellOf(r, operand, c)].value;
        const int64_t position = shard.value * machine_.cells_per_slot + c;
        if (got.spoilt || (got.position == position && got.set == wanted)) continue;
        std::string what = "nothing";
        if (got.position >= 0)
          what = got.position != position
                     ? NameOf(got)
                     : fmt::format("it without the contribution of {} {}", machine_.words.rank,
                                   sets_.FirstLacking(wanted, got.set));
        faults_.push_back(
            {fmt::format("{} {}: {} should end with {} and ends with {}", machine_.words.rank, r,
                         NameOfCell(operand, c), NameOf({position, wanted, false}), what)});
        break;  // one a slot
      }
    }
  }
}

}  // namespace tutti::lower
