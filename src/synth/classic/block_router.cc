#include "classic/block_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "classic/shard_weights.h"
#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/progress.h"
#include "tutti/graph/distance.h"

namespace tutti::classic {
namespace {

constexpr int32_t kMaxPasses = 4;
// Links looked at after which passes end: about a third of a second.
constexpr int64_t kMaxWork = int64_t{1} << 26;
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

std::vector<uint64_t> Slowness(const Topology& topology) {
  int64_t fastest = 0;
  for (LinkId link : topology.Links()) fastest = std::max(fastest, topology.bandwidth(link));
  std::vector<uint64_t> slowness(static_cast<size_t>(topology.num_links()), 1);
  if (topology.is_homogeneous()) return slowness;
  // Six bits below one for ratios like 80 : 35; a slower link than 1 : 2^14 counts as that.
  for (LinkId link : topology.Links())
    slowness[link.index()] = static_cast<uint64_t>(
        std::min<int64_t>(fastest / std::max<int64_t>(1, topology.bandwidth(link) / 64), 1 << 20));
  return slowness;
}

}  // namespace

Result<BlockRouter> BlockRouter::Make(const Topology& topology, const Collective& collective,
                                      int32_t units_per_shard) {
  const int64_t pieces = int64_t{collective.num_shards()} * units_per_shard;
  if (pieces > kMaxCount / 2)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} blocks of {} chunks are more than 2^30 pieces",
                                 collective.num_shards(), units_per_shard));
  BlockRouter router(topology, collective, units_per_shard);
  if (static_cast<int64_t>(router.hops_.size()) > kMaxCount)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} transfers are more than 2^31", router.hops_.size()));
  return router;
}

BlockRouter::BlockRouter(const Topology& topology, const Collective& collective, int32_t units)
    : topology_(&topology),
      collective_(&collective),
      distances_(static_cast<size_t>(topology.num_nodes())),
      slowness_(Slowness(topology)),
      through_(static_cast<size_t>(topology.num_nodes())),
      cost_(static_cast<size_t>(topology.num_nodes())),
      best_link_(static_cast<size_t>(topology.num_nodes())),
      seen_(static_cast<size_t>(topology.num_nodes()), 0) {
  const ShardWeights weights(collective, units);
  size_t num_hops = 0;
  int32_t num_steps = 0;
  for (ShardId shard : collective.Shards()) {
    const NodeId from = collective.contributors(shard).one, to = collective.destinations(shard).one;
    if (from == to || collective.weight(shard) == 0) continue;
    std::vector<int32_t>& distance = distances_[from.index()];
    if (distance.empty()) distance = DistancesFrom(topology.graph(), from);
    const int32_t length = distance[to.index()];
    num_steps = std::max(num_steps, length);
    for (int32_t index = 0; index < units; ++index) {
      units_.push_back({shard, index, num_hops, length, weights.Of(shard)});
      num_hops += static_cast<size_t>(length);
    }
  }
  hops_.resize(num_hops);
  load_.resize(static_cast<size_t>(num_steps) * static_cast<size_t>(topology.num_links()), 0);
}

uint32_t& BlockRouter::Load(int32_t step, LinkId link) {
  return load_[static_cast<size_t>(step) * static_cast<size_t>(topology_->num_links()) +
               link.index()];
}

// What the sum of squares grows by, over the weight.
uint64_t BlockRouter::CostOf(int32_t step, LinkId link, uint32_t weight) const {
  const uint64_t load =
      load_[static_cast<size_t>(step) * static_cast<size_t>(topology_->num_links()) + link.index()];
  return (2 * load + weight) * slowness_[link.index()];
}

void BlockRouter::AddLoads(const Unit& unit) {
  for (int32_t step = 0; step < unit.num_hops; ++step)
    Load(step, hops_[unit.first_hop + static_cast<size_t>(step)]) += unit.weight;
}

void BlockRouter::RemoveLoads(const Unit& unit) {
  for (int32_t step = 0; step < unit.num_hops; ++step)
    Load(step, hops_[unit.first_hop + static_cast<size_t>(step)]) -= unit.weight;
}

// Looks at the links into `head` that a shortest path may take in `step`.
void BlockRouter::Widen(const Unit& unit, const std::vector<int32_t>& distance, NodeId head,
                        int32_t step) {
  for (LinkId link : topology_->InLinks(head)) {
    const NodeId tail = topology_->tail(link);
    if (distance[tail.index()] != step) continue;
    const uint64_t cost = cost_[head.index()] + CostOf(step, link, unit.weight);
    if (seen_[tail.index()] != search_) {
      seen_[tail.index()] = search_;
      next_level_.push_back(tail);
    } else if (cost_[tail.index()] <= cost) {
      continue;
    }
    cost_[tail.index()] = cost;
    best_link_[tail.index()] = link;
  }
  work_ += static_cast<int64_t>(topology_->InLinks(head).size());
}

