// Any text is a flow file or an error, and any flow that is read is a start or an error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/base/check.h"
#include "tutti/flow/flow_file.h"
#include "tutti/topo/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto stored = tutti::FlowFromJson(text);
  if (!stored) {
    TUTTI_CHECK(!stored.error().message.empty());
    return 0;
  }
  static const tutti::Topology kTopology = *tutti::ParseTopology("without(ring(4),links=1)");
  tutti::ConcurrentFlowOptions options;
  options.max_passes = 2;
  options.start = stored->AsStart();
  const auto flow = tutti::SolveConcurrentFlow(kTopology, options);
  TUTTI_CHECK(!flow || tutti::CheckConcurrentFlow(kTopology, *flow).has_value());
  return 0;
}
