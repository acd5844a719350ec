#include "tutti/graph/distance_regular.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/parallel.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

// The first link, by number, that is parallel to another or has no reverse.
std::optional<LinkId> FirstOddLink(const Digraph& graph) {
  std::vector<Digraph::Arc> arcs;
  for (LinkId link : graph.Links()) arcs.emplace_back(graph.tail(link), graph.head(link));
  std::sort(arcs.begin(), arcs.end());
  for (LinkId link : graph.Links()) {
    const Digraph::Arc arc(graph.tail(link), graph.head(link));
    const auto same = std::equal_range(arcs.begin(), arcs.end(), arc);
    const Digraph::Arc back(arc.second, arc.first);
    if (same.second - same.first != 1 || !std::binary_search(arcs.begin(), arcs.end(), back))
      return link;
  }
  return std::nullopt;
}

// b and c by distance, -1 where no pair at that distance has been counted.
struct Counts {
  std::vector<int32_t> b, c;
};

// Compares the counts of every node, seen from `source`, with `counts`, into which those of new
// distances go where `fill`. Returns the first node that differs.
std::optional<NodeId> FirstOddNode(const Digraph& graph, NodeId source, bool fill, Counts& counts) {
  const std::vector<int32_t> hops = DistancesFrom(graph, source);
  for (NodeId node : graph.Nodes()) {
    const int32_t distance = hops[node.index()];
    if (distance == kUnreachable) return node;
    int32_t nearer = 0, farther = 0;
    for (LinkId link : graph.OutLinks(node)) {
      const int32_t neighbour = hops[graph.head(link).index()];
      nearer += neighbour < distance ? 1 : 0;
      farther += neighbour > distance ? 1 : 0;
    }
    const auto at = static_cast<size_t>(distance);
    if (fill && at >= counts.b.size()) {
      counts.b.resize(at + 1, -1);
      counts.c.resize(at + 1, -1);
    }
    if (at >= counts.b.size()) return node;
    if (fill && counts.b[at] < 0) {
      counts.b[at] = farther;
      counts.c[at] = nearer;
    }
    if (counts.b[at] != farther || counts.c[at] != nearer) return node;
  }
  return std::nullopt;
}

}  // namespace

std::string IntersectionArray::ToString() const {
  return fmt::format("{{{};{}}}", fmt::join(b, ","), fmt::join(c, ","));
}

DistanceRegularity CheckDistanceRegular(const Digraph& graph) {
  std::vector<NodeId> sources;
  for (NodeId node : graph.Nodes()) sources.push_back(node);
  return CheckDistanceRegular(graph, sources);
}

DistanceRegularity CheckDistanceRegular(const Digraph& graph, std::span<const NodeId> sources) {
  TUTTI_CHECK(!sources.empty());
  if (const std::optional<LinkId> odd = FirstOddLink(graph))
    return {std::nullopt, graph.tail(*odd), graph.head(*odd)};
  Counts counts;
  if (const std::optional<NodeId> odd = FirstOddNode(graph, sources[0], true, counts))
    return {std::nullopt, sources[0], *odd};
  std::vector<std::optional<NodeId>> odd_from(sources.size());
  ParallelFor(static_cast<int64_t>(sources.size()), 4, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      odd_from[i] = FirstOddNode(graph, sources[i], false, counts);
  });
  for (size_t i = 0; i < sources.size(); ++i)
    if (odd_from[i]) return {std::nullopt, sources[i], *odd_from[i]};
  // b_D and c_0 are 0 and no part of the array.
  counts.b.pop_back();
  counts.c.erase(counts.c.begin());
  return {IntersectionArray{std::move(counts.b), std::move(counts.c)}, NodeId{0}, NodeId{0}};
}

}  // namespace tutti
