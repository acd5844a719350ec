// Fair flow assignment with routes reserved for higher classes ([mccs] 4.3 example 3).
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Result<PolicyOutput> RunPfa(const PolicyInput& input) {
  PolicyOutput output = WithRings(input, RingOrder::kLocality);
  const PinRules rules{.reserved_routes = input.reserved_routes};
  if (Status status = PinFlows(input, rules, output); !status)
    return tl::unexpected(status.error());
  return output;
}

}  // namespace

Policy PriorityFlowPolicy() {
  return {"pfa", "the same, with routes reserved for the higher classes", RunPfa};
}

}  // namespace tutti
