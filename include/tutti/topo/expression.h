// Topologies written as expressions: `torus(4,4,bw=50GB/s,alpha=0.5us)`, `without(torus(3,3),
// links=2,seed=7)`, or a path that ends in `.json`. The language and every family:
// docs/guide/topologies.md.
//
// Errors   kInvalidArgument / kNotFound with the column, what was found and what is accepted
//          (the nearest names for an unknown one). Sizes are limited before anything is
//          allocated: at most kMaxNodes nodes and kMaxLinks links.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

// An expression taken apart: how a network is made, without making it.
struct ExpressionTree {
  struct Option {
    std::string name;  // "k", "seed", "links"
    int64_t value = 0;
    friend bool operator==(const Option&, const Option&) = default;
  };

  std::string family;                    // "line"; empty for a file
  std::string member;                    // the name in distreg(octahedron)
  std::vector<ExpressionTree> operands;  // networks
  std::vector<int64_t> sizes;            // numbers, as in torus(3,4)
  std::vector<Option> options;           // keywords with a number that were given
  int64_t parallel = 1;
  // bw=, bw_per_link= (bytes/s) and alpha= (picoseconds) as given: none, one value, or one a
  // dimension.
  std::vector<int64_t> bandwidth, alpha_ps;
  std::optional<int64_t> host_bandwidth;  // host_bw= (bytes/s)
  std::vector<std::string> cables;        // link= as given: "0-1"
  std::string text;                       // canonical; a path for a file

  std::optional<int64_t> option(std::string_view name) const;
  friend bool operator==(const ExpressionTree&, const ExpressionTree&) = default;
};
// Takes any text that ParseTopology() takes apart; sizes and files are not looked into. The text of
// name() gives back how a network was made, also after it went through a file.
Result<ExpressionTree> ParseExpressionTree(std::string_view expression);

// One of the networks of a family that has a list of them: distreg(octahedron).
struct FamilyMember {
  std::string_view name;     // "octahedron"
  std::string_view summary;  // one line
};

struct FamilyInfo {
  std::string_view name;                       // "torus"
  std::string_view signature;                  // "torus(a,b,...)"
  std::string_view summary;                    // one line
  std::span<const FamilyMember> members = {};  // not empty: the argument is one of these names
};
std::vector<FamilyInfo> TopologyFamilies();  // families and operators, sorted by name

}  // namespace tutti
