// Concurrent flow: how fast a network carries all-to-all at best, between two proven limits.
//
// Model       Every rank sends to every other rank at once, at the same rate f, over as many paths
//             as it likes; what crosses a link stays within its bandwidth. Switches forward only.
//             Host limits are looked at by SolveHostedFlow only. With a demand matrix rank s sends
//             to rank d at f x demand(s, d), where the demands off the diagonal are scaled to
//             mean 1. The largest such f is sought.
// Units       f in units of the smallest link's bandwidth (docs/glossary.md). Flows count whole
//             units: what s sends to d is demand(s, d) x units_per_demand of them.
// Proof       f_lower is what the flow in hand reaches: its links' largest load over bandwidth,
//             counted in integers. f_upper follows from integer lengths of the links, whatever they
//             are: each unit from s to d uses up at least distance(s, d) of the total bandwidth x
//             length. CheckConcurrentFlow recomputes both from the network and shares no code with
//             the solver.
// Method      One acyclic flow a source, shifted from its longest used paths to the shortest ones
//             while lengths grow with the load (Dial's algorithm B inside an augmented Lagrangian);
//             the lengths of each pass are the dual.
// Complexity  A pass costs O(n (n + m)) over the order of the symmetry used; genkautz(4,1000) takes
//             tens of passes for 0.1 %. Memory about 30 bytes for each link that carries flow of a
//             source.
// Threads     Same bytes for any number of threads. Interruptible (base/cancel.h).
// Errors      kInvalidArgument: one rank alone, a demand matrix of the wrong size, with a negative
//             entry or without any demand, a gap or limit that makes no sense.
//             Of an earlier answer to start from: one that contradicts itself.
//             kResourceExhausted: flows need more memory than there is (says how much).
//             kCancelled. A pass or time limit that is hit is no error: the best answer so far.
// Reference   [alltoall-mcf] 3.1.2 for the problem; [Dial 2006], [Bertsekas 1982] for the method,
//             which is not the paper's (it calls an LP solver).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct ConcurrentFlow;

// An earlier answer to start from, of a network most of whose nodes and links are still there: what
// without() leaves of it, say. Nodes are told apart by their names.
struct FlowStart {
  std::span<const std::string> node_names;  // of the earlier network, ranks first
  const ConcurrentFlow* flow = nullptr;
};

struct ConcurrentFlowOptions {
  // Stops when (f_upper - f_lower) / f_upper is at most this. 0 asks for equality, which only
  // symmetric networks reach.
  double gap = 1e-4;
  // Prove the optimum itself (f_lower == f_upper), whatever the gap: from a basis of the linear
  // program, see src/synth/mcf/exact.h. Seconds at 100 ranks without symmetry. Where that needs too
  // much, `no_proof` of the answer says what.
  bool exact = false;
  // Solve for one of all sources that automorphisms of the network take to each other, where some
  // are found; not with a demand matrix.
  bool symmetry = true;
  int32_t max_passes = 100'000;
  double max_seconds = 0;  // 0: no limit; with one the answer depends on the machine
  // N x N, what rank s sends to rank d at [s * N + d] relative to the others; the diagonal counts
  // for nothing. Empty: 1 for every pair.
  std::vector<int64_t> demand = {};
  // After the loss of a link the flow is set right where it used it and is close to the new optimum
  // in a few passes. No symmetry is looked for then.
  std::optional<FlowStart> start = {};
};

// All parallel links from one node to another, as one.
struct LinkBundle {
  NodeId tail{0}, head{0};
  int64_t bandwidth = 0;  // bytes/s
  friend bool operator==(const LinkBundle&, const LinkBundle&) = default;
};

struct BundleFlow {
  int32_t bundle = 0;
  int64_t units = 0;  // >= 1
  friend bool operator==(const BundleFlow&, const BundleFlow&) = default;
};

// A flow and lengths in whole numbers that may need more than 62 bits.
struct WideFlow {
  struct Part {
    int32_t bundle = 0;
    Rational units;  // > 0
  };
  Rational units_per_demand;
  std::vector<std::vector<Part>> flow_from;  // as ConcurrentFlow::flow_from
  std::vector<Rational> lengths;
};

struct ConcurrentFlow {
  std::vector<LinkBundle> bundles;  // sorted by head, then tail
  std::vector<int64_t> demand;      // as asked for
  int64_t units_per_demand = 0;
  // What each rank's data does on its way to all the others: acyclic, each bundle after those that
  // feed it.
  std::vector<std::vector<BundleFlow>> flow_from;
  std::vector<int64_t> lengths;  // a bundle; behind f_upper
  // The proof of the optimum where it does not fit into the numbers above. f_lower and f_upper are
  // then what it proves; the flow above is as close as doubles get.
  std::optional<WideFlow> wide;
  std::string no_proof;  // why there is none, where one was asked for

  Rational f_lower, f_upper;
  int32_t passes = 0;
  double seconds = 0;

  // (f_upper - f_lower) / f_upper.
  double gap() const { return ((f_upper - f_lower) / f_upper).ToDouble(); }
};

// The bundles of a topology, in the order of ConcurrentFlow::bundles. O(m log m).
std::vector<LinkBundle> BundlesOf(const Topology& topology);
// As FlowStart wants them.
std::vector<std::string> NodeNamesOf(const Topology& topology);

Result<ConcurrentFlow> SolveConcurrentFlow(const Topology& topology,
                                           const ConcurrentFlowOptions& options = {});

// Where hosts forward, flows pass them: their limits become links of the network that is solved.
struct HostedFlow {
  Topology network;           // HostLimitsAsLinks(topology) of topo/operators.h
  ConcurrentFlow flow;        // of it; f in units of its smallest link
  Rational f_lower, f_upper;  // in units of the topology's
};
Result<HostedFlow> SolveHostedFlow(const Topology& topology,
                                   const ConcurrentFlowOptions& options = {});

// Recomputes everything that `flow` claims: that it is of this network, that what each source sends
// arrives where it shall and nowhere else, without cycles, and that f_lower and f_upper are exactly
// what the flow and the lengths prove. kInvalidArgument says what does not hold. O(n m log n).
Status CheckConcurrentFlow(const Topology& topology, const ConcurrentFlow& flow);

}  // namespace tutti
