// --to mscclpp
#include "tutti/lower/mscclpp.h"

#include <fmt/format.h>

#include "formats.h"
#include "mscclpp_file.h"

namespace tutti::lower {
namespace {

const FormatOption kThreadBlocks{
    "thread-blocks", "Thread blocks per rank, where there is so much that is independent", "8"};

Result<LoweredText> LowerToMscclpp(const Topology& topology, const Schedule& schedule,
                                   const FormatOptionValues& values) {
  const Result<int64_t> min_bytes = values.Bytes(kMinSize);
  if (!min_bytes) return tl::unexpected(min_bytes.error());
  const Result<int64_t> max_bytes = values.Bytes(kMaxSize);
  if (!max_bytes) return tl::unexpected(max_bytes.error());
  const Result<int32_t> blocks = values.Count(kThreadBlocks, 1, 256);
  if (!blocks) return tl::unexpected(blocks.error());
  const Result<int32_t> box = values.Count(kBoxRanks, 0, 1 << 20);
  if (!box) return tl::unexpected(box.error());
  Result<std::string> json = ToMscclpp(topology, schedule,
                                       {.in_place = values.On(kInPlace),
                                        .min_bytes = *min_bytes,
                                        .max_bytes = *max_bytes,
                                        .thread_blocks = *blocks,
                                        .box_ranks = *box});
  if (!json) return tl::unexpected(json.error());
  const Result<MscclppVerdict> verdict = CheckMscclpp(*json);
  if (!verdict) return tl::unexpected(verdict.error());
  if (!verdict->faults.empty()) {
    const std::vector<PlanFault>& faults = verdict->faults;
    const std::string why = verdict->too_large ? faults.back().message + "; " + lower::kFewerChunks
                                               : faults.front().message;
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("the lowered file does not pass the checker (nothing was written): {}", why));
  }
  return LoweredText{std::move(*json), {}, true, "MSCCL++ would run it", {}};
}

}  // namespace

LoweringFormat MscclppFormat() {
  return {.name = "mscclpp",
          .description = "a JSON execution plan of MSCCL++",
          .extension = ".json",
          .options = {&kMinSize, &kMaxSize, &kInPlace, &kThreadBlocks, &kBoxRanks},
          .schedule = LowerToMscclpp};
}

}  // namespace tutti::lower
