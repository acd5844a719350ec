// Rings that leave each rack once ([mccs] 4.3 example 1), routes by ECMP.
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Result<PolicyOutput> RunLocalityRing(const PolicyInput& input) {
  return WithRings(input, RingOrder::kLocality);
}

}  // namespace

Policy LocalityRingPolicy() {
  return {"locality-ring", "rings that leave each rack once, routes by ECMP", RunLocalityRing};
}

}  // namespace tutti
