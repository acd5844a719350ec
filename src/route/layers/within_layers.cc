#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "layers/acyclic_dependencies.h"
#include "path_sets.h"
#include "path_weights.h"
#include "tutti/base/cancel.h"
#include "tutti/flow/network.h"
#include "tutti/route/layers.h"
#include "tutti/sched/routing_chunks.h"

namespace tutti {
namespace {

constexpr size_t kBetweenSearchChecks = 4096;
// More shortest paths than this are not worth listing.
constexpr int64_t kMaxShortestPaths = 20'000'000;

// Attempts to give every pair a path, by the work of each.
constexpr int64_t kMaxHopsPlaced = 20'000'000;
constexpr int64_t kMaxAttempts = 100;

using RankPair = std::pair<NodeId, NodeId>;

struct PlacedPath {
  size_t pair;
  std::vector<LinkId> hops;
};

class LayerFiller {
 public:
  LayerFiller(const Topology& topology, int32_t max_layers) : topology_(topology) {
    for (int32_t layer = 0; layer < max_layers; ++layer)
      layers_.push_back(std::make_unique<AcyclicDependencies>(topology.graph()));
    has_path_.resize(static_cast<size_t>(topology.num_ranks()) *
                     static_cast<size_t>(topology.num_ranks()));
  }

  bool HasPath(size_t pair) const { return has_path_[pair]; }

  // The first layer that takes the path, or none.
  bool Place(size_t pair, std::span<const LinkId> hops) {
    if (LayerOf(hops) == kNoLayer) return false;
    has_path_[pair] = true;
    placed_.push_back({pair, std::vector<LinkId>(hops.begin(), hops.end())});
    return true;
  }

  static constexpr int16_t kNoLayer = -1;
  int16_t LayerOf(std::span<const LinkId> hops) {
    for (size_t layer = 0; layer < layers_.size(); ++layer)
      if (layers_[layer]->Admit(hops)) return static_cast<int16_t>(layer);
    return kNoLayer;
  }

  // Paths out of one rank that follow the order of a layer's links: they change no order, so that
  // all of them can be placed one after the other.
  void PlaceInOrder(NodeId source, std::span<const NodeId> destinations) {
    for (const auto& layer : layers_) {
      FollowOrder(*layer, source);
      for (const NodeId destination : destinations) {
        const size_t pair = PairOf(source, destination);
        if (!has_path_[pair] && TraceBack(destination) && IsSimple(source)) Place(pair, way_);
      }
    }
  }

  // Paths by pair, in the order of placement.
  Routing Paths() {
    std::stable_sort(placed_.begin(), placed_.end(),
                     [](const PlacedPath& a, const PlacedPath& b) { return a.pair < b.pair; });
    RoutingBuilder builder(topology_.num_ranks(), 1);
    size_t next = 0;
    for (size_t pair = 0; pair < has_path_.size(); ++pair) {
      const size_t first = next;
      for (; next < placed_.size() && placed_[next].pair == pair; ++next) {
        const auto same = [&](const PlacedPath& other) { return other.hops == placed_[next].hops; };
        if (std::none_of(placed_.begin() + static_cast<std::ptrdiff_t>(first),
                         placed_.begin() + static_cast<std::ptrdiff_t>(next), same))
          builder.AddPath(placed_[next].hops, 1);
      }
      builder.EndPair();
    }
    return std::move(builder).Finish();
  }

  size_t PairOf(NodeId source, NodeId destination) const {
    return source.index() * static_cast<size_t>(topology_.num_ranks()) + destination.index();
  }

 private:
  // Fewest hops to the end of each link, over links in ascending position.
  void FollowOrder(const AcyclicDependencies& layer, NodeId source) {
    const Digraph& graph = topology_.graph();
    const auto links = static_cast<size_t>(graph.num_links());
    order_.resize(links);
    for (const LinkId link : graph.Links())
      order_[static_cast<size_t>(layer.position(link))] = link;
    hops_.assign(links, kFar);
    previous_.assign(links, LinkId{-1});
    for (const LinkId link : graph.OutLinks(source)) hops_[link.index()] = 1;
    for (const LinkId link : order_) {
      if (hops_[link.index()] == kFar) continue;
      for (const LinkId next : graph.OutLinks(graph.head(link)))
        if (layer.position(next) > layer.position(link) &&
            hops_[next.index()] > hops_[link.index()] + 1) {
          hops_[next.index()] = hops_[link.index()] + 1;
          previous_[next.index()] = link;
        }
    }
  }

