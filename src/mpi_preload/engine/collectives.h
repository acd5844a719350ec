// The collectives beside the all-to-alls: which calls Tutti may serve, what serves them, and that no
// answer changes.
//
// Model       Calls that may be served by Tutti: on an intracommunicator of two ranks or more, of
//             some bytes, with arguments that are right as far as can be seen here. Reductions must
//             give the same bits in any order (reductions.h): of integers, and sums and products of
//             floating-point numbers between two ranks; of more ranks where TUTTI_REORDER=1. All
//             others are the MPI library's. Datatypes may differ between ranks, so that data of any
//             type is moved, packed where it must be.
//             What all ranks must know alike is told by rank 0 of a communicator at its first call.
//             Set-up for `shared` comes with the first call where it was asked for, else when it
//             pays (tutti/tune/deferred_setup.h). It serves communicators of one node, and on several
//             nodes what across_nodes.h does; kMaxNodeEngines of them at once. `auto` then compares both in turns (tutti/tune/online_tuner.h), for each
//             collective and class of sizes by powers of two: these are the same on all ranks.
// Errors      MPI error codes, given to the communicator's error handler where they are not the MPI
//             library's own.
// Threads     One at a time per communicator.
#pragma once

#include "engine/settings.h"
#include "interface.h"

namespace tutti::mpi::preload {

// Once, after MPI_Init. `native_only`: as if all services were native. Both arguments must outlive
// all calls.
void StartCollectives(const Settings& settings, const NextCalls& next, bool (*native_only)());

int ServeCollective(const CollectiveCall& call);
// Engine::leaves, as far as a look at the thread's latest communicator says it.
bool LeavesCollective(Collective which, Handle communicator, int root, int send_count,
                      Handle send_type, int receive_count, Handle receive_type, LeftCalls* others);
int ServeFortranCollective(const FortranCollectiveCall& call);

}  // namespace tutti::mpi::preload
