#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "tutti/runtime/executor.h"

namespace tutti {
namespace {

using ParsedJson = nlohmann::json;

Error NotOfThis(const std::string& what) {
  return {
      ErrorCode::kInvalidArgument,
      what + "; wanted what `tutti run SCHEDULE --trace` wrote of the schedule named before it"};
}

// A whole number from 0 up to `below`; -1: none.
int32_t IndexIn(const ParsedJson& object, const char* key, size_t below) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return -1;
  const bool fits = found->is_number_unsigned() && found->get<uint64_t>() < below;
  return fits ? found->get<int32_t>() : -1;
}

double NumberIn(const ParsedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : -1;
}

// nullopt where the plan has no such instruction, or its times are none.
std::optional<RunEvent> EventOf(const ParsedJson& json, const Plan& plan) {
  constexpr double kLongest = 1e12;  // us
  RunEvent event{.rank = IndexIn(json, "pid", plan.ranks.size()), .stream = -1};
  if (event.rank < 0) return std::nullopt;
  const std::vector<Stream>& streams = plan.ranks[static_cast<size_t>(event.rank)].streams;
  event.stream = IndexIn(json, "tid", streams.size());
  const auto arguments = json.find("args");
  if (event.stream < 0 || arguments == json.end() || !arguments->is_object()) return std::nullopt;
  const auto& instructions = streams[static_cast<size_t>(event.stream)].instructions;
  event.instruction = IndexIn(*arguments, "instruction", instructions.size());
  if (event.instruction < 0) return std::nullopt;
  const double start = NumberIn(json, "ts"), lasts = NumberIn(json, "dur");
  const int32_t step = IndexIn(*arguments, "step", size_t{1} << 31);
  if (!(start >= 0 && lasts >= 0 && start <= kLongest && lasts <= kLongest) ||
      step != instructions[static_cast<size_t>(event.instruction)].step)
    return std::nullopt;
  event.start_s = start * 1e-6;
  event.end_s = (start + lasts) * 1e-6;
  return event;
}

// Which collective, by whom, of how many bytes.
Status ReadHeader(const ParsedJson& json, const Plan& plan, RunReport& report) {
  const auto header = json.find("otherData");
  if (header == json.end() || !header->is_object() || !header->contains("executed"))
    return tl::unexpected(NotOfThis("it is no trace of an execution"));
  if (header->value("executed", ParsedJson()) != Name(plan.collective.kind()) ||
      header->value("algorithm", ParsedJson()) != plan.algorithm)
    return tl::unexpected(
        NotOfThis(fmt::format("it is the trace of another schedule than this {} by {}",
                              Name(plan.collective.kind()), plan.algorithm)));
  const double size = NumberIn(*header, "size_bytes");
  constexpr double kMost = 1e18;
  if (!(size >= 1 && size <= kMost && size == std::floor(size)))
    return tl::unexpected(NotOfThis("its size_bytes is none"));
  report.size_bytes = static_cast<int64_t>(size);
  return {};
}

}  // namespace

Result<RunReport> FromChromeTrace(std::string_view text, const Plan& plan) {
  const ParsedJson trace = ParsedJson::parse(text, nullptr, false);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return MakeError(ErrorCode::kCorrupt, "it is cut off or damaged: no JSON of a trace");
  RunReport report;
  if (const Status read = ReadHeader(trace, plan, report); !read)
    return tl::unexpected(read.error());
  size_t at = 0;
  for (const ParsedJson& one : trace["traceEvents"]) {
    ++at;
    if (!one.is_object() || one.value("ph", ParsedJson()) != "X") continue;
    const std::optional<RunEvent> event = EventOf(one, plan);
    if (!event)
      return tl::unexpected(
          NotOfThis(fmt::format("event {} is of no instruction of its plan", at)));
    report.trace.push_back(*event);
    report.time_s = std::max(report.time_s, event->end_s);
  }
  return report;
}

}  // namespace tutti
