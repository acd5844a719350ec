// Traffic of others than the service's tenants, as those say who watch the switches.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::controller {

// "leaf0 -> spine1"
std::string LinkName(const Topology& network, LinkId link);

// Of {"leaf0 -> spine1": 12500000}, bytes/s by link of the network; parallel links carry it in equal parts. Empty where
// nothing is named. kInvalidArgument names the link.
Result<std::vector<int64_t>> ReadBackground(const nlohmann::json& json, const Topology& network);

}  // namespace tutti::controller
