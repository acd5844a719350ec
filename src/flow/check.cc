// The independent check of a concurrent flow. Includes nothing of the solver, on purpose.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/parallel.h"
#include "tutti/flow/concurrent_flow.h"

namespace tutti {
namespace {

__extension__ using Wide = __int128;

// Longest length and largest number of nodes for which distances stay in 64 bits.
constexpr int64_t kMaxLength = int64_t{1} << 40;

Rational Exactly(Wide value) {
  const bool negative = value < 0;
  if (negative) value = -value;
  const Rational high(static_cast<int64_t>(value >> 62));
  const Rational low(static_cast<int64_t>(value & ((Wide{1} << 62) - 1)));
  const Rational sum = high * Rational(int64_t{1} << 62) + low;
  return negative ? Rational(0) - sum : sum;
}

Rational Exactly(const Rational& value) { return value; }

class Checker {
 public:
  Checker(const Topology& topology, const ConcurrentFlow& flow)
      : topology_(topology), flow_(flow), ranks_(topology.num_ranks()) {}

  Status Run() {
    Status status = CheckShape();
    if (status) status = CheckDemands();
    if (status) status = CheckFlows();
    if (status && flow_.wide) return CheckWide();
    if (status) status = CheckLower(StrainOf(load_) / Rational(flow_.units_per_demand));
    if (status) status = CheckUpper();
    return status;
  }

 private:
  int64_t Demand(int32_t from, int32_t to) const {
    if (from == to || to >= ranks_) return 0;
    return flow_.demand.empty() ? 1
                                : flow_.demand[static_cast<size_t>(int64_t{from} * ranks_ + to)];
  }

  Status CheckShape() const {
    if (ranks_ < 2) return InvalidArgument("one rank alone has no concurrent flow");
    std::map<std::pair<NodeId, NodeId>, int64_t> bandwidth;
    for (LinkId link : topology_.Links())
      bandwidth[{topology_.head(link), topology_.tail(link)}] += topology_.bandwidth(link);
    if (flow_.bundles.size() != bandwidth.size())
      return InvalidArgument(fmt::format("the flow is over {} bundles of links, the network has {}",
                                         flow_.bundles.size(), bandwidth.size()));
    size_t e = 0;
    for (const auto& [ends, sum] : bandwidth) {
      const LinkBundle& bundle = flow_.bundles[e++];
      if (bundle.head != ends.first || bundle.tail != ends.second || bundle.bandwidth != sum)
        return InvalidArgument(fmt::format("bundle {} is not that of the network", e - 1));
    }
    if (flow_.flow_from.size() != static_cast<size_t>(ranks_))
      return InvalidArgument(fmt::format("the flow has {} sources, the network {} ranks",
                                         flow_.flow_from.size(), ranks_));
    if (flow_.units_per_demand < 1)
      return InvalidArgument(
          fmt::format("units per demand must be >= 1, got {}", flow_.units_per_demand));
    return {};
  }

  Status CheckDemands() {
    if (!flow_.demand.empty() &&
        flow_.demand.size() != static_cast<size_t>(ranks_) * static_cast<size_t>(ranks_))
      return InvalidArgument(fmt::format("the demand matrix has {} entries, {} ranks need {}",
                                         flow_.demand.size(), ranks_, int64_t{ranks_} * ranks_));
    for (int64_t entry : flow_.demand)
      if (entry < 0) return InvalidArgument(fmt::format("a demand is negative: {}", entry));
    for (int32_t from = 0; from < ranks_; ++from) {
      Wide sum = 0;
      for (int32_t to = 0; to < ranks_; ++to) sum += Demand(from, to);
      if (sum >= Wide{1} << 62)
        return InvalidArgument(fmt::format("the demands of rank {} do not fit in 62 bits", from));
      total_demand_ += Exactly(sum);
    }
    if (total_demand_.is_zero()) return InvalidArgument("there is no demand");
    return {};
  }

