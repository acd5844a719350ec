// --to chakra
#include "tutti/lower/chakra.h"

#include <fmt/format.h>

#include "formats.h"

namespace tutti::lower {
namespace {

const FormatOption kSize{"size", "Size M of the call that traces are for", "1MiB"};
const FormatOption kInOrder{
    "in-order", "A send waits for the one before it on its link", "", {}, true};

Result<LoweredText> LowerToChakra(const Topology& topology, const Schedule& schedule,
                                  const FormatOptionValues& values) {
  const Result<int64_t> size = values.Bytes(kSize);
  if (!size) return tl::unexpected(size.error());
  Result<std::vector<std::string>> traces =
      ToChakra(topology, schedule, {.size_bytes = *size, .in_order = values.On(kInOrder)});
  if (!traces) return tl::unexpected(traces.error());
  LoweredText lowered;
  for (size_t rank = 0; rank < traces->size(); ++rank)
    lowered.files.emplace_back(fmt::format(".{}.et", rank), std::move((*traces)[rank]));
  return lowered;
}

}  // namespace

LoweringFormat ChakraFormat() {
  return {.name = "chakra",
          .description = "Chakra execution traces for ASTRA-sim, a file OUT.RANK.et for each rank",
          .extension = ".et",
          .options = {&kSize, &kInOrder},
          .schedule = LowerToChakra};
}

}  // namespace tutti::lower
