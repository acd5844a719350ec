// Plans as files, so that they travel from who makes them to who runs them.
//
// Model       Bytes with a magic, a version, the length and a checksum of what follows; numbers of
//             varying length. Equal plans give equal bytes, and only those bytes are read: there is
//             one form of each plan. Format: docs/formats/plan-file.md.
// Trust       The reader takes any bytes: no number makes it allocate more than a small multiple of
//             the file. What it gives has numbers in range, and nothing more: whether such a plan
//             is right CheckPlan says, and MakeProgram refuses what cannot be laid out. The
//             checksum finds damage, not malice.
// Complexity  O(bytes).
// Errors      kCorrupt: no such file, of another version, damaged, or a number out of its range; says
//             at which byte.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/file_kind.h"
#include "tutti/base/result.h"
#include "tutti/lower/plan.h"

namespace tutti {

// kInvalidArgument: a plan that no file can hold, since the reader would refuse it.
Result<std::string> PlanToFile(const Plan& plan);
Result<Plan> PlanFromFile(std::string_view bytes);

}  // namespace tutti