  Status CheckFlows() {
    load_.assign(flow_.bundles.size(), 0);
    for (int32_t source = 0; source < ranks_; ++source)
      if (const Status status = CheckFlowFrom(source, flow_.flow_from[static_cast<size_t>(source)],
                                              Wide{flow_.units_per_demand}, load_);
          !status)
        return Within(fmt::format("flow from rank {}", source), status.error());
    return {};
  }

  // `Amount` holds sums of units.
  template <class Part, class Amount>
  Status CheckFlowFrom(int32_t source, const std::vector<Part>& parts,
                       const Amount& units_per_demand, std::vector<Amount>& load) const {
    const auto nodes = static_cast<size_t>(topology_.num_nodes());
    std::vector<Amount> arrived(nodes, Amount(0)), left(nodes, Amount(0));
    std::vector<bool> has_sent(nodes, false), seen(flow_.bundles.size(), false);
    for (const auto& [bundle, units] : parts) {
      if (bundle < 0 || static_cast<size_t>(bundle) >= flow_.bundles.size())
        return InvalidArgument(fmt::format("there is no bundle {}", bundle));
      const auto e = static_cast<size_t>(bundle);
      if (Amount(units) <= Amount(0))
        return InvalidArgument(
            fmt::format("bundle {} carries {} units", e, Exactly(Amount(units)).ToString()));
      if (seen[e]) return InvalidArgument(fmt::format("bundle {} is named twice", e));
      seen[e] = true;
      const NodeId tail = flow_.bundles[e].tail, head = flow_.bundles[e].head;
      if (has_sent[head.index()] || head.value == source)
        return InvalidArgument(
            fmt::format("node {} receives after it has sent: not acyclic", head.value));
      has_sent[tail.index()] = true;
      left[tail.index()] += units;
      arrived[head.index()] += units;
      load[e] += units;
    }
    for (NodeId node : topology_.Nodes()) {
      if (node.value == source) continue;
      const Amount keeps = arrived[node.index()] - left[node.index()];
      const Amount wants = Amount(Demand(source, node.value)) * units_per_demand;
      if (keeps != wants)
        return InvalidArgument(fmt::format("node {} keeps {} units and not {}", node.value,
                                           Exactly(keeps).ToString(), Exactly(wants).ToString()));
    }
    return {};
  }

  // The proof in wide numbers stands for both limits.
  Status CheckWide() const {
    const WideFlow& wide = *flow_.wide;
    if (wide.units_per_demand <= Rational(0))
      return InvalidArgument("wide units per demand must be above 0");
    if (wide.flow_from.size() != static_cast<size_t>(ranks_))
      return InvalidArgument(fmt::format("the wide flow has {} sources, the network {} ranks",
                                         wide.flow_from.size(), ranks_));
    std::vector<Rational> load(flow_.bundles.size());
    for (int32_t source = 0; source < ranks_; ++source)
      if (const Status status = CheckFlowFrom(source, wide.flow_from[static_cast<size_t>(source)],
                                              wide.units_per_demand, load);
          !status)
        return Within(fmt::format("wide flow from rank {}", source), status.error());
    if (const Status status = CheckLower(StrainOf(load) / wide.units_per_demand); !status)
      return status;
    if (wide.lengths.size() != flow_.bundles.size())
      return InvalidArgument(
          fmt::format("{} wide lengths for {} bundles", wide.lengths.size(), flow_.bundles.size()));
    for (const Rational& length : wide.lengths)
      if (length < Rational(0))
        return InvalidArgument(
            fmt::format("wide lengths must be at least 0, got {}", length.ToString()));
    return CheckLimitOf<Rational, Rational>(wide.lengths);
  }

  // f = mean demand / (time a unit of demand needs on the fullest bundle) / smallest bandwidth.
  Rational RateAt(const Rational& seconds_per_demand) const {
    int64_t least = topology_.bandwidth(LinkId{0});
    for (LinkId link : topology_.Links()) least = std::min(least, topology_.bandwidth(link));
    const Rational mean = total_demand_ / Rational(int64_t{ranks_} * (ranks_ - 1));
    return mean / seconds_per_demand / Rational(least);
  }

