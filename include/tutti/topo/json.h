// Topology files (`.topo.json`). Format: docs/formats/topology.md.
// Errors: kIo for the file, kCorrupt / kInvalidArgument naming the JSON path and what is accepted.
#pragma once

#include <string>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

// `source`: for people, where its numbers come from.
std::string TopologyToJson(const Topology& topology, const std::string& source = "");
Result<Topology> TopologyFromJson(const std::string& text);
Result<Topology> ReadTopologyFile(const std::string& path);
Status WriteTopologyFile(const std::string& path, const Topology& topology);

}  // namespace tutti
