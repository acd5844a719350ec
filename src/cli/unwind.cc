#include "unwind.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>

#include "tutti/topo/expression.h"

namespace tutti::cli {
namespace {

// The largest degree that every switch has ranks for.
int32_t LargestDegree(const Topology& topology) {
  size_t fewest = std::numeric_limits<int32_t>::max();
  for (NodeId node : topology.Nodes()) {
    if (topology.is_rank(node)) continue;
    std::set<NodeId> neighbours;
    for (LinkId link : topology.InLinks(node)) neighbours.insert(topology.tail(link));
    fewest = std::min(fewest, neighbours.size());
  }
  return std::max(1, static_cast<int32_t>(fewest) - 1);
}

Result<Topology> WithDegree(const std::string& expression, int32_t degree) {
  const Result<ExpressionTree> tree = ParseExpressionTree(expression);
  if (!tree) return tl::unexpected(tree.error());
  return ParseTopology(fmt::format("unwind({},degree={})", tree->text, degree));
}

Result<Rational> PredictedOn(const Topology& topology, const Synthesizer& synthesizer,
                             const CollectiveFlags& flags, const SynthOptions& options) {
  const Result<Collective> collective = flags.Make(topology, synthesizer.one_shard_all_reduce);
  if (!collective) return tl::unexpected(collective.error());
  const Result<Schedule> schedule = RunSynthesizer(synthesizer, topology, *collective, options);
  if (!schedule) return tl::unexpected(schedule.error());
  return PredictedSeconds(topology, *schedule, options.size_bytes);
}

}  // namespace

Result<Unwound> UnwindBy(const std::string& expression, const std::string& degree) {
  int32_t number = 0;
  const char* end = degree.data() + degree.size();
  const auto [stop, fault] = std::from_chars(degree.data(), end, number);
  if (fault != std::errc() || stop != end || number < 1)
    return InvalidArgument(
        fmt::format("--unwind: got '{}', wanted a degree of at least 1 or auto", degree));
  Result<Topology> topology = WithDegree(expression, number);
  if (!topology) return tl::unexpected(topology.error());
  return Unwound{std::move(*topology), number};
}

Result<Unwound> Unwind(const std::string& expression, const std::string& how,
                       const Synthesizer& synthesizer, const CollectiveFlags& collective,
                       const SynthOptions& options) {
  if (how != kTrySeveral) return UnwindBy(expression, how);
  Result<Topology> whole = ParseTopology(expression);
  if (!whole) return tl::unexpected(whole.error());
  if (!whole->has_switches()) return Unwound{std::move(*whole)};

  std::vector<int32_t> degrees;
  const int32_t largest = LargestDegree(*whole);
  for (int32_t degree = 1; degree < largest; degree *= 2) degrees.push_back(degree);
  degrees.push_back(largest);
  std::optional<Unwound> best;
  std::optional<Rational> best_s;
  std::optional<Error> first_error;
  std::vector<std::pair<int32_t, double>> tried;
  for (const int32_t degree : degrees) {
    Result<Topology> topology = WithDegree(expression, degree);
    if (!topology) return tl::unexpected(topology.error());
    const Result<Rational> seconds = PredictedOn(*topology, synthesizer, collective, options);
    if (!seconds) {
      if (seconds.error().code == ErrorCode::kCancelled) return tl::unexpected(seconds.error());
      if (!first_error) first_error = seconds.error();
      continue;
    }
    tried.emplace_back(degree, seconds->ToDouble());
    if (best_s && *best_s <= *seconds) continue;
    best_s = *seconds;
    best = Unwound{std::move(*topology), degree};
  }
  if (!best) return tl::unexpected(*first_error);
  best->tried = std::move(tried);
  return *std::move(best);
}

std::string UnwoundText(const Unwound& unwound) {
  if (unwound.degree == 0) return "no switches to unwind";
  std::string text = fmt::format("unwound with degree {}", unwound.degree);
  if (unwound.tried.size() < 2) return text;
  text += ", of ";
  for (size_t i = 0; i < unwound.tried.size(); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", unwound.tried[i].first,
                        Seconds(unwound.tried[i].second));
  return text;
}

void DescribeUnwound(const Unwound& unwound, Json& out) {
  Json& json = out["unwind"];
  json["degree"] = unwound.degree;
  json["tried"] = Json::array();
  for (const auto& [degree, seconds] : unwound.tried)
    json["tried"].push_back({{"degree", degree}, {"time_s", seconds}});
}

}  // namespace tutti::cli
