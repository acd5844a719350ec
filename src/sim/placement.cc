#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tutti/sim/cluster_simulation.h"

namespace tutti {
namespace {

int32_t GroupOf(const std::vector<int32_t>& groups, size_t rank) {
  return groups.empty() ? static_cast<int32_t>(rank) : groups[rank];
}

std::vector<NodeId> Compact(const std::vector<bool>& free, int32_t count,
                            const ClusterOptions& options) {
  std::map<int32_t, int32_t> rack_free;
  std::map<std::pair<int32_t, int32_t>, int32_t> host_free;
  for (size_t rank = 0; rank < free.size(); ++rank) {
    if (!free[rank]) continue;
    const int32_t rack = GroupOf(options.rack, rank);
    ++rack_free[rack];
    ++host_free[{rack, GroupOf(options.host, rank)}];
  }
  // A rack that holds the whole job, and of those the one with the least room; otherwise the
  // fullest free racks first.
  using Key = std::tuple<bool, int32_t, int32_t, int32_t, int32_t, int32_t>;
  std::vector<Key> order;
  for (size_t rank = 0; rank < free.size(); ++rank) {
    if (!free[rank]) continue;
    const int32_t rack = GroupOf(options.rack, rank), host = GroupOf(options.host, rank);
    const bool holds = rack_free[rack] >= count;
    order.emplace_back(!holds, holds ? rack_free[rack] : -rack_free[rack], rack,
                       -host_free[{rack, host}], host, static_cast<int32_t>(rank));
  }
  std::sort(order.begin(), order.end());
  std::vector<NodeId> chosen;
  for (int32_t i = 0; i < count; ++i)
    chosen.push_back(NodeId{std::get<5>(order[static_cast<size_t>(i)])});
  return chosen;
}

}  // namespace

std::optional<std::vector<NodeId>> PlaceJob(const std::vector<bool>& free, int32_t count,
                                            const ClusterOptions& options, Random& random) {
  std::vector<NodeId> ranks;
  for (size_t rank = 0; rank < free.size(); ++rank)
    if (free[rank]) ranks.push_back(NodeId{static_cast<int32_t>(rank)});
  if (static_cast<int32_t>(ranks.size()) < count) return std::nullopt;
  if (options.placement == Placement::kCompact) {
    ranks = Compact(free, count, options);
  } else {
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      std::swap(ranks[i], ranks[i + random.Below(ranks.size() - i)]);
    ranks.resize(static_cast<size_t>(count));
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace tutti
