#include "small_digraph.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/index.h"
#include "tutti/topo/symmetry.h"

namespace tutti::stored_search {
namespace {

std::vector<int> Members(uint32_t mask) {
  std::vector<int> members;
  for (; mask != 0; mask &= mask - 1) members.push_back(std::countr_zero(mask));
  return members;
}

}  // namespace

std::optional<SmallDigraph> SmallDigraph::Make(const std::vector<uint32_t>& heads) {
  SmallDigraph graph;
  graph.num_nodes_ = static_cast<int>(heads.size());
  if (heads.empty() || graph.num_nodes_ > kMaxNodes) return std::nullopt;
  graph.degree_ = std::popcount(heads[0]);
  graph.out_ = heads;
  graph.in_.assign(heads.size(), 0);
  graph.in_links_.resize(heads.size());
  for (int v = 0; v < graph.num_nodes_; ++v) {
    if (std::popcount(heads[Index(v)]) != graph.degree_ || (heads[Index(v)] >> v & 1) != 0)
      return std::nullopt;
    for (int head : Members(heads[Index(v)])) {
      if (head >= graph.num_nodes_) return std::nullopt;
      graph.in_[Index(head)] |= 1U << v;
      graph.in_links_[Index(head)].push_back(static_cast<int>(graph.head_.size()));
      graph.head_.push_back(head);
    }
  }
  for (uint32_t tails : graph.in_)
    if (std::popcount(tails) != graph.degree_) return std::nullopt;
  graph.distance_.assign(heads.size(), std::vector<int>(heads.size(), kUnreached));
  for (int v = 0; v < graph.num_nodes_; ++v) {
    uint32_t reached = 1U << v, layer = reached;
    for (int hops = 0; layer != 0; ++hops) {
      uint32_t next = 0;
      for (int u : Members(layer)) {
        graph.distance_[Index(v)][Index(u)] = hops;
        next |= graph.out_[Index(u)];
      }
      layer = next & ~reached;
      reached |= next;
    }
    graph.diameter_ = std::max(graph.diameter_, *std::max_element(graph.distance_[Index(v)].begin(),
                                                                  graph.distance_[Index(v)].end()));
  }
  return graph;
}

std::optional<SmallDigraph> SmallDigraph::Make(const Topology& topology) {
  if (topology.num_nodes() > kMaxNodes) return std::nullopt;
  std::vector<uint32_t> heads(Index(topology.num_nodes()), 0);
  for (LinkId link : topology.Links()) {
    uint32_t& mask = heads[topology.tail(link).index()];
    const uint32_t bit = 1U << topology.head(link).value;
    if ((mask & bit) != 0) return std::nullopt;
    mask |= bit;
  }
  return Make(heads);
}

SmallDigraph SmallDigraph::Transposed() const { return *Make(in_); }

Topology SmallDigraph::ToTopology() const {
  Topology::Builder builder(num_nodes_);
  for (int link = 0; link < num_links(); ++link)
    builder.AddLink(NodeId{tail(link)}, NodeId{head(link)}, {});
  Result<Topology> topology = std::move(builder).Build();
  TUTTI_CHECK(topology.has_value());
  return *std::move(topology);
}

std::vector<uint32_t> SmallDigraph::Renamed(const std::vector<int>& order) const {
  std::vector<uint32_t> heads(out_.size(), 0);
  for (int v = 0; v < num_nodes_; ++v)
    for (int head : Members(out_[Index(v)]))
      heads[Index(order[Index(v)])] |= 1U << order[Index(head)];
  return heads;
}

SmallDigraph::Code SmallDigraph::OneCode() const {
  std::vector<int> number(out_.size(), -1), queue{0};
  number[0] = 0;
  for (size_t next = 0; next < queue.size(); ++next)
    for (int head : Members(out_[Index(queue[next])]))
      if (number[Index(head)] < 0) {
        number[Index(head)] = static_cast<int>(queue.size());
        queue.push_back(head);
      }
  return Renamed(number);
}

std::vector<SmallDigraph::Code> SmallDigraph::AllCodes() const {
  std::vector<Code> codes;
  std::vector<int> number(out_.size(), -1), queue;
  const auto extend = [&](const auto& self, size_t next) -> void {
    if (next == queue.size()) {
      codes.push_back(Renamed(number));
      return;
    }
    std::vector<int> fresh;
    for (int head : Members(out_[Index(queue[next])]))
      if (number[Index(head)] < 0) fresh.push_back(head);
    do {
      for (int head : fresh) {
        number[Index(head)] = static_cast<int>(queue.size());
        queue.push_back(head);
      }
      self(self, next + 1);
      for (size_t i = 0; i < fresh.size(); ++i) {
        number[Index(queue.back())] = -1;
        queue.pop_back();
      }
    } while (std::next_permutation(fresh.begin(), fresh.end()));
  };
  for (int start = 0; start < num_nodes_; ++start) {
    number[Index(start)] = 0;
    queue = {start};
    extend(extend, 0);
    number[Index(start)] = -1;
  }
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  return codes;
}

bool SmallDigraph::IsIsomorphicTo(const SmallDigraph& other) const {
  const IsomorphismSearch search = FindIsomorphism(ToTopology(), other.ToTopology());
  TUTTI_CHECK(search.outcome != IsomorphismSearch::Outcome::kGaveUp);
  return search.outcome == IsomorphismSearch::Outcome::kFound;
}

}  // namespace tutti::stored_search
