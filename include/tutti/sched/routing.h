// Routing: over which paths what every rank sends to every other one travels, and how much over
// each. For networks that forward in hardware, and for the flow behind all-to-all schedules.
//
// Model       Per ordered pair of ranks (s, d) a list of weighted paths. A path is a chain of links
//             from s to d that visits no node twice. What a pair sends is split in the ratio of the
//             weights; nothing says when. With a demand matrix pair (s, d) sends demand(s, d).
// Hosts       Hardware forwards, so that a host limit (topo/topology.h) holds for what its rank
//             sends and receives itself, as in nic_forwarding(G); what passes by does not count.
//             Where hosts forward, route on host_forwarding(G), which has the limits as links.
// Units       Weights are whole units: the weights of a pair sum to demand(s, d) x
//             units_per_demand.
// Invariants  (makers keep them; CheckRouting of verify/routing.h proves them)
//             R1  first_path has N * N + 1 entries, ascends from 0 to the number of paths; the
//                 paths of (s, d) are [first_path[s * N + d], first_path[s * N + d + 1]).
//             R2  first_hop has one entry a path and one more, ascends from 0 to hops.size().
//             R3  Weights are >= 1. A pair without demand, and (s, s), have no path.
//             R4  layer is empty, or has one entry a path, each in [0, num_layers): the virtual
//                 channel its packets use.
// Complexity  20 bytes a path and 4 a hop.
// Reference   [alltoall-mcf] 3.2 (path-based schedules), 4 (routes, layers).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Routing {
  int32_t num_ranks = 0;
  std::vector<int64_t> demand{};  // N x N, diagonal ignored; empty: 1 for every pair
  // The groups of an all-to-all within groups (coll/collective.h), whose demand it then is: DemandOfGroups().
  std::vector<std::vector<NodeId>> groups{};
  int64_t units_per_demand = 1;

  std::vector<int64_t> first_path{};
  std::vector<int64_t> weight{};  // a path
  std::vector<int64_t> first_hop{};
  std::vector<LinkId> hops{};
  std::vector<int16_t> layer{};
  int32_t num_layers = 0;  // 0: no layers were asked for

  // Where it came from.
  uint64_t topology_fingerprint = 0;
  std::string algorithm{};
  uint64_t seed = 0;

  int64_t num_paths() const { return static_cast<int64_t>(weight.size()); }
  // The paths of one pair of ranks.
  IdRange<PathId> Paths(NodeId source, NodeId destination) const;
  std::span<const LinkId> Hops(PathId path) const;

  friend bool operator==(const Routing&, const Routing&) = default;
};

// Collects the paths of one pair after the other, in the order of (source, destination).
class RoutingBuilder {
 public:
  RoutingBuilder(int32_t num_ranks, int64_t units_per_demand);

  // A path of the pair at hand. A caller's bug: no hops, weight below 1.
  void AddPath(std::span<const LinkId> hops, int64_t weight);
  // Goes on with the next pair.
  void EndPair();
  // After the last pair.
  Routing Finish() &&;

 private:
  Routing routing_;
};

// All-to-all, within groups where there are some, or all-to-allv with the routing's demands.
// kInvalidArgument: no demand matrix, no groups.
Result<Collective> CollectiveOf(const Routing& routing);

// What crosses each link, in units, while every pair sends its units once. O(hops).
std::vector<int64_t> LinkUnits(const Topology& topology, const Routing& routing);

// N x N demands of an all-to-all within groups, by the weights of its shards. `collective` has groups.
std::vector<int64_t> DemandOfGroups(const Collective& collective);

// Mean of the demands off the diagonal: 1 without a matrix. With groups over their pairs only.
Rational MeanDemand(const Routing& routing);

// The largest rate that the host limits leave to any routing: all that a rank sends, or receives,
// crosses its host, whatever the paths. `demand` as in Routing; units as RoutingRate. nullopt: no
// rank with a limit sends or receives anything. O(ranks), with a demand matrix O(ranks^2).
std::optional<Rational> HostRate(const Topology& topology, std::span<const int64_t> demand);
std::optional<Rational> HostRate(const Topology& topology, const Routing& routing);

// The rate f of concurrent_flow.h that the routing reaches: every link's bandwidth suffices for
// what crosses it, and every host limit for what begins or ends there. In units of the smallest
// link's bandwidth, demands scaled to mean 1. 0 when nothing is sent. O(hops).
Rational RoutingRate(const Topology& topology, const Routing& routing);

}  // namespace tutti
