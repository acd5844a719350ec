// Runs the programs of foreign plans (MSCCL XML, MSCCL++) on threads of this process, over real
// buffers, and checks every element.
//
// Model       Each worker thread owns some ranks and goes round their thread blocks: a block runs
//             until it has to wait. So any number of blocks runs on any number of processors.
//             Inputs are written anew before each iteration, outside of what is timed.
// Size        A cell has the same whole number of elements everywhere, at least one.
// Errors      kPeerFailed when no block moves for `hang_timeout_s`, naming where one waits;
//             kCancelled on RequestCancel(); kResourceExhausted when the buffers do not fit.
#pragma once

#include "tutti/base/result.h"
#include "tutti/lower/block_program.h"
#include "tutti/runtime/executor.h"

namespace tutti {

// Reads from `options` size_bytes, type, op, warmup, iterations, check and hang_timeout_s; whether
// it runs in place is the program's.
Result<RunReport> RunBlocks(const BlockProgram& program, const RunOptions& options);

// The size that RunBlocks would run, or the error with which it would refuse before it starts.
Result<int64_t> SizeThatRuns(const BlockProgram& program, const RunOptions& options);

}  // namespace tutti
