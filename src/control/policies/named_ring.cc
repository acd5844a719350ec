// Rings in the order of the ranks' hosts as the tenant named them, routes by ECMP: a library on the tenant's side
// knows its hosts and not the network ([mccs] 6, NCCL).
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
Policy NamedRingPolicy() {
  return {"named-ring",
          "rings through the hosts in the order of the tenant's ranks, routes by ECMP",
          RingOrder::kAsNamed, LeaveToEcmp};
}

}  // namespace tutti
