// What policies are made of: rings of all jobs, and flows fitted to routes.
#pragma once

#include "tutti/control/policy.h"

namespace tutti {

enum class RingOrder : uint8_t { kRandom, kLocality };

// Every flow by ECMP.
PolicyOutput WithRings(const PolicyInput& input, RingOrder order);
// Pins every flow; `reserved_routes` of each set, from the first on, for the classes of the input.
Status PinFlows(const PolicyInput& input, int32_t reserved_routes, PolicyOutput& output);

}  // namespace tutti
