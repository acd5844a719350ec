#include "switches.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/topo/operators.h"

namespace tutti {

tl::unexpected<Error> NeedsUnwinding(std::string_view algorithm, std::string_view why,
                                     const Topology& topology) {
  constexpr int64_t kUsualDegree = 2;
  const Result<int64_t> largest = LargestUnwinding(topology);
  const std::string what = fmt::format("'{}' {}, and the network has switches", algorithm, why);
  if (!largest)
    return MakeError(ErrorCode::kInfeasible, fmt::format("{}: {}", what, largest.error().message));
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("{}; replace them by links between ranks: unwind({},degree={}) or --unwind auto",
                  what, topology.name().empty() ? "NETWORK" : topology.name(),
                  std::min(*largest, kUsualDegree)));
}

}  // namespace tutti
