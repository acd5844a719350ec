#include "tutti/graph/distance.h"

namespace tutti {
namespace {

template <class Neighbours>
std::vector<int32_t> Search(int32_t num_nodes, NodeId root, const Neighbours& neighbours) {
  std::vector<int32_t> distance(static_cast<size_t>(num_nodes), kUnreachable);
  std::vector<NodeId> queue;
  queue.reserve(static_cast<size_t>(num_nodes));
  queue.push_back(root);
  distance[root.index()] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    const NodeId node = queue[i];
    neighbours(node, [&](NodeId next) {
      if (distance[next.index()] != kUnreachable) return;
      distance[next.index()] = distance[node.index()] + 1;
      queue.push_back(next);
    });
  }
  return distance;
}

}  // namespace

std::vector<int32_t> DistancesFrom(const Digraph& graph, NodeId source) {
  return Search(graph.num_nodes(), source, [&](NodeId node, const auto& visit) {
    for (LinkId link : graph.OutLinks(node)) visit(graph.head(link));
  });
}

std::vector<int32_t> DistancesTo(const Digraph& graph, NodeId target) {
  return Search(graph.num_nodes(), target, [&](NodeId node, const auto& visit) {
    for (LinkId link : graph.InLinks(node)) visit(graph.tail(link));
  });
}

Connectivity CheckStronglyConnected(const Digraph& graph) {
  if (graph.num_nodes() == 0) return {};
  const NodeId root{0};
  const std::vector<int32_t> out = DistancesFrom(graph, root);
  const std::vector<int32_t> in = DistancesTo(graph, root);
  for (NodeId node : graph.Nodes()) {
    if (out[node.index()] == kUnreachable) return {false, root, node};
    if (in[node.index()] == kUnreachable) return {false, node, root};
  }
  return {};
}

}  // namespace tutti
