#include "executed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "tutti/base/file.h"

namespace tutti::cli {
namespace {

using Json = nlohmann::json;

const Stream& StreamOf(const Plan& plan, const RunEvent& event) {
  return plan.ranks[static_cast<size_t>(event.rank)].streams[static_cast<size_t>(event.stream)];
}

const Instruction& InstructionOf(const Plan& plan, const RunEvent& event) {
  return StreamOf(plan, event).instructions[static_cast<size_t>(event.instruction)];
}

bool TakesIn(const Instruction& instruction) {
  return instruction.op == OpCode::kRecv || instruction.op == OpCode::kRecvReduce;
}

// Bytes that an instruction writes at M = size.
double BytesOf(const Plan& plan, const RankPlan& rank, const Instruction& instruction,
               int64_t size) {
  const std::vector<int64_t>& weights =
      instruction.dst.buffer == Buffer::kInput    ? rank.input_weights
      : instruction.dst.buffer == Buffer::kOutput ? rank.output_weights
                                                  : rank.scratch_weights;
  const auto slot = static_cast<size_t>(instruction.dst.offset / plan.units_per_shard);
  const int64_t weight = slot < weights.size() ? weights[slot] : 1;
  return static_cast<double>(size) * static_cast<double>(weight * instruction.count) /
         (static_cast<double>(plan.collective.weight_of_size()) * plan.units_per_shard);
}

Error NotOfThis(const std::string& path, const std::string& what) {
  return {
      ErrorCode::kInvalidArgument,
      fmt::format("{}: {}; wanted what `tutti run SCHEDULE --trace` wrote of the schedule named "
                  "before it",
                  path, what)};
}

// A whole number from 0 up to `below`; -1: none.
int32_t IndexIn(const Json& object, const char* key, size_t below) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return -1;
  const bool fits = found->is_number_unsigned() && found->get<uint64_t>() < below;
  return fits ? found->get<int32_t>() : -1;
}

double NumberIn(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : -1;
}

// nullopt where the plan has no such instruction, or its times are none.
std::optional<RunEvent> EventOf(const Json& json, const Plan& plan) {
  constexpr double kLongest = 1e12;  // us
  RunEvent event{.rank = IndexIn(json, "pid", plan.ranks.size()), .stream = -1};
  if (event.rank < 0) return std::nullopt;
  event.stream = IndexIn(json, "tid", plan.ranks[static_cast<size_t>(event.rank)].streams.size());
  const auto arguments = json.find("args");
  if (event.stream < 0 || arguments == json.end() || !arguments->is_object()) return std::nullopt;
  event.instruction = IndexIn(*arguments, "instruction", StreamOf(plan, event).instructions.size());
  if (event.instruction < 0) return std::nullopt;
  const double start = NumberIn(json, "ts"), lasts = NumberIn(json, "dur");
  const int32_t step = IndexIn(*arguments, "step", size_t{1} << 31);
  if (!(start >= 0 && lasts >= 0 && start <= kLongest && lasts <= kLongest) ||
      step != InstructionOf(plan, event).step)
    return std::nullopt;
  event.start_s = start * 1e-6;
  event.end_s = (start + lasts) * 1e-6;
  return event;
}

// Of which collective, by whom, of how many bytes.
Status ReadHeader(const std::string& path, const Json& json, const Plan& plan, RunReport& report) {
  const auto header = json.find("otherData");
  if (header == json.end() || !header->is_object() || !header->contains("executed"))
    return tl::unexpected(NotOfThis(path, "it is no trace of an execution"));
  if (header->value("executed", Json()) != Name(plan.collective.kind()) ||
      header->value("algorithm", Json()) != plan.algorithm)
    return tl::unexpected(
        NotOfThis(path, fmt::format("it is the trace of another schedule than this {} by {}",
                                    Name(plan.collective.kind()), plan.algorithm)));
  const double size = NumberIn(*header, "size_bytes");
  constexpr double kMost = 1e18;
  if (!(size >= 1 && size <= kMost && size == std::floor(size)))
    return tl::unexpected(NotOfThis(path, "its size_bytes is none"));
  report.size_bytes = static_cast<int64_t>(size);
  return {};
}

}  // namespace

std::vector<PageExecuted> ExecutedMessages(const Plan& plan, const RunReport& report) {
  using Key = std::tuple<int32_t, int32_t, int32_t>;
  std::map<Key, PageExecuted> messages;
  std::set<Key> counted;  // of large buffers an instruction has several events
  for (const RunEvent& event : report.trace) {
    const Instruction& instruction = InstructionOf(plan, event);
    if (!TakesIn(instruction)) continue;
    const int32_t from = StreamOf(plan, event).recv_peer;
    const auto [place, is_new] = messages.try_emplace(
        Key(instruction.step, from, event.rank),
        PageExecuted{from, event.rank, instruction.step, event.start_s, event.end_s, 0, 0});
    PageExecuted& message = place->second;
    message.start_s = std::min(message.start_s, event.start_s);
    message.end_s = std::max(message.end_s, event.end_s);
    message.busy_s += event.end_s - event.start_s;
    if (counted.emplace(event.rank, event.stream, event.instruction).second)
      message.bytes += BytesOf(plan, plan.ranks[static_cast<size_t>(event.rank)], instruction,
                               report.size_bytes);
  }
  std::vector<PageExecuted> all;
  for (const auto& [key, message] : messages) all.push_back(message);
  return all;
}

bool IsTrace(const std::string& path) {
  constexpr size_t kLooksAt = 64;
  std::string begin(kLooksAt, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  return begin.find("\"traceEvents\"") != std::string::npos;
}

Result<RunReport> ReadExecutedTrace(const std::string& path, const Plan& plan) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  const Json trace = Json::parse(*text, nullptr, false);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return MakeError(ErrorCode::kCorrupt, path + ": it is cut off or damaged: no JSON of a trace");
  RunReport report;
  if (const Status read = ReadHeader(path, trace, plan, report); !read)
    return tl::unexpected(read.error());
  size_t at = 0;
  for (const Json& one : trace["traceEvents"]) {
    ++at;
    if (!one.is_object() || one.value("ph", Json()) != "X") continue;
    const std::optional<RunEvent> event = EventOf(one, plan);
    if (!event)
      return tl::unexpected(
          NotOfThis(path, fmt::format("event {} is of no instruction of its plan", at)));
    report.trace.push_back(*event);
    report.time_s = std::max(report.time_s, event->end_s);
  }
  return report;
}

}  // namespace tutti::cli
