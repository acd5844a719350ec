#include "block_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels.h"
#include "memory_limits.h"
#include "tutti/coll/slots.h"

namespace tutti {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kMaxBlockBytes = Wide{1} << 62;

}  // namespace

BlockMemory::BlockMemory(const BlockProgram& program, const RunOptions& options)
    : program_(&program),
      options_(options),
      element_bytes_(SizeOf(options.type)),
      pattern_(std::make_unique<Pattern>(options.type, options.op, program.collective.reduces(),
                                         program.collective.num_ranks())) {}

Result<BlockMemory> BlockMemory::Make(const BlockProgram& program, const RunOptions& options) {
  if (options.size_bytes < 0)
    return InvalidArgument(fmt::format("the size is negative: {}", options.size_bytes));
  BlockMemory memory(program, options);
  const Wide least =
      Wide{program.collective.weight_of_size()} * program.cells_per_slot * memory.element_bytes_;
  memory.cell_elements_ =
      std::max<int64_t>(1, static_cast<int64_t>(Wide{options.size_bytes} / least));
  const Status arranged = memory.Arrange();
  if (!arranged) return tl::unexpected(arranged.error());
  memory.size_bytes_ = static_cast<int64_t>(least * memory.cell_elements_);
  return memory;
}

int32_t BlockMemory::AliasOf(int32_t rank, int32_t slot) const {
  if (!program_->in_place) return -1;
  const int32_t alias = InPlaceInputSlot(program_->collective, NodeId{rank}, slot);
  return alias < 0 && program_->one_buffer_everywhere &&
                 program_->collective.kind() == CollectiveKind::kBroadcast
             ? slot
             : alias;
}

// In place, the slots that coincide fix how far apart input and output start.
Status BlockMemory::Arrange() {
  const Wide cell = Wide{cell_elements_} * element_bytes_;
  Wide end = 0;
  const auto take = [&end](Wide bytes) {
    const Wide at = end;
    end = (end + bytes + kPage - 1) / kPage * kPage;
    return at;
  };
  const Collective& collective = program_->collective;
  for (int32_t rank = 0; rank < collective.num_ranks(); ++rank) {
    const int64_t inputs = NumInputSlots(collective, NodeId{rank});
    const int64_t outputs = NumOutputSlots(collective, NodeId{rank});
    bool shared = false;
    int64_t shift = 0;  // slots from the start of the output to that of the input
    for (int32_t slot = 0; slot < outputs && !shared; ++slot)
      if (const int32_t alias = AliasOf(rank, slot); alias >= 0) {
        shared = true;
        shift = slot - alias;
      }
    const Wide slot_bytes = cell * program_->cells_per_slot;
    Wide input = 0, output = 0;
    if (shared) {
      const int64_t low = std::min<int64_t>(0, shift);
      const int64_t high = std::max(outputs, shift + inputs);
      output = take(slot_bytes * (high - low)) - slot_bytes * low;
      input = output + slot_bytes * shift;
    } else {
      input = take(slot_bytes * inputs);
      output = take(slot_bytes * outputs);
    }
    const Wide scratch = take(cell * program_->scratch_cells[static_cast<size_t>(rank)]);
    if (end > kMaxBlockBytes)
      return MakeError(ErrorCode::kResourceExhausted, "the buffers of all ranks exceed 2^62 bytes");
    bases_.push_back(
        {static_cast<int64_t>(input), static_cast<int64_t>(output), static_cast<int64_t>(scratch)});
  }
  total_bytes_ = static_cast<int64_t>(end);
  return {};
}

Status BlockMemory::Allocate() {
  Result<SharedMemory> memory = SharedMemory::Map(std::max(total_bytes_, kPage));
  if (!memory) return tl::unexpected(memory.error());
  memory_ = std::move(*memory);
  return {};
}

const std::byte* BlockMemory::ExpectedOf(int32_t rank, int32_t slot) const {
  const Collective& collective = program_->collective;
  const ShardId shard = OutputShard(collective, NodeId{rank}, slot);
  if (!collective.destinations(shard).Contains(NodeId{rank})) return nullptr;
  const Collective::Ranks from = collective.contributors(shard);
  return from.all ? pattern_->Reduction() : pattern_->Contribution(from.one.value);
}

void BlockMemory::Fill(int32_t rank) const {
  const Collective& collective = program_->collective;
  for (int32_t slot = 0; slot < NumOutputSlots(collective, NodeId{rank}); ++slot)
    if (const std::byte* expected = ExpectedOf(rank, slot); expected != nullptr)
      pattern_->FillInverted(Slot(rank, Buffer::kOutput, slot), expected,
                             OutputShard(collective, NodeId{rank}, slot).value * SlotElements(),
                             SlotElements());
  for (int32_t slot = 0; slot < NumInputSlots(collective, NodeId{rank}); ++slot) {
    const ShardId shard = InputShard(collective, NodeId{rank}, slot);
    if (collective.contributors(shard).Contains(NodeId{rank}))
      pattern_->Fill(Slot(rank, Buffer::kInput, slot), pattern_->Contribution(rank),
                     shard.value * SlotElements(), SlotElements());
  }
}

void BlockMemory::Divide(int32_t rank) const {
  const DivideKernel divide = FindDivideKernel(options_.type);
  for (int32_t slot = 0; slot < NumOutputSlots(program_->collective, NodeId{rank}); ++slot)
    if (ExpectedOf(rank, slot) != nullptr)
      divide(Slot(rank, Buffer::kOutput, slot), SlotElements(), program_->collective.num_ranks());
}

int64_t BlockMemory::CountWrong(int32_t rank) const {
  const Collective& collective = program_->collective;
  int64_t wrong = 0;
  for (int32_t slot = 0; slot < NumOutputSlots(collective, NodeId{rank}); ++slot)
    if (const std::byte* expected = ExpectedOf(rank, slot); expected != nullptr)
      wrong += pattern_->Differing(
          Slot(rank, Buffer::kOutput, slot), expected,
          OutputShard(collective, NodeId{rank}, slot).value * SlotElements(), SlotElements());
  return wrong;
}

}  // namespace tutti
