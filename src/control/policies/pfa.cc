// Fair flow assignment with routes reserved for higher classes ([mccs] 4.3 example 3).
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Result<PolicyOutput> Run(const PolicyInput& input) {
  PolicyOutput output = WithRings(input, RingOrder::kLocality);
  if (Status status = PinFlows(input, input.reserved_routes, output); !status)
    return tl::unexpected(status.error());
  return output;
}

}  // namespace

Policy PriorityFlowPolicy() {
  return {"pfa", "the same, with routes reserved for the higher classes", Run};
}

}  // namespace tutti
