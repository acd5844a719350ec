#include "service_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace tutti::cli {
namespace {

constexpr double kPsAUs = 1e6;
constexpr std::string_view kWaits = "waits for its turn";

struct Found {
  int64_t rank;
  double start_us;
  PageOperations::Event event;
};

std::optional<Found> FoundIn(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const Json arguments = json.value("args", Json::object());
  const auto number = [](const Json& of, const char* key) -> std::optional<double> {
    const auto at = of.is_object() ? of.find(key) : of.end();
    if (at == of.end() || !at->is_number() || !std::isfinite(at->get<double>()))
      return std::nullopt;
    return at->get<double>();
  };
  const auto start = number(json, "ts"), lasts = number(json, "dur"), rank = number(json, "tid");
  const auto sequence = number(arguments, "sequence"), bytes = number(arguments, "bytes");
  if (!start || !lasts || !rank || !sequence || *lasts < 0 ||
      !json.value("name", Json()).is_string())
    return std::nullopt;
  Found found{static_cast<int64_t>(*rank), *start, {}};
  found.event.name = json["name"].get<std::string>();
  found.event.waits = found.event.name == kWaits;
  found.event.sequence = static_cast<int64_t>(*sequence);
  found.event.bytes = static_cast<int64_t>(bytes.value_or(0));
  found.event.end_ps = std::llround(*lasts * kPsAUs);  // so far how long it lasts
  return found;
}

}  // namespace

PageOperations OperationsOf(const std::string& communicator, const Json& answer) {
  std::vector<Found> all;
  std::map<int64_t, int32_t> lane_of;
  for (const Json& json : answer.value("traceEvents", Json::array()))
    if (std::optional<Found> found = FoundIn(json)) {
      lane_of.emplace(found->rank, 0);
      all.push_back(*std::move(found));
    }
  double first_us = all.empty() ? 0 : all.front().start_us;
  for (const Found& found : all) first_us = std::min(first_us, found.start_us);
  PageOperations operations{
      .title = "communicator " + communicator,
      .how = "the last operations of the ranks on this host, as its daemon traced them"};
  for (auto& [rank, lane] : lane_of) {
    lane = static_cast<int32_t>(operations.lanes.size());
    operations.lanes.push_back(fmt::format("rank {}", rank));
  }
  for (Found& found : all) {
    found.event.lane = lane_of.at(found.rank);
    found.event.start_ps = std::llround((found.start_us - first_us) * kPsAUs);
    found.event.end_ps += found.event.start_ps;
    operations.events.push_back(std::move(found.event));
  }
  std::stable_sort(operations.events.begin(), operations.events.end(),
                   [](const auto& a, const auto& b) { return a.start_ps < b.start_ps; });
  return operations;
}

}  // namespace tutti::cli
