#include "mcf/exact.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "mcf/automorphisms.h"
#include "mcf/length_limit.h"

namespace tutti {
namespace {

constexpr size_t kMaxOrbits = 200;
constexpr int64_t kMaxMeasure = 50'000;  // of the longest length
constexpr double kNearWhole = 0.02;
// Of a mean demand: shifts start from ways that carry at least this much.
constexpr double kEnoughFlow = 1e-4;
constexpr double kLeastFlow = 1e-6;           // less is what the iteration had not yet moved away
constexpr int64_t kUnits = int64_t{1} << 26;  // a mean demand, about

size_t Index(int32_t i) { return static_cast<size_t>(i); }

std::vector<double> AverageOverOrbits(const NetworkGroup& group,
                                      const std::vector<int64_t>& lengths) {
  std::vector<double> average(group.orbit_size.size(), 0);
  for (size_t e = 0; e < lengths.size(); ++e)
    average[Index(group.bundle_orbit[e])] += static_cast<double>(lengths[e]);
  for (size_t o = 0; o < average.size(); ++o) average[o] /= group.orbit_size[o];
  return average;
}

struct WholeDual {
  std::vector<int64_t> lengths;
  Rational limit;
};

std::optional<WholeDual> FindWholeDual(const FlowNetwork& network, const DemandTable& demand,
                                       const NetworkGroup& group, const NearOptimum& near) {
  std::vector<double> average = AverageOverOrbits(group, near.lengths);
  const double longest = *std::max_element(average.begin(), average.end());
  for (double& length : average) length /= longest;
  for (int64_t measure = 1; measure <= kMaxMeasure; ++measure) {
    const auto scale = static_cast<double>(measure);
    const bool whole = std::all_of(average.begin(), average.end(), [&](double length) {
      return std::abs(length * scale - std::floor(length * scale + 0.5)) <= kNearWhole;
    });
    if (!whole) continue;
    WholeDual dual;
    for (int32_t orbit : group.bundle_orbit)
      dual.lengths.push_back(static_cast<int64_t>(std::floor(average[Index(orbit)] * scale + 0.5)));
    const auto limit = LengthLimit(network, demand, near.flows, 1, dual.lengths);
    if (!limit || *limit > near.upper) continue;
    dual.limit = *limit;
    return dual;
  }
  return std::nullopt;
}

std::vector<int64_t> DistancesFrom(const FlowNetwork& network, const std::vector<int64_t>& lengths,
                                   int32_t source) {
  constexpr int64_t kFar = int64_t{1} << 61;
  std::vector<int64_t> distance(Index(network.num_nodes), kFar);
  distance[Index(source)] = 0;
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (size_t e = 0; e < network.num_bundles(); ++e) {
      const int64_t next = distance[Index(network.tail[e])] + lengths[e];
      int64_t& now = distance[Index(network.head[e])];
      if (next < now) now = next, shorter = true;
    }
  }
  return distance;
}

// The nodes that the flow from `source` reaches, every bundle with flow running forward. Where
// bundles without a length close a cycle, the flow around it is taken out.
class CycleFreeOrder {
 public:
  CycleFreeOrder(const FlowNetwork& network, int32_t source, std::vector<double>& flow)
      : network_(network), flow_(flow) {
    while (!Search(source)) {
    }
    std::reverse(order_.begin(), order_.end());
  }
  std::vector<int32_t> Take() { return std::move(order_); }

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
      if (flow_[e] <= 0 || state[Index(head)] == kDone) continue;
      path_bundles.push_back(e);
      if (state[Index(head)] == kOpen) {
        TakeOut(head, path_bundles);
        return false;
      }
      state[Index(head)] = kOpen;
      path.emplace_back(head, network_.first_out[Index(head)]);
    }
    return true;
  }

  void TakeOut(int32_t start, const std::vector<size_t>& path_bundles) {
    size_t first = path_bundles.size() - 1;
    while (network_.tail[path_bundles[first]] != start) --first;
    double least = flow_[path_bundles[first]];
    for (size_t i = first; i < path_bundles.size(); ++i)
      least = std::min(least, flow_[path_bundles[i]]);
    for (size_t i = first; i < path_bundles.size(); ++i) {
      double& flow = flow_[path_bundles[i]];
      flow = flow <= least ? 0 : flow - least;
    }
  }

  const FlowNetwork& network_;
  std::vector<double>& flow_;
  std::vector<int32_t> order_;
};

