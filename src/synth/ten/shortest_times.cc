#include "ten/shortest_times.h"

#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace tutti::ten {
namespace {

// links(node): those to go on by; next(link): where they lead.
template <class Links, class Next>
std::vector<int64_t> Search(const Topology& topology, const std::vector<int64_t>& time_of_link,
                            NodeId start, const Links& links, const Next& next) {
  std::vector<int64_t> time(static_cast<size_t>(topology.num_nodes()),
                            std::numeric_limits<int64_t>::max());
  using Entry = std::pair<int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  time[start.index()] = 0;
  open.emplace(0, start.value);
  while (!open.empty()) {
    const auto [at, node] = open.top();
    open.pop();
    if (at > time[static_cast<size_t>(node)]) continue;
    for (LinkId link : links(NodeId{node})) {
      const int64_t later = at + time_of_link[link.index()];
      const NodeId there = next(link);
      if (later >= time[there.index()]) continue;
      time[there.index()] = later;
      open.emplace(later, there.value);
    }
  }
  return time;
}

}  // namespace

std::vector<int64_t> TimesFrom(const Topology& topology, const std::vector<int64_t>& time_of_link,
                               NodeId source) {
  return Search(
      topology, time_of_link, source, [&](NodeId node) { return topology.OutLinks(node); },
      [&](LinkId link) { return topology.head(link); });
}

std::vector<int64_t> TimesTo(const Topology& topology, const std::vector<int64_t>& time_of_link,
                             NodeId target) {
  return Search(
      topology, time_of_link, target, [&](NodeId node) { return topology.InLinks(node); },
      [&](LinkId link) { return topology.tail(link); });
}

}  // namespace tutti::ten
