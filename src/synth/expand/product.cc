// Theorem 13: breadth-first broadcast on a Cartesian product in closed form, from those on its
// factors.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "expand/common.h"
#include "expand/expand.h"
#include "expand/product_links.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

// A factor with its breadth-first schedule of the best TB. [G_i, x*]
struct Factor {
  const Topology* topology = nullptr;
  Schedule schedule;
  int32_t diameter = 0;
  std::vector<int64_t> layer = {};  // ranks at each distance from a rank, the same for all. [N_t]

  size_t Pair(int32_t source, int32_t receiver) const {
    return static_cast<size_t>(source) * static_cast<size_t>(topology->num_ranks()) +
           static_cast<size_t>(receiver);
  }
  // The transfers that bring the source's shard to the receiver, by Pair(): [first, next first).
  std::vector<size_t> first = {};
  std::vector<Transfer> delivery = {};
  // Hops from the source to the receiver.
  int32_t Distance(int32_t source, int32_t receiver) const {
    const size_t pair = Pair(source, receiver);
    return first[pair] == first[pair + 1] ? 0 : delivery[first[pair]].step + 1;
  }
};

// What keeps theorem 13 from speaking of a factor; empty: nothing that can be seen.
std::string WhyNot(const Topology& topology) {
  if (topology.num_ranks() < 2) return "has one rank";
  for (NodeId node : topology.Nodes()) {
    if (!topology.self_loops(node).empty()) return "has self-loops";
    std::vector<NodeId> heads;
    for (LinkId link : topology.OutLinks(node)) heads.push_back(topology.head(link));
    std::sort(heads.begin(), heads.end());
    if (std::adjacent_find(heads.begin(), heads.end()) != heads.end())
      return fmt::format("has parallel links out of '{}'", topology.node_name(node));
  }
  return {};
}

Result<Factor> PrepareFactor(const Topology& topology, size_t number) {
  const auto fault = [&](const std::string& message) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("product in closed form: factor {}, '{}', {}; use 'bfb' on the "
                                 "product",
                                 number, topology.name(), message));
  };
  if (const std::string reason = WhyNot(topology); !reason.empty()) return fault(reason);
  const Result<Collective> all_gather =
      Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  if (!all_gather) return tl::unexpected(all_gather.error());
  Result<Schedule> schedule = MakeBfb(topology, *all_gather, {});
  if (!schedule) return tl::unexpected(schedule.error());
  const Rational tb = AnalyticCost(topology, *schedule).tb;
  if (tb != BestTb(topology.num_ranks()))
    return fault(fmt::format("has a breadth-first schedule of TB {}, wanted {}", tb.ToString(),
                             BestTb(topology.num_ranks()).ToString()));
  Factor factor{.topology = &topology, .schedule = *std::move(schedule)};
  factor.diameter = factor.schedule.num_steps;
  const auto pair_of = [&](const Transfer& transfer) {
    return factor.Pair(transfer.shard.value, topology.head(transfer.link).value);
  };
  factor.first.assign(factor.Pair(topology.num_ranks() - 1, topology.num_ranks() - 1) + 2, 0);
  for (const Transfer& transfer : factor.schedule.transfers) ++factor.first[pair_of(transfer) + 1];
  for (size_t pair = 1; pair < factor.first.size(); ++pair)
    factor.first[pair] += factor.first[pair - 1];
  factor.delivery = factor.schedule.transfers;
  std::vector<size_t> next = factor.first;
  for (const Transfer& transfer : factor.schedule.transfers)
    factor.delivery[next[pair_of(transfer)]++] = transfer;
  factor.layer.assign(static_cast<size_t>(factor.diameter) + 1, 0);
  for (int32_t source = 0; source < topology.num_ranks(); ++source)
    ++factor.layer[static_cast<size_t>(factor.Distance(source, 0))];
  return factor;
}

