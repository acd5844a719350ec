// The topology-unaware baseline: rings by chance, routes by ECMP.
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
Policy RandomRingPolicy() {
  return {"random-ring", "rings in any order, routes by ECMP: what ignorance of the network gives",
          RingOrder::kRandom, LeaveToEcmp};
}

}  // namespace tutti
