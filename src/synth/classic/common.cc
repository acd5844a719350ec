#include "classic/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "switches.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"

namespace tutti::classic {

namespace {

// What an interrupted loop left is no schedule.
Result<Schedule> Finished(Result<Schedule> made) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  return made;
}

}  // namespace

Result<Schedule> MakeClassic(std::string_view algorithm, const Topology& topology,
                             const Collective& collective, const SynthOptions& options,
                             const ForwardMaker& make) {
  if (!collective.reduces()) return Finished(make(topology, collective, options));
  if (topology.has_switches())
    return NeedsUnwinding(algorithm, "makes what ranks reduce over links between ranks", topology);
  Result<Schedule> derived = DeriveFromForward(
      topology, collective, [&](const Topology& network, const Collective& forward) {
        return make(network, forward, options);
      });
  if (!derived || CancelRequested()) return Finished(std::move(derived));
  derived->algorithm = std::string(algorithm);
  derived->seed = options.seed;
  return derived;
}

Result<int32_t> ChunksOf(const SynthOptions& options, int32_t fallback, int32_t multiple,
                         std::string_view algorithm, std::string_view why) {
  if (options.chunks == 0) return fallback;
  if (options.chunks < 0)
    return InvalidArgument(fmt::format("chunks must be at least 1, got {}", options.chunks));
  if (options.chunks % multiple != 0)
    return InvalidArgument(
        fmt::format("'{}' cuts a shard over {}: chunks must be a multiple of {}, "
                    "got {}",
                    algorithm, why, multiple, options.chunks));
  return options.chunks;
}

int32_t PipelineChunks(const Topology& topology, int64_t bytes, int32_t depth,
                       int32_t element_bytes) {
  constexpr int64_t kUsualMost = 256;
  const auto most =
      static_cast<int32_t>(std::min(kUsualMost, bytes / std::max<int64_t>(1, element_bytes)));
  __extension__ using Wide = unsigned __int128;
  int64_t alpha = 0, bandwidth = std::numeric_limits<int64_t>::max();
  for (LinkId link : topology.Links()) {
    alpha = std::max(alpha, topology.alpha_ps(link));
    bandwidth = std::min(bandwidth, topology.bandwidth(link));
  }
  if (depth <= 1 || bytes <= 0) return 1;
  // The least cost is at chunks = sqrt((depth - 1) * bytes / (bandwidth * alpha)).
  const Wide above = Wide{static_cast<uint64_t>(depth - 1)} * static_cast<Wide>(bytes) *
                     static_cast<Wide>(kPicosecondsPerSecond);
  const Wide below = Wide{static_cast<uint64_t>(alpha)} * static_cast<Wide>(bandwidth);
  int32_t chunks = 1;
  while (chunks < most &&
         below * static_cast<Wide>(chunks) * static_cast<Wide>(chunks + 1) <= above)
    ++chunks;
  return chunks;
}

}  // namespace tutti::classic
