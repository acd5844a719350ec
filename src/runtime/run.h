// RunPlan with what its users do not choose: for tests, benchmarks and measurements.
#pragma once

#include "session.h"
#include "tutti/base/result.h"
#include "tutti/runtime/executor.h"

namespace tutti {

struct RunMode {
  Tuning tuning = {};
  bool in_threads = false;
  Death death = {};
};

Result<RunReport> RunPlanAs(const Plan& plan, const RunOptions& options, const RunMode& mode);

}  // namespace tutti
