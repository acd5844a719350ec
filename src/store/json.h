// The part of a schedule file that is text in both formats: everything but the transfers.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/result.h"
#include "tutti/store/store.h"

namespace tutti {

// The JSON object of docs/formats/schedule.md without "transfers".
std::string HeaderToJson(const Topology& topology, const Schedule& header);
// kCorrupt naming the place; also when there are transfers.
Result<ScheduleFile> HeaderFromJson(std::string_view text);

}  // namespace tutti
