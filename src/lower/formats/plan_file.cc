// --to plan-file
#include "tutti/lower/plan_file.h"

#include <utility>

#include "formats.h"
#include "tutti/lower/lowering.h"

namespace tutti::lower {
namespace {

Result<LoweredText> ToFile(const Topology& topology, const Schedule& schedule,
                           const FormatOptionValues&) {
  const Result<Plan> plan = Lower(topology, schedule);
  if (!plan) return tl::unexpected(plan.error());
  Result<std::string> bytes = PlanToFile(*plan);
  if (!bytes) return tl::unexpected(bytes.error());
  return LoweredText{.text = *std::move(bytes), .files = {}, .judged_as = {}, .details = {}};
}

}  // namespace

LoweringFormat PlanFileFormat() {
  return {.name = "plan-file",
          .description = "our own executor's instructions as a checksummed binary file",
          .extension = ".tplan",
          .options = {},
          .schedule = ToFile,
          .groups = true};
}

}  // namespace tutti::lower