  bool TraceBack(NodeId destination) {
    LinkId last{-1};
    for (const LinkId link : topology_.graph().InLinks(destination))
      if (hops_[link.index()] != kFar &&
          (last.value < 0 || hops_[link.index()] < hops_[last.index()]))
        last = link;
    way_.clear();
    for (LinkId link = last; link.value >= 0; link = previous_[link.index()]) way_.push_back(link);
    std::reverse(way_.begin(), way_.end());
    return !way_.empty();
  }

  bool IsSimple(NodeId source) const {
    std::vector<NodeId> nodes{source};
    for (const LinkId link : way_) nodes.push_back(topology_.head(link));
    std::sort(nodes.begin(), nodes.end());
    return std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end();
  }

  static constexpr int32_t kFar = std::numeric_limits<int32_t>::max();

  const Topology& topology_;
  std::vector<std::unique_ptr<AcyclicDependencies>> layers_;
  std::vector<bool> has_path_;
  std::vector<PlacedPath> placed_;
  std::vector<LinkId> order_, previous_, way_;
  std::vector<int32_t> hops_;
};

struct Candidate {
  PathId path;
  size_t pair;
};

std::vector<Candidate> CandidatesOf(const Routing& routing) {
  std::vector<Candidate> candidates;
  for (size_t pair = 0; pair + 1 < routing.first_path.size(); ++pair)
    for (int64_t path = routing.first_path[pair]; path < routing.first_path[pair + 1]; ++path)
      candidates.push_back({PathId{static_cast<int32_t>(path)}, pair});
  return candidates;
}

Status PlaceAll(const Routing& routing, std::span<const Candidate> candidates, bool missing_only,
                LayerFiller& filler) {
  size_t done = 0;
  for (const Candidate& candidate : candidates) {
    if (done++ % kBetweenSearchChecks == 0 && CancelRequested())
      return MakeError(ErrorCode::kCancelled, "interrupted");
    if (!missing_only || !filler.HasPath(candidate.pair))
      filler.Place(candidate.pair, routing.Hops(candidate.path));
  }
  return {};
}

// Places pairs that earlier attempts left without a path before all others.
void PlaceUrgent(const Routing& wanted, std::span<const RankPair> urgent, LayerFiller& filler) {
  for (const auto& [source, destination] : urgent) {
    const size_t pair = filler.PairOf(source, destination);
    for (const PathId path : wanted.Paths(source, destination))
      if (!filler.HasPath(pair)) filler.Place(pair, wanted.Hops(path));
    if (!filler.HasPath(pair)) filler.PlaceInOrder(source, std::span(&destination, 1));
  }
}

// Every pair with demand gets a path, from `wanted` where one fits. The pairs that get none.
Result<std::vector<RankPair>> PlaceOneEach(const Topology& topology, const DemandTable& demand,
                                           const Routing& wanted, LayerFiller& filler) {
  std::vector<Candidate> candidates = CandidatesOf(wanted);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     const size_t hops_a = wanted.Hops(a.path).size();
                     const size_t hops_b = wanted.Hops(b.path).size();
                     if (hops_a != hops_b) return hops_a < hops_b;
                     return wanted.weight[a.path.index()] > wanted.weight[b.path.index()];
                   });
  if (const Status status = PlaceAll(wanted, candidates, true, filler); !status)
    return tl::unexpected(status.error());
  std::vector<RankPair> without_path;
  std::vector<NodeId> missing;
  for (const NodeId source : topology.Ranks()) {
    missing.clear();
    for (const NodeId destination : topology.Ranks())
      if (demand(source.value, destination.value) > 0 &&
          !filler.HasPath(filler.PairOf(source, destination)))
        missing.push_back(destination);
    if (missing.empty()) continue;
    filler.PlaceInOrder(source, missing);
    for (const NodeId destination : missing)
      if (!filler.HasPath(filler.PairOf(source, destination)))
        without_path.emplace_back(source, destination);
  }
  return without_path;
}

