// Schedules from schedules. Each result passes the verifier when its argument does.
//
// Complexity  O(transfers) time and memory, besides what is said.
// Reference: [direct-connect] Appendix B (reverse schedule, schedule isomorphism, theorems 1, 2).
#pragma once

#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti {

// A^T: time runs backwards on the transpose. `link_map[l]` is the link of the result's topology
// that carries what link l carried; from TransposeTopology() or ReverseLinks() of
// topo/properties.h. The result runs collective.Reversed(): transfers reduce when that collective
// reduces, copy otherwise; of an all-reduce, reductions become copies and copies reductions.
// All-to-all blocks (s, d) become (d, s). Reversing twice by inverse maps gives the same schedule,
// order included. Switches cannot reduce, so the result is of use for all-gather and broadcast only
// between ranks. Step schedules only. (Definition 5, theorem 1.)
Schedule Reverse(const Schedule& schedule, const std::vector<LinkId>& link_map,
                 uint64_t new_topology_fingerprint);

// The same for a timed schedule of `topology`: what was sent at s and had arrived at e is sent at
// T - e, where T is when the last transfer has arrived. Into a switch it is copied: where no two
// copies of one shard are in a switch at once, sums pass it as they came. What a switch that reduces
// gave out several times, each at an instant of its own, is added there. O(transfers log transfers).
Schedule ReverseTimed(const Topology& topology, const Schedule& schedule,
                      const std::vector<LinkId>& link_map, uint64_t new_topology_fingerprint);

// f(A): renames ranks and links by an isomorphism from the schedule's topology to another.
// node_map[u] is the node that u becomes, link_map[l] the link that l becomes; the root, shards and
// the demand follow the ranks. kInvalidArgument: ranks are not permuted among themselves, or a link
// has no image or shares it. Also for timed schedules. (Definition 7.)
Result<Schedule> Rename(Schedule schedule, const std::vector<NodeId>& node_map,
                        const std::vector<LinkId>& link_map, uint64_t new_topology_fingerprint);

// The links that go with `node_map`, an isomorphism from `from` to `to` that keeps bandwidth and
// alpha: the k-th link u -> v of a spec becomes the k-th link f(u) -> f(v) of it, so that parallel
// links stay apart. kInvalidArgument: no such isomorphism, naming a link without an image.
// O(links log links).
Result<std::vector<LinkId>> LinkMapOf(const Topology& from, const Topology& to,
                                      const std::vector<NodeId>& node_map);

// f(A^T): the reverse on the same topology, mirrored there by an isomorphism from its transpose,
// node u of the transpose becoming node_map[u]. (Theorem 2, for reverse-symmetric networks.)
// kInvalidArgument: node_map is none, or the schedule is timed.
Result<Schedule> Mirror(const Topology& topology, const Schedule& schedule,
                        const std::vector<NodeId>& node_map);

// First one, then the other, as one schedule of `collective`: reduce-scatter + all-gather is an
// all-reduce. Both are step schedules of equally many shards on one topology; `first` starts from
// what `collective` starts from, `second` ends where it ends, and each shard is handed over at a
// rank where `first` has finished it. kInvalidArgument: what does not fit; kResourceExhausted: the
// common denominator or the number of steps leaves 32 bits.
Result<Schedule> Concatenate(const Schedule& first, const Schedule& second,
                             const Collective& collective);

// The same for timed schedules of `topology` made for one size and one link model: the second
// starts when the last transfer of the first has arrived.
Result<Schedule> ConcatenateTimed(const Topology& topology, const Schedule& first,
                                  const Schedule& second, const Collective& collective);

// When the last transfer of a timed schedule of `topology` has arrived; 0 without transfers.
int64_t CompletionPs(const Topology& topology, const Schedule& schedule);

// Concatenate() with the second part brought forward: it starts as soon as, in every step, what the
// ranks that `first` finishes at send of it has been finished there. Pipelined trees then reduce
// and spread different chunks at the same time. Steps never exceed those of Concatenate(), and
// neither does TB: what two steps carry together is at most what they carry one after the other.
// Each shard of `first` has one destination.
Result<Schedule> Overlap(const Topology& topology, const Schedule& first, const Schedule& second,
                         const Collective& collective);

// The same schedule with every shard turned end for end: unit u becomes units_per_shard - 1 - u. A
// reversed pipeline, which starts with the last chunk, then starts with the first.
Schedule FlipShards(Schedule schedule);

// Two schedules of one collective on one topology at once: `first` carries the first half of every
// shard, `second` the other half, step by step together. Errors as above. ([direct-connect] A.6.)
Result<Schedule> SplitHalves(const Schedule& first, const Schedule& second);

// The same schedule with intervals in finer units: units_per_shard * factor, factor >= 1.
// kResourceExhausted where that leaves 31 bits.
Result<Schedule> Refine(const Schedule& schedule, int32_t factor);

}  // namespace tutti
