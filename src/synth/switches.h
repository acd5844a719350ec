// What is said where an algorithm works on links between ranks only.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

// kInfeasible: "'NAME' WHY: ranks reduce, switches only forward; ...", with an unwinding that works
// or why there is none.
tl::unexpected<Error> NeedsUnwinding(std::string_view algorithm, std::string_view why,
                                     const Topology& topology);

}  // namespace tutti
