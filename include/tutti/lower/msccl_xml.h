// Plans as MSCCL algorithm XML, for the three runtimes that read it. Facts and limits of each
// reader: docs/formats/msccl-xml.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/block_program.h"
#include "tutti/lower/lowering.h"

namespace tutti {

enum class MscclDialect : uint8_t {
  kMsccl,         // microsoft/msccl
  kExecutorNccl,  // Azure msccl-executor-nccl
  kRccl,          // ROCm/rccl
};
Result<MscclDialect> ParseMscclDialect(std::string_view name);  // msccl, executor-nccl, rccl

struct MscclOptions {
  MscclDialect dialect = MscclDialect::kExecutorNccl;
  std::string protocol = "Simple";  // Simple, LL, LL128
  int64_t min_bytes = 0, max_bytes = 0;
  bool in_place = false;
};

// kInfeasible names the limit of the reader that cannot be met even after splitting.
Result<std::string> ToMscclXml(const Topology& topology, const Schedule& schedule,
                               const MscclOptions& options);

// Reads a file of that format and judges it as its reader and an independent checker would: format,
// limits, matching FIFO order and counts, deadlock with bounded FIFOs, offsets within buffers,
// every read of written data, complete results and reductions. Empty: correct.
Result<std::vector<PlanFault>> CheckMscclXml(std::string_view xml, MscclDialect dialect);

// The same, as programs to run: one for each way, out of place and in place, that the file is for.
// kInfeasible where it is not correct, with the first fault, or takes more than 2^22 actions.
Result<std::vector<BlockProgram>> BlockProgramsOfMsccl(std::string_view xml, MscclDialect dialect);

}  // namespace tutti
