// Timed schedules of all-gather and broadcast over any links: variants of policy, waiting and order
// of links (events.h), each improved by routing
// it again (reroute.h) unless options.final_pass is false; the best is kept.
#pragma once

#include "ten/input.h"

namespace tutti::ten {

Result<Schedule> MakeInEvents(const Input& input, const SynthOptions& options);

}  // namespace tutti::ten
