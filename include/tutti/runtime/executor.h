// Runs a plan on local processes over real buffers in shared memory.
//
// Model       One process a rank (fork), one anonymous shared mapping for all: nothing stays behind
//             whatever dies. A receiver reads straight from the sender's buffer; the sender's
//             instruction is done when the receiver has taken the data. Ranks wait by spinning
//             briefly and then on a futex, so that 16 ranks make progress on 2 cores.
//             With Transport::kTcp the processes exchange messages over TCP connections of the
//             loopback interface, one for each connection of the plan, and sleep on an epoll.
// Correctness Every element of every rank is compared with an independently computed result.
// Order       Every element is reduced in the order of the plan's instructions. Which unit it belongs to,
//             and so which of them, depends on the number of tiles that large buffers are worked on in,
//             unless RunOptions::fixed_order: then on plan, size and type alone.
// Errors      kPeerFailed within a second when a rank dies or hangs, naming it; kCancelled on
//             RequestCancel(). kResourceExhausted when the buffers do not fit, before starting.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/plan.h"
#include "tutti/runtime/types.h"

namespace tutti {

// kMpi: of ranks that an MPI launcher started only (remote.h).
enum class Transport : uint8_t { kShared, kTcp, kMpi };
std::string_view Name(Transport transport);  // "shared", "tcp", "mpi"
Result<Transport> ParseTransport(std::string_view name);

struct RunOptions {
  int64_t size_bytes = 0;  // [M]; rounded down to whole elements a shard, at least one
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  // The same bits on every transport, tile size and placement. Floating-point data then have all digits
  // (rounding is allowed for in the check), so that RunReport::digest shows it.
  bool fixed_order = false;
  Transport transport = Transport::kShared;
  int32_t warmup = 1, iterations = 20;
  bool check = true;
  bool record_trace = false;
  double hang_timeout_s = 30;  // without progress of any rank
};

// One execution of an instruction. Large buffers are worked on in tiles: the same instruction then
// has one event a tile.
struct RunEvent {
  int32_t rank = 0, stream = 0, instruction = 0;
  double start_s = 0, end_s = 0;  // since the first start of all ranks
};

struct RunReport {
  int64_t size_bytes = 0;       // that really ran
  int64_t count = 0;            // elements, as nccl-tests counts them
  double time_s = 0;            // mean of the iterations, slowest rank
  double algbw = 0, busbw = 0;  // bytes/s
  int64_t wrong = 0;            // elements that differ from the independent result; -1 unchecked
  uint64_t digest = 0;          // of all ranks' results, with fixed_order and check
  std::vector<RunEvent> trace;  // of the last iteration
  double clock_error_s = 0;     // by which the clocks of its ranks may differ
  // Ranks elsewhere (remote.h), by rank: seconds of each measured iteration, by its own clock.
  std::vector<std::vector<double>> rank_times = {};
};

// The size that RunPlan would run, or the error with which it would refuse before it starts.
Result<int64_t> SizeThatRuns(const Plan& plan, const RunOptions& options);

Result<RunReport> RunPlan(const Plan& plan, const RunOptions& options);

// A trace in the Chrome trace format, and back: the size, the time and the events of a trace that was
// written of `plan`, whose times keep nanoseconds. Any text is read; O(bytes). kCorrupt: no JSON of a
// trace. kInvalidArgument: the trace of a simulation, of another plan, or of no instruction of it.
std::string ToChromeTrace(const Plan& plan, const RunReport& report);
Result<RunReport> FromChromeTrace(std::string_view json, const Plan& plan);

}  // namespace tutti
