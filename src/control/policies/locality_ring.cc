// Rings that leave each rack once ([mccs] 4.3 example 1), routes by ECMP.
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
Policy LocalityRingPolicy() {
  return {"locality-ring", "rings that leave each rack once, routes by ECMP", RingOrder::kLocality,
          LeaveToEcmp};
}

}  // namespace tutti
