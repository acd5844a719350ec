// A base of the asker's own: measured, since nothing is known of it.
#pragma once

#include <string>

#include "base.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::design {

// kInvalidArgument: switches, unequal links, or not the same number of ports everywhere.
// `recipe` is what stands for it in expressions; by default its name.
Result<BaseEntry> MeasureBase(const Topology& topology, std::string recipe = {});

}  // namespace tutti::design
