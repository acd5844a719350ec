#include "cut_network.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace tutti {

Rational RationalOf(WideCapacity value) {
  constexpr int64_t kBase = int64_t{1} << 62;
  if (-kBase < value && value < kBase) return {static_cast<int64_t>(value)};
  return RationalOf(value / kBase) * kBase + Rational(static_cast<int64_t>(value % kBase));
}

CutNetwork::CutNetwork(const Topology& topology)
    : num_nodes(topology.num_nodes()), num_ranks(topology.num_ranks()), unit(0) {
  for (LinkId link : topology.Links()) unit = std::gcd(unit, topology.bandwidth(link));
  if (unit == 0) unit = 1;
  arcs.reserve(static_cast<size_t>(topology.num_links()));
  for (LinkId link : topology.Links()) {
    arcs.push_back({topology.tail(link), topology.head(link), topology.bandwidth(link) / unit});
    total_capacity += arcs.back().capacity;
  }
}

CutNetwork CutNetwork::Transposed() const {
  CutNetwork turned = *this;
  for (Arc& arc : turned.arcs) std::swap(arc.tail, arc.head);
  return turned;
}

WideCapacity CutNetwork::CapacityOut(const std::vector<bool>& inside) const {
  WideCapacity total = 0;
  for (const Arc& arc : arcs)
    if (inside[arc.tail.index()] && !inside[arc.head.index()]) total += arc.capacity;
  return total;
}

int64_t CutNetwork::RanksIn(const std::vector<bool>& inside) const {
  int64_t count = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(num_ranks); ++rank) count += inside[rank];
  return count;
}

std::vector<WideCapacity> CutNetwork::InCapacities() const {
  std::vector<WideCapacity> total(static_cast<size_t>(num_nodes), 0);
  for (const Arc& arc : arcs) total[arc.head.index()] += arc.capacity;
  return total;
}

std::vector<WideCapacity> CutNetwork::OutCapacities() const {
  std::vector<WideCapacity> total(static_cast<size_t>(num_nodes), 0);
  for (const Arc& arc : arcs) total[arc.tail.index()] += arc.capacity;
  return total;
}

bool CutNetwork::IsSymmetric() const {
  std::map<std::pair<NodeId, NodeId>, int64_t> more;
  for (const Arc& arc : arcs) {
    more[{arc.tail, arc.head}] += arc.capacity;
    more[{arc.head, arc.tail}] -= arc.capacity;
  }
  return std::all_of(more.begin(), more.end(), [](const auto& entry) { return entry.second == 0; });
}

std::vector<NodeId> CutNetwork::RanksByDistance(NodeId first) const {
  std::vector<Digraph::Arc> ends;
  ends.reserve(arcs.size());
  for (const Arc& arc : arcs) ends.emplace_back(arc.tail, arc.head);
  const Digraph graph(num_nodes, ends);
  std::vector<bool> seen(static_cast<size_t>(num_nodes), false);
  std::vector<NodeId> queue = {first};
  seen[first.index()] = true;
  std::vector<NodeId> ranks;
  for (size_t i = 0; i < queue.size(); ++i) {
    if (is_rank(queue[i])) ranks.push_back(queue[i]);
    for (LinkId link : graph.OutLinks(queue[i])) {
      const NodeId head = graph.head(link);
      if (!seen[head.index()]) queue.push_back(head);
      seen[head.index()] = true;
    }
  }
  return ranks;
}

}  // namespace tutti
