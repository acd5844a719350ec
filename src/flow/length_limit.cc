#include "tutti/flow/length_limit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/check.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

constexpr int64_t kBeyond = int64_t{1} << 61;

// Distances from one source. The nodes are swept in the order given, again and again until nothing
// gets shorter: two or three times when the order is about that of the distances.
class Distances {
 public:
  Distances(const FlowNetwork& network, const std::vector<int64_t>& lengths)
      : network_(network), lengths_(lengths), distance_(static_cast<size_t>(network.num_nodes)) {}

  void Run(const std::vector<int32_t>& order) {
    std::fill(distance_.begin(), distance_.end(), kBeyond);
    distance_[static_cast<size_t>(order[0])] = 0;
    while (Sweep(order) || (order.size() < distance_.size() && SweepAll())) {
    }
  }
  int64_t operator[](size_t node) const { return distance_[node]; }

 private:
  bool Shorten(size_t v) {
    int64_t best = distance_[v];
    for (auto e = static_cast<size_t>(network_.first_in[v]);
         e < static_cast<size_t>(network_.first_in[v + 1]); ++e)
      best = std::min(best, distance_[static_cast<size_t>(network_.tail[e])] + lengths_[e]);
    const bool shorter = best < distance_[v];
    distance_[v] = best;
    return shorter;
  }
  bool Sweep(const std::vector<int32_t>& order) {
    bool any = false;
    for (size_t i = 1; i < order.size(); ++i) any |= Shorten(static_cast<size_t>(order[i]));
    return any;
  }
  bool SweepAll() {
    bool any = false;
    for (size_t v = 0; v < distance_.size(); ++v) any |= Shorten(v);
    return any;
  }

  const FlowNetwork& network_;
  const std::vector<int64_t>& lengths_;
  std::vector<int64_t> distance_;
};

}  // namespace

std::vector<int64_t> WholeLengths(const std::vector<double>& lengths) {
  const double longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<int64_t> whole;
  whole.reserve(lengths.size());
  for (double length : lengths)
    whole.push_back(
        static_cast<int64_t>(std::floor(length / longest * static_cast<double>(kLongestLength))));
  return whole;
}

std::vector<int64_t> InverseBandwidths(const FlowNetwork& network) {
  int64_t unit = 0;
  for (const LinkBundle& bundle : network.bundles) unit = std::gcd(unit, bundle.bandwidth);
  TUTTI_CHECK(unit > 0);
  WideInteger multiple = 1;
  for (const LinkBundle& bundle : network.bundles) {
    const int64_t bandwidth = bundle.bandwidth / unit;
    multiple = multiple / std::gcd(static_cast<int64_t>(multiple), bandwidth) * bandwidth;
    if (multiple > kLongestLength) multiple = kLongestLength;
  }
  std::vector<int64_t> lengths;
  for (const LinkBundle& bundle : network.bundles)
    lengths.push_back(static_cast<int64_t>(multiple / (bundle.bandwidth / unit)));
  return lengths;
}

Rational RateOfStrain(const FlowNetwork& network, const DemandTable& demand,
                      const Rational& strain) {
  const int64_t pairs = int64_t{network.num_ranks} * (network.num_ranks - 1);
  return ToRational(demand.Total()) /
         (Rational(pairs) * strain * Rational(network.smallest_bandwidth));
}

std::optional<Rational> LengthLimit(const FlowNetwork& network, const DemandTable& demand,
                                    const std::vector<SourceFlow>& flows, int64_t alike,
                                    const std::vector<int64_t>& lengths) {
  std::vector<WideInteger> spent(flows.size(), 0);
  ParallelFor(static_cast<int64_t>(flows.size()), 16, [&](int64_t begin, int64_t end) {
    Distances distance(network, lengths);
    for (int64_t s = begin; s < end; ++s) {
      const int32_t source = flows[static_cast<size_t>(s)].order[0];
      if (flows[static_cast<size_t>(s)].order.size() < 2) continue;
      distance.Run(flows[static_cast<size_t>(s)].order);
      WideInteger sum = 0;
      for (int32_t to = 0; to < network.num_ranks; ++to)
        sum += WideInteger{demand(source, to)} * distance[static_cast<size_t>(to)];
      spent[static_cast<size_t>(s)] = sum;
    }
  });
  Rational total;
  for (WideInteger sum : spent) total += ToRational(sum);
  total *= Rational(alike);
  if (total.is_zero()) return std::nullopt;
  WideInteger available = 0;
  for (size_t e = 0; e < lengths.size(); ++e)
    available += WideInteger{network.bundles[e].bandwidth} * lengths[e];
  return RateOfStrain(network, demand, total / ToRational(available));
}

}  // namespace tutti
