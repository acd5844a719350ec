#include "json_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "reader.h"
#include "text.h"

namespace tutti::import {

Result<nlohmann::json> ParseJsonFile(std::string_view text, const std::string& source) {
  if (JsonNesting(text) > kMaxJsonDepth)
    return FaultIn(source, 0, fmt::format("$: nested deeper than {} levels", kMaxJsonDepth));
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view before = text.substr(0, std::min(error.byte, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return FaultIn(source, line, fmt::format("no JSON: syntax error at byte {}", error.byte));
  } catch (const nlohmann::json::out_of_range& error) {  // quotes the digits of the number
    return FaultIn(source, 0, fmt::format("no JSON: {}", error.what()));
  }
}

}  // namespace tutti::import
