#include "tutti/sched/routing_chunks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

__extension__ using Wide = __int128;

constexpr int64_t kMaxTries = 16;

int64_t Sum(const Routing& routing, IdRange<PathId> paths) {
  int64_t sum = 0;
  for (const PathId path : paths) sum += routing.weight[path.index()];
  return sum;
}

// All that is not paths.
void CopyOrigin(const Routing& from, Routing& to) {
  to.demand = from.demand;
  to.groups = from.groups;
  to.num_layers = from.num_layers;
  to.topology_fingerprint = from.topology_fingerprint;
  to.algorithm = from.algorithm;
  to.seed = from.seed;
}

// Calls visit(pair's paths) in order and ends each pair.
template <class Visit>
void ForEachPair(const Routing& routing, RoutingBuilder& builder, const Visit& visit) {
  for (const NodeId source : IdRange<NodeId>(0, routing.num_ranks))
    for (const NodeId destination : IdRange<NodeId>(0, routing.num_ranks)) {
      visit(routing.Paths(source, destination));
      builder.EndPair();
    }
}

class Rounding {
 public:
  Rounding(const Topology& topology, const Routing& routing, int64_t units)
      : topology_(topology), routing_(routing), units_(units) {
    const std::vector<int64_t> load = LinkUnits(topology, routing);
    const double scale = static_cast<double>(units) / static_cast<double>(routing.units_per_demand);
    for (const int64_t exact : load) load_.push_back(static_cast<double>(exact) * scale);
  }

  Routing Run() {
    RoutingBuilder builder(routing_.num_ranks, units_);
    std::vector<int16_t> layer;
    ForEachPair(routing_, builder, [&](IdRange<PathId> paths) {
      Round(paths);
      for (const PathId path : paths) {
        const int64_t weight = weight_[static_cast<size_t>(path.value - paths[0].value)];
        if (weight == 0) continue;
        builder.AddPath(routing_.Hops(path), weight);
        if (!routing_.layer.empty()) layer.push_back(routing_.layer[path.index()]);
      }
    });
    Routing result = std::move(builder).Finish();
    CopyOrigin(routing_, result);
    result.layer = std::move(layer);
    return result;
  }

 private:
  // Leaves the new weights of the pair in weight_.
  void Round(IdRange<PathId> paths) {
    weight_.clear();
    if (paths.empty()) return;
    const int64_t whole = routing_.units_per_demand;
    int64_t left = static_cast<int64_t>(Wide{Sum(routing_, paths)} * units_ / whole);
    for (const PathId path : paths) {
      const Wide exact = Wide{routing_.weight[path.index()]} * units_;
      const auto floor = static_cast<int64_t>(exact / whole);
      weight_.push_back(floor);
      left -= floor;
      Add(path,
          -static_cast<double>(static_cast<int64_t>(exact % whole)) / static_cast<double>(whole));
    }
    std::vector<bool> up(weight_.size(), false);
    for (; left > 0; --left) {
      size_t best = weight_.size();
      double least = 0;
      for (size_t i = 0; i < weight_.size(); ++i) {
        if (up[i]) continue;
        const double strain = StrainWithOneMore(paths[static_cast<int32_t>(i)]);
        if (best < weight_.size() && strain >= least) continue;
        best = i;
        least = strain;
      }
      up[best] = true;
      ++weight_[best];
      Add(paths[static_cast<int32_t>(best)], 1);
    }
  }

  void Add(PathId path, double units) {
    for (const LinkId link : routing_.Hops(path)) load_[link.index()] += units;
  }
  double StrainWithOneMore(PathId path) const {
    double strain = 0;
    for (const LinkId link : routing_.Hops(path))
      strain = std::max(strain,
                        (load_[link.index()] + 1) / static_cast<double>(topology_.bandwidth(link)));
    return strain;
  }

  const Topology& topology_;
  const Routing& routing_;
  int64_t units_;
  std::vector<double> load_;  // of a link: exact shares of the pairs to come, rounded ones before
  std::vector<int64_t> weight_;
};

}  // namespace

void DivideByCommonFactor(Routing& routing) {
  int64_t factor = routing.units_per_demand;
  for (const int64_t weight : routing.weight) {
    if (factor == 1) return;
    factor = std::gcd(factor, weight);
  }
  routing.units_per_demand /= factor;
  for (int64_t& weight : routing.weight) weight /= factor;
}

Routing KeepHeaviestPaths(const Routing& routing, int32_t max_paths) {
  TUTTI_CHECK(max_paths >= 1);
  RoutingBuilder builder(routing.num_ranks, routing.units_per_demand);
  std::vector<int16_t> layer;
  std::vector<PathId> kept;
  ForEachPair(routing, builder, [&](IdRange<PathId> paths) {
    kept.clear();
    for (const PathId path : paths) kept.push_back(path);
    if (paths.size() > max_paths) {
      std::stable_sort(kept.begin(), kept.end(), [&routing](PathId a, PathId b) {
        return routing.weight[a.index()] > routing.weight[b.index()];
      });
      kept.resize(static_cast<size_t>(max_paths));
    }
    const int64_t all = Sum(routing, paths);
    int64_t of_kept = 0;
    for (const PathId path : kept) of_kept += routing.weight[path.index()];
    int64_t left = all;
    // The heaviest last, so that it takes up what rounding left.
    for (size_t i = kept.size(); i-- > 0;) {
      const Wide share =
          Wide{routing.weight[kept[i].index()]} * all / std::max<int64_t>(of_kept, 1);
      const int64_t weight = i == 0 ? left : static_cast<int64_t>(share);
      left -= weight;
      builder.AddPath(routing.Hops(kept[i]), weight);
      if (!routing.layer.empty()) layer.push_back(routing.layer[kept[i].index()]);
    }
  });
  Routing result = std::move(builder).Finish();
  CopyOrigin(routing, result);
  result.layer = std::move(layer);
  return result;
}

Routing LimitUnits(const Topology& topology, const Routing& routing, int64_t max_units) {
  TUTTI_CHECK(max_units >= 1);
  Routing exact = routing;
  DivideByCommonFactor(exact);
  if (exact.units_per_demand <= max_units) return exact;
  Routing best;
  Rational best_rate;
  const int64_t tries = std::min(kMaxTries, max_units - max_units / 2);
  for (int64_t units = max_units; units > max_units - tries; --units) {
    Routing rounded = Rounding(topology, exact, units).Run();
    Rational rate = RoutingRate(topology, rounded);
    if (units < max_units && rate <= best_rate) continue;
    best = std::move(rounded);
    best_rate = std::move(rate);
  }
  DivideByCommonFactor(best);
  return best;
}

Routing LimitUnitsByLoss(const Topology& topology, const Routing& routing) {
  Routing limited = LimitUnits(topology, routing, kFewUnits);
  for (int64_t units = 2 * kFewUnits; units <= kMaxChunkUnits; units *= 2) {
    if (RateLoss(topology, routing, limited) < Rational(1, kSmallLoss)) break;
    limited = LimitUnits(topology, routing, units);
  }
  return limited;
}

Rational RateLoss(const Topology& topology, const Routing& before, const Routing& after) {
  const Rational rate = RoutingRate(topology, before);
  if (rate.is_zero()) return {};
  return (rate - RoutingRate(topology, after)) / rate;
}

}  // namespace tutti
