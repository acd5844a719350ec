// Files of concurrent flows, to read elsewhere or to start from when the network has changed.
// Format: docs/formats/flow.md.
//
// Complexity  About 20 bytes on disk and 100 in memory for each link that carries flow of a source.
// Errors      kIo for the file; kCorrupt naming the JSON path and what is accepted.
#pragma once

#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/topology.h"

namespace tutti {

// What a later run needs of a flow: its limits, which CheckConcurrentFlow would have to prove
// against the network, are left at 0.
struct StoredFlow {
  std::vector<std::string> node_names;  // ranks first
  ConcurrentFlow flow;

  FlowStart AsStart() const { return {node_names, &flow}; }
};

std::string FlowToJson(const Topology& topology, const ConcurrentFlow& flow);
Result<StoredFlow> FlowFromJson(const std::string& text);
Result<StoredFlow> ReadFlowFile(const std::string& path);
Status WriteFlowFile(const std::string& path, const Topology& topology, const ConcurrentFlow& flow);

}  // namespace tutti
