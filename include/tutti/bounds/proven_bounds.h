// The bound of a question: network, collective, size and link model have one, which every command
// prints and efficiencies are against (docs/guide/bounds.md).
//
// Model       ComputeBounds (coll/bounds.h); of all-to-all(v) also the link lengths that the
//             concurrent flow ends with, where a fixed number of its passes takes about a second at
//             most. What algorithms prove of their own is not in it: a bound does not depend on who
//             made the schedule.
// Exactness   The same on every machine: work is counted, not timed.
// Errors      As ComputeBounds; kCancelled.
#pragma once

#include <optional>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/bounds/bounds.h"

namespace tutti {

struct ProvenBounds {
  Bounds bounds;
  // What a flow of all-to-all reaches, in the unit of bounds.f_upper; of networks that were not
  // unwound, and where it was looked for.
  std::optional<Rational> f_lower;
};
Result<ProvenBounds> ProveBounds(const Topology& topology, const Collective& collective);

// ProveBounds without what a flow reaches.
Result<Bounds> BoundsOf(const Topology& topology, const Collective& collective);

}  // namespace tutti
