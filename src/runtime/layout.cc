#include "layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory_limits.h"

namespace tutti {

int64_t Layout::Take(int64_t bytes) {
  const int64_t offset = total_bytes_ + kGuardBytes;
  total_bytes_ = (offset + bytes + kGuardBytes + kPage - 1) / kPage * kPage;
  areas_.back().push_back({offset, bytes});
  return offset;
}

Status Layout::PlaceRank(int32_t rank) {
  areas_.emplace_back();
  auto& [input, output, scratch] = offsets_.emplace_back();
  if (const std::optional<int64_t> shift = slots_.InputShift(rank)) {
    // One piece of memory: it begins with whichever buffer does and ends with whichever ends last.
    const int64_t inputs = slots_.BufferElements(rank, Buffer::kInput);
    const int64_t outputs = slots_.BufferElements(rank, Buffer::kOutput);
    const int64_t low = std::min<int64_t>(0, *shift);
    const int64_t high = std::max(outputs, *shift + inputs);
    output = Take((high - low) * element_bytes()) - low * element_bytes();
    input = output + *shift * element_bytes();
  } else {
    input = Take(BufferBytes(rank, Buffer::kInput));
    output = Take(BufferBytes(rank, Buffer::kOutput));
  }
  scratch = Take(BufferBytes(rank, Buffer::kScratch));
  if (total_bytes_ < kMaxBytes / 2) return {};
  return MakeError(ErrorCode::kResourceExhausted, "the buffers of all ranks exceed 2^62 bytes");
}

Result<Layout> Layout::Make(const Plan& plan, const RunOptions& options,
                            std::optional<int32_t> only) {
  Result<SlotMap> slots =
      SlotMap::Rounded(plan, options.size_bytes, SizeOf(options.type), options.in_place);
  if (!slots) return tl::unexpected(slots.error());
  Layout layout(std::move(*slots));
  const Collective& collective = plan.collective;
  int64_t largest_input = 0;
  for (int32_t rank = 0; rank < collective.num_ranks(); ++rank) {
    if (only && *only != rank) {
      layout.areas_.emplace_back();
      layout.offsets_.emplace_back();
    } else if (const Status placed = layout.PlaceRank(rank); !placed) {
      return Within(fmt::format("rank {}", rank), placed.error());
    }
    largest_input = std::max(largest_input, layout.BufferBytes(rank, Buffer::kInput));
  }
  // M is what a rank sends where slots differ, and a number of equal shards everywhere else.
  layout.size_bytes_ =
      !collective.equal_weights()
          ? largest_input
          : layout.ElementsOf(1) * collective.weight_of_size() * layout.element_bytes();
  return layout;
}

}  // namespace tutti
