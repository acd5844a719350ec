// Any text is a workload file or an error; a workload becomes steps whose times and bytes keep
// their limits, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/training/training_workload.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto workload = tutti::ParseTrainingWorkload(text);
  if (!workload) {
    TUTTI_CHECK(!workload.error().message.empty());
    return 0;
  }
  TUTTI_CHECK(!workload->layers.empty());
  TUTTI_CHECK(workload->Parameters() >= 0 && workload->ForwardFlops() >= 0);
  const tutti::TrainingSplit split{
      .batch = workload->batch, .tensor = workload->tensor, .replicas = 2};
  const auto steps = tutti::MakeTrainingSteps(*workload, split, tutti::kA100Fp16);
  if (!steps) {
    TUTTI_CHECK(!steps.error().message.empty());
    return 0;
  }
  TUTTI_CHECK(steps->size() == 2 * workload->layers.size());
  int64_t bytes = 0, compute_ps = 0;
  for (const tutti::TrainingStep& step : *steps) {
    TUTTI_CHECK(step.compute_ps >= 0 && step.gradient_bytes >= 0 && step.tensor_bytes >= 0);
    bytes += step.gradient_bytes;
    compute_ps += step.compute_ps;
  }
  TUTTI_CHECK(bytes >= 0 && bytes <= int64_t{1} << 61);
  TUTTI_CHECK(compute_ps >= 0 && compute_ps <= int64_t{1} << 61);
  return 0;
}
