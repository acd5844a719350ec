#include "host_times.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace tutti::sim {

HostTimes::HostTimes(const Topology& topology, LinkModel link_model)
    : topology_(topology), held_(link_model == LinkModel::kHeld) {
  if (!topology.has_host_limits()) return;
  out_.resize(static_cast<size_t>(topology.num_ranks()));
  in_ = out_;
  for (NodeId rank : topology.Ranks()) {
    const auto limit = topology.host_bandwidth(rank);
    if (!limit) continue;
    Set(topology.OutLinks(rank), *limit, out_[rank.index()]);
    Set(topology.InLinks(rank), *limit, in_[rank.index()]);
  }
}

template <class Links>
void HostTimes::Set(const Links& links, int64_t limit, Host& host) const {
  int64_t alpha_ps = std::numeric_limits<int64_t>::max();
  int64_t together = 0;
  for (LinkId link : links) {
    alpha_ps = std::min(alpha_ps, topology_.alpha_ps(link));
    if (__builtin_add_overflow(together, topology_.bandwidth(link), &together))
      together = std::numeric_limits<int64_t>::max();
  }
  if (together <= limit) return;
  host.bandwidth = static_cast<double>(limit);
  host.alpha_s = static_cast<double>(alpha_ps) * 1e-12;
}

HostTimes::Host* HostTimes::Find(std::vector<Host>& hosts, NodeId node) {
  if (node.index() >= hosts.size() || hosts[node.index()].bandwidth <= 0) return nullptr;
  return &hosts[node.index()];
}

template <class Visit>
void HostTimes::ForHosts(const Message& message, const Visit& visit) {
  if (Host* host = Find(out_, topology_.tail(message.link))) visit(*host);
  if (Host* host = Find(in_, topology_.head(message.link))) visit(*host);
}

void HostTimes::Count(std::span<const Message> messages) {
  if (none()) return;
  for (std::vector<Host>* side : {&out_, &in_})
    for (Host& host : *side) host.bytes = host.last_start_s = host.done_s = 0;
  for (const Message& message : messages)
    ForHosts(message, [&message](Host& host) { host.bytes += message.bytes; });
}

double HostTimes::AfterBarrier(const Message& message) {
  double seconds = 0;
  ForHosts(message, [&seconds](const Host& host) {
    seconds = std::max(seconds, host.alpha_s + host.bytes / host.bandwidth);
  });
  return seconds;
}

double HostTimes::FreeFor(const Message& message) {
  double free_s = 0;
  ForHosts(message, [&free_s](const Host& host) { free_s = std::max(free_s, host.free_s); });
  return free_s;
}

const std::vector<double>& HostTimes::LetThrough(std::span<const Message> messages) {
  arrival_.assign(messages.size(), 0);
  if (none()) return arrival_;
  order_.resize(messages.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::sort(order_.begin(), order_.end(), [messages](size_t a, size_t b) {
    return std::tuple(messages[a].start_s, messages[a].bytes, a) <
           std::tuple(messages[b].start_s, messages[b].bytes, b);
  });
  for (const Message& message : messages)
    ForHosts(message, [&message](Host& host) {
      host.last_start_s = std::max(host.last_start_s, message.start_s);
    });
  for (const size_t i : order_)
    ForHosts(messages[i], [&](Host& host) {
      arrival_[i] = std::max(arrival_[i], LetThrough(messages[i], host));
    });
  return arrival_;
}

double HostTimes::LetThrough(const Message& message, Host& host) const {
  host.done_s = std::max(host.done_s, message.start_s) + message.bytes / host.bandwidth;
  // All of the batch at once is never sooner; the least of both keeps rounding from saying so, and
  // eager from being later than the barrier by the last bit.
  const double arrival = std::min(host.done_s + host.alpha_s,
                                  host.last_start_s + (host.alpha_s + host.bytes / host.bandwidth));
  host.free_s = std::max(host.free_s, held_ ? arrival : std::min(arrival, host.done_s));
  return arrival;
}

}  // namespace tutti::sim
