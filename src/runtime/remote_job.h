// What coordinator and ranks of a job on several hosts both know: see tutti/runtime/remote.h and
// control_link.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "control_link.h"
#include "tutti/base/result.h"
#include "tutti/runtime/executor.h"

namespace tutti::remote {

inline constexpr uint64_t kMagic = 0x0003'424f'4a49'5454;  // "TTIJOB", version 3
inline constexpr size_t kHelloWords = 5;
inline constexpr size_t kMaxTextBytes = 4096;  // and of any frame of a rank
inline constexpr size_t kMaxPlanBytes = size_t{4} << 30;

// That a rank which was told why a job ends waits for the coordinator to close: it has reported why by then.
inline constexpr double kTimeToReport_s = 2;

// An event of a trace: stream, instruction, nanoseconds from the begin of the iteration to both ends.
inline constexpr size_t kEventWords = 4;
inline constexpr size_t kMaxEvents = (kMaxTextBytes / sizeof(int64_t) - 1) / kEventWords;

struct Call {
  int64_t number = 0;  // of the runs of a job: connections of one are not those of another
  RunOptions options;
};

std::string ToBody(const Call& call);
// kInvalidArgument: a number out of its range.
Result<Call> ParseCall(const Frame& frame);

}  // namespace tutti::remote
