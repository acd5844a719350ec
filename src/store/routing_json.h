// The part of a routing file that is text in both formats: everything but the paths.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tutti/base/result.h"
#include "tutti/store/routing_store.h"

namespace tutti {

// R1, R2, R4 and the sizes: what must hold before a routing can be walked. kInvalidArgument.
Status CheckWalkable(const Topology& topology, const Routing& routing);

// An open JSON object: no closing brace. The demand matrix goes in where `with_demand`.
std::string OpenRoutingHeader(const Topology& topology, const Routing& routing, bool with_demand);
// The routing without paths. Keys besides those of the header are refused, but for "paths" where
// `with_paths`. kCorrupt.
Result<RoutingFile> ReadRoutingHeader(const nlohmann::json& root, bool with_paths);

}  // namespace tutti
