#include "executed.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "tutti/base/file.h"

namespace tutti::cli {
namespace {

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
  return FromChromeTrace(*text, plan).map_error([&path](Error error) {
    error.message = path + ": " + error.message;
    return error;
  });
}

}  // namespace tutti::cli
