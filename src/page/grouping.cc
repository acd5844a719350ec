#include "grouping.h"

#include <fmt/format.h>

#include <algorithm>

#include "drawn_grid.h"

namespace tutti {
namespace {

std::string RangeName(const Topology& topology, int32_t first, int32_t last) {
  const std::string& begin = topology.node_name(NodeId{first});
  return first == last ? begin : fmt::format("{} .. {}", begin, topology.node_name(NodeId{last}));
}

// Nodes one after the other, as equal as can be.
Grouping InRanges(const Topology& topology, int32_t most) {
  const int64_t nodes = topology.num_nodes();
  const int64_t groups = std::min<int64_t>(nodes, most);
  Grouping out;
  out.group_of.resize(static_cast<size_t>(nodes));
  for (int64_t group = 0; group < groups; ++group) {
    const auto begin = static_cast<int32_t>(group * nodes / groups);
    const auto end = static_cast<int32_t>((group + 1) * nodes / groups);
    for (int32_t node = begin; node < end; ++node)
      out.group_of[static_cast<size_t>(node)] = static_cast<int32_t>(group);
    out.names.push_back(RangeName(topology, begin, end - 1));
  }
  return out;
}

// How many blocks each side is cut into: sides are halved, the longest first, until few are left.
std::vector<int32_t> BlocksOf(const std::vector<int32_t>& dims, int32_t most) {
  std::vector<int32_t> blocks = dims;
  const auto count = [&blocks] {
    int64_t product = 1;
    for (const int32_t side : blocks) product *= side;
    return product;
  };
  while (count() > most) {
    const auto longest = std::max_element(blocks.begin(), blocks.end());
    *longest = (*longest + 1) / 2;
  }
  return blocks;
}

Grouping InBlocks(const Topology& topology, const DrawnGrid& drawn, int32_t most) {
  const GridShape& grid = drawn.shape;
  const std::vector<int32_t> blocks = BlocksOf(grid.dims, most);
  Grouping out;
  out.grid = GridShape{blocks, grid.wraps};
  int64_t groups = 1;
  for (const int32_t side : blocks) groups *= side;
  out.names.resize(static_cast<size_t>(groups));
  for (const NodeId node : topology.Ranks()) {
    int64_t rest = drawn.PlaceOf(node.value), group = 0, weight = 1;
    for (size_t i = grid.dims.size(); i-- > 0;) {
      const int64_t at = rest % grid.dims[i];
      rest /= grid.dims[i];
      group += weight * (at * blocks[i] / grid.dims[i]);
      weight *= blocks[i];
    }
    out.group_of.push_back(static_cast<int32_t>(group));
    std::string& name = out.names[static_cast<size_t>(group)];
    if (name.empty()) name = fmt::format("block of {}", topology.node_name(node));
  }
  return out;
}

std::optional<NodeId> FirstSwitch(const Topology& topology, NodeId rank) {
  for (const LinkId link : topology.OutLinks(rank))
    if (!topology.is_rank(topology.head(link))) return topology.head(link);
  return std::nullopt;
}

std::optional<Grouping> AtSwitches(const Topology& topology, int32_t most) {
  const int32_t ranks = topology.num_ranks();
  if (!topology.has_switches() || topology.num_nodes() - ranks > most) return std::nullopt;
  Grouping out;
  out.group_of.resize(static_cast<size_t>(topology.num_nodes()));
  for (int32_t node = ranks; node < topology.num_nodes(); ++node) {
    out.group_of[static_cast<size_t>(node)] = node - ranks;
    out.names.push_back(topology.node_name(NodeId{node}));
  }
  for (const NodeId rank : topology.Ranks()) {
    const std::optional<NodeId> of = FirstSwitch(topology, rank);
    if (!of) return std::nullopt;
    out.group_of[rank.index()] = of->value - ranks;
  }
  return out;
}

}  // namespace

Grouping GroupNodes(const Topology& topology, int32_t most) {
  const std::optional<DrawnGrid> grid =
      topology.has_switches() ? std::nullopt : DrawnGridOf(topology);
  if (grid) return InBlocks(topology, *grid, most);
  if (std::optional<Grouping> switches = AtSwitches(topology, most)) return *std::move(switches);
  return InRanges(topology, most);
}

}  // namespace tutti
