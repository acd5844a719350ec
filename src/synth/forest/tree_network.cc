#include "forest/tree_network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/index.h"
#include "tutti/bounds/bounds.h"
#include "tutti/graph/max_flow.h"

namespace tutti::forest {
namespace {

__extension__ using Wide = __int128;

// No sum of capacities or trees may leave MaxFlow's range.
constexpr int64_t kMaxTreesInAll = int64_t{1} << 40;
// A root, where the cut's own number does not do: so that what links carry is rounded little.
constexpr int64_t kTreesBeyondTheCut = 64;

// Ranks over capacity of the tightest cut, seconds a byte.
struct Tightest {
  Rational shards, bytes_per_second;
};

Result<Tightest> FindTightest(const Topology& topology, std::optional<NodeId> root) {
  // What the links carry, whatever they were made of.
  const Topology plain = Topology(topology).WithOrigin({});
  Collective::Options options;
  if (root) options.root = root->value;
  const Result<Collective> collective =
      Collective::Make(root ? CollectiveKind::kBroadcast : CollectiveKind::kAllGather,
                       topology.num_ranks(), std::move(options));
  if (!collective) return tl::unexpected(collective.error());
  const Result<Bounds> bounds = ComputeBounds(plain, *collective);
  if (!bounds) return tl::unexpected(bounds.error());
  TUTTI_CHECK(bounds->cut.has_value());
  return Tightest{bounds->cut->shards_out, bounds->cut->capacity_out};
}

TreeNetwork Empty(const Topology& topology, const TreeRoots& roots, int64_t trees) {
  TreeNetwork network{.num_nodes = topology.num_nodes(),
                      .num_ranks = topology.num_ranks(),
                      .lanes = {},
                      .trees_of = {},
                      .trees_at_each = trees,
                      .trees_a_bandwidth = {},
                      .loss = {}};
  network.trees_of.assign(static_cast<size_t>(topology.num_ranks()), 0);
  if (roots.one)
    network.trees_of[roots.one->index()] = trees;
  else
    std::fill_n(network.trees_of.begin(), roots.count, trees);
  return network;
}

// Every link carries floor(num / den * bandwidth) trees.
TreeNetwork Scaled(const Topology& topology, const TreeRoots& roots, int64_t trees,
                   const Rational& scale) {
  TreeNetwork network = Empty(topology, roots, trees);
  network.trees_a_bandwidth = scale;
  const int64_t most = network.total();
  for (LinkId link : topology.Links()) {
    const Rational carried = (scale * Rational(topology.bandwidth(link))).Floor();
    const int64_t count = std::min(carried.Num64().value_or(most), most);
    if (count == 0) continue;
    network.lanes[{topology.tail(link).value, topology.head(link).value}].paths.push_back(
        {{link}, count});
  }
  return network;
}

// The least scale within a part in 1024 that lets `trees` trees a root through.
TreeNetwork LeastScale(const Topology& topology, const TreeRoots& roots, int64_t trees,
                       const Rational& ideal) {
  constexpr int64_t kParts = 1024;
  int64_t low = 0, high = 1;
  const auto at = [&](int64_t steps) {
    TreeNetwork network = Scaled(topology, roots, trees, ideal * Rational(kParts + steps, kParts));
    network.loss = Rational(steps, kParts + steps);
    return network;
  };
  while (!FlowsSuffice(at(high))) {
    low = high;
    high *= 2;
  }
  if (FlowsSuffice(at(0))) return at(0);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (FlowsSuffice(at(middle)) ? high : low) = middle;
  }
  return at(high);
}

bool IsShift(const TreeNetwork& network, int32_t shift) {
  const int32_t n = network.num_ranks;
  for (int32_t rank = 0; rank < n; ++rank)
    if (network.trees_of[Index(rank)] != network.trees_of[Index((rank + shift) % n)]) return false;
  for (const auto& [ends, lane] : network.lanes) {
    if (ends.first >= n || ends.second >= n) return false;
    const auto image = network.lanes.find({(ends.first + shift) % n, (ends.second + shift) % n});
    if (image == network.lanes.end() || image->second.trees() != lane.trees()) return false;
  }
  return true;
}

}  // namespace

