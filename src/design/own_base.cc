#include "own_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tutti/coll/collective.h"
#include "tutti/synth/bfb.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti::design {
namespace {

Status CheckUsable(const std::string& recipe, const Topology& topology) {
  const auto refuse = [&](const std::string& what) {
    return InvalidArgument(
        fmt::format("base '{}': {}; expansions need regular networks of equal "
                    "links between ranks",
                    recipe, what));
  };
  if (topology.has_switches()) return refuse("has switches");
  if (topology.num_ranks() < 2) return refuse("has one rank");
  if (topology.has_host_limits()) return refuse("has host limits");
  const int32_t ports = topology.out_degree(NodeId{0});
  for (NodeId node : topology.Nodes())
    if (topology.out_degree(node) != ports || topology.in_degree(node) != ports)
      return refuse(fmt::format(
          "is not regular: rank {} has {} ports out and {} in, rank 0 has {} out",
          topology.node_name(node), topology.out_degree(node), topology.in_degree(node), ports));
  if (!topology.is_homogeneous()) return refuse("has links of unequal bandwidth or alpha");
  return {};
}

// The fewest others that a rank has links to, and whether some links run side by side.
struct Neighbours {
  size_t fewest = std::numeric_limits<size_t>::max();
  bool parallel = false;
};
Neighbours CountNeighbours(const Topology& topology) {
  Neighbours neighbours;
  for (NodeId node : topology.Nodes()) {
    std::vector<int32_t> heads;
    for (LinkId link : topology.OutLinks(node)) heads.push_back(topology.head(link).value);
    std::sort(heads.begin(), heads.end());
    const auto end = std::unique(heads.begin(), heads.end());
    neighbours.parallel = neighbours.parallel || end != heads.end();
    neighbours.fewest = std::min(neighbours.fewest, static_cast<size_t>(end - heads.begin()));
  }
  return neighbours;
}

bool HasSelfLoops(const Topology& topology) {
  for (NodeId node : topology.Nodes())
    if (!topology.self_loops(node).empty()) return true;
  return false;
}

Result<DesignCost> CostOf(const Topology& topology) {
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  const Result<BfbCost> cost = ComputeBfbCost(topology, *collective, {});
  if (!cost) return tl::unexpected(cost.error());
  return DesignCost{cost->tl, *cost->tb};
}

}  // namespace

Result<BaseEntry> MeasureBase(const Topology& topology, std::string recipe) {
  if (recipe.empty()) recipe = topology.name();
  if (Status status = CheckUsable(recipe, topology); !status) return tl::unexpected(status.error());
  const Result<DesignCost> cost = CostOf(topology);
  if (!cost) return tl::unexpected(cost.error());
  BaseEntry entry;
  entry.recipe = std::move(recipe);
  entry.ranks = topology.num_ranks();
  entry.degree = *topology.regular_degree();
  entry.tl = entry.diameter = cost->tl;
  entry.tb = cost->tb;
  entry.bidirectional = IsBidirectional(topology);
  entry.self_loops = HasSelfLoops(topology);
  const Topology transpose = TransposeTopology(topology);
  const Neighbours heads = CountNeighbours(topology), tails = CountNeighbours(transpose);
  entry.simple = !entry.self_loops && !heads.parallel;
  entry.branches = std::min(heads.fewest, tails.fewest) >= 2;
  entry.bfb = true;
  entry.reverse_symmetric = entry.bidirectional || FindReverseSymmetry(topology).outcome ==
                                                       IsomorphismSearch::Outcome::kFound;
  if (entry.reverse_symmetric) return entry;
  const Result<DesignCost> turned = CostOf(transpose);
  if (!turned) return tl::unexpected(turned.error());
  if (!(*turned == *cost)) entry.reduce_scatter = *turned;
  return entry;
}

}  // namespace tutti::design
