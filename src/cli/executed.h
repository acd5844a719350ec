// What ranks did when they executed a plan, for pages: from a run, or from the trace of one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/lower/plan.h"
#include "tutti/page/page.h"
#include "tutti/runtime/executor.h"

namespace tutti::cli {

// What ranks took in: the pieces of one step from one rank to another are one message.
std::vector<PageExecuted> ExecutedMessages(const Plan& plan, const RunReport& report);

// Whether the file at `path` begins as a trace in the Chrome trace format does.
bool IsTrace(const std::string& path);

// The time, size and events of what `run --trace` wrote. kInvalidArgument with the path: no JSON,
// the trace of a simulation, or of an execution of another plan.
Result<RunReport> ReadExecutedTrace(const std::string& path, const Plan& plan);

}  // namespace tutti::cli
