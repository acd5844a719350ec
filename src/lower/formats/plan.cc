// --to plan
#include "tutti/lower/plan.h"

#include "formats.h"
#include "tutti/lower/lowering.h"

namespace tutti::lower {
namespace {

Result<LoweredText> LowerToPlanText(const Topology& topology, const Schedule& schedule,
                                    const FormatOptionValues&) {
  const Result<Plan> plan = Lower(topology, schedule);
  if (!plan) return tl::unexpected(plan.error());
  return LoweredText{PlanToText(*plan), {}, false, {}, {}};
}

}  // namespace

LoweringFormat PlanFormat() {
  return {.name = "plan",
          .description = "our own executor's instructions as text",
          .extension = ".plan",
          .options = {},
          .schedule = LowerToPlanText,
          .groups = true};
}

}  // namespace tutti::lower