int64_t Lane::trees() const {
  int64_t sum = 0;
  for (const LanePath& path : paths) sum += path.trees;
  return sum;
}

int64_t TreeNetwork::total() const {
  return std::accumulate(trees_of.begin(), trees_of.end(), int64_t{0});
}

Result<TreeNetwork> CountTrees(const Topology& topology, const TreeRoots& roots,
                               int64_t max_trees) {
  if (topology.has_host_limits())
    return MakeError(ErrorCode::kInfeasible,
                     "'forest' knows no host limits; 'tsmcf' and 'direct' keep to them");
  const bool exact_cut = roots.limits == nullptr;
  const Result<Tightest> cut = FindTightest(exact_cut ? topology : *roots.limits, roots.one);
  if (!cut) return tl::unexpected(cut.error());
  int64_t unit = 0;
  for (LinkId link : topology.Links()) unit = std::gcd(unit, topology.bandwidth(link));
  const Rational ratio = cut->shards * Rational(unit) / cut->bytes_per_second;
  const int64_t num_roots = roots.one ? 1 : roots.count;
  const int64_t limit = std::max<int64_t>(1, kMaxTreesInAll / num_roots);
  const int64_t exact = ratio.Den64().value_or(limit + 1);
  const int64_t most = max_trees > 0 ? std::min(max_trees, limit) : limit;
  if (exact <= most) {
    TreeNetwork network = Scaled(topology, roots, exact, ratio * Rational(exact) / Rational(unit));
    if (exact_cut || FlowsSuffice(network)) return network;
  }
  const int64_t trees =
      exact <= most ? std::max(exact, std::min<int64_t>(most, kTreesBeyondTheCut)) : most;
  return LeastScale(topology, roots, trees, ratio * Rational(trees) / Rational(unit));
}

std::optional<TreeNetwork> FewestTrees(const Topology& topology, const TreeRoots& root,
                                       const TreeNetwork& optimum) {
  constexpr int64_t kMaxToTry = 4096;
  const int64_t all = optimum.trees_at_each;
  if (optimum.loss != Rational(0)) return std::nullopt;
  for (int64_t trees = 1; trees < std::min(all, kMaxToTry); ++trees) {
    if (all % trees != 0) continue;
    TreeNetwork network =
        Scaled(topology, root, trees, optimum.trees_a_bandwidth * Rational(trees, all));
    if (FlowsSuffice(network)) return network;
  }
  return std::nullopt;
}

std::optional<int32_t> SmallestShift(const TreeNetwork& network) {
  for (int32_t shift = 1; shift * 2 <= network.num_ranks; ++shift)
    if (network.num_ranks % shift == 0 && IsShift(network, shift)) return shift;
  return std::nullopt;
}

bool FlowsSuffice(const TreeNetwork& network) {
  std::vector<MaxFlow<int64_t>::Arc> arcs;
  arcs.reserve(network.lanes.size());
  for (const auto& [ends, lane] : network.lanes)
    arcs.push_back({NodeId{ends.first}, NodeId{ends.second}, lane.trees()});
  MaxFlow<int64_t> flow(network.num_nodes, arcs);
  const int64_t total = network.total();
  // A rank that gets all stands for a source; the first is one that starts the most.
  std::vector<int32_t> order(static_cast<size_t>(network.num_ranks));
  std::iota(order.begin(), order.end(), 0);
  const auto most = std::max_element(network.trees_of.begin(), network.trees_of.end());
  std::swap(order.front(), order[static_cast<size_t>(most - network.trees_of.begin())]);
  for (const int32_t rank : order)
    flow.SetSupply(NodeId{rank}, network.trees_of[static_cast<size_t>(rank)]);
  if (const std::optional<int32_t> shift = SmallestShift(network)) {
    // Any rank out of each class: the cut of another is the image of one's.
    order.resize(static_cast<size_t>(*shift));
    std::iota(order.begin(), order.end(), 0);
  }
  for (const int32_t rank : order) {
    if (flow.Run(NodeId{rank}, total) < total) return false;
    flow.SetUnlimitedSupply(NodeId{rank});
  }
  return true;
}

}  // namespace tutti::forest
