// Traffic of others than the service's tenants, as those say who watch the switches.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/control/cluster_view.h"

namespace tutti::controller {

// From {"leaf0 -> spine1": 12500000}, bytes/s by link; parallel links carry it in equal parts. Empty where
// nothing is named. kInvalidArgument names the link.
Result<std::vector<int64_t>> ReadBackground(const nlohmann::json& json, const ClusterView& view);

}  // namespace tutti::controller
