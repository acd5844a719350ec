#include <fmt/format.h>

#include <iterator>
#include <string>
#include <vector>

#include "tutti/base/json_text.h"
#include "tutti/sim/simulator.h"

namespace tutti {

// Written by hand, line by line: a trace of a million messages needs no tree in memory, and times
// keep six decimals of a microsecond on every machine.
std::string ToChromeTrace(const Topology& topology, const Schedule& schedule,
                          const SimReport& report) {
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  auto out = std::back_inserter(text);
  fmt::format_to(
      out, "{{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
      QuotedJson(fmt::format("{} {}", Name(schedule.collective.kind()), schedule.algorithm)));
  std::vector<bool> used(static_cast<size_t>(topology.num_links()), false);
  for (const SimMessage& message : report.trace) used[message.link.index()] = true;
  for (LinkId link : topology.Links()) {
    if (!used[link.index()]) continue;
    fmt::format_to(
        out,
        ",\n{{\"ph\":\"M\",\"pid\":0,\"tid\":{0},\"name\":\"thread_name\",\"args\":{{\"name\":{1}}}"
        "}}"
        ",\n{{\"ph\":\"M\",\"pid\":0,\"tid\":{0},\"name\":\"thread_sort_index\",\"args\":"
        "{{\"sort_index\":{0}}}}}",
        link.value,
        QuotedJson(fmt::format("{} -> {}", topology.node_name(topology.tail(link)),
                               topology.node_name(topology.head(link)))));
  }
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  for (const SimMessage& message : report.trace) {
    const auto index = static_cast<size_t>(message.first_transfer);
    const std::string name = timed ? fmt::format("shard {}", schedule.transfers[index].shard.value)
                                   : fmt::format("step {}", message.step);
    fmt::format_to(out,
                   ",\n{{\"ph\":\"X\",\"pid\":0,\"tid\":{},\"name\":\"{}\",\"ts\":{:.6f},"
                   "\"dur\":{:.6f},\"args\":{{\"bytes\":{:.3f},\"step\":{},\"arrives_us\":{:.6f},"
                   "\"first_transfer\":{}}}}}",
                   message.link.value, name, message.start_s * 1e6,
                   (message.free_s - message.start_s) * 1e6, message.bytes, message.step,
                   message.arrive_s * 1e6, message.first_transfer);
  }
  text += "\n]}\n";
  return text;
}

}  // namespace tutti
