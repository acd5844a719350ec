// Orders of the ranks of a communicator round a ring, one a channel, and the flows they make.
//
// Model       Locality rings: groups of ranks (pods, in them racks, in them hosts) follow each other
//             in the order of their smallest rank; channel c turns the devices inside each host by
//             c, so that exits of hosts are spread over their NICs. A ring leaves each rack that it
//             touches once, which no ring can do with less: cross-rack flows are the racks, or none
//             where there is one. Named rings go through hosts in the order in which the tenant's ranks first name
//             them, devices turned alike: a library that knows its hosts and not the network. Random rings
//             are what ignorance of both makes.
//             A flow is an edge of a ring between two hosts. Its ports are NICs, named by the rank
//             whose port it is: the rank's own, one chosen by turns over all NICs of the host, or
//             one by chance.
// Complexity  O(n log n + n c) for n ranks and c channels.
// Reference   [mccs] 4.3 example 1; the turning of devices is ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/control/cluster_view.h"

namespace tutti {

// One order a channel, of the same ranks (numbers of the cluster).
std::vector<std::vector<int32_t>> LocalityRings(const ClusterView& view,
                                                std::span<const int32_t> ranks, int32_t channels);
std::vector<std::vector<int32_t>> RingsAsNamed(const ClusterView& view,
                                               std::span<const int32_t> ranks, int32_t channels);
std::vector<std::vector<int32_t>> RandomRings(std::span<const int32_t> ranks, int32_t channels,
                                              Random& random);

enum class NicChoice : uint8_t { kOwn, kBalanced, kRandom };

struct RingFlow {
  int32_t channel = 0;
  int32_t from = 0, to = 0;            // ranks next to each other in the ring
  int32_t from_port = 0, to_port = 0;  // the ranks whose NICs carry it
  friend bool operator==(const RingFlow&, const RingFlow&) = default;
};

// Channel by channel, in the order of the rings. `random` is drawn from by kRandom only.
std::vector<RingFlow> FlowsOf(const ClusterView& view, std::span<const std::vector<int32_t>> rings,
                              NicChoice nics, Random& random);

// Bytes/s that each flow of one communicator asks for: flow_assignment.h, with the ports of the cluster.
std::vector<int64_t> FlowDemands(const ClusterView& view, std::span<const RingFlow> flows);

// Edges of a ring whose ends are in different racks.
int32_t CrossRackFlows(const ClusterView& view, std::span<const int32_t> ring);

}  // namespace tutti
