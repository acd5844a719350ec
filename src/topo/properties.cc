#include "tutti/topo/properties.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/parallel.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

// All that decides which links may be partners: same ends, best with the same parameters.
auto PairKey(const Topology& topology, LinkId link) {
  return std::tuple(topology.tail(link), topology.head(link), topology.bandwidth(link),
                    topology.alpha_ps(link), link);
}

// The links u -> v of one pair, as a range of links sorted by PairKey.
using LinkGroup = std::span<const LinkId>;

LinkGroup FindGroup(const Topology& topology, const std::vector<LinkId>& sorted, NodeId tail,
                    NodeId head) {
  const auto ends = [&topology](LinkId link) {
    return std::pair(topology.tail(link), topology.head(link));
  };
  const std::pair wanted(tail, head);
  const auto first =
      std::lower_bound(sorted.begin(), sorted.end(), wanted,
                       [&ends](LinkId link, const auto& pair) { return ends(link) < pair; });
  const auto last =
      std::upper_bound(first, sorted.end(), wanted,
                       [&ends](const auto& pair, LinkId link) { return pair < ends(link); });
  return {sorted.data() + (first - sorted.begin()), static_cast<size_t>(last - first)};
}

// Joins the links of `forward` and `backward`, both sorted: first those of equal parameters, then
// whatever is left, in order.
void JoinGroups(const Topology& topology, LinkGroup forward, LinkGroup backward,
                std::vector<Cable>& cables) {
  const auto key = [&topology](LinkId link) {
    return std::pair(topology.bandwidth(link), topology.alpha_ps(link));
  };
  std::vector<LinkId> odd_forward, odd_backward;
  size_t i = 0, j = 0;
  while (i < forward.size() && j < backward.size()) {
    if (key(forward[i]) == key(backward[j]))
      cables.push_back({forward[i++], backward[j++]});
    else if (key(forward[i]) < key(backward[j]))
      odd_forward.push_back(forward[i++]);
    else
      odd_backward.push_back(backward[j++]);
  }
  odd_forward.insert(odd_forward.end(), forward.begin() + static_cast<ptrdiff_t>(i), forward.end());
  odd_backward.insert(odd_backward.end(), backward.begin() + static_cast<ptrdiff_t>(j),
                      backward.end());
  const size_t pairs = std::min(odd_forward.size(), odd_backward.size());
  for (size_t k = 0; k < pairs; ++k) cables.push_back({odd_forward[k], odd_backward[k]});
  for (size_t k = pairs; k < odd_forward.size(); ++k)
    cables.push_back({odd_forward[k], std::nullopt});
  for (size_t k = pairs; k < odd_backward.size(); ++k)
    cables.push_back({odd_backward[k], std::nullopt});
}

}  // namespace

HopStatistics CountHops(const Topology& topology, std::span<const NodeId> sources) {
  std::vector<HopStatistics> from(sources.size());
  ParallelFor(static_cast<int64_t>(sources.size()), 4, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const std::vector<int32_t> hops = DistancesFrom(topology.graph(), sources[i]);
      for (NodeId rank : topology.Ranks()) {
        from[i].diameter = std::max(from[i].diameter, hops[rank.index()]);
        from[i].total_hops += hops[rank.index()];
      }
    }
  });
  HopStatistics all;
  for (const HopStatistics& one : from) {
    all.diameter = std::max(all.diameter, one.diameter);
    all.total_hops += one.total_hops;
  }
  return all;
}

HopStatistics CountHops(const Topology& topology) {
  std::vector<NodeId> ranks;
  for (NodeId rank : topology.Ranks()) ranks.push_back(rank);
  return CountHops(topology, ranks);
}

int32_t Diameter(const Topology& topology) { return CountHops(topology).diameter; }

FarthestRange LimitDiameter(const Topology& topology, std::span<const NodeId> sources,
                            int64_t max_visits) {
  const DistanceSearches searches{
      .make_farthest_from =
          [&topology] {
            return [&topology](NodeId source) -> int64_t {
              return CountHops(topology, {&source, 1}).diameter;
            };
          },
      .distances_to =
          [&topology](NodeId target) {
            const std::vector<int32_t> hops = DistancesTo(topology.graph(), target);
            return std::vector<int64_t>(hops.begin(), hops.end());
          },
  };
  const int64_t visits = int64_t{topology.num_nodes()} + topology.num_links();
  return FindFarthest(sources, searches, max_visits / visits);
}

