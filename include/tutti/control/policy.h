// Policies: what ring, which NICs and which routes the collectives of each job get.
//
// Model       A policy sees every job, its ranks and class, the network, and nothing else; equal
//             input gives equal output, so that every controller (and every simulation) decides
//             alike. What it leaves open the network's ECMP decides: a hash of the connection.
//             Weights: on a link a job has capacity x weight / sum of the weights of the jobs on it.
//             `weighted` fits flows whose demand is scaled by weight over mean weight, heavier jobs
//             first; of equal weights it decides as `ffa`. `deadline` fits the jobs of a class wholly
//             one after the other, the earliest deadline first. `admission` leaves what
//             runs where it is and gives each flow of another job the emptiest route on which every
//             tenant keeps what it is guaranteed (isolation.h says what a tenant has); a job for
//             which there is none is refused.
// Units       bytes/s, whole.
// Errors      kInvalidArgument: jobs without ranks, a rank that is none or is named twice, channels
//             outside 0 to 1024, weights outside 1 to 10^6, deadlines or guarantees below 0, tenants
//             below -1, background of another number of links, more flows that run than there are.
//             kInfeasible: flow_assignment.h; `admission`: the job, the link that says no, the shares.
//             kNotFound: no such policy (names the nearest). What a policy throws is kInvalidArgument; one that does not answer
//             in time is kPeerFailed (DecideWithin).
// Extension   a file in src/control/policies, a line in its registry.
// Reference   [mccs] 4.3; weights, deadlines and admission are ours.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/control/cluster_view.h"
#include "tutti/control/rings.h"

namespace tutti {

struct PolicyJob {
  int32_t id = 0;                // turns go by it; unique
  std::vector<int32_t> ranks;    // in the order that the tenant named them
  int32_t priority = 0;          // [class], more is better
  std::vector<int32_t> running;  // routes of its flows, where it runs already
  int32_t weight = 1;            // 1 to 10^6
  int64_t deadline_ns = 0;       // when its work should be done, on any one clock; 0: no deadline
  int32_t tenant = -1;           // whose it is; -1: a tenant of its own
  int64_t guaranteed = 0;        // bytes/s that its tenant has on every link that it uses; 0: none
};

struct PolicyInput {
  const ClusterView* view = nullptr;  // must outlive the call
  std::vector<PolicyJob> jobs;
  // Rings of a job. 0: as many as its racks have routes times the most ranks that it has in a host;
  // then what is fair by flows is fair by NICs.
  int32_t channels = 0;
  NicChoice nics = NicChoice::kBalanced;
  std::vector<int64_t> background;  // by link, or empty
  // Priority: in each set of routes so many, from the first on, are only for classes from ... on.
  int32_t reserved_routes = 0, reserved_from = 1;
  uint64_t seed = 0;  // of what is left to chance
};

inline constexpr int32_t kByEcmp = -1;

struct JobStrategy {
  std::vector<std::vector<int32_t>> rings;  // by channel
  std::vector<RingFlow> flows;
  std::vector<int32_t> routes;  // by flow; kByEcmp: the network decides
};

struct PolicyOutput {
  std::vector<JobStrategy> jobs;  // as the input's
  int64_t largest_excess = 0;     // of pinned flows, over their links: demand - capacity
};

enum class RingOrder : uint8_t { kRandom, kAsNamed, kLocality };  // rings.h

// Rings, and which routes their flows take.
struct Policy {
  std::string_view name;     // "ffa"
  std::string_view summary;  // one line
  RingOrder rings;
  // `output` has the rings; all their flows go by ECMP yet.
  Status (*choose_routes)(const PolicyInput& input, PolicyOutput& output);
  bool reserves_routes = false;  // heeds PolicyInput::reserved_routes
};

std::span<const Policy> Policies();
Result<const Policy*> FindPolicy(std::string_view name);
// Both check the input. The rings alone, which depend on what runs in nothing; all flows by ECMP.
Result<PolicyOutput> DecideRings(const Policy& policy, const PolicyInput& input);
Result<PolicyOutput> Decide(const Policy& policy, const PolicyInput& input);
// As that, in a thread of its own: one that has not answered after `patience_s` goes on alone, on a copy of what it was given and with the
// view, which is `input`'s, and until it ends it is not asked again.
Result<PolicyOutput> DecideWithin(const Policy& policy, const PolicyInput& input,
                                  std::shared_ptr<const ClusterView> view, double patience_s);

// The route that ECMP gives a connection: switches with one seed hash alike.
int32_t EcmpRoute(const ClusterView& view, const RingFlow& flow, uint64_t connection,
                  uint64_t seed);

}  // namespace tutti
