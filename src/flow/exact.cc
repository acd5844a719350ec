#include "exact.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "flow_program.h"
#include "tutti/base/index.h"
#include "tutti/flow/automorphisms.h"
#include "tutti/flow/length_limit.h"

namespace tutti {
namespace {

constexpr int64_t kMaxExactUnits = int64_t{1} << 61;

// The parts of a source's flow, each bundle after those that feed it. Flow around cycles, which
// bundles without a length allow, is taken out.
class AcyclicParts {
 public:
  AcyclicParts(const FlowNetwork& network, int32_t source, std::vector<Rational> units)
      : network_(network), units_(std::move(units)) {
    while (!Search(source)) {
    }
    std::reverse(order_.begin(), order_.end());
  }

  std::vector<WideFlow::Part> Take() {
    std::vector<WideFlow::Part> parts;
    for (const int32_t node : order_)
      for (int32_t e = network_.first_in[Index(node)]; e < network_.first_in[Index(node) + 1]; ++e)
        if (!units_[Index(e)].is_zero()) parts.push_back({e, std::move(units_[Index(e)])});
    return parts;
  }

 private:
  // Depth first; false after a cycle was found and its flow taken out.
  bool Search(int32_t source) {
    enum : char { kNew, kOpen, kDone };
    std::vector<char> state(Index(network_.num_nodes), kNew);
    std::vector<std::pair<int32_t, int32_t>> path = {{source, network_.first_out[Index(source)]}};
    std::vector<size_t> path_bundles;  // into all nodes of the path but the first
    order_.clear();
    state[Index(source)] = kOpen;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == network_.first_out[Index(node) + 1]) {
        state[Index(node)] = kDone;
        order_.push_back(node);
        path.pop_back();
        if (!path_bundles.empty()) path_bundles.pop_back();
        continue;
      }
      const size_t e = Index(network_.out_bundles[Index(next++)]);
      const int32_t head = network_.head[e];
      if (units_[e].is_zero() || state[Index(head)] == kDone) continue;
      path_bundles.push_back(e);
      if (state[Index(head)] == kOpen) {
        TakeOut(head, path_bundles);
        return false;
      }
      state[Index(head)] = kOpen;
      path.emplace_back(head, network_.first_out[Index(head)]);
    }
    DropUnreached(state);
    return true;
  }

  void TakeOut(int32_t start, const std::vector<size_t>& path_bundles) {
    size_t first = path_bundles.size() - 1;
    while (network_.tail[path_bundles[first]] != start) --first;
    Rational least = units_[path_bundles[first]];
    for (size_t i = first; i < path_bundles.size(); ++i)
      least = std::min(least, units_[path_bundles[i]]);
    for (size_t i = first; i < path_bundles.size(); ++i) units_[path_bundles[i]] -= least;
  }

  // Cycles away from the source.
  void DropUnreached(const std::vector<char>& state) {
    for (size_t e = 0; e < units_.size(); ++e)
      if (state[Index(network_.tail[e])] == 0) units_[e] = 0;
  }

  const FlowNetwork& network_;
  std::vector<Rational> units_;  // a bundle
  std::vector<int32_t> order_;
};

// The representatives' flows taken to all ranks, over all automorphisms.
WideFlow Spread(const FlowNetwork& network, const NetworkGroup& group, ExactFlow exact) {
  // Automorphisms that keep a source in place count its flow again.
  const auto order = static_cast<int64_t>(group.elements.size());
  int64_t times = 1;
  for (const ExactSourceFlow& flow : exact.flows) times = std::lcm(times, order / flow.alike);
  WideFlow wide{exact.units_per_demand * Rational(times), {}, {}};
  wide.flow_from.resize(Index(network.num_ranks));
  for (ExactSourceFlow& flow : exact.flows) {
    const Rational scale(times / (order / flow.alike));
    for (Rational& units : flow.units)
      if (!units.is_zero()) units *= scale;
    std::vector<std::vector<Rational>> sums(Index(network.num_ranks));
    for (const NetworkMap& map : group.elements) {
      std::vector<Rational>& sum = sums[Index(map.node[Index(flow.source)])];
      sum.resize(network.num_bundles());
      for (size_t e = 0; e < flow.units.size(); ++e)
        if (!flow.units[e].is_zero()) sum[Index(map.bundle[e])] += flow.units[e];
    }
    for (int32_t rank = 0; rank < network.num_ranks; ++rank)
      if (!sums[Index(rank)].empty())
        wide.flow_from[Index(rank)] =
            AcyclicParts(network, rank, std::move(sums[Index(rank)])).Take();
  }
  for (const int32_t orbit : group.bundle_orbit)
    wide.lengths.push_back(exact.lengths[Index(orbit)]);
  return wide;
}

Rational LargestStrain(const FlowNetwork& network, const WideFlow& wide) {
  std::vector<Rational> load(network.num_bundles());
  for (const auto& parts : wide.flow_from)
    for (const auto& [bundle, units] : parts) load[Index(bundle)] += units;
  Rational strain;
  for (size_t e = 0; e < load.size(); ++e)
    strain = std::max(strain, load[e] / Rational(network.bundles[e].bandwidth));
  return strain / wide.units_per_demand;
}

// Lengths of small whole numbers, where they are multiples of such.
std::optional<std::vector<int64_t>> SmallLengths(const std::vector<Rational>& lengths) {
  std::vector<int64_t> small;
  for (const Rational& length : lengths) {
    const std::optional<int64_t> number = length.Num64();
    if (!number) return std::nullopt;
    small.push_back(*number);
  }
  int64_t common = 0;
  for (const int64_t length : small) common = std::gcd(common, length);
  for (int64_t& length : small) {
    length /= std::max<int64_t>(common, 1);
    if (length > kLongestLength) return std::nullopt;
  }
  return small;
}

// Moves what fits out of `wide`; false where something does not.
bool Narrow(const DemandTable& demand, const WideFlow& wide, ConcurrentFlow& result) {
  const std::optional<int64_t> units = wide.units_per_demand.Num64();
  if (!units || WideInteger{*units} * demand.LargestFromRank() >= kMaxExactUnits) return false;
  std::optional<std::vector<int64_t>> lengths = SmallLengths(wide.lengths);
  if (!lengths) return false;
  result.units_per_demand = *units;
  result.lengths = *std::move(lengths);
  for (const auto& parts : wide.flow_from) {
    auto& flow = result.flow_from.emplace_back();
    for (const auto& [bundle, amount] : parts) flow.push_back({bundle, *amount.Num64()});
  }
  return true;
}

}  // namespace

Result<ConcurrentFlow> ProveOptimum(const Topology& topology, const FlowNetwork& network,
                                    const DemandTable& demand,
                                    const std::vector<int64_t>& demand_matrix,
                                    const std::vector<SourceFlow>& near, const Deadline& deadline) {
  const NetworkGroup group = FindNetworkGroup(topology, network, demand_matrix);
  Result<ExactFlow> exact = ExactFlowProgram(network, demand, group, near).Solve(deadline);
  if (!exact) return tl::unexpected(exact.error());
  WideFlow wide = Spread(network, group, *std::move(exact));
  ConcurrentFlow result;
  result.bundles = network.bundles;
  result.demand = demand_matrix;
  // Optimal, and so both limits; the check of the answer counts each of them.
  result.f_lower = result.f_upper = RateOfStrain(network, demand, LargestStrain(network, wide));
  if (!Narrow(demand, wide, result)) result.wide = std::move(wide);
  return result;
}

}  // namespace tutti