// What the product of the first factors looks like, and how it shares with the next one.
struct Merge {
  std::vector<int64_t> layer;        // of the product so far
  int32_t degree = 0;                // of the product so far
  std::vector<Rational> left_share;  // [r] at each distance of the product with the next factor
};

// (20) = (21), solved for r: at distance t the product so far (left) and the next factor (right)
// load their links alike when the pairs that differ in both take this share from the left.
void MergeNext(Merge& left, const Factor& right) {
  const auto right_degree = static_cast<int32_t>(right.layer[1]);  // simple: [d] neighbours
  std::vector<int64_t> joint(left.layer.size() + right.layer.size() - 1, 0);
  left.left_share.assign(joint.size(), Rational(0));
  for (size_t t = 0; t < joint.size(); ++t) {
    const auto at = [t](const std::vector<int64_t>& layer) {
      return t < layer.size() ? layer[t] : int64_t{0};
    };
    int64_t mixed = 0;
    for (size_t t1 = 1; t1 < std::min(t, left.layer.size()); ++t1)
      if (t - t1 < right.layer.size()) mixed += left.layer[t1] * right.layer[t - t1];
    joint[t] = t == 0 ? 1 : mixed + at(left.layer) + at(right.layer);
    if (mixed == 0) continue;
    const Rational from_left(mixed, left.degree), from_right(mixed, right_degree);
    left.left_share[t] = (Rational(at(right.layer), right_degree) + from_right -
                          Rational(at(left.layer), left.degree)) /
                         (from_left + from_right);
  }
  left.degree += right_degree;
  left.layer = std::move(joint);
}

// For a distance in each factor, the share of a shard that comes over each of them.
class Shares {
 public:
  explicit Shares(const std::vector<Factor>& factors) {
    Merge merge{factors[0].layer, static_cast<int32_t>(factors[0].layer[1]), {}};
    for (size_t f = 1; f < factors.size(); ++f) {
      MergeNext(merge, factors[f]);
      left_share_.push_back(merge.left_share);
    }
  }

  std::vector<Rational> Of(const std::vector<int32_t>& distances) const {
    std::vector<Rational> shares{Rational(1)};
    int32_t so_far = distances[0];
    for (size_t f = 1; f < distances.size(); ++f) {
      const int32_t joint = so_far + distances[f];
      Rational left(1);
      if (so_far == 0) left = Rational(0);
      if (so_far > 0 && distances[f] > 0) left = left_share_[f - 1][static_cast<size_t>(joint)];
      for (Rational& share : shares) share *= left;
      shares.push_back(Rational(1) - left);
      so_far = joint;
    }
    return shares;
  }

 private:
  std::vector<std::vector<Rational>> left_share_;
};

// How many units of the product one unit of each factor's schedule is, for each choice of
// distances: shares in whole units.
struct UnitShares {
  int32_t units_per_shard = 1;
  std::vector<std::vector<int32_t>> scale;  // by number of the choice, by factor
};

// Choices of distances are numbered row-major.
std::optional<UnitShares> ToUnits(const std::vector<Factor>& factors) {
  const Shares shares(factors);
  int64_t choices = 1;
  for (const Factor& factor : factors) choices = SaturatingMul(choices, factor.diameter + 1);
  if (choices > kMaxNodes) return std::nullopt;
  std::vector<std::vector<Rational>> per_unit;  // of the shard, a unit of the factor
  int64_t units = 1;
  for (int64_t choice = 0; choice < choices; ++choice) {
    std::vector<int32_t> distances(factors.size());
    int64_t left = choice;
    for (size_t f = factors.size(); f-- > 0;) {
      distances[f] = static_cast<int32_t>(left % (factors[f].diameter + 1));
      left /= factors[f].diameter + 1;
    }
    per_unit.push_back(shares.Of(distances));
    for (size_t f = 0; f < factors.size(); ++f) {
      Rational& share = per_unit.back()[f];
      share /= Rational(factors[f].schedule.units_per_shard);
      const std::optional<int64_t> den = share.Den64();
      if (!den) return std::nullopt;
      units = SaturatingMul(units, *den / std::gcd(units, *den));
      if (units > kBfbMaxUnits) return std::nullopt;
    }
  }
  UnitShares whole{.units_per_shard = static_cast<int32_t>(units), .scale = {}};
  for (const std::vector<Rational>& choice : per_unit) {
    whole.scale.emplace_back();
    for (const Rational& share : choice)
      whole.scale.back().push_back(static_cast<int32_t>(*(share * Rational(units)).Num64()));
  }
  return whole;
}

