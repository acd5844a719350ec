#include "best_ranges.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace tutti::cli {
namespace {

std::string AboutBytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr double kNext = 1024;
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= kNext && unit + 1 < kUnits.size(); ++unit) value /= kNext;
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

}  // namespace

Json ToJson(const std::vector<BestRange>& ranges) {
  Json out = Json::array();
  for (size_t k = 0; k < ranges.size(); ++k) {
    Json row;
    row["algorithm"] = ranges[k].algorithm;
    row["from_bytes"] = ranges[k].from_bytes;
    row["to_bytes"] = k + 1 < ranges.size() ? Json(ranges[k + 1].from_bytes - 1) : Json(nullptr);
    out.push_back(row);
  }
  return out;
}

std::string Text(const std::vector<BestRange>& ranges) {
  if (ranges.size() == 1) return ranges.front().algorithm + " at every size";
  std::string text;
  for (size_t k = 0; k + 1 < ranges.size(); ++k)
    text +=
        fmt::format("{} up to {}, ", ranges[k].algorithm, AboutBytes(ranges[k + 1].from_bytes - 1));
  return text + "then " + ranges.back().algorithm;
}

}  // namespace tutti::cli