  // The largest load over bandwidth.
  template <class Amount>
  Rational StrainOf(const std::vector<Amount>& load) const {
    Rational strain;
    for (size_t e = 0; e < load.size(); ++e)
      strain = std::max(strain, Exactly(load[e]) / Rational(flow_.bundles[e].bandwidth));
    return strain;
  }

  Status CheckLower(const Rational& seconds_per_demand) const {
    const Rational lower = RateAt(seconds_per_demand);
    if (lower == flow_.f_lower) return {};
    return InvalidArgument(fmt::format("f_lower is said to be {}, the flow reaches {}",
                                       flow_.f_lower.ToString(), lower.ToString()));
  }

  Status CheckUpper() const {
    if (flow_.lengths.size() != flow_.bundles.size())
      return InvalidArgument(
          fmt::format("{} lengths for {} bundles", flow_.lengths.size(), flow_.bundles.size()));
    for (int64_t length : flow_.lengths)
      if (length < 0 || length > kMaxLength)
        return InvalidArgument(fmt::format("lengths must be in [0, 2^40], got {}", length));
    return CheckLimitOf<int64_t, Wide>(flow_.lengths);
  }

  template <class Length, class Sum>
  Status CheckLimitOf(const std::vector<Length>& lengths) const {
    std::vector<Sum> spent(static_cast<size_t>(ranks_), Sum(0));
    ParallelFor(ranks_, 16, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s)
        spent[static_cast<size_t>(s)] =
            DemandTimesDistance<Length, Sum>(static_cast<int32_t>(s), lengths);
    });
    Rational demand_distance;
    for (const Sum& sum : spent) demand_distance += Exactly(sum);
    if (demand_distance.is_zero()) return InvalidArgument("the lengths prove no limit");
    Sum available(0);
    for (size_t e = 0; e < flow_.bundles.size(); ++e)
      available += Sum(flow_.bundles[e].bandwidth) * Sum(lengths[e]);
    const Rational upper = RateAt(demand_distance / Exactly(available));
    if (upper == flow_.f_upper) return {};
    return InvalidArgument(fmt::format("f_upper is said to be {}, the lengths prove {}",
                                       flow_.f_upper.ToString(), upper.ToString()));
  }

  template <class Length, class Sum>
  Sum DemandTimesDistance(int32_t source, const std::vector<Length>& lengths) const {
    using Entry = std::pair<Length, int32_t>;
    const auto nodes = static_cast<size_t>(topology_.num_nodes());
    std::vector<Length> distance(nodes, Length(0));
    std::vector<bool> seen(nodes, false);
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    seen[static_cast<size_t>(source)] = true;
    queue.emplace(Length(0), source);
    while (!queue.empty()) {
      const auto [reached, node] = queue.top();
      queue.pop();
      if (reached > distance[static_cast<size_t>(node)]) continue;
      for (LinkId link : topology_.OutLinks(NodeId{node})) {
        const NodeId head = topology_.head(link);
        const Length next = reached + lengths[BundleOf(NodeId{node}, head)];
        if (seen[head.index()] && next >= distance[head.index()]) continue;
        seen[head.index()] = true;
        distance[head.index()] = next;
        queue.emplace(next, head.value);
      }
    }
    Sum sum(0);
    for (int32_t to = 0; to < ranks_; ++to)
      sum += Sum(Demand(source, to)) * Sum(distance[static_cast<size_t>(to)]);
    return sum;
  }

  size_t BundleOf(NodeId tail, NodeId head) const {
    const auto at =
        std::lower_bound(flow_.bundles.begin(), flow_.bundles.end(), std::pair(head, tail),
                         [](const LinkBundle& bundle, const auto& ends) {
                           return std::pair(bundle.head, bundle.tail) < ends;
                         });
    return static_cast<size_t>(at - flow_.bundles.begin());
  }

  const Topology& topology_;
  const ConcurrentFlow& flow_;
  const int32_t ranks_;
  Rational total_demand_;
  std::vector<Wide> load_;
};

}  // namespace

Status CheckConcurrentFlow(const Topology& topology, const ConcurrentFlow& flow) {
  return Checker(topology, flow).Run();
}

}  // namespace tutti
