#include "flow_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "all_pairs.h"
#include "length_search.h"

namespace tutti {
namespace {

// Rounds of multiplicative weights, and how many link visits of shortest paths they may cost.
constexpr int64_t kMaxRounds = 24;
constexpr int64_t kMaxVisits = 60'000'000;
// Networks with at most so many pairs of source and link get the optimum: a second or so.
constexpr int64_t kMaxSourceLinks = 12'000;
constexpr int32_t kMaxGenerationRounds = 200;

class Best {
 public:
  // True when it is the largest so far.
  bool Offer(const Rational& seconds_per_byte, const std::string& reason) {
    if (seconds_per_byte <= bound_.seconds_per_byte) return false;
    bound_.seconds_per_byte = seconds_per_byte;
    bound_.reason = reason;
    return true;
  }
  FlowBound& bound() { return bound_; }

 private:
  FlowBound bound_;
};

void OfferRankCuts(const Topology& topology, const Collective& collective, Best& best) {
  const CutNetwork network(topology);
  const std::vector<WideCapacity> in = network.InCapacities(), out = network.OutCapacities();
  for (NodeId rank : topology.Ranks()) {
    WideCapacity to = 0, from = 0;
    for (NodeId other : topology.Ranks()) {
      to += DemandWeight(collective, other, rank);
      from += DemandWeight(collective, rank, other);
    }
    const auto limit = [&](WideCapacity weight, WideCapacity capacity) {
      return RationalOf(weight) /
             (network.BytesPerSecond(capacity) * Rational(collective.weight_of_size()));
    };
    best.Offer(limit(to, in[rank.index()]), fmt::format("links into rank {}", rank.value));
    best.Offer(limit(from, out[rank.index()]), fmt::format("links out of rank {}", rank.value));
  }
}

void OfferLengths(const Topology& topology, const Collective& collective, Best& best) {
  std::vector<int64_t> lengths = InverseBandwidths(topology), shortest = lengths;
  const int64_t visits = int64_t{topology.num_ranks()} * topology.num_links();
  const int64_t rounds = std::min(kMaxRounds, kMaxVisits / visits);
  for (int64_t i = 0; i <= rounds; ++i) {
    const AllPairsCost cost = RouteAllPairs(topology, collective, lengths, i < rounds);
    if (best.Offer(LimitOf(topology, collective, lengths, cost.demand_distance),
                   i == 0 ? "lengths of 1/bandwidth" : "lengths by multiplicative weights"))
      shortest = lengths;
    if (i < rounds) Lengthen(topology, cost.load, 2 + i, lengths);
  }
  if (visits > kMaxSourceLinks) return;
  const auto optimum =
      LengthsByColumnGeneration(topology, collective, shortest, kMaxGenerationRounds);
  if (optimum)
    best.Offer(LimitFromLengths(topology, collective, *optimum),
               "lengths of the flow's linear program");
}

}  // namespace

Rational LimitFromLengths(const Topology& topology, const Collective& collective,
                          const std::vector<int64_t>& lengths) {
  const AllPairsCost cost = RouteAllPairs(topology, collective, lengths, false);
  return LimitOf(topology, collective, lengths, cost.demand_distance);
}

FlowBound ComputeFlowBound(const Topology& topology, const Collective& collective) {
  Best best;
  OfferLengths(topology, collective, best);
  OfferRankCuts(topology, collective, best);
  FlowBound bound = std::move(best.bound());

  int64_t least = topology.bandwidth(LinkId{0});
  for (LinkId link : topology.Links()) least = std::min(least, topology.bandwidth(link));
  const int64_t n = topology.num_ranks();
  // A pair's mean share of M, sent at f x the smallest bandwidth.
  const Rational mean = RationalOf(TotalDemandWeight(collective)) /
                        (Rational(n * (n - 1)) * Rational(collective.weight_of_size()));
  bound.f_upper = mean / (bound.seconds_per_byte * Rational(least));
  return bound;
}

}  // namespace tutti
