// Any text is the trace of an execution of the plan or an error; what is read is of instructions of the plan, at times
// that are some, and is read again as it was written.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/coll/collective.h"
#include "tutti/lower/lowering.h"
#include "tutti/runtime/executor.h"
#include "tutti/topo/topology.h"

namespace {

using namespace tutti;  // NOLINT: a program

// Two ranks that send each other their shard.
Plan SmallPlan() {
  Topology::Builder builder(2);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {});
  const Topology topology = *std::move(builder).Build();
  Schedule schedule{.collective = *Collective::Make(CollectiveKind::kAllGather, 2)};
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.algorithm = "by-hand";
  schedule.num_steps = 1;
  schedule.transfers = {{ShardId{0}, LinkId{0}, 0, 1, 0}, {ShardId{1}, LinkId{1}, 0, 1, 0}};
  return *Lower(topology, schedule);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Plan plan = SmallPlan();
  const auto report = FromChromeTrace({reinterpret_cast<const char*>(data), size}, plan);
  if (!report) {
    TUTTI_CHECK(!report.error().message.empty());
    return 0;
  }
  TUTTI_CHECK(report->size_bytes >= 1);
  for (const RunEvent& event : report->trace) {
    TUTTI_CHECK(event.start_s >= 0 && event.start_s <= event.end_s &&
                event.end_s <= report->time_s);
    const auto& streams = plan.ranks.at(static_cast<size_t>(event.rank)).streams;
    const auto& instructions = streams.at(static_cast<size_t>(event.stream)).instructions;
    TUTTI_CHECK(static_cast<size_t>(event.instruction) < instructions.size());
  }
  if (report->time_s > 1e5) return 0;  // rounding takes the longest times over the limit
  const auto again = FromChromeTrace(ToChromeTrace(plan, *report), plan);
  TUTTI_CHECK(again && again->trace.size() == report->trace.size());
  TUTTI_CHECK(again->size_bytes == report->size_bytes);
  return 0;
}
