#include "tutti/graph/digraph.h"

#include <numeric>

namespace tutti {

Digraph::Digraph(int32_t num_nodes, std::span<const Arc> arcs, std::vector<int32_t>* order)
    : num_nodes_(num_nodes) {
  const auto n = static_cast<size_t>(num_nodes);
  first_out_.assign(n + 1, 0);
  first_in_.assign(n + 1, 0);
  for (const auto& [tail, head] : arcs) {
    TUTTI_CHECK(0 <= tail.value && tail.value < num_nodes);
    TUTTI_CHECK(0 <= head.value && head.value < num_nodes);
    TUTTI_CHECK(tail != head);
    ++first_out_[tail.index() + 1];
    ++first_in_[head.index() + 1];
  }
  std::partial_sum(first_out_.begin(), first_out_.end(), first_out_.begin());
  std::partial_sum(first_in_.begin(), first_in_.end(), first_in_.begin());
  tail_.resize(arcs.size());
  head_.resize(arcs.size());
  if (order != nullptr) order->resize(arcs.size());
  std::vector<int32_t> next(first_out_.begin(), first_out_.end() - 1);
  for (size_t i = 0; i < arcs.size(); ++i) {
    const auto link = static_cast<size_t>(next[arcs[i].first.index()]++);
    tail_[link] = arcs[i].first;
    head_[link] = arcs[i].second;
    if (order != nullptr) (*order)[link] = static_cast<int32_t>(i);
  }
  in_links_.resize(arcs.size());
  next.assign(first_in_.begin(), first_in_.end() - 1);
  for (LinkId link : Links())
    in_links_[static_cast<size_t>(next[head_[link.index()].index()]++)] = link;
}

Digraph Transpose(const Digraph& graph, std::vector<LinkId>* link_map) {
  std::vector<Digraph::Arc> arcs;
  arcs.reserve(static_cast<size_t>(graph.num_links()));
  for (LinkId link : graph.Links()) arcs.emplace_back(graph.head(link), graph.tail(link));
  std::vector<int32_t> order;
  Digraph result(graph.num_nodes(), arcs, &order);
  if (link_map != nullptr) {
    link_map->clear();
    for (int32_t from : order) link_map->push_back(LinkId{from});
  }
  return result;
}

}  // namespace tutti
