#include "tutti/tune/calibration.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "tutti/base/check.h"

namespace tutti::tune {
namespace {

// Messages up to the first are taken to be eager, from the second on not; the limit lies between.
constexpr double kLongestShort = 8192, kShortestLong = 32768;
constexpr double kEagerBytes = 16384;

constexpr std::string_view kKinds[] = {"pair", "all", "burst", "copy"};

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

bool ParseIn(std::string_view word, double least, double most, double* value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size() && *value >= least &&
         *value <= most;
}

std::optional<Sample> ParseSample(std::string_view line) {
  const std::vector<std::string_view> words = Words(line);
  if (words.size() != 6) return std::nullopt;
  const auto* kind = std::find(std::begin(kKinds), std::end(kKinds), words[1]);
  if (kind == std::end(kKinds)) return std::nullopt;
  Sample sample;
  sample.kind = static_cast<Sample::Kind>(kind - std::begin(kKinds));
  const bool is_copy = sample.kind == Sample::Kind::kCopy;
  sample.between = words[2] == "between";
  if (is_copy ? words[2] != "-" : (!sample.between && words[2] != "inside")) return std::nullopt;
  constexpr double kMaxRanks = 1e7, kMaxBytes = 1e15;
  constexpr double kMinSeconds = 1e-12, kMaxSeconds = 1e6;
  if (!ParseIn(words[3], 1, kMaxRanks, &sample.senders) ||
      !ParseIn(words[4], 1, kMaxBytes, &sample.x) ||
      !ParseIn(words[5], kMinSeconds, kMaxSeconds, &sample.seconds)) {
    return std::nullopt;
  }
  return sample;
}

struct Fitted {
  Line line;
  double senders = 1;
};

// For the samples from `least` to `most`.
std::optional<Fitted> Fit(const std::vector<Sample>& samples, Sample::Kind kind, bool between,
                          double least, double most) {
  std::vector<Point> points;
  Fitted fitted;
  for (const Sample& sample : samples) {
    if (sample.kind != kind || sample.between != between) continue;
    if (sample.x < least || sample.x > most) continue;
    points.push_back({sample.x, sample.seconds});
    fitted.senders = std::max(fitted.senders, sample.senders);
  }
  if (points.empty()) return std::nullopt;
  fitted.line = FitLine(points);
  return fitted;
}
std::optional<Fitted> Fit(const std::vector<Sample>& samples, Sample::Kind kind, bool between) {
  return Fit(samples, kind, between, 0, std::numeric_limits<double>::infinity());
}

struct FittedPath {
  PathCost cost;                // of long messages; latency still holds a message's processor time
  double short_s_per_byte = 0;  // of one rank
};

std::optional<FittedPath> FitPath(const std::vector<Sample>& samples, bool between) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto all = Fit(samples, Sample::Kind::kAll, between, 0, kLongestShort);
  const auto pair = Fit(samples, Sample::Kind::kPair, between, 0, kLongestShort);
  const auto long_all = Fit(samples, Sample::Kind::kAll, between, kShortestLong, kInfinity);
  const auto long_pair = Fit(samples, Sample::Kind::kPair, between, kShortestLong, kInfinity);
  if (!all || !pair || !long_all || !long_pair) return std::nullopt;
  const double of_all = long_all->line.slope;
  return FittedPath{.cost = {.latency_s = all->line.intercept,
                             .flow_s_per_byte = std::min(long_pair->line.slope, of_all),
                             .node_s_per_byte = of_all / long_all->senders},
                    .short_s_per_byte = pair->line.slope};
}

}  // namespace

Line FitLine(const std::vector<Point>& points) {
  TUTTI_CHECK(!points.empty());
  // Weighted by 1 / y^2, so that microseconds count as much as milliseconds.
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.y * point.y);
    w += weight;
    wx += weight * point.x;
    wy += weight * point.y;
    wxx += weight * point.x * point.x;
    wxy += weight * point.x * point.y;
  }
  const double determinant = w * wxx - wx * wx;
  Line line{.intercept = wy / w, .slope = 0};
  if (determinant > 1e-12 * w * wxx) {
    line.slope = (w * wxy - wx * wy) / determinant;
    line.intercept = (wy - line.slope * wx) / w;
  }
  if (line.slope < 0) return {.intercept = wy / w, .slope = 0};
  if (line.intercept < 0) return {.intercept = 0, .slope = wxy / wxx};
  return line;
}

Result<std::vector<Sample>> ParseSamples(std::string_view text) {
  constexpr std::string_view kMark = "tutti-sample ";
  std::vector<Sample> samples;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.substr(0, kMark.size()) != kMark) continue;
    const std::optional<Sample> sample = ParseSample(line);
    if (!sample) {
      return MakeError(ErrorCode::kCorrupt,
                       "line " + std::to_string(number) + ": not a sample: " + std::string(line));
    }
    samples.push_back(*sample);
  }
  return samples;
}

Result<CostModel> FitModel(Library library, const std::vector<Sample>& samples, bool crowded) {
  const auto inside = FitPath(samples, false), between = FitPath(samples, true);
  if (!inside && !between) {
    return InvalidArgument(
        "too few samples: wanted pair and all, short and long, inside a node or between two");
  }
  const CostModel assumed = DefaultModel(library);
  CostModel model{.library = library};
  model.inside = inside ? inside->cost : assumed.inside;
  model.between = between ? between->cost : assumed.between;
  std::vector<PathCost*> measured;
  if (inside) measured.push_back(&model.inside);
  if (between) measured.push_back(&model.between);
  for (const auto& path : {inside, between}) {
    if (!path) continue;
    const double more = path->short_s_per_byte - path->cost.flow_s_per_byte;
    model.eager_s_per_byte = std::max(model.eager_s_per_byte, more);
  }
  if (model.eager_s_per_byte > 0) model.eager_bytes = kEagerBytes;
  double min_latency = measured.front()->latency_s;
  for (const PathCost* path : measured) min_latency = std::min(min_latency, path->latency_s);
  auto burst = Fit(samples, Sample::Kind::kBurst, false);
  if (!burst) burst = Fit(samples, Sample::Kind::kBurst, true);
  if (!burst) return InvalidArgument("too few samples: wanted burst");
  const double message_s = std::min(burst->line.slope, min_latency);
  model.send_s = model.receive_s = message_s / 2;
  for (PathCost* path : measured) {
    path->latency_s -= message_s;
    path->origin = crowded ? Origin::kCrowded : Origin::kMeasured;
  }
  const auto copy = Fit(samples, Sample::Kind::kCopy, false);
  if (!copy) return InvalidArgument("too few samples: wanted copy");
  model.copy_s = copy->line.intercept;
  model.copy_s_per_byte = copy->line.slope;
  return model;
}

}  // namespace tutti::tune
