#include "shortest_paths.h"

#include <algorithm>
#include <functional>

namespace tutti {
namespace {

int64_t Longer(int64_t distance, int64_t length) {
  return std::min(distance + length, ShortestPaths::kFar - 1);
}

}  // namespace

ShortestPaths::ShortestPaths(const Digraph& graph, std::span<const int64_t> lengths)
    : graph_(graph),
      lengths_(lengths),
      equal_lengths_(std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) ==
                     lengths.end()),
      distance_(static_cast<size_t>(graph.num_nodes())),
      last_link_(static_cast<size_t>(graph.num_nodes())) {}

void ShortestPaths::Run(NodeId source) {
  std::fill(distance_.begin(), distance_.end(), kFar);
  order_.clear();
  distance_[source.index()] = 0;
  if (equal_lengths_) {
    RunBreadthFirst(source);
  } else {
    RunDijkstra(source);
  }
}

void ShortestPaths::RunBreadthFirst(NodeId source) {
  order_.push_back(source);
  for (size_t i = 0; i < order_.size(); ++i) {
    for (LinkId link : graph_.OutLinks(order_[i])) {
      const NodeId head = graph_.head(link);
      if (distance_[head.index()] != kFar) continue;
      distance_[head.index()] = Longer(distance_[order_[i].index()], lengths_[link.index()]);
      last_link_[head.index()] = link;
      order_.push_back(head);
    }
  }
}

void ShortestPaths::RunDijkstra(NodeId source) {
  heap_.assign(1, {0, source});
  std::vector<bool> done(distance_.size(), false);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const NodeId node = heap_.back().second;
    heap_.pop_back();
    if (done[node.index()]) continue;
    done[node.index()] = true;
    order_.push_back(node);
    for (LinkId link : graph_.OutLinks(node)) {
      const NodeId head = graph_.head(link);
      const int64_t distance = Longer(distance_[node.index()], lengths_[link.index()]);
      if (distance >= distance_[head.index()]) continue;
      distance_[head.index()] = distance;
      last_link_[head.index()] = link;
      heap_.emplace_back(distance, head);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }
}

}  // namespace tutti
