#include "tutti/base/random.h"
#include "tutti/control/policy.h"

namespace tutti {

int32_t EcmpRoute(const ClusterView& view, const RingFlow& flow, uint64_t connection,
                  uint64_t seed) {
  // Mixed first: a small seed would only exchange ports whose numbers differ in its bits.
  uint64_t state = Random(seed).Next();
  for (const uint64_t word :
       {static_cast<uint64_t>(flow.from_port), static_cast<uint64_t>(flow.to_port), connection})
    state = Random(state ^ word).Next();
  const int32_t routes = view.NumRoutes(view.RouteSet(flow.from_port, flow.to_port));
  return static_cast<int32_t>(Random(state).Below(static_cast<uint64_t>(routes)));
}

}  // namespace tutti
