// The network as chunks in steps see it: what carries them (links and hosts with a limit), how far
// ranks are, and which ranks one rank's schedule stands for.
//
// Units       A carrier's `unit_time` is what one unit of weight on it costs, relative to the
//             slowest link. Links that symmetries take to each other share a carrier, whose load is
//             that of each of them.
// Invariants  Every symmetry but the identity moves every rank (mcf/automorphisms.h).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti::tsmcf {

struct Carrier {
  int64_t bandwidth = 0;  // bytes/s
  int32_t members = 0;    // links, or hosts, that share it
  int32_t repeats = 1;    // how often a symmetric set of chunks crosses each for one crossing
  double unit_time = 1;
};

inline constexpr int32_t kNoCarrier = -1;
// Link, way out of the tail's host, way into the head's host; kNoCarrier where there is none.
using CarriersOfLink = std::array<int32_t, 3>;

struct NodeAndLinkMap {
  std::vector<NodeId> node;
  std::vector<LinkId> link;
};

struct StepNetwork {
  // `alike`: what ranks send to each other does not tell them apart. The topology must outlive it.
  StepNetwork(const Topology& topology, bool alike);

  const Topology& topology;
  std::vector<NodeAndLinkMap> symmetries;  // the identity first
  std::vector<NodeId> sources;             // one of all ranks that symmetries take to each other
  std::vector<Carrier> carriers;
  std::vector<CarriersOfLink> of_link;
  std::vector<std::vector<int32_t>> hops_to;    // [rank][node]: from the node to the rank
  std::vector<std::vector<int32_t>> hops_from;  // [rank][node]; empty but for `sources`
};

// Whether the shard has bytes that leave their rank.
bool Sends(const Collective& collective, ShardId shard);
// The most hops that such a shard has to go: no schedule has fewer steps.
int32_t FewestSteps(const StepNetwork& network, const Collective& collective);

}  // namespace tutti::tsmcf
