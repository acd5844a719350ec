// The sets of paths that path-based routers choose among.
//
// Model       kDisjoint: as many paths as share no link, of the fewest hops in total, by minimum
//             cost flow. kShortest: every path of the fewest hops; parallel links are different
//             paths. kBounded: every path of at most `extra_hops` more, no node twice.
// Complexity  kDisjoint O(degree (n + m)) a pair at worst, about the hops found in practice; the
//             others O(hops listed) and 4 n^2 bytes besides.
// Threads     Sources in parallel; same bytes for any number of threads.
// Errors      kResourceExhausted: more paths than half of the memory holds (says of which set).
//             kInfeasible: a pair with demand has no path. kCancelled.
// Reference   [alltoall-mcf] 3.1.4; successive shortest paths with potentials [Suurballe 1974].
#pragma once

#include <cstdint>

#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/flow/network.h"
#include "tutti/route/router.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

// All paths of the set for pairs with demand, each of weight 1: no routing yet. Of pairs that come
// after the deadline one path.
Result<Routing> ListPaths(const Topology& topology, const DemandTable& demand, PathSet set,
                          int32_t extra_hops, const Deadline& deadline = Deadline(0));

}  // namespace tutti
