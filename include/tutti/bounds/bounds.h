// Lower limits of a collective on a topology that no schedule can beat, each proven.
// docs/guide/bounds.md explains them to users.
//
// Units   Bandwidth limits are exact rationals in seconds a byte of M (so that time >= M * value)
//         and, as `tb`, in M/B. Latency limits are in steps and in picoseconds.
// Method  Cuts by max-flow, tight (coll/cut_bound.h); of all-reduce also the tightest partition of
//         the ranks (coll/partition_bound.h); latency by shortest paths, exact; all-to-all by link
//         lengths, proven whatever they are and tight on small networks (coll/flow_bound.h).
// Hosts   Host limits hold for bandwidth limits: those of HostForwarding() of topo/operators.h.
// Errors  kInvalidArgument: the collective is over another number of ranks. Nothing is infeasible:
//         a Topology is strongly connected. One rank alone has all limits 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

// Why a bandwidth limit holds: `demand` shards must leave the node set through `capacity` bytes/s.
struct CutCertificate {
  std::vector<NodeId> inside;  // of the network; NICs that stand for host limits are left out
  Rational shards_out;         // how much must leave, in shards; of all-to-all-v, in mean shards
  Rational capacity_out;
};

struct Bounds {
  int32_t steps = 0;             // no step schedule has fewer steps (hop distances)
  int64_t latency_ps = 0;        // the smallest sum of alphas on the worst way that must be gone
  int64_t min_alpha_ps = 0;      // of all links
  Rational seconds_per_byte;     // bandwidth part: time >= M * this
  Rational tb;                   // the same in M/B: seconds_per_byte * B
  std::string bandwidth_reason;  // one line: "cut of 4 of 8 ranks, ...", "total link capacity", ...
  std::optional<CutCertificate> cut;  // when a cut is the reason
  // all-to-all(v): an exact upper bound on the concurrent flow f (units of the smallest link's
  // bandwidth), proven by link lengths.
  std::optional<Rational> f_upper;
  // No bounds. The papers' "ideal" bandwidth time of all-gather, reduce-scatter and all-reduce:
  // what each rank must send and receive, at the full bandwidth of the slowest rank. Of all-reduce,
  // the limits of reduce-scatter and all-gather added: twice the all-gather cut where every node
  // takes in what it gives out.
  std::optional<Rational> ideal_seconds_per_byte, rsag_seconds_per_byte;

  // The bound: no schedule is faster for size M, in steps or timed, with barriers or without, under
  // either link model. The larger of latency, and bandwidth behind the smallest alpha: each link in
  // use gives up an alpha at least once, before or behind its bytes.
  Rational Limit(int64_t size_bytes) const;
  double Seconds(int64_t size_bytes) const { return Limit(size_bytes).ToDouble(); }
  // No step schedule with a barrier a step that has `min_steps` or more is faster for size M. A
  // link in use gives its bytes what its alpha leaves of the step: the bandwidth part, which counts
  // bytes over sets of links, holds for what the steps take beyond the smallest alpha. Where all
  // alphas are equal it is the papers' TL alpha + TB M/B.
  Rational StepLimit(int64_t size_bytes, int32_t min_steps = 0) const;
};

// Where a network was unwound (Topology::original()) these are the limits of the network that
// it was made from: its links are shares of what the switches give. A switch is passed in the alpha
// of its link to the rank behind it and as part of one step, as unwinding has it, so that the
// limits hold for schedules on any unwinding. Only `tb` and `f_upper` are in units of `topology`.
Result<Bounds> ComputeBounds(const Topology& topology, const Collective& collective);

// Limits of all-gather, reduce-scatter and all-reduce on a network of ranks only in which a
// symmetry takes any rank to any other, which the caller has proven (topo/translations.h): one
// search from rank 0, and the cut around one rank. With equal links no other cut is tighter, since
// no set of ranks has less capacity out of it than one rank has ([Mader 1971], [Hamidoune 1981]);
// with unequal ones ComputeBounds may prove more. O(n + m), or O(m log n) with several alphas.
// kInvalidArgument: another collective, or over another number of ranks.
Result<Bounds> ComputeTransitiveBounds(const Topology& topology, const Collective& collective);

// [TL*, TB*] of d-regular networks of N nodes: Moore-bound steps, and (N - 1) / N.
int32_t MooreBoundSteps(int64_t num_ranks, int64_t degree);
// [TL**] The same of networks where every link has its reverse: 1 + d + d (d - 1) + .. ranks. Of
// degree 1 these have two ranks at most.
int32_t BidirectionalMooreBoundSteps(int64_t num_ranks, int64_t degree);
// [alltoall-mcf] Theorem 1: the most that any network of N >= 2 ranks with d equal ports each gives
// every pair of an all-to-all, in units of a link's bandwidth: d over the sum of the distances from
// the root of a d-ary tree of N ranks, since no rank is nearer to the others. 1 over it is the
// theorem's time.
Rational MooreFlow(int64_t num_ranks, int64_t degree);

}  // namespace tutti
