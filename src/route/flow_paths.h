// Paths of a flow: what each rank's flow to all others is, pair by pair, as weighted paths.
//
// Model       A flow of one source to many destinations has no parts of its own for each of them;
//             any way of peeling it is right. Here destination by destination the widest path that
//             is left is taken away, as much of it as the destination still wants, until it has
//             all: what remains is a flow for the others. Nothing is rounded or dropped, so the
//             paths reach exactly the rate of the flow. At most (bundles with flow + destinations)
//             paths a source. Parallel links share a bundle's load in proportion to their
//             bandwidths: one is filled after the other.
// Units       Those of the flow, times a small factor where a bundle's load does not divide among
//             its links.
// Complexity  O(paths x links of the paths to a destination); memory of the result and of the
//             paths of 64 sources.
// Threads     Sources in parallel; same bytes for any number of threads. Interruptible.
// Errors      kResourceExhausted: paths need more memory than there is (says how much), or more
//             than numbers hold. kCancelled.
// Reference   [alltoall-mcf] 3.2.1 "Widest path extraction"; the paper extracts from one flow a
//             pair, which its child linear programs find.
#pragma once

#include "tutti/base/result.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

// `flow` is one of this topology (CheckConcurrentFlow). The routing carries its demand and the
// topology's fingerprint.
Result<Routing> PathsOfFlow(const Topology& topology, const ConcurrentFlow& flow);

}  // namespace tutti
