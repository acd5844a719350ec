// fptas: the approximation scheme for concurrent flow with demands grouped by source. For the
// comparison: mcf reaches the same in a small part of its time.
//
// Method      Phase after phase every source sends its whole demand once over the tree of its
//             shortest paths, and every bundle gets longer by the factor 1 + step x (what crossed
//             it) / capacity. The mean of all phases is the flow; the lengths bound f. Ends when
//             both differ by at most the gap, which is the scheme's promise after
//             O(log m / step^2) phases at the latest.
// Exactness   Flows count in whole units, one a phase; the limit is proven by whole lengths.
// Complexity  A phase n searches of O(m log n); memory 8 n m bytes.
// Reference   [Karakostas 2008], as compared in [alltoall-mcf] 5.4; [Fleischer 2000].
#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "acyclic.h"
#include "flow_paths.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/flow/length_limit.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"

namespace tutti {
namespace {

constexpr double kFptasGap = 0.05;
constexpr double kUnreached = std::numeric_limits<double>::infinity();
// Lengths are scaled down before they leave the range of doubles.
constexpr double kLongest = 1e150;

class Scheme {
 public:
  Scheme(const FlowNetwork& network, const DemandTable& demand, double step)
      : network_(network),
        demand_(demand),
        step_(step),
        units_(static_cast<size_t>(network.num_ranks),
               std::vector<int64_t>(network.num_bundles(), 0)),
        load_(network.num_bundles(), 0) {
    double least = kUnreached;
    for (const double capacity : network.capacity) {
      length_.push_back(1 / capacity);
      least = std::min(least, capacity);
    }
    // No tree puts more than the smallest capacity on a bundle.
    scale_ = least / static_cast<double>(demand.LargestFromRank());
    mean_ = ToRational(demand.Total()).ToDouble() /
            (static_cast<double>(network.num_ranks) * (network.num_ranks - 1));
  }

  int64_t phases() const { return phases_; }
  double gap() const { return std::max(0.0, 1 - lower_ / upper_); }
  std::vector<std::vector<int64_t>>& units() { return units_; }
  const std::vector<double>& best_length() const { return best_length_; }
  bool can_count_on() const { return phases_ < max_phases(); }

  // kCancelled.
  Status Phase() {
    double spent = 0;
    for (int32_t source = 0; source < network_.num_ranks; ++source) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      spent += Send(source);
    }
    ++phases_;
    // Distances were measured while lengths grew, so they are no longer than they are by now, and
    // the limit is one of the lengths after the phase.
    double available = 0;
    for (size_t e = 0; e < length_.size(); ++e) available += network_.capacity[e] * length_[e];
    double strain = 0;
    for (size_t e = 0; e < load_.size(); ++e)
      strain = std::max(strain, load_[e] / network_.capacity[e]);
    lower_ = mean_ * static_cast<double>(phases_) / strain;
    const double upper = mean_ * available / spent;
    if (upper < upper_) {
      upper_ = upper;
      best_length_ = length_;
    }
    if (*std::max_element(length_.begin(), length_.end()) > kLongest)
      for (double& length : length_) length /= kLongest;
    return {};
  }

 private:
  int64_t max_phases() const {
    return static_cast<int64_t>((WideInteger{1} << 61) / demand_.Total());
  }