// Attempts until every pair has a path: the pairs that had none come first in the next one.
Result<std::unique_ptr<LayerFiller>> CoverAllPairs(const Topology& topology,
                                                   const DemandTable& demand, const Routing& wanted,
                                                   int32_t max_layers) {
  const auto hops = static_cast<int64_t>(wanted.hops.size());
  const int64_t attempts = std::clamp<int64_t>(kMaxHopsPlaced / (hops + 1), 4, kMaxAttempts);
  std::vector<RankPair> urgent;
  for (int64_t attempt = 0;; ++attempt) {
    auto filler = std::make_unique<LayerFiller>(topology, max_layers);
    PlaceUrgent(wanted, urgent, *filler);
    Result<std::vector<RankPair>> missing = PlaceOneEach(topology, demand, wanted, *filler);
    if (!missing) return tl::unexpected(missing.error());
    if (missing->empty()) return filler;
    if (attempt + 1 == attempts) {
      const auto& [source, destination] = missing->front();
      return MakeError(
          ErrorCode::kInfeasible,
          fmt::format("found no way from {} to {} that fits into {} layer{} without deadlock",
                      topology.node_name(source), topology.node_name(destination), max_layers,
                      max_layers == 1 ? "" : "s"));
    }
    for (const RankPair& pair : urgent)
      if (std::find(missing->begin(), missing->end(), pair) == missing->end())
        missing->push_back(pair);
    urgent = std::move(*missing);
  }
}

Status PlaceTheRest(const Topology& topology, const DemandTable& demand, const Routing& wanted,
                    LayerFiller& filler) {
  std::vector<Candidate> candidates = CandidatesOf(wanted);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     return wanted.weight[a.path.index()] > wanted.weight[b.path.index()];
                   });
  if (const Status status = PlaceAll(wanted, candidates, false, filler); !status) return status;
  const Result<Routing> shortest = ListPaths(topology, demand, PathSet::kShortest, 0);
  if (!shortest && shortest.error().code == ErrorCode::kResourceExhausted) return {};
  if (!shortest) return tl::unexpected(shortest.error());
  if (shortest->num_paths() > kMaxShortestPaths) return {};
  return PlaceAll(*shortest, CandidatesOf(*shortest), false, filler);
}

}  // namespace

Result<Routing> RouteWithinLayers(const Topology& topology, const Routing& wanted,
                                  int32_t max_layers, double gap, int32_t max_paths) {
  if (wanted.topology_fingerprint != topology.Fingerprint())
    return InvalidArgument("the routing was made for another network than " + topology.name());
  const DemandTable demand(topology.num_ranks(), wanted.demand);
  const Result<std::unique_ptr<LayerFiller>> filler =
      CoverAllPairs(topology, demand, wanted, max_layers);
  if (!filler) return tl::unexpected(filler.error());
  if (const Status status = PlaceTheRest(topology, demand, wanted, **filler); !status)
    return tl::unexpected(status.error());
  PathWeightOptions weigh;
  weigh.gap = gap;
  Result<WeightedPaths> weighted = WeighPaths(topology, demand, (*filler)->Paths(), weigh);
  if (weighted && max_paths > 0)
    weighted = WeighPaths(topology, demand, KeepHeaviestPaths(weighted->routing, max_paths), weigh);
  if (!weighted) return tl::unexpected(weighted.error());

  Routing routing = std::move(weighted->routing);
  routing.demand = wanted.demand;
  routing.groups = wanted.groups;
  routing.topology_fingerprint = wanted.topology_fingerprint;
  routing.algorithm = wanted.algorithm;
  routing.seed = wanted.seed;
  for (const PathId path : IdRange<PathId>(0, static_cast<int32_t>(routing.num_paths()))) {
    const int16_t layer = (*filler)->LayerOf(routing.Hops(path));
    TUTTI_CHECK(layer != LayerFiller::kNoLayer);
    routing.layer.push_back(layer);
    routing.num_layers = std::max<int32_t>(routing.num_layers, layer + 1);
  }
  return routing;
}

}  // namespace tutti
