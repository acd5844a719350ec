// Demand matrices as text: what each rank sends to each, row by row.
//
// Format      Sizes as ParseSizeBytes reads them (bytes where no unit stands), separated by commas,
//             semicolons or blanks: CSV and the matrix files of nccl-tests alike. Lines need not be
//             rows.
// Complexity  O(characters).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

// kInvalidArgument: "<name>:<line>: ..." for what is no size. How many entries there are is looked at by
// Collective::Make.
Result<std::vector<int64_t>> ParseDemandText(std::string_view text, std::string_view name);

}  // namespace tutti
