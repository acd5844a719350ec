// Fair flow assignment with routes reserved for higher classes ([mccs] 4.3 example 3).
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Status PinWithReserves(const PolicyInput& input, PolicyOutput& output) {
  return PinFlows(input, {.reserved_routes = input.reserved_routes}, output);
}

}  // namespace

Policy PriorityFlowPolicy() {
  return {"pfa", "ffa, with routes reserved for the higher classes", RingOrder::kLocality,
          PinWithReserves, true};
}

}  // namespace tutti
