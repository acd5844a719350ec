// How the verifier names things to people.
#pragma once

#include <cstdint>
#include <string>

#include "tutti/topo/topology.h"

namespace tutti::verify {

std::string NodeText(const Topology& topology, NodeId node);  // "rank 3", "switch s0"
std::string LinkText(const Topology& topology, LinkId link);  // "2 -> 5"
std::string TimeText(int64_t picoseconds);                    // "1500ns"
// Units [begin, end) of a shard as fractions of it in lowest terms: "1/2..3/4".
std::string PartText(int32_t begin, int32_t end, int32_t units_per_shard);

}  // namespace tutti::verify
