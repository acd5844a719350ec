// Expansions: larger networks together with their all-gather, from smaller ones and theirs.
//
// Model       Each takes a step schedule of the all-gather that the verifier accepts on `base` (any
//             chunks, any steps) and gives the expanded network, as topo/operators.h makes and
//             numbers it, with a schedule that the verifier accepts there. What it costs is in
//             expand_cost.h; everything below is exact.
//               line           every port of G is a rank; it first sends its whole shard to its
//                              neighbours, and then the shards of all ports into v go the paths of
//                              v's. What would come back to the port it belongs to is left out;
//                              nothing else needs to be. Self-loops are ranks like any other: their
//                              own port carries nothing.
//               degree         copy j of every shard goes the paths of G among the copies j, each
//                              hop to all copies of where it leads; then each copy gets its
//                              siblings' shards in equal parts over all its in-links.
//               power          n schedules at once, each with an n-th of every shard: dimension
//                              after dimension, the i-th schedule beginning with dimension i.
//               product        breadth-first over all dimensions together, from the breadth-first
//                              schedules of the factors: the shard of a rank that differs in
//                              several coordinates comes over all of them, in shares that load all
//                              links alike.
//               bidirectional  half of each shard on G, half on its transpose.
// Units       Intervals get finer by these factors at most: degree n d, power n, bidirectional 2,
//             parallel k.
// Complexity  O(transfers of the result) time and memory; bidirectional with one schedule searches
//             an isomorphism first.
// Errors      kInvalidArgument: the schedule is none of an all-gather on `base`, or what the
//             operator itself refuses (self-loops under degree, switches, unlike links under line).
//             kInfeasible: the base is not regular (line, degree) or its links differ (degree), so
//             that no cost is known; a factor has parallel links, self-loops, one rank or no
//             breadth-first schedule of the best TB; no isomorphism to the transpose.
//             kResourceExhausted: more units than can be counted, more transfers than memory.
// Reference   [direct-connect] section 5, Definitions 1, 2, 14; theorem 13 with (18) .. (21); A.6.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Expansion {
  Topology topology;
  Schedule schedule;
};

Result<Expansion> ExpandLine(const Topology& base, const Schedule& schedule);
Result<Expansion> ExpandDegree(const Topology& base, const Schedule& schedule, int64_t n);
Result<Expansion> ExpandPower(const Topology& base, const Schedule& schedule, int64_t n);

// The closed form of theorem 13: TL is the sum of the diameters, TB the best there is. bfb.h on the
// product costs the same and needs at most d chunks per shard, where this may need thousands.
Result<Expansion> ExpandProduct(std::span<const Topology> factors);

// `backward` is an all-gather on TransposeTopology(base). A bidirectional base keeps `forward`.
Result<Expansion> ExpandBidirectional(const Topology& base, const Schedule& forward,
                                      const Schedule& backward);
// The same with `schedule`, renamed by an isomorphism from `base` to its transpose, as `backward`.
Result<Expansion> ExpandBidirectional(const Topology& base, const Schedule& schedule);

// Every link `k` times: each carries a k-th of every interval. Same TL and TB. (What `parallel=k`
// means for a schedule.) The network has no name.
Result<Expansion> ExpandParallel(const Topology& base, const Schedule& schedule, int64_t k);

// The all-gather that an expression asks for: line, degree, power, bidirectional and transpose
// expand the schedules of their operands, everything else is a base network with its best known
// schedule; products too, where that is the breadth-first one (theorem 13). bw= and alpha= of
// operators do not matter to it (the network made has those of the base) as long as all links stay
// alike; otherwise kInfeasible.
Result<Expansion> MakeFromExpression(const ExpressionTree& tree, const SynthOptions& options = {});

// The all-gather (or, of it, the one root's part: broadcast) on `topology` by the expression that
// topology.name() is. kInfeasible: the name is no expression, or stands for another network; then
// which, where it can be said. options.chunks: the schedule in so many chunks, where that is a
// multiple of what it needs.
Result<Schedule> MakeExpanded(const Topology& topology, const Collective& collective,
                              const SynthOptions& options);

}  // namespace tutti
