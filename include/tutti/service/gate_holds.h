// What a communicator waits with while its gate is shut: every byte that it sends, or only collectives that have not begun.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti::service {

// In frames between daemons as numbers.
enum class GateHolds : uint8_t { kSends, kLaunches };

// As requests and reports call it: sends, launches.
constexpr const char* NameOf(GateHolds holds) {
  return holds == GateHolds::kLaunches ? "launches" : "sends";
}
// None: it is neither.
constexpr std::optional<GateHolds> GateHoldsOf(std::string_view name) {
  for (const GateHolds each : {GateHolds::kSends, GateHolds::kLaunches})
    if (name == NameOf(each)) return each;
  return std::nullopt;
}

}  // namespace tutti::service
