// The page of `compare --html`: what its algorithms take over sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/advise/best_by_size.h"
#include "tutti/page/page.h"

namespace tutti::cli {

// The time of each algorithm's fastest schedule at `sizes`, in the order of the first of each, by
// simulation. Those of which none is held at a size leave it out.
Result<std::vector<PageCurve>> CurvesOf(const std::vector<HeldSchedule>& held,
                                        const SimOptions& options,
                                        const std::vector<int64_t>& sizes);

// Sizes to draw: from 1 KiB to 1 GiB, those asked for, and those where the fastest changes.
std::vector<int64_t> SizesToDraw(const std::vector<int64_t>& asked,
                                 const std::vector<BestRange>& best);

// The bound at the sizes.
PageCurve BoundCurve(const Bounds& bounds, const std::vector<int64_t>& sizes);

}  // namespace tutti::cli