// Appends the transfers that bring the shard of `source` to `receiver`.
void Deliver(const std::vector<Factor>& factors, const expand::ProductLinks& links,
             const UnitShares& units, NodeId source, NodeId receiver,
             std::vector<Transfer>& transfers) {
  size_t choice = 0;
  int32_t hops = 0;
  for (size_t f = 0; f < factors.size(); ++f) {
    const int32_t distance =
        factors[f].Distance(links.Coordinate(source, f), links.Coordinate(receiver, f));
    choice = choice * static_cast<size_t>(factors[f].diameter + 1) + static_cast<size_t>(distance);
    hops += distance;
  }
  int32_t offset = 0;
  for (size_t f = 0; f < factors.size(); ++f) {
    const Factor& factor = factors[f];
    const int32_t scale = units.scale[choice][f];
    const int32_t there = links.Coordinate(receiver, f);
    const size_t pair = factor.Pair(links.Coordinate(source, f), there);
    if (scale == 0 || factor.first[pair] == factor.first[pair + 1]) continue;
    for (size_t i = factor.first[pair]; i < factor.first[pair + 1]; ++i) {
      const Transfer& part = factor.delivery[i];
      const NodeId tail{receiver.value +
                        (factor.topology->tail(part.link).value - there) * links.stride(f)};
      transfers.push_back({ShardId{source.value}, links.Link(tail, f, part.link),
                           offset + part.begin * scale, offset + part.end * scale, hops - 1,
                           TransferOp::kCopy});
    }
    offset += factor.schedule.units_per_shard * scale;
  }
}

Result<Schedule> ClosedForm(const std::vector<Factor>& factors, const UnitShares& units,
                            const Topology& product) {
  const int64_t n = product.num_ranks();
  Result<Schedule> made = expand::Start(product, units.units_per_shard, 1, SaturatingMul(n, n - 1));
  if (!made) return made;
  std::vector<const Topology*> topologies;
  for (const Factor& factor : factors) {
    topologies.push_back(factor.topology);
    made->num_steps += factor.diameter;
  }
  const expand::ProductLinks links(topologies, product);
  for (NodeId receiver : product.Ranks())
    for (NodeId source : product.Ranks())
      if (source != receiver) Deliver(factors, links, units, source, receiver, made->transfers);
  SortBySteps(*made);
  return made;
}

}  // namespace

Result<Expansion> ExpandProduct(std::span<const Topology> factors) {
  Result<Topology> product = CartesianProduct(factors);
  if (!product) return tl::unexpected(product.error());
  if (!product->is_homogeneous())
    return MakeError(ErrorCode::kInfeasible,
                     "product in closed form: the links of the factors differ in bandwidth or "
                     "alpha, wanted all alike; use 'bfb' on the product");
  std::vector<Factor> prepared;
  for (const Topology& topology : factors) {
    Result<Factor> factor = PrepareFactor(topology, prepared.size() + 1);
    if (!factor) return tl::unexpected(factor.error());
    prepared.push_back(*std::move(factor));
  }
  const std::optional<UnitShares> units = ToUnits(prepared);
  if (!units)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("product in closed form: more than {} units a shard are needed; "
                                 "use 'bfb' on the product",
                                 kBfbMaxUnits));
  Result<Schedule> made = ClosedForm(prepared, *units, *product);
  if (!made) return tl::unexpected(made.error());
  return Expansion{*std::move(product), *std::move(made)};
}

}  // namespace tutti
