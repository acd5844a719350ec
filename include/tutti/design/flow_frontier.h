// The frontier in three dimensions: TL and TB of a collective, and how fast all-to-all goes.
//
// Model       Of all networks that the finder knows for a size (finder.h), those that it drops for
//             their TL and TB included, as far as they are bases or expansions of what it keeps.
//             f is the concurrent flow of tutti/flow/concurrent_flow.h, proven from both sides.
// Units       f in units of a link's bandwidth.
// Invariants  Ascending in TL, then TB, then from large to small f. Each is proven to carry more
//             than every other network looked at that is no worse in TL and TB: its f_lower is
//             above their f_upper. So within the gap of the flows none is missing, and none is there
//             for an f that may be another's.
// Complexity  One breadth-first search a rank and network, which bounds its f (all pairs take up at
//             least their distance), and a flow for those that this does not rule out.
// Errors      As FindFrontier; kCancelled.
#pragma once

#include <vector>

#include "tutti/base/rational.h"
#include "tutti/design/finder.h"

namespace tutti {

struct DesignWithFlow {
  Design design;
  Rational f_lower, f_upper;
};

struct FlowFrontier {
  std::vector<DesignWithFlow> designs;
  int32_t looked_at = 0, solved = 0;  // networks; flows among them
};

// `gap`: as ConcurrentFlowOptions has it.
Result<FlowFrontier> FindFlowFrontier(const DesignQuestion& question, double gap);

}  // namespace tutti