  // Demand x distance of all that the source sends.
  double Send(int32_t source) {
    const auto nodes = static_cast<size_t>(network_.num_nodes);
    distance_.assign(nodes, kUnreached);
    by_.assign(nodes, -1);
    below_.assign(nodes, 0);
    order_.clear();
    done_.assign(nodes, false);
    heap_.assign(1, {0.0, source});
    distance_[static_cast<size_t>(source)] = 0;
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto u = static_cast<size_t>(heap_.back().second);
      heap_.pop_back();
      if (done_[u]) continue;
      done_[u] = true;
      order_.push_back(static_cast<int32_t>(u));
      for (int32_t i = network_.first_out[u]; i < network_.first_out[u + 1]; ++i) {
        const int32_t bundle = network_.out_bundles[static_cast<size_t>(i)];
        const auto e = static_cast<size_t>(bundle);
        const auto v = static_cast<size_t>(network_.head[e]);
        const double distance = distance_[u] + length_[e];
        if (distance >= distance_[v]) continue;
        distance_[v] = distance;
        by_[v] = bundle;
        heap_.emplace_back(distance, network_.head[e]);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      }
    }
    double spent = 0;
    for (size_t i = order_.size(); i-- > 1;) {
      const auto v = static_cast<size_t>(order_[i]);
      const int64_t wanted = demand_(source, order_[i]);
      spent += static_cast<double>(wanted) * distance_[v];
      below_[v] += wanted;
      if (below_[v] == 0) continue;
      const auto e = static_cast<size_t>(by_[v]);
      below_[static_cast<size_t>(network_.tail[e])] += below_[v];
      units_[static_cast<size_t>(source)][e] += below_[v];
      const auto crosses = static_cast<double>(below_[v]);
      load_[e] += crosses;
      length_[e] *= 1 + step_ * scale_ * crosses / network_.capacity[e];
    }
    return spent;
  }

  const FlowNetwork& network_;
  const DemandTable& demand_;
  double step_, scale_ = 0, mean_ = 0;
  std::vector<std::vector<int64_t>> units_;  // [source][bundle], of all phases
  std::vector<double> load_, length_, best_length_;
  int64_t phases_ = 0;
  double lower_ = 0, upper_ = kUnreached;
  // State of the search at hand.
  std::vector<double> distance_;
  std::vector<int32_t> by_, order_;
  std::vector<int64_t> below_;
  std::vector<bool> done_;
  std::vector<std::pair<double, int32_t>> heap_;
};

// What the lengths prove, exactly.
std::optional<Rational> Prove(const FlowNetwork& network, const DemandTable& demand,
                              const std::vector<double>& length) {
  std::vector<SourceFlow> sources(static_cast<size_t>(network.num_ranks));
  for (int32_t source = 0; source < network.num_ranks; ++source) {
    std::vector<int32_t>& order = sources[static_cast<size_t>(source)].order;
    order.push_back(source);
    for (int32_t node = 0; node < network.num_nodes; ++node)
      if (node != source) order.push_back(node);
  }
  return LengthLimit(network, demand, sources, 1, WholeLengths(length));
}

}  // namespace

Result<Routed> RouteFptas(const Topology& topology, const RouterOptions& options) {
  const FlowNetwork network(topology);
  const DemandTable demand(topology.num_ranks(), options.demand);
  const int64_t bytes =
      8 * int64_t{network.num_ranks} * static_cast<int64_t>(network.num_bundles());
  if (const Status fits = CheckMemory("the flow of every source", bytes, AvailableMemoryBytes());
      !fits)
    return tl::unexpected(fits.error());
  const double gap = std::max(options.gap.value_or(kFptasGap), 1e-6);
  const auto start = std::chrono::steady_clock::now();
  Scheme scheme(network, demand, gap / 2);
  do {
    if (const Status done = scheme.Phase(); !done) return tl::unexpected(done.error());
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (options.max_seconds > 0 && elapsed.count() >= options.max_seconds) break;
  } while (scheme.gap() > gap && scheme.can_count_on());

  ConcurrentFlow flow;
  flow.bundles = network.bundles;
  flow.demand = options.demand;
  flow.units_per_demand = scheme.phases();
  flow.flow_from.resize(static_cast<size_t>(network.num_ranks));
  ParallelFor(network.num_ranks, 4, [&](int64_t begin, int64_t end) {
    for (auto s = static_cast<size_t>(begin); s < static_cast<size_t>(end); ++s)
      flow.flow_from[s] = WithoutCycles(network, std::move(scheme.units()[s]));
  });
  Result<Routing> routing = PathsOfFlow(topology, flow);
  if (!routing) return tl::unexpected(routing.error());
  Routed routed{*std::move(routing)};
  routed.f_upper = Prove(network, demand, scheme.best_length());
  return routed;
}

}  // namespace tutti
