// What a simulated machine's messages cost: the platforms of data/platforms, with what an
// experiment changes in them.
#pragma once

#include <string>

#include "tuna.h"
#include "tutti/base/result.h"

namespace tutti::tuna {

// The platform's XML. kNotFound: no platform has this name, or it says nothing of messages inside
// a node.
Result<std::string> PlatformText(const Machine& machine);

}  // namespace tutti::tuna
