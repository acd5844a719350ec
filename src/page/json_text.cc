#include "json_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tutti {

std::string QuotedJson(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string ArrayJson(const std::vector<std::string>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

void JsonObject::AddReal(std::string_view key, double value) {
  AddRaw(key, std::isfinite(value) ? fmt::format("{:.9g}", value) : "null");
}

}  // namespace tutti