std::vector<Cable> CablesOf(const Topology& topology) {
  std::vector<LinkId> sorted;
  for (LinkId link : topology.Links()) sorted.push_back(link);
  std::sort(sorted.begin(), sorted.end(), [&topology](LinkId a, LinkId b) {
    return PairKey(topology, a) < PairKey(topology, b);
  });
  std::vector<Cable> cables;
  for (size_t begin = 0; begin < sorted.size();) {
    const NodeId tail = topology.tail(sorted[begin]);
    const NodeId head = topology.head(sorted[begin]);
    const LinkGroup forward = FindGroup(topology, sorted, tail, head);
    const LinkGroup backward = FindGroup(topology, sorted, head, tail);
    if (tail < head || backward.empty()) JoinGroups(topology, forward, backward, cables);
    begin += forward.size();
  }
  for (Cable& cable : cables)
    if (cable.back && *cable.back < cable.there) std::swap(cable.there, *cable.back);
  std::sort(cables.begin(), cables.end(),
            [](const Cable& a, const Cable& b) { return a.there < b.there; });
  return cables;
}

std::optional<std::vector<LinkId>> ReverseLinks(const Topology& topology) {
  std::vector<LinkId> reverse(static_cast<size_t>(topology.num_links()));
  for (const Cable& cable : CablesOf(topology)) {
    if (!cable.back || topology.spec(cable.there) != topology.spec(*cable.back))
      return std::nullopt;
    reverse[cable.there.index()] = *cable.back;
    reverse[cable.back->index()] = cable.there;
  }
  return reverse;
}

bool IsBidirectional(const Topology& topology) { return ReverseLinks(topology).has_value(); }

namespace {

bool IsBefore(const Topology& topology, LinkId a, LinkId b) {
  const auto key = [&topology](LinkId link) {
    return std::tuple(topology.head(link), topology.bandwidth(link), topology.alpha_ps(link), link);
  };
  return key(a) < key(b);
}

// The same nodes without links between them.
Topology::Builder CopyNodes(const Topology& topology) {
  Topology::Builder builder(topology.num_ranks(), topology.num_nodes() - topology.num_ranks());
  std::vector<std::string> names;
  for (NodeId node : topology.Nodes()) {
    names.push_back(topology.node_name(node));
    for (const LinkSpec& loop : topology.self_loops(node)) builder.AddLink(node, node, loop);
  }
  builder.SetNodeNames(std::move(names));
  builder.CopyHostLimits(topology);
  builder.CopyReducingSwitches(topology);
  return builder;
}

}  // namespace

bool HasOrderedLinks(const Topology& topology) {
  for (NodeId node : topology.Nodes()) {
    const IdRange<LinkId> links = topology.OutLinks(node);
    for (int32_t i = 1; i < links.size(); ++i)
      if (IsBefore(topology, links[i], links[i - 1])) return false;
  }
  return true;
}

Topology OrderLinks(const Topology& topology, std::vector<LinkId>* link_map) {
  Topology::Builder builder = CopyNodes(topology);
  std::vector<LinkId> order;
  for (NodeId node : topology.Nodes()) {
    const size_t begin = order.size();
    for (LinkId link : topology.OutLinks(node)) order.push_back(link);
    std::sort(order.begin() + static_cast<ptrdiff_t>(begin), order.end(),
              [&topology](LinkId a, LinkId b) { return IsBefore(topology, a, b); });
  }
  for (LinkId link : order)
    builder.AddLink(topology.tail(link), topology.head(link), topology.spec(link));
  Result<Topology> ordered = std::move(builder).Build();
  TUTTI_CHECK(ordered.has_value());  // what was valid stays valid
  if (link_map != nullptr) *link_map = std::move(order);
  return (*std::move(ordered)).WithOrigin(topology.origin());
}

Topology TransposeTopology(const Topology& topology, std::vector<LinkId>* link_map) {
  Topology::Builder builder = CopyNodes(topology);
  for (LinkId link : topology.Links())
    builder.AddLink(topology.head(link), topology.tail(link), topology.spec(link));
  Result<Topology> transposed = std::move(builder).Build();
  TUTTI_CHECK(transposed.has_value());  // what was valid stays valid
  if (link_map != nullptr) Transpose(topology.graph(), link_map);
  TopologyOrigin origin = topology.origin();
  for (std::string* text : {&origin.name, &origin.expression})
    if (!text->empty()) *text = "transpose(" + *text + ")";
  if (origin.original)
    origin.original = std::make_shared<const Topology>(TransposeTopology(*origin.original));
  return (*std::move(transposed)).WithOrigin(std::move(origin));
}

}  // namespace tutti
