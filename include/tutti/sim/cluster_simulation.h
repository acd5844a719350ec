// Jobs on a cluster at the level of flows: collectives of all jobs share links fairly.
//
// Model       A job waits for its ranks, then alternates between a collective and a gap (its
//             computation) for so many iterations, and leaves. Jobs start in the order of their
//             arrival (ties: as listed), each when its placement finds room. A collective is a set of
//             channels, each a closed ring of flows over given routes; an edge inside a host has no
//             route and costs nothing. A ring is pipelined with a bounded window, so its flows move
//             in lock step: links share fairly by flows, and a channel has the rate of its slowest
//             flow (kLockStep). kIndependent lets every flow run on its own; the collective ends with
//             its last flow either way. Routes are asked for at the start of each collective, so a
//             strategy may change them between collectives and never inside one.
//             Alphas do not count: what is simulated is bandwidth.
// Units       seconds and bytes as doubles. Randomness only where a seed is given.
// Complexity  O(events x uses log links): an event is the start of a collective or the end of a
//             channel (or flow).
// Errors      kInvalidArgument: a job that the cluster can never hold, times that are negative or no
//             numbers, counts below 1, a strategy's rates that never let it end. kCancelled.
// Reference   [mccs] 6.5 "Simulations".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct ClusterJob {
  double arrival_s = 0;
  int32_t ranks = 1;
  int32_t iterations = 1;
  double gap_s = 0;  // between the end of a collective and the next one
};

struct ClusterChannel {
  double flow_bytes = 0;                   // what each of its flows carries
  std::vector<std::vector<LinkId>> flows;  // routes of the edges that leave a host
};

// Where jobs go and how their collectives run. Called in the order of simulated time.
class ClusterStrategy {
 public:
  virtual ~ClusterStrategy() = default;
  virtual Status Join(int32_t job, std::span<const NodeId> ranks) = 0;
  virtual void Leave(int32_t job) = 0;
  // Valid until the next call of any function.
  virtual std::span<const ClusterChannel> Channels(int32_t job) = 0;
};

enum class Placement : uint8_t {
  kRandom,   // any free ranks
  kCompact,  // the fewest racks: the fullest free rack first, in it the fullest free host
};
enum class FlowCoupling : uint8_t { kLockStep, kIndependent };

struct ClusterOptions {
  Placement placement = Placement::kRandom;
  FlowCoupling coupling = FlowCoupling::kLockStep;
  uint64_t seed = 0;  // of the placement
  // By rank, numbers from 0 that say which ranks are close. Empty: every rank is its own.
  std::vector<int32_t> rack = {}, host = {};
};

struct ClusterJobReport {
  double start_s = 0, end_s = 0;
  double collective_s = 0;  // mean over the iterations
  std::vector<NodeId> ranks;
};
struct ClusterReport {
  std::vector<ClusterJobReport> jobs;  // as listed
  double time_s = 0;                   // the last end
  int64_t events = 0;                  // times at which rates changed
};

Result<ClusterReport> SimulateCluster(const Topology& topology, std::span<const ClusterJob> jobs,
                                      const ClusterOptions& options, ClusterStrategy& strategy);

// `count` of the free ranks; nullopt: not so many are free. `free` has an entry a rank.
std::optional<std::vector<NodeId>> PlaceJob(const std::vector<bool>& free, int32_t count,
                                            const ClusterOptions& options, Random& random);

}  // namespace tutti
