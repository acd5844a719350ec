#include "unwind.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tutti/topo/operators.h"

namespace tutti::cli {

Result<Unwound> Unwind(const std::string& expression, std::string_view how,
                       const Synthesizer* synthesizer, const CollectiveFlags& collective,
                       const SynthOptions& options) {
  if (collective.has_groups())
    return InvalidArgument("--unwind does not go with groups: they are of the network's own links");
  if (how == kTrySeveral) {
    const Result<CollectiveKind> kind = ParseCollectiveKind(collective.name);
    if (!kind) return tl::unexpected(kind.error());
    const auto make = [&collective](const Topology& topology, bool one_shard) {
      return collective.Make(topology, one_shard);
    };
    return UnwindBest(expression, synthesizer, {*kind, make}, options);
  }
  int32_t degree = 0;
  const char* end = how.data() + how.size();
  const auto [stop, fault] = std::from_chars(how.data(), end, degree);
  if (fault != std::errc() || stop != end || degree < 1)
    return InvalidArgument(
        fmt::format("--unwind: got '{}', wanted a degree of at least 1 or auto", how));
  return UnwindBy(expression, degree);
}

bool TriesUnwindings(const Topology& topology, const CollectiveFlags& collective) {
  if (collective.has_groups()) return false;
  const Result<CollectiveKind> kind = ParseCollectiveKind(collective.name);
  return kind && TriesUnwindings(topology, *kind);
}

Error SwitchesDoNotReduce(const Topology& topology, CollectiveKind kind) {
  constexpr int64_t kUsualDegree = 2;
  const std::string what =
      fmt::format("{} on {}: ranks reduce, switches only forward", Name(kind), NameOf(topology));
  const Result<int64_t> largest = LargestUnwinding(topology);
  if (!largest)
    return {ErrorCode::kInfeasible, fmt::format("{}; {}", what, largest.error().message)};
  const std::string instead = topology.name().empty()
                                  ? ""
                                  : fmt::format(" or 'unwind({},degree={})' as the network",
                                                topology.name(), std::min(*largest, kUsualDegree));
  return {ErrorCode::kInfeasible,
          fmt::format("{}; replace them by links between ranks: --unwind auto,{}", what, instead)};
}

std::string UnwoundText(const Unwound& unwound) {
  if (unwound.degree == 0)
    return unwound.tried.empty() ? "no switches to unwind" : "no unwinding is faster";
  std::string text = fmt::format("unwound with degree {}", unwound.degree);
  for (size_t i = 0; unwound.tried.size() > 1 && i < unwound.tried.size(); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? ", of " : ", ", unwound.tried[i].first,
                        Seconds(unwound.tried[i].second));
  // 0 is timed through the switches themselves.
  return text +
         "; times are of links between ranks: chunks wait in no switch, and each pays one alpha";
}

void DescribeUnwound(const Unwound& unwound, Json& out) {
  Json& json = out["unwind"];
  json["degree"] = unwound.degree;
  json["tried"] = Json::array();
  for (const auto& [degree, seconds] : unwound.tried)
    json["tried"].push_back({{"degree", degree}, {"time_s", seconds}});
}

}  // namespace tutti::cli
