#include "tutti/flow/source_flow.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace tutti {
namespace {

// Paths that differ by less are equally short: sums of 1 / capacity are not exact.
constexpr double kTie = 1e-9;
// Part of a mean demand. Less would be lost beside others in doubles; flows only say in what proportion
// units, which count what is really asked for, take which way.
constexpr double kMinDemand = 1e-9;

struct ShortestPathTree {
  std::vector<double> distance;
  std::vector<int32_t> order;  // by distance
};

ShortestPathTree FindShortestPathTree(const FlowNetwork& network, int32_t source) {
  ShortestPathTree tree{std::vector<double>(static_cast<size_t>(network.num_nodes),
                                            std::numeric_limits<double>::infinity()),
                        {}};
  std::vector<bool> done(tree.distance.size(), false);
  std::vector<std::pair<double, int32_t>> heap = {{0.0, source}};
  tree.distance[static_cast<size_t>(source)] = 0;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto u = static_cast<size_t>(heap.back().second);
    heap.pop_back();
    if (done[u]) continue;
    done[u] = true;
    tree.order.push_back(static_cast<int32_t>(u));
    for (int32_t i = network.first_out[u]; i < network.first_out[u + 1]; ++i) {
      const auto e = static_cast<size_t>(network.out_bundles[static_cast<size_t>(i)]);
      const auto v = static_cast<size_t>(network.head[e]);
      const double distance = tree.distance[u] + 1 / network.capacity[e];
      if (distance >= tree.distance[v]) continue;
      tree.distance[v] = distance;
      heap.emplace_back(distance, static_cast<int32_t>(v));
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  }
  return tree;
}

}  // namespace

SourceFlow EqualSplit(const FlowNetwork& network, const DemandTable& demand, double mean_demand,
                      int32_t source) {
  const ShortestPathTree tree = FindShortestPathTree(network, source);
  const auto is_last = [&](size_t e) {  // of a shortest way to its head
    const double before = tree.distance[static_cast<size_t>(network.tail[e])];
    const double after = tree.distance[static_cast<size_t>(network.head[e])];
    return before < after && before + 1 / network.capacity[e] <= after * (1 + kTie);
  };
  const auto n = static_cast<size_t>(network.num_nodes);
  std::vector<double> count(n, 0), need(n, 0), flow(network.num_bundles(), 0);
  count[static_cast<size_t>(source)] = 1;
  for (int32_t node : tree.order) {
    const auto v = static_cast<size_t>(node);
    for (auto e = static_cast<size_t>(network.first_in[v]);
         e < static_cast<size_t>(network.first_in[v + 1]); ++e)
      if (is_last(e)) count[v] += count[static_cast<size_t>(network.tail[e])];
  }
  for (size_t i = tree.order.size(); i-- > 1;) {
    const auto v = static_cast<size_t>(tree.order[i]);
    if (const int64_t wanted = demand(source, tree.order[i]); wanted > 0)
      need[v] += std::max(static_cast<double>(wanted) / mean_demand, kMinDemand);
    if (need[v] <= 0) continue;
    for (auto e = static_cast<size_t>(network.first_in[v]);
         e < static_cast<size_t>(network.first_in[v + 1]); ++e) {
      if (!is_last(e)) continue;
      const auto u = static_cast<size_t>(network.tail[e]);
      flow[e] = need[v] * (count[u] / count[v]);
      need[u] += flow[e];
    }
  }
  SourceFlow result;
  result.order.push_back(source);
  for (int32_t node : tree.order) {
    const auto v = static_cast<size_t>(node);
    if (node == source || need[v] <= 0) continue;
    result.order.push_back(node);
    for (int32_t e = network.first_in[v]; e < network.first_in[v + 1]; ++e) {
      if (flow[static_cast<size_t>(e)] <= 0) continue;
      result.bundles.push_back(e);
      result.flow.push_back(flow[static_cast<size_t>(e)]);
    }
  }
  return result;
}

std::vector<BundleFlow> InUnits(const FlowNetwork& network, const DemandTable& demand,
                                const SourceFlow& flow, int64_t units_per_demand) {
  std::vector<int64_t> need(static_cast<size_t>(network.num_nodes), 0);
  std::vector<BundleFlow> result;
  size_t end = flow.bundles.size();
  for (size_t i = flow.order.size(); i-- > 1;) {
    const int32_t v = flow.order[i];
    size_t begin = end;
    double total = 0;
    while (begin > 0 && network.head[static_cast<size_t>(flow.bundles[begin - 1])] == v)
      total += flow.flow[--begin];
    int64_t left = need[static_cast<size_t>(v)] + demand(flow.order[0], v) * units_per_demand;
    const auto whole = static_cast<double>(left);
    // The largest share last, so that it takes up what rounding left.
    size_t largest = begin;
    for (size_t k = begin; k < end; ++k)
      if (flow.flow[k] > flow.flow[largest]) largest = k;
    const auto give = [&](size_t k, int64_t units) {
      if (units <= 0) return;
      result.push_back({flow.bundles[k], units});
      need[static_cast<size_t>(network.tail[static_cast<size_t>(flow.bundles[k])])] += units;
      left -= units;
    };
    for (size_t k = begin; k < end; ++k)
      if (k != largest)
        give(k, std::min<int64_t>(left, std::llround(whole * (flow.flow[k] / total))));
    give(largest, left);
    end = begin;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace tutti
