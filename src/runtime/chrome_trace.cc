#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "instruction_name.h"
#include "tutti/runtime/executor.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

std::string NameOf(const Stream& stream, size_t index) {
  std::string name = fmt::format("stream {}", index);
  if (stream.send_peer >= 0) name += fmt::format(" to {}", stream.send_peer);
  if (stream.recv_peer >= 0) name += fmt::format(" from {}", stream.recv_peer);
  return name;
}

Json Metadata(const char* what, size_t rank, size_t stream, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", stream}, {"args", {{"name", name}}}};
}

}  // namespace

// The Chrome trace format: a process row per rank, a thread row per stream, times in microseconds.
std::string ToChromeTrace(const Plan& plan, const RunReport& report) {
  Json events = Json::array();
  for (size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    events.push_back(Metadata("process_name", rank, 0, fmt::format("rank {}", rank)));
    const auto& streams = plan.ranks[rank].streams;
    for (size_t s = 0; s < streams.size(); ++s)
      if (!streams[s].instructions.empty())
        events.push_back(Metadata("thread_name", rank, s, NameOf(streams[s], s)));
  }
  for (const RunEvent& event : report.trace) {
    const Stream& stream =
        plan.ranks[static_cast<size_t>(event.rank)].streams[static_cast<size_t>(event.stream)];
    const Instruction& instruction = stream.instructions[static_cast<size_t>(event.instruction)];
    events.push_back({{"ph", "X"},
                      {"name", InstructionName(instruction.op, instruction.op == OpCode::kSend
                                                                   ? stream.send_peer
                                                                   : stream.recv_peer)},
                      {"pid", event.rank},
                      {"tid", event.stream},
                      {"ts", event.start_s * 1e6},
                      {"dur", (event.end_s - event.start_s) * 1e6},
                      {"args", {{"instruction", event.instruction}, {"step", instruction.step}}}});
  }
  return Json{{"traceEvents", std::move(events)},
              {"displayTimeUnit", "ns"},
              {"otherData",
               {{"executed", Name(plan.collective.kind())},
                {"algorithm", plan.algorithm},
                {"size_bytes", report.size_bytes}}}}
      .dump();
}

}  // namespace tutti
