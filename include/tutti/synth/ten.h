// Schedules of `ten` that are larger than memory: written to a file round by round, or only
// counted. The names of its policies.
//
// Model       All-gather and broadcast over equal links. The transfers are those of `-a ten`, in
//             its order, and a file holds the same bytes. The header of a file names the number of
//             steps before the first is known: the fewest possible is announced, and where that is
//             not reached the best variant is matched a second time.
// Complexity  Time as matching (src/synth/ten/rounds.h) and writing. Memory ranks * chunks *
//             (2 or 4 bytes + 1 bit) and some blocks of the writer.
// Threads     Matching and writing use all, one after the other; same bytes on any number.
// Errors      kInfeasible: this cannot be made round by round (says why). kResourceExhausted: the
//             memory needed, found before starting, is more than there is. kCancelled. What the
//             writer says. A writer that is not finished leaves no file.
// Reference   [tacos] section IV.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

// kInfeasible unless StreamTen() makes this. kResourceExhausted: too many chunks.
Status CheckTenStreams(const Topology& topology, const Collective& collective,
                       const SynthOptions& options);

struct TenMemory {
  int64_t in_memory_bytes = 0;  // made, verified and written as a whole
  int64_t streamed_bytes = 0;
};
TenMemory TenMemoryOf(const Topology& topology, const Collective& collective,
                      const SynthOptions& options);

// Opens what is to be written. May be called more than once; what came before is given up by then.
using OpenSchedule = std::function<Result<std::unique_ptr<ScheduleWriter>>(const Schedule& header,
                                                                           int64_t num_transfers)>;

struct TenStreamed {
  Schedule header;  // with the number of steps
  int64_t num_transfers = 0;
};

// `open` may be empty: nothing is written, only the number of steps is found.
Result<TenStreamed> StreamTen(const Topology& topology, const Collective& collective,
                              const SynthOptions& options, const OpenSchedule& open,
                              int64_t available_bytes);

// The fewest chunks per shard with which what a rank takes in from all others comes out even over its
// links, where links are equal and ranks have as many: 3 on a torus of 125 ranks with 6 links each.
// Otherwise 1. Numbers between leave links idle in the last round.
int32_t EvenChunks(const Topology& topology);

// What `--policy` of ten accepts.
struct TenPolicy {
  std::string_view name, description;
};
std::vector<TenPolicy> TenPolicies();

}  // namespace tutti