// The flow of a representative source: whole units on every bundle, and how shifts change it.
struct RepresentativeFlow {
  int32_t source = 0;
  int32_t alike = 0;  // ranks in its orbit
  std::vector<int32_t> order;
  std::vector<Rational> units;  // a bundle
};

// One unit from the ways of `from` to those of `to`, two bundles into one node.
struct WayShift {
  size_t flow;                             // index of the representative
  std::vector<std::pair<size_t, int>> by;  // bundle, +1 or -1
};

class Repair {
 public:
  Repair(const FlowNetwork& network, const DemandTable& demand, const NetworkGroup& group,
         const NearOptimum& near, const WholeDual& dual)
      : network_(network), demand_(demand), group_(group), near_(near), dual_(dual) {
    // limit = total demand / (pairs * strain * smallest bandwidth), solved for the strain in units.
    const int64_t pairs = int64_t{network.num_ranks} * (network.num_ranks - 1);
    const Rational mean = ToRational(demand.Total()) / Rational(pairs);
    mean_ = mean.ToDouble();
    strain_ = mean / (dual.limit * Rational(network.least_bandwidth));
    units_ = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(kUnits) / mean_));
  }

  std::optional<ConcurrentFlow> Run() {
    for (int32_t rank = 0; rank < network_.num_ranks; ++rank)
      if (group_.representative[Index(rank)] == rank && !AddRepresentative(rank))
        return std::nullopt;
    if (!SolveShifts()) return std::nullopt;
    return Spread();
  }

 private:
  bool AddRepresentative(int32_t source) {
    std::vector<double> flow = AverageFlow(source);
    const std::vector<int64_t> distance = DistancesFrom(network_, dual_.lengths, source);
    for (size_t e = 0; e < flow.size(); ++e) {
      const bool shortest =
          distance[Index(network_.tail[e])] + dual_.lengths[e] == distance[Index(network_.head[e])];
      if (!shortest || flow[e] < kLeastFlow || network_.head[e] == source) flow[e] = 0;
    }
    SourceFlow kept{CycleFreeOrder(network_, source, flow).Take(), {}, {}};
    std::vector<int32_t> place(Index(network_.num_nodes), -1);
    for (size_t i = 0; i < kept.order.size(); ++i) {
      place[Index(kept.order[i])] = static_cast<int32_t>(i);
      for (int32_t e = network_.first_in[Index(kept.order[i])];
           e < network_.first_in[Index(kept.order[i]) + 1]; ++e) {
        // What left a node that nothing arrives at is gone.
        if (place[Index(network_.tail[Index(e)])] < 0) flow[Index(e)] = 0;
        if (flow[Index(e)] <= 0) continue;
        kept.bundles.push_back(e);
        kept.flow.push_back(flow[Index(e)]);
      }
    }
    for (int32_t to = 0; to < network_.num_ranks; ++to)
      if (demand_(source, to) > 0 && place[Index(to)] < 0) return false;
    RepresentativeFlow whole{source, 0, kept.order, std::vector<Rational>(network_.num_bundles())};
    whole.alike = static_cast<int32_t>(
        std::count(group_.representative.begin(), group_.representative.end(), source));
    for (const BundleFlow& part : InUnits(network_, demand_, kept, units_))
      whole.units[Index(part.bundle)] = Rational(part.units);
    AddShifts(kept.order, place, flow);
    flows_.push_back(std::move(whole));
    return true;
  }

  // Over all automorphisms, brought back to `source`.
  std::vector<double> AverageFlow(int32_t source) const {
    std::vector<double> flow(network_.num_bundles(), 0), dense(network_.num_bundles());
    for (const NetworkMap& map : group_.elements) {
      const SourceFlow& image = near_.flows[Index(map.node[Index(source)])];
      std::fill(dense.begin(), dense.end(), 0.0);
      for (size_t k = 0; k < image.bundles.size(); ++k)
        dense[Index(image.bundles[k])] = image.flow[k];
      for (size_t e = 0; e < flow.size(); ++e)
        flow[e] += dense[Index(map.bundle[e])] / static_cast<double>(group_.elements.size());
    }
    return flow;
  }

  void AddShifts(const std::vector<int32_t>& order, const std::vector<int32_t>& place,
                 const std::vector<double>& flow) {
    const auto fullest = [&](int32_t v) {
      auto best = Index(network_.first_in[Index(v)]);
      for (size_t e = best; e < Index(network_.first_in[Index(v) + 1]); ++e)
        if (flow[e] > flow[best]) best = e;
      return best;
    };
    for (size_t i = 1; i < order.size(); ++i) {
      const size_t v = Index(order[i]), to = fullest(order[i]);
      for (auto e = Index(network_.first_in[v]); e < Index(network_.first_in[v + 1]); ++e) {
        if (e == to || flow[e] < kEnoughFlow) continue;
        WayShift shift{flows_.size(), {{e, -1}, {to, 1}}};
        int32_t a = network_.tail[e], b = network_.tail[to];
        while (a != b) {
          const bool from_b = place[Index(a)] < place[Index(b)];
          int32_t& later = from_b ? b : a;
          const size_t back = fullest(later);
          shift.by.emplace_back(back, from_b ? 1 : -1);
          later = network_.tail[back];
        }
        shifts_.push_back(std::move(shift));
      }
    }
  }

  // Rows: orbits of bundles with a length, whose load must be strain x bandwidth exactly. Finds
  // amounts of the shifts by elimination, column after column, and applies them.
  bool SolveShifts() {
    const size_t orbits = group_.orbit_size.size();
    std::vector<Rational> excess(orbits);
    std::vector<bool> must(orbits, false);
    for (const RepresentativeFlow& flow : flows_)
      for (size_t e = 0; e < network_.num_bundles(); ++e)
        if (!flow.units[e].is_zero())
          excess[Index(group_.bundle_orbit[e])] += flow.units[e] * Rational(flow.alike);
    for (size_t e = 0; e < network_.num_bundles(); ++e) {
      excess[Index(group_.bundle_orbit[e])] -=
          strain_ * Rational(units_) * Rational(network_.bundles[e].bandwidth);
      must[Index(group_.bundle_orbit[e])] = dual_.lengths[e] > 0;
    }
    // Shifts leave the sum of length x load as it is, so one row follows from the others.
    const auto rank = static_cast<size_t>(std::count(must.begin(), must.end(), true)) - 1;
    // Reduced columns, each with its pivot row, and what they are made of.
    struct Pivot {
      size_t row;
      std::vector<Rational> column;
      std::map<size_t, Rational> made_of;
    };
    std::vector<Pivot> pivots;
    const auto reduce = [&](std::vector<Rational>& column, std::map<size_t, Rational>& made_of) {
      for (const Pivot& pivot : pivots) {
        if (column[pivot.row].is_zero()) continue;
        const Rational factor = column[pivot.row] / pivot.column[pivot.row];
        for (size_t o = 0; o < orbits; ++o)
          if (!pivot.column[o].is_zero()) column[o] -= factor * pivot.column[o];
        for (const auto& [shift, amount] : pivot.made_of) made_of[shift] -= factor * amount;
      }
    };
    const auto pivot_row = [&](const std::vector<Rational>& column) {
      size_t best = orbits;  // the smallest entry: small denominators
      const auto size = [&](size_t o) { return std::abs(column[o].ToDouble()); };
      for (size_t o = 0; o < orbits; ++o)
        if (must[o] && !column[o].is_zero() && (best == orbits || size(o) < size(best))) best = o;
      return best;
    };
    for (size_t k = 0; k < shifts_.size() && pivots.size() < rank; ++k) {
      std::vector<Rational> column(orbits);
      const Rational alike(flows_[shifts_[k].flow].alike);
      for (const auto& [bundle, sign] : shifts_[k].by)
        column[Index(group_.bundle_orbit[bundle])] += Rational(sign) * alike;
      std::map<size_t, Rational> made_of = {{k, Rational(1)}};
      reduce(column, made_of);
      const size_t row = pivot_row(column);
      if (row < orbits) pivots.push_back({row, std::move(column), std::move(made_of)});
    }
    std::map<size_t, Rational> amounts;
    reduce(excess, amounts);
    for (size_t o = 0; o < orbits; ++o)
      if (must[o] ? !excess[o].is_zero() : excess[o] > Rational(0)) return false;
    for (const auto& [k, amount] : amounts)
      for (const auto& [bundle, sign] : shifts_[k].by)
        flows_[shifts_[k].flow].units[bundle] += Rational(sign) * amount;
    return true;
  }

  // The representatives' flows taken to all ranks, over all automorphisms, in whole units.
  std::optional<ConcurrentFlow> Spread() const {
    constexpr int64_t kLimit = int64_t{1} << 61;
    int64_t common = 1;
    for (const RepresentativeFlow& flow : flows_)
      for (const Rational& units : flow.units) {
        if (units < Rational(0)) return std::nullopt;
        const std::optional<int64_t> den = units.Den64();
        if (!den) return std::nullopt;
        const Rational next = Rational(common) * Rational(*den / std::gcd(common, *den));
        if (!next.Num64() || next > Rational(kLimit)) return std::nullopt;
        common = *next.Num64();
      }
    // Every automorphism is applied, also those that keep a source in place: so many times each
    // source's flow is counted.
    const auto order = static_cast<int64_t>(group_.elements.size());
    int64_t times = 1;
    for (const RepresentativeFlow& flow : flows_) times = std::lcm(times, order / flow.alike);
    const Rational units = Rational(units_) * Rational(common) * Rational(times);
    if (!units.Num64() || units * Rational(demand_.LargestFromRank()) >= Rational(kLimit))
      return std::nullopt;
    ConcurrentFlow result;
    result.units_per_demand = *units.Num64();
    result.flow_from.resize(Index(network_.num_ranks));
    for (const RepresentativeFlow& flow : flows_)
      AddImages(flow, Rational(common) * Rational(times / (order / flow.alike)), result);
    return result;
  }

  void AddImages(const RepresentativeFlow& flow, const Rational& scale,
                 ConcurrentFlow& result) const {
    std::vector<std::map<int32_t, int64_t>> sums(Index(network_.num_ranks));
    for (const NetworkMap& map : group_.elements) {
      auto& sum = sums[Index(map.node[Index(flow.source)])];
      for (size_t e = 0; e < flow.units.size(); ++e) {
        if (flow.units[e].is_zero()) continue;
        sum[map.bundle[e]] += *(flow.units[e] * scale).Num64();
      }
    }
    for (const NetworkMap& map : group_.elements) {
      const size_t s = Index(map.node[Index(flow.source)]);
      if (!result.flow_from[s].empty()) continue;
      for (int32_t node : flow.order) {
        const size_t v = Index(map.node[Index(node)]);
        for (int32_t e = network_.first_in[v]; e < network_.first_in[v + 1]; ++e)
          if (const auto at = sums[s].find(e); at != sums[s].end())
            result.flow_from[s].push_back({e, at->second});
      }
    }
  }

  const FlowNetwork& network_;
  const DemandTable& demand_;
  const NetworkGroup& group_;
  const NearOptimum& near_;
  const WholeDual& dual_;
  double mean_ = 0;
  Rational strain_;  // seconds a unit of demand needs on a full bundle
  int64_t units_ = 0;
  std::vector<RepresentativeFlow> flows_;
  std::vector<WayShift> shifts_;
};

}  // namespace

std::optional<ConcurrentFlow> ProveOptimum(const Topology& topology, const FlowNetwork& network,
                                           const DemandTable& demand,
                                           const std::vector<int64_t>& demand_matrix,
                                           const NearOptimum& near) {
  const NetworkGroup group = FindNetworkGroup(topology, network, !demand_matrix.empty());
  if (group.orbit_size.size() > kMaxOrbits) return std::nullopt;
  const std::optional<WholeDual> dual = FindWholeDual(network, demand, group, near);
  if (!dual) return std::nullopt;
  std::optional<ConcurrentFlow> result = Repair(network, demand, group, near, *dual).Run();
  if (!result) return std::nullopt;
  result->bundles = network.bundles;
  result->demand = demand_matrix;
  result->lengths = dual->lengths;
  result->f_upper = dual->limit;
  return result;
}

}  // namespace tutti