void BlockRouter::FindPath(const Unit& unit, NodeId from, NodeId to) {
  const std::vector<int32_t>& distance = distances_[from.index()];
  ++search_;
  level_ = {to};
  cost_[to.index()] = 0;
  for (int32_t step = unit.num_hops - 1; step >= 0; --step) {
    next_level_.clear();
    for (NodeId head : level_) Widen(unit, distance, head, step);
    std::swap(level_, next_level_);
  }
  NodeId node = from;
  for (int32_t step = 0; step < unit.num_hops; ++step) {
    const LinkId link = best_link_[node.index()];
    hops_[unit.first_hop + static_cast<size_t>(step)] = link;
    node = topology_->head(link);
  }
}

// All units of one source, from the farthest nodes inwards: what passes through a node comes in
// equal parts from all nodes one hop nearer.
void BlockRouter::SplitEvenly(std::span<const Unit> units) {
  const NodeId from = SourceOf(units.front());
  const std::vector<int32_t>& distance = distances_[from.index()];
  int32_t farthest = 0;
  for (const Unit& unit : units) {
    through_[DestinationOf(unit).index()].push_back(&unit);
    farthest = std::max(farthest, unit.num_hops);
  }
  std::vector<std::vector<NodeId>> levels(static_cast<size_t>(farthest) + 1);
  for (NodeId node : topology_->Nodes())
    if (distance[node.index()] <= farthest)
      levels[static_cast<size_t>(distance[node.index()])].push_back(node);
  for (int32_t step = farthest - 1; step >= 0; --step)
    for (NodeId head : levels[static_cast<size_t>(step) + 1]) SplitAt(head, step, distance);
  through_[from.index()].clear();
}

void BlockRouter::SplitAt(NodeId head, int32_t step, const std::vector<int32_t>& distance) {
  struct Way {
    LinkId link;
    uint64_t passed;
  };
  std::vector<Way> ways;
  for (LinkId link : topology_->InLinks(head))
    if (distance[topology_->tail(link).index()] == step) ways.push_back({link, 0});
  for (const Unit* unit : through_[head.index()]) {
    Way* best = nullptr;
    uint64_t best_local = 0, best_load = 0;
    for (Way& way : ways) {
      const uint64_t slowness = slowness_[way.link.index()];
      const uint64_t local = (way.passed + unit->weight) * slowness;
      const uint64_t load = Load(step, way.link) * slowness;
      if (best != nullptr && std::pair(local, load) >= std::pair(best_local, best_load)) continue;
      best = &way;
      best_local = local;
      best_load = load;
    }
    TUTTI_CHECK(best != nullptr);  // some in-link is on a shortest path
    best->passed += unit->weight;
    Load(step, best->link) += unit->weight;
    hops_[unit->first_hop + static_cast<size_t>(step)] = best->link;
    through_[topology_->tail(best->link).index()].push_back(unit);
  }
  through_[head.index()].clear();
}

bool BlockRouter::Improve() {
  std::vector<LinkId> before;
  bool changed = false;
  for (const Unit& unit : units_) {
    if (work_ > kMaxWork) return false;
    const auto hop = hops_.begin() + static_cast<std::ptrdiff_t>(unit.first_hop);
    before.assign(hop, hop + unit.num_hops);
    RemoveLoads(unit);
    FindPath(unit, SourceOf(unit), DestinationOf(unit));
    AddLoads(unit);
    changed = changed || !std::equal(before.begin(), before.end(), hop);
  }
  return changed;
}

std::vector<Transfer> BlockRouter::Route() && {
  ProgressScope progress("direct", static_cast<int64_t>(units_.size()));
  for (size_t first = 0, last = 0; first < units_.size() && !CancelRequested(); first = last) {
    while (last < units_.size() && SourceOf(units_[last]) == SourceOf(units_[first])) ++last;
    SplitEvenly(std::span(units_).subspan(first, last - first));
    progress.Add(static_cast<int64_t>(last - first));
  }
  for (int32_t pass = 0; pass < kMaxPasses && !CancelRequested() && Improve(); ++pass) continue;
  std::vector<Transfer> transfers;
  transfers.reserve(hops_.size());
  for (const Unit& unit : units_)
    for (int32_t step = 0; step < unit.num_hops; ++step)
      transfers.push_back({.shard = unit.shard,
                           .link = hops_[unit.first_hop + static_cast<size_t>(step)],
                           .begin = unit.index,
                           .end = unit.index + 1,
                           .step = step});
  return transfers;
}

}  // namespace tutti::classic
