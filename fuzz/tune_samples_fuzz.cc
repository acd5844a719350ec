// Any text is samples or an error that names a line; samples become a model without a negative
// number, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/tune/calibration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace tune = tutti::tune;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto samples = tune::ParseSamples(text);
  if (!samples) {
    TUTTI_CHECK(samples.error().message.rfind("line ", 0) == 0);
    return 0;
  }
  const auto model = tune::FitModel(tune::Library::kOpenMpi, *samples);
  if (!model) return 0;
  for (const tune::PathCost& path : {model->inside, model->between}) {
    TUTTI_CHECK(path.latency_s >= 0 && path.flow_s_per_byte >= 0 && path.node_s_per_byte >= 0);
  }
  TUTTI_CHECK(model->send_s >= 0 && model->receive_s >= 0);
  TUTTI_CHECK(model->copy_s >= 0 && model->copy_s_per_byte >= 0);
  return 0;
}
