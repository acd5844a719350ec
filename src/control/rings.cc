#include "tutti/control/rings.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tutti/control/flow_assignment.h"

namespace tutti {
namespace {

// The ranks, host by host: [first[h], first[h + 1]) are those of the h-th host.
struct Hosts {
  std::vector<int32_t> ranks;
  std::vector<size_t> first;
};

// Smallest rank of every group of ranks with one key.
template <class Key>
std::unordered_map<int32_t, int32_t> Smallest(std::span<const int32_t> ranks, const Key& key) {
  std::unordered_map<int32_t, int32_t> smallest;
  for (const int32_t rank : ranks) {
    const auto [at, is_new] = smallest.emplace(key(rank), rank);
    if (!is_new) at->second = std::min(at->second, rank);
  }
  return smallest;
}

Hosts InOrder(const ClusterView& view, std::span<const int32_t> ranks) {
  const auto pods = Smallest(ranks, [&](int32_t rank) { return view.place(rank).pod; });
  const auto racks = Smallest(ranks, [&](int32_t rank) { return view.place(rank).rack; });
  const auto hosts = Smallest(ranks, [&](int32_t rank) { return view.place(rank).host; });
  using Key = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t>;
  std::vector<Key> keys;
  keys.reserve(ranks.size());
  for (const int32_t rank : ranks) {
    const RankPlace& place = view.place(rank);
    keys.emplace_back(pods.at(place.pod), racks.at(place.rack), hosts.at(place.host), place.device,
                      rank);
  }
  std::sort(keys.begin(), keys.end());
  Hosts result;
  for (const Key& key : keys) {
    const int32_t rank = std::get<4>(key);
    if (result.ranks.empty() || view.place(result.ranks.back()).host != view.place(rank).host)
      result.first.push_back(result.ranks.size());
    result.ranks.push_back(rank);
  }
  result.first.push_back(result.ranks.size());
  return result;
}

Hosts AsNamed(const ClusterView& view, std::span<const int32_t> ranks) {
  std::vector<int32_t> order;
  std::unordered_map<int32_t, std::vector<int32_t>> of_host;
  for (const int32_t rank : ranks) {
    std::vector<int32_t>& here = of_host[view.place(rank).host];
    if (here.empty()) order.push_back(view.place(rank).host);
    here.push_back(rank);
  }
  Hosts result;
  for (const int32_t host : order) {
    result.first.push_back(result.ranks.size());
    result.ranks.insert(result.ranks.end(), of_host[host].begin(), of_host[host].end());
  }
  result.first.push_back(result.ranks.size());
  return result;
}

// Channel c turns the ranks inside each host by c.
std::vector<std::vector<int32_t>> RingsThrough(const Hosts& hosts, int32_t channels) {
  std::vector<std::vector<int32_t>> rings(static_cast<size_t>(channels));
  for (size_t c = 0; c < rings.size(); ++c) {
    rings[c].reserve(hosts.ranks.size());
    for (size_t h = 0; h + 1 < hosts.first.size(); ++h) {
      const size_t begin = hosts.first[h], devices = hosts.first[h + 1] - begin;
      for (size_t i = 0; i < devices; ++i)
        rings[c].push_back(hosts.ranks[begin + (i + c) % devices]);
    }
  }
  return rings;
}

}  // namespace

std::vector<std::vector<int32_t>> LocalityRings(const ClusterView& view,
                                                std::span<const int32_t> ranks, int32_t channels) {
  return RingsThrough(InOrder(view, ranks), channels);
}

std::vector<std::vector<int32_t>> RingsAsNamed(const ClusterView& view,
                                               std::span<const int32_t> ranks, int32_t channels) {
  return RingsThrough(AsNamed(view, ranks), channels);
}

std::vector<std::vector<int32_t>> RandomRings(std::span<const int32_t> ranks, int32_t channels,
                                              Random& random) {
  std::vector<std::vector<int32_t>> rings(static_cast<size_t>(channels),
                                          std::vector<int32_t>(ranks.begin(), ranks.end()));
  for (std::vector<int32_t>& ring : rings)
    for (size_t i = ring.size(); i > 1; --i) std::swap(ring[i - 1], ring[random.Below(i)]);
  return rings;
}

std::vector<RingFlow> FlowsOf(const ClusterView& view, std::span<const std::vector<int32_t>> rings,
                              NicChoice nics, Random& random) {
  std::vector<RingFlow> flows;
  // By turns from the first device that the communicator has in a host: both its exits and its
  // entries are spread evenly, and communicators that share a host begin at different NICs.
  std::unordered_map<int32_t, int32_t> first_device;
  if (nics == NicChoice::kBalanced && !rings.empty())
    for (const int32_t rank : rings.front()) {
      const RankPlace& place = view.place(rank);
      const auto [at, is_new] = first_device.emplace(place.host, place.device);
      if (!is_new) at->second = std::min(at->second, place.device);
    }
  const auto port = [&](int32_t rank, int32_t channel) {
    if (nics == NicChoice::kOwn) return rank;
    const int32_t host = view.place(rank).host;
    const std::span<const int32_t> all = view.RanksOf(host);
    if (nics == NicChoice::kRandom) return all[random.Below(all.size())];
    return all[static_cast<size_t>(first_device.at(host) + channel) % all.size()];
  };
  for (size_t c = 0; c < rings.size(); ++c) {
    const std::vector<int32_t>& ring = rings[c];
    for (size_t i = 0; i < ring.size(); ++i) {
      const int32_t from = ring[i], to = ring[(i + 1) % ring.size()];
      if (view.place(from).host == view.place(to).host) continue;
      const auto channel = static_cast<int32_t>(c);
      RingFlow flow{channel, from, to, 0, 0};
      flow.from_port = port(from, channel);
      flow.to_port = port(to, channel);
      flows.push_back(flow);
    }
  }
  return flows;
}

std::vector<int64_t> FlowDemands(const ClusterView& view, std::span<const RingFlow> flows) {
  // Ports of one communicator are numbered as they come.
  std::unordered_map<int32_t, int32_t> numbers;
  std::vector<int64_t> bandwidth;
  std::vector<int32_t> from, to;
  const auto number = [&](int32_t port) {
    const auto [at, is_new] = numbers.emplace(port, static_cast<int32_t>(bandwidth.size()));
    if (is_new) bandwidth.push_back(view.PortBandwidth(port));
    return at->second;
  };
  for (const RingFlow& flow : flows) {
    from.push_back(number(flow.from_port));
    to.push_back(number(flow.to_port));
  }
  return FlowDemands(from, to, bandwidth);
}

int32_t CrossRackFlows(const ClusterView& view, std::span<const int32_t> ring) {
  int32_t flows = 0;
  for (size_t i = 0; i < ring.size(); ++i)
    flows += view.place(ring[i]).rack != view.place(ring[(i + 1) % ring.size()]).rack;
  return flows;
}

}  // namespace tutti
