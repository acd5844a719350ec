#include "flow_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "all_pairs.h"
#include "length_search.h"
#include "sweep_cuts.h"

namespace tutti {
namespace {

// Rounds of multiplicative weights, and how many link visits of shortest paths they may cost.
constexpr int64_t kMaxRounds = 200;
constexpr int64_t kPatience = 20;  // rounds without a better limit
constexpr int64_t kMaxVisits = 60'000'000;
constexpr int64_t kMinRounds = 4;  // fewer are not worth their cost
// Networks with at most so many pairs of source and link get the optimum: a second or so.
constexpr int64_t kMaxSourceLinks = 12'000;
constexpr int32_t kMaxGenerationRounds = 200;

// Keeps the largest limit offered. True when it is the new one.
bool Offer(FlowBound& best, Rational seconds_per_byte, std::string reason) {
  if (seconds_per_byte <= best.seconds_per_byte) return false;
  best.seconds_per_byte = std::move(seconds_per_byte);
  best.reason = std::move(reason);
  best.cut.reset();
  return true;
}

void OfferCuts(const Topology& topology, const Collective& collective, FlowBound& best) {
  const CutNetwork network(topology);
  Cut cut = BestSweepCut(topology, network, collective);
  const Rational limit = RationalOf(cut.shards_out) / (network.BytesPerSecond(cut.capacity_out) *
                                                       Rational(collective.weight_of_size()));
  const int64_t ranks = network.RanksIn(cut.inside);
  if (Offer(best, limit, fmt::format("cut of {} of {} ranks", ranks, topology.num_ranks())))
    best.cut = std::move(cut);
}

void OfferLengths(const Topology& topology, const Collective& collective,
                  const std::vector<Source>& sources, FlowBound& best) {
  const std::vector<Source> every_rank = EveryRank(topology);
  std::vector<int64_t> lengths = InverseBandwidths(topology), shortest = lengths;
  const int64_t visits = int64_t{topology.num_ranks()} * topology.num_links();
  const int64_t affordable = std::min(kMaxRounds, kMaxVisits / visits);
  const int64_t rounds = affordable < kMinRounds ? 0 : affordable;
  int64_t patience = kPatience;
  for (int64_t i = 0; i <= rounds && patience > 0; ++i, --patience) {
    const AllPairsCost cost = RouteAllPairs(topology, collective, lengths,
                                            rounds == 0 ? sources : every_rank, i < rounds);
    if (Offer(best, LimitOf(topology, collective, lengths, cost.demand_distance),
              i == 0 ? "lengths of 1/bandwidth" : "lengths by multiplicative weights")) {
      shortest = lengths;
      patience = kPatience;
    }
    if (i < rounds) Lengthen(topology, cost.load, i, lengths);
  }
  if (visits > kMaxSourceLinks) return;
  const auto optimum =
      LengthsByColumnGeneration(topology, collective, shortest, kMaxGenerationRounds);
  if (!optimum) return;
  const AllPairsCost cost = RouteAllPairs(topology, collective, *optimum, every_rank, false);
  Offer(best, LimitOf(topology, collective, *optimum, cost.demand_distance),
        "lengths of the flow's linear program");
}

}  // namespace

FlowBound ComputeFlowBound(const Topology& topology, const Collective& collective,
                           const std::vector<Source>& sources) {
  FlowBound bound;
  OfferCuts(topology, collective, bound);
  OfferLengths(topology, collective, sources, bound);

  const int64_t n = topology.num_ranks();
  // A pair's mean share of M, sent at f x the smallest bandwidth.
  const Rational mean = RationalOf(TotalDemandWeight(collective)) /
                        (Rational(n * (n - 1)) * Rational(collective.weight_of_size()));
  bound.f_upper = mean / (bound.seconds_per_byte * Rational(topology.min_bandwidth()));
  return bound;
}

}  // namespace tutti
