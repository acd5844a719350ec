// Time-stepped all-to-all: chunks in global steps, for networks in which ranks forward, with the
// busiest carriers of all steps together as little busy as possible.
//
// Model       All-to-all or all-to-all-v. What a rank sends to another is cut into equal chunks; in
//             each step a chunk waits where it is (also at a switch) or crosses one link. A step
//             lasts as long as its busiest link, or host limit, is busy; the sum over the steps is
//             TB, as sched/cost.h counts it. Two makers:
//               tsmcf  paths and steps of every chunk together, over few steps.
//               mcf    the paths of the concurrent flow (concurrent_flow.h), cut into chunks, and
//                      steps for them: more chunks and steps, towards 1 / f for large sizes.
// Proof       No schedule of any number of steps has a TB below 1 / f, the limit of the concurrent
//             flow, which its link lengths prove exactly; `tb - tb_bound` is all that steps and
//             whole chunks can have cost.
// Method      Chunk after chunk over the cheapest path through the network in steps, as links grow
//             dearer with their load (chunk_router.h); on networks with symmetries
//             one rank's chunks stand for those of all ranks that they take it to.
// Complexity  Time is that of some passes, each O(chunks x steps x links) at most. Several numbers
//             of steps and of chunks are tried where they are not given and the work allows it.
// Threads     The flow's; the rest one. Same bytes for any number.
// Errors      kInvalidArgument: fewer steps than there are hops between two ranks that exchange
//             data, more chunks than max_chunks.
//             kResourceExhausted: more transfers than memory. kCancelled.
// Reference   [alltoall-mcf] 3.1.3, 4 (chunks), figure 2 (host limits); the paper solves the linear
//             program (time_stepped_lp.h) and leaves its rounding open.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

inline constexpr int32_t kDefaultMaxChunks = 16;

struct TimeStepped {
  Schedule schedule;
  int32_t fewest_steps = 0;  // no schedule has fewer
  Rational tb = {};          // in M/B
  Rational tb_bound = {};    // of any schedule, by the concurrent flow
  int32_t tried = 0;         // numbers of steps and chunks
  // tb / tb_bound - 1.
  Rational Loss() const { return tb / tb_bound - Rational(1); }
};

// options.chunks and options.steps fix what they name; options.max_chunks limits the choice, which
// takes the least time for options.size_bytes.
Result<TimeStepped> MakeTimeStepped(const Topology& topology, const Collective& collective,
                                    const SynthOptions& options);
Result<TimeStepped> MakeFlowSteps(const Topology& topology, const Collective& collective,
                                  const SynthOptions& options);

}  // namespace tutti
