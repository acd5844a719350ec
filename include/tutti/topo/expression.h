// Topologies written as expressions: `torus(4,4,bw=50GB/s,alpha=0.5us)`, `without(torus(3,3),
// links=2,seed=7)`, or a path that ends in `.json`. The language and every family: docs/guide/
// topologies.md and design.md section 3.
//
// Errors   kInvalidArgument / kNotFound with the column, what was found and what is accepted
//          (the nearest family names for an unknown one). Sizes are limited before anything is
//          allocated: at most kMaxNodes nodes and kMaxLinks links.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

inline constexpr int64_t kMaxNodes = 1 << 20;
inline constexpr int64_t kMaxLinks = 1 << 24;

struct ParseLimits {
  int64_t max_nodes = kMaxNodes;
  int64_t max_links = kMaxLinks;  // self-loops count
  bool allow_files = true;
};

// name() of the result is the expression in canonical form (or the name a file gives itself), and
// parses to the same network. Links are in the order (tail, head, bandwidth, alpha).
Result<Topology> ParseTopology(std::string_view expression, const ParseLimits& limits = {});

struct FamilyInfo {
  std::string_view name;       // "torus"
  std::string_view signature;  // "torus(a,b,...)"
  std::string_view summary;    // one line
};
std::vector<FamilyInfo> TopologyFamilies();  // families and operators, sorted by name

}  // namespace tutti
