// The topology-unaware baseline: rings by chance, routes by ECMP.
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Result<PolicyOutput> RunRandomRing(const PolicyInput& input) {
  return WithRings(input, RingOrder::kRandom);
}

}  // namespace

Policy RandomRingPolicy() {
  return {"random-ring", "rings in any order, routes by ECMP: what ignorance of the network gives",
          RunRandomRing};
}

}  // namespace tutti
