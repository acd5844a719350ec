// The judge for schedules that are larger than memory: reads a file block by block.
//
// Model       The rules of verifier.h for step schedules of collectives that do not reduce: one bit
//             says whether a node holds a unit of a shard. The transfers of a step are judged
//             together: what they send must have been there before the step, what they bring must
//             not be there yet, nor come twice. In the end every destination holds everything.
//             Finds what Verify() finds, with the same kinds and transfers; messages do not name
//             the other culprit, which is in another part of the file.
// Independence  Shares no code with synth.
// Complexity  O(units delivered). Memory nodes * shards * units_per_shard / 8 bytes, 24 bytes for
//             each transfer of a step and at most 24 MiB, a second time the bits where a step has
//             more than that, and a block of the reader.
// Threads     Senders of a step in parallel, then receivers; the report does not depend on it.
// Errors      Of the reader; kInfeasible: this is no such schedule; kResourceExhausted: the bits
//             need more memory than there is (says how much).
#pragma once

#include <cstdint>

#include "tutti/base/result.h"
#include "tutti/store/store.h"
#include "tutti/verify/verifier.h"

namespace tutti {

// kInfeasible unless VerifyStream() judges schedules with this header.
Status CheckStreamable(const Schedule& header);

struct VerifyMemory {
  int64_t in_memory_bytes = 0;  // Verify() and the schedule itself
  int64_t streamed_bytes = 0;
};
VerifyMemory VerifyMemoryOf(const Topology& topology, const Schedule& header,
                            uint64_t num_transfers);

// `reader` has handed out nothing yet.
Result<VerifyReport> VerifyStream(ScheduleReader& reader, const VerifyOptions& options,
                                  int64_t available_bytes);

}  // namespace tutti
