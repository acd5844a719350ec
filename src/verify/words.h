// How the verifier names things to people.
#pragma once

#include <cstdint>
#include <string>

#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti::verify {

std::string NodeText(const Topology& topology, NodeId node);  // "rank 3", "switch s0"
std::string LinkText(const Topology& topology, LinkId link);  // "2 -> 5"
// "shard 3", of all-to-all "shard 3 (0 to 3)".
std::string ShardText(const Topology& topology, const Collective& collective, ShardId shard);
std::string TimeText(int64_t picoseconds);  // "1500ns"
// Units [begin, end) of a shard as fractions of it in lowest terms: "1/2..3/4".
std::string PartText(int32_t begin, int32_t end, int32_t units_per_shard);

}  // namespace tutti::verify
