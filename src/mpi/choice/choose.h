// `auto`: which algorithm serves a call, chosen from predicted and from measured times.
//
// Model       Every rank knows its own counts only, and all must take the same algorithm. So a
//             decision rests on what was agreed in calls before: the mean and the largest block (a
//             class of sizes, by powers of two of the mean) and the times measured since. An
//             agreement is an all-reduce of some numbers at the end of a call: of a stage of the
//             tuner (tutti/tune/online_tuner.h), and after 1, 16, 32, ... 512 calls while the sizes
//             keep their class. The block of MPI_Alltoall is the same on all ranks: there the class
//             is known at once, and only times are agreed.
//             Setup (a communicator of our own, who shares a node, tables of costs) takes
//             milliseconds. So it is deferred: a communicator's first calls simply take the native
//             algorithm, until they took 200 ms together but at most 4096 / ranks of them
//             (tutti/tune/deferred_setup.h; in simulation as many in any case): programs that call
//             but seldom pay nothing. Where there is tuning data of the cluster, setup comes with
//             the first call. The first call of MPI_Alltoallv after it takes the native algorithm,
//             too. A wrong choice costs time, never correctness.
// Memory      The file that `tutti mpi calibrate` and `tune` write (tutti/tune/tuning_database.h)
//             is read by rank 0 of a communicator at its first call and told to the others: its
//             model predicts, and a measured best is taken at once. What a program measures goes
//             into the file when MPI is finalized, if TUTTI_MPI_FILE names one or it exists at its
//             usual place: no file appears in a home unasked. Of MPI_Alltoallv only: the native
//             MPI_Alltoall is another algorithm.
// Complexity  A call of which nothing is measured costs some nanoseconds; others a look into a
//             table and two readings of the clock, under a microsecond together; those that agree
//             an all-reduce.
// Errors      An MPI error code. A file that cannot be read: one line on standard error, defaults.
// Threads     As for collectives.
//
//   CallChoice call;
//   if (int error = BeginCall(communicator, state, size, &call)) return error;
//   ... exchange by call.algorithm ...
//   if (int error = EndCall(state, call)) return error;
#pragma once

#include <mpi.h>

#include <cstdint>

#include "communicator_state.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

struct CallSize {
  int64_t total_bytes = 0;  // sent or received by this rank, whichever is more
  int64_t largest_block_bytes = 0;
  bool uniform = false;  // MPI_Alltoall: the same on all ranks
};

struct CallChoice {
  alltoallv::Algorithm algorithm;  // never auto
  double begin_s = -1;             // negative: nothing is measured
  double native_s = -1;            // what the native algorithm is believed to take
};

// Collective on `communicator`, as the call itself; `state` is that of FindOrCreateLocal or Of.
int BeginCall(MPI_Comm communicator, CommunicatorState& state, const CallSize& size,
              CallChoice* call);
int EndCall(CommunicatorState& state, const CallChoice& call);

// What serves the next call of MPI_Alltoallv without anything to measure or to agree on: then
// neither of the above is needed, and its size not looked at. Else null.
struct SettledChoice {
  alltoallv::Algorithm algorithm;
  double native_s = -1;
};
const SettledChoice* Settled(CommunicatorState& state);

// Whether nothing is left to try for the sizes that calls of MPI_Alltoallv have now. False before
// the first call.
bool IsSettled(MPI_Comm communicator);

// Seconds that the native algorithm is believed to take for a call of MPI_Alltoallv or
// MPI_Alltoall of this size, from what the tuning database and the cost model say: for reports on
// algorithms that were asked for by name. Collective at the first call on a communicator; `state`
// is that of CommunicatorState::Of.
int PredictNative(CommunicatorState& state, const CallSize& size, double* seconds);

}  // namespace tutti::mpi
