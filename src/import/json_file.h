// JSON of a file, for the readers of LLDP and topograph.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tutti/base/result.h"

namespace tutti::import {

// kCorrupt: nested deeper than kMaxJsonDepth, a key that an object has twice with its place, or the
// line at which it stops being JSON.
Result<nlohmann::json> ParseJsonFile(std::string_view text, const std::string& source);

}  // namespace tutti::import
