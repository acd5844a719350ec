// sssp: one shortest path a pair, over links that cost what the pairs before have put on them.
//
// Method      Sources in order of rank, for each its destinations in the order in which a search
//             over hops reaches them. Among the paths of fewest hops the one whose links carry
//             least so far, in time (load over bandwidth); then the pair's demand counts on its
//             links.
// Exactness   Loads in whole units; a link counts in proportion to 1 / bandwidth, rounded to 2^-16.
// Complexity  O(n (n + m)), and for each pair the links of its shortest paths.
// Reference   [alltoall-mcf] 5.1 "SSSP": link weights "reflect the additional congestion caused due
//             to each iteration"; the weights are those of DF-SSSP [Domke, Hoefler, Nagel 2011],
//             which keep to shortest paths. What an iteration is the paper does not say. With one a
//             pair, nearest first, the flow's busiest links on punctured tori carry 0.70 and 0.68
//             of SSSP's, as its figure 5 has it (0.7); with one a source 0.62.
#include <algorithm>
#include <utility>

#include "registry.h"
#include "trees.h"
#include "tutti/base/cancel.h"
#include "tutti/flow/network.h"
#include "tutti/sched/routing.h"

namespace tutti {
namespace {

class LoadAwarePaths {
 public:
  explicit LoadAwarePaths(const Topology& topology)
      : topology_(topology),
        cost_(static_cast<size_t>(topology.num_links()), 0),
        hops_(static_cast<size_t>(topology.num_nodes())),
        visited_for_(hops_.size(), -1),
        distance_(hops_.size()),
        last_(hops_.size(), kNoLink) {
    constexpr WideInteger kWhole = 1 << 16;
    int64_t fastest = 1;
    for (const LinkId link : topology.Links())
      fastest = std::max(fastest, topology.bandwidth(link));
    for (const LinkId link : topology.Links())
      slowness_.push_back(static_cast<int64_t>(
          std::min<WideInteger>(kWhole * fastest / topology.bandwidth(link), int64_t{1} << 40)));
  }

  // Paths are from here on. What it reaches, in that order, itself first.
  std::vector<NodeId> StartAt(NodeId source) {
    source_ = source;
    std::fill(hops_.begin(), hops_.end(), -1);
    std::fill(visited_for_.begin(), visited_for_.end(), -1);
    std::vector<NodeId> order = {source};
    hops_[source.index()] = 0;
    for (size_t next = 0; next < order.size(); ++next)
      for (const LinkId link : topology_.OutLinks(order[next])) {
        const NodeId head = topology_.head(link);
        if (hops_[head.index()] >= 0) continue;
        hops_[head.index()] = hops_[order[next].index()] + 1;
        order.push_back(head);
      }
    return order;
  }

  // The links in order; `demand` then counts on them.
  std::vector<LinkId> Next(NodeId destination, int64_t demand) {
    FindNodesBefore(destination);
    // From the source on, so that all paths to a node are known at its turn.
    for (size_t i = before_.size(); i-- > 0;) Reach(before_[i]);
    std::vector<LinkId> links;
    for (NodeId at = destination; at != source_; at = topology_.tail(links.back()))
      links.push_back(last_[at.index()]);
    std::reverse(links.begin(), links.end());
    for (const LinkId link : links)
      cost_[link.index()] += WideInteger{demand} * slowness_[link.index()];
    return links;
  }

 private:
  bool IsLast(LinkId link) const {
    return hops_[topology_.tail(link).index()] + 1 == hops_[topology_.head(link).index()] &&
           hops_[topology_.tail(link).index()] >= 0;
  }

  // The nodes of all shortest paths, by hops from the destination.
  void FindNodesBefore(NodeId destination) {
    before_ = {destination};
    visited_for_[destination.index()] = destination.value;
    for (size_t next = 0; next < before_.size(); ++next)
      for (const LinkId link : topology_.InLinks(before_[next])) {
        const NodeId tail = topology_.tail(link);
        if (!IsLast(link) || visited_for_[tail.index()] == destination.value) continue;
        visited_for_[tail.index()] = destination.value;
        before_.push_back(tail);
      }
  }

  void Reach(NodeId node) {
    distance_[node.index()] = 0;
    last_[node.index()] = kNoLink;
    for (const LinkId link : topology_.InLinks(node)) {
      if (!IsLast(link)) continue;
      const WideInteger through = distance_[topology_.tail(link).index()] + cost_[link.index()];
      if (last_[node.index()] != kNoLink && distance_[node.index()] <= through) continue;
      distance_[node.index()] = through;
      last_[node.index()] = link;
    }
  }

  const Topology& topology_;
  std::vector<int64_t> slowness_;  // 2^16 of the fastest link
  std::vector<WideInteger> cost_;  // of a link: load x slowness
  NodeId source_{0};
  std::vector<int32_t> hops_;         // of a node, from the source
  std::vector<int32_t> visited_for_;  // of a node: the last destination it is on the way to
  std::vector<NodeId> before_;
  std::vector<WideInteger> distance_;  // of a node, along the best path
  std::vector<LinkId> last_;           // of that path
};

}  // namespace

Result<Routed> RouteSssp(const Topology& topology, const RouterOptions& options) {
  const DemandTable demand(topology.num_ranks(), options.demand);
  LoadAwarePaths paths(topology);
  RoutingBuilder builder(topology.num_ranks(), 1);
  for (const NodeId source : topology.Ranks()) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    std::vector<std::vector<LinkId>> to(static_cast<size_t>(topology.num_ranks()));
    for (const NodeId node : paths.StartAt(source))
      if (const int64_t weight = demand(source.value, node.value); weight > 0)
        to[node.index()] = paths.Next(node, weight);
    for (const NodeId destination : topology.Ranks()) {
      if (const int64_t weight = demand(source.value, destination.value); weight > 0) {
        if (to[destination.index()].empty())
          return tl::unexpected(NoWay(topology, source, destination));
        builder.AddPath(to[destination.index()], weight);
      }
      builder.EndPair();
    }
  }
  return Routed{std::move(builder).Finish()};
}

}  // namespace tutti
