#include "json_text.h"

#include <cmath>

namespace tutti {

std::string ArrayJson(const std::vector<std::string>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

int64_t Picoseconds(double seconds) {
  constexpr double kPerSecond = 1e12;
  return std::llround(seconds * kPerSecond);
}

void JsonObject::AddReal(std::string_view key, double value) {
  AddRaw(key, std::isfinite(value) ? fmt::format("{:.9g}", value) : "null");
}

std::string RationalJson(const Rational& value) {
  JsonObject out;
  out.AddText("exact", value.ToString());
  out.AddReal("value", value.ToDouble());
  return out.ToString();
}

}  // namespace tutti
