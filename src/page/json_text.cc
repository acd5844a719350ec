#include "json_text.h"

#include <cmath>

namespace tutti {

std::string ArrayJson(const std::vector<std::string>& values) {
  size_t size = 2;
  for (const std::string& value : values) size += value.size() + 1;
  std::string out;
  out.reserve(size);
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    out += values[i];
  }
  out += ']';
  return out;
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
