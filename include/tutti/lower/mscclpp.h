// Schedules as MSCCL++ execution plans, and the judge of such plans, whoever wrote them. Facts and
// limits of the format: docs/formats/mscclpp.md.
//
// Model       One-sided: a message is a put into the receiver's buffer, then a signal on a channel
//             that the receiver waits for. What is to be reduced is put into scratch of its own and
//             reduced there, so only what overwrites something waits for its receiver's leave.
// Complexity  Writing: O(messages * ranks). Judging: O(operations * thread blocks that may hear of
//             each other).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/block_program.h"
#include "tutti/lower/lowering.h"

namespace tutti {

struct MscclppOptions {
  bool in_place = false;
  int64_t min_bytes = 0, max_bytes = 0;  // of calls; max 0: no limit
  int32_t thread_blocks = 8;             // a rank, where there is so much that is independent
  // Ranks [k * box, (k + 1) * box) reach each other by memory channels, others by port channels;
  // 0: all by memory.
  int32_t box_ranks = 0;
};

// kInvalidArgument: options; kInfeasible: the limit that cannot be met even with more blocks.
Result<std::string> ToMscclpp(const Topology& topology, const Schedule& schedule,
                              const MscclppOptions& options = {});

struct MscclppVerdict {
  std::string name, collective;
  int64_t ranks = 0, thread_blocks = 0, operations = 0;
  std::vector<PlanFault> faults;  // empty: proven correct
  bool too_large = false;  // to be run symbolically: the last fault says what there is too much of
};
// Reads a plan as its runtime does and runs it symbolically: names and numbers, limits, buffer
// bounds, signals and waits (counts, deadlock), accesses in no certain order within and between
// thread blocks, and what the named collective asks of the results. kCorrupt: no JSON;
// kInvalidArgument: no plan, or one too large to judge. Shares no code with the writer.
Result<MscclppVerdict> CheckMscclpp(std::string_view json);

// The same, as a program to run. kInfeasible where it is not correct, with the first fault, or takes
// more than 2^22 actions.
Result<std::vector<BlockProgram>> BlockProgramsOfMscclpp(std::string_view json);

}  // namespace tutti
