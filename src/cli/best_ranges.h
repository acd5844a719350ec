// What `compare` prints of the sizes at which the best algorithm changes.
#pragma once

#include <string>
#include <vector>

#include "common.h"
#include "tutti/advise/best_by_size.h"

namespace tutti::cli {

// [{"algorithm": .., "from_bytes": .., "to_bytes": ..}], the last up to null.
Json ToJson(const std::vector<BestRange>& ranges);
// "direct up to 36.2 KiB, then bfb".
std::string Text(const std::vector<BestRange>& ranges);

}  // namespace tutti::cli
