#include "flow_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "shortest_paths.h"
#include "tutti/base/check.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

constexpr int64_t kLongest = int64_t{1} << 30;
// Rounds of multiplicative weights, and how many link visits of shortest paths they may cost.
constexpr int64_t kMaxRounds = 24;
constexpr int64_t kMaxVisits = 60'000'000;

int64_t Weight(const Collective& collective, NodeId from, NodeId to) {
  return from == to ? 0
                    : collective.weight(ShardId{from.value * collective.num_ranks() + to.value});
}

int64_t CommonUnit(const Topology& topology) {
  int64_t unit = 0;
  for (LinkId link : topology.Links()) unit = std::gcd(unit, topology.bandwidth(link));
  return unit;
}

// Lengths in proportion to 1 / bandwidth: exact where the least common multiple is small.
std::vector<int64_t> InverseBandwidths(const Topology& topology) {
  const int64_t unit = CommonUnit(topology);
  int64_t common = 1;
  for (LinkId link : topology.Links()) {
    const int64_t capacity = topology.bandwidth(link) / unit;
    const int64_t step = capacity / std::gcd(common, capacity);
    common = step > kLongest / common ? kLongest + 1 : common * step;
    if (common > kLongest) break;
  }
  std::vector<int64_t> lengths;
  for (LinkId link : topology.Links()) {
    const int64_t capacity = topology.bandwidth(link);
    if (common <= kLongest) {
      lengths.push_back(common / (capacity / unit));
    } else {
      const WideCapacity scaled = WideCapacity{kLongest} * unit / capacity;
      lengths.push_back(std::max<int64_t>(static_cast<int64_t>(scaled), 1));
    }
  }
  return lengths;
}

struct Round {
  WideCapacity demand_distance = 0;  // sum of weight x distance over the pairs
  std::vector<WideCapacity> load;    // weight that shortest ways put on each link, when asked for
};

Round AllPairs(const Topology& topology, const Collective& collective,
               const std::vector<int64_t>& lengths, bool with_load) {
  Round round;
  round.load.assign(with_load ? lengths.size() : 0, 0);
  std::mutex mutex;  // the sums are of integers: their order does not matter
  ParallelFor(topology.num_ranks(), 16, [&](int64_t begin, int64_t end) {
    ShortestPaths paths(topology.graph(), lengths);
    Round part;
    part.load.assign(round.load.size(), 0);
    std::vector<WideCapacity> beyond(static_cast<size_t>(topology.num_nodes()));
    for (auto s = static_cast<int32_t>(begin); s < static_cast<int32_t>(end); ++s) {
      const NodeId source{s};
      paths.Run(source);
      for (NodeId target : topology.Ranks())
        part.demand_distance +=
            WideCapacity{Weight(collective, source, target)} * paths.distance(target);
      if (!with_load) continue;
      for (NodeId node : topology.Nodes())
        beyond[node.index()] = topology.is_rank(node) ? Weight(collective, source, node) : 0;
      const auto& order = paths.order();
      for (size_t i = order.size() - 1; i > 0; --i) {
        const LinkId link = paths.last_link(order[i]);
        part.load[link.index()] += beyond[order[i].index()];
        beyond[topology.tail(link).index()] += beyond[order[i].index()];
      }
    }
    const std::lock_guard lock(mutex);
    round.demand_distance += part.demand_distance;
    for (size_t l = 0; l < part.load.size(); ++l) round.load[l] += part.load[l];
  });
  return round;
}

Rational LimitOf(const Topology& topology, const Collective& collective,
                 const std::vector<int64_t>& lengths, const Round& round) {
  WideCapacity budget = 0;
  for (LinkId link : topology.Links())
    budget += WideCapacity{topology.bandwidth(link)} * lengths[link.index()];
  TUTTI_CHECK(budget > 0);
  return RationalOf(round.demand_distance) /
         (RationalOf(budget) * Rational(collective.weight_of_size()));
}

// Links grow by up to a `1 / slowness` part, in proportion to their load over bandwidth; then all
// are scaled so that the longest is kLongest.
void Lengthen(const Topology& topology, const Round& round, int64_t slowness,
              std::vector<int64_t>& lengths) {
  const int64_t unit = CommonUnit(topology);
  const auto size = static_cast<size_t>(topology.num_links());
  // Integers throughout, so that every machine finds the same lengths.
  WideCapacity heaviest = 1;
  for (WideCapacity load : round.load) heaviest = std::max(heaviest, load);
  int shift = 0;
  while ((heaviest >> shift) >= (WideCapacity{1} << 60)) ++shift;
  std::vector<WideCapacity> strain(size);
  WideCapacity most = 1;
  for (LinkId link : topology.Links()) {
    const WideCapacity load = (round.load[link.index()] >> shift) << 50;
    strain[link.index()] = load / (topology.bandwidth(link) / unit);
    most = std::max(most, strain[link.index()]);
  }
  std::vector<WideCapacity> next(size);
  WideCapacity longest = 1;
  for (size_t l = 0; l < size; ++l) {
    const WideCapacity share = (strain[l] >> 16) * 65536 / std::max<WideCapacity>(most >> 16, 1);
    next[l] = lengths[l] * (65536 * slowness + share);
    longest = std::max(longest, next[l]);
  }
  for (size_t l = 0; l < size; ++l)
    lengths[l] = std::max<int64_t>(static_cast<int64_t>(next[l] * kLongest / longest), 1);
}

class Best {
 public:
  void Offer(const Rational& seconds_per_byte, const std::string& reason) {
    if (seconds_per_byte <= bound_.seconds_per_byte) return;
    bound_.seconds_per_byte = seconds_per_byte;
    bound_.reason = reason;
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
      to += Weight(collective, other, rank);
      from += Weight(collective, rank, other);
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
  std::vector<int64_t> lengths = InverseBandwidths(topology);
  const int64_t visits = int64_t{topology.num_ranks()} * topology.num_links();
  const int64_t rounds = std::min(kMaxRounds, kMaxVisits / visits);
  for (int64_t i = 0; i <= rounds; ++i) {
    const Round round = AllPairs(topology, collective, lengths, i < rounds);
    best.Offer(LimitOf(topology, collective, lengths, round),
               i == 0 ? "lengths of 1/bandwidth" : "lengths by multiplicative weights");
    if (i < rounds) Lengthen(topology, round, 2 + i, lengths);
  }
}

}  // namespace

Rational LimitFromLengths(const Topology& topology, const Collective& collective,
                          const std::vector<int64_t>& lengths) {
  return LimitOf(topology, collective, lengths, AllPairs(topology, collective, lengths, false));
}

FlowBound ComputeFlowBound(const Topology& topology, const Collective& collective) {
  Best best;
  OfferLengths(topology, collective, best);
  OfferRankCuts(topology, collective, best);
  FlowBound bound = std::move(best.bound());

  WideCapacity total = 0;
  for (NodeId from : topology.Ranks())
    for (NodeId to : topology.Ranks()) total += Weight(collective, from, to);
  int64_t least = topology.bandwidth(LinkId{0});
  for (LinkId link : topology.Links()) least = std::min(least, topology.bandwidth(link));
  const int64_t n = topology.num_ranks();
  // A pair's mean share of M, sent at f x the smallest bandwidth.
  const Rational mean =
      RationalOf(total) / (Rational(n * (n - 1)) * Rational(collective.weight_of_size()));
  bound.f_upper = mean / (bound.seconds_per_byte * Rational(least));
  return bound;
}

}  // namespace tutti
