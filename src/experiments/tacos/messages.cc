#include "messages.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/units.h"
#include "tutti/graph/distance.h"

namespace tutti::tacos {
namespace {

constexpr double kSecondsPerPs = 1.0 / static_cast<double>(kPicosecondsPerSecond);

struct Message {
  NodeId from, to;
  int32_t step = 0;
  int64_t units = 0;
  int32_t waits_for = 0;             // messages that have not arrived
  std::vector<size_t> waiting = {};  // for this one
};

// The first link of the way from every node to `to`.
std::vector<LinkId> FirstLinks(const Topology& network, NodeId to) {
  const std::vector<int32_t> hops = DistancesTo(network.graph(), to);
  std::vector<LinkId> first(hops.size(), LinkId{-1});
  for (NodeId node : network.Nodes()) {
    int32_t nearest = std::numeric_limits<int32_t>::max();
    for (LinkId link : network.OutLinks(node)) {
      const NodeId next = network.head(link);
      const int32_t apart = std::abs(next.value - node.value);
      if (hops[next.index()] + 1 != hops[node.index()] || apart >= nearest) continue;
      nearest = apart;
      first[node.index()] = link;
    }
  }
  return first;
}

// What arrives at a rank of one shard, in order of steps.
struct Arrival {
  int32_t begin, end, step;
  size_t message;
};

std::vector<Message> MessagesOf(const Logical& on) {
  const Topology& logical = on.topology;
  const auto at = [&](NodeId rank) { return on.place.empty() ? rank : on.place[rank.index()]; };
  std::vector<Message> messages;
  std::map<std::pair<int32_t, int32_t>, std::vector<Arrival>> arrivals;  // (rank, shard)
  std::map<std::pair<int32_t, int32_t>, size_t> by_link;                 // (step, logical link)
  std::vector<std::vector<size_t>> needs;
  for (const Transfer& transfer : on.schedule.transfers) {
    const NodeId from = at(logical.tail(transfer.link)), to = at(logical.head(transfer.link));
    const auto [entry, is_new] =
        by_link.try_emplace({transfer.step, transfer.link.value}, messages.size());
    const size_t index = entry->second;
    if (is_new) {
      messages.push_back({from, to, transfer.step});
      needs.emplace_back();
    }
    messages[index].units += transfer.units();
    for (const Arrival& arrival : arrivals[{from.value, transfer.shard.value}])
      if (arrival.step < transfer.step && arrival.begin < transfer.end &&
          transfer.begin < arrival.end)
        needs[index].push_back(arrival.message);
    arrivals[{to.value, transfer.shard.value}].push_back(
        {transfer.begin, transfer.end, transfer.step, index});
  }
  for (size_t index = 0; index < messages.size(); ++index) {
    std::vector<size_t>& own = needs[index];
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    messages[index].waits_for = static_cast<int32_t>(own.size());
    for (size_t before : own) messages[before].waiting.push_back(index);
  }
  return messages;
}

class SharedLinks {
 public:
  SharedLinks(const Topology& topology, const Schedule& schedule, const SimOptions& options)
      : topology_(topology),
        unit_bytes_(schedule.collective.ShardBytes(ShardId{0}, options.size_bytes) /
                    Rational(schedule.units_per_shard)),
        held_(options.link_model == LinkModel::kHeld),
        free_ps_(static_cast<size_t>(topology.num_links()), 0) {
    for (NodeId rank : topology.Ranks()) first_.push_back(FirstLinks(topology, rank));
  }

  LinkId Next(NodeId at, NodeId to) const { return first_[to.index()][at.index()]; }
  double BytesOf(int64_t units) const { return (unit_bytes_ * Rational(units)).ToDouble(); }

  struct Crossing {
    int64_t start_ps, free_ps, arrive_ps;
  };
  // A message that is at the tail of the link now.
  Crossing Cross(LinkId link, int64_t units, int64_t now_ps) {
    const int64_t bandwidth = topology_.bandwidth(link), alpha_ps = topology_.alpha_ps(link);
    const auto [known, is_new] = bytes_ps_.try_emplace({units, bandwidth}, 0);
    if (is_new) known->second = BandwidthPs(unit_bytes_ * Rational(units), bandwidth);
    int64_t& free_ps = free_ps_[link.index()];
    const int64_t start_ps = std::max(now_ps, free_ps);
    const int64_t arrive_ps = start_ps + known->second + alpha_ps;
    free_ps = held_ ? arrive_ps : arrive_ps - alpha_ps;
    return {start_ps, free_ps, arrive_ps};
  }

 private:
  const Topology& topology_;
  Rational unit_bytes_;
  bool held_;
  std::vector<std::vector<LinkId>> first_;  // by destination, then node
  std::vector<int64_t> free_ps_;
  std::map<std::pair<int64_t, int64_t>, int64_t> bytes_ps_;  // (units, bandwidth)
};

double ToSeconds(int64_t ps) { return static_cast<double>(ps) * kSecondsPerPs; }

}  // namespace

Result<SimReport> SimulateMessages(const Topology& network, const Logical& logical,
                                   const SimOptions& options) {
  TUTTI_CHECK(logical.schedule.kind == ScheduleKind::kStep);
  TUTTI_CHECK(network.num_ranks() == logical.topology.num_ranks());
  std::vector<Message> messages = MessagesOf(logical);
  SharedLinks links(network, logical.schedule, options);
  SimReport report;
  report.messages = static_cast<int64_t>(messages.size());
  report.link_busy_s.assign(static_cast<size_t>(network.num_links()), 0);
  report.link_bytes.assign(static_cast<size_t>(network.num_links()), 0);

  // A message at a node; of those at one time the first made goes first.
  using Event = std::tuple<int64_t, size_t, int32_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].waits_for == 0) events.emplace(0, i, messages[i].from.value);
  int64_t end_ps = 0;
  for (int64_t count = 0; !events.empty(); ++count) {
    if ((count & 0xffff) == 0 && CancelRequested()) return tl::unexpected(CancelledError());
    const auto [now_ps, index, at] = events.top();
    events.pop();
    const Message& message = messages[index];
    if (at == message.to.value) {
      end_ps = std::max(end_ps, now_ps);
      for (size_t waiting : message.waiting)
        if (--messages[waiting].waits_for == 0)
          events.emplace(now_ps, waiting, messages[waiting].from.value);
      continue;
    }
    const LinkId link = links.Next(NodeId{at}, message.to);
    const SharedLinks::Crossing crossing = links.Cross(link, message.units, now_ps);
    const double bytes = links.BytesOf(message.units);
    report.link_busy_s[link.index()] += ToSeconds(crossing.free_ps - crossing.start_ps);
    report.link_bytes[link.index()] += bytes;
    if (options.record_messages)
      report.trace.push_back({.link = link,
                              .step = message.step,
                              .start_s = ToSeconds(crossing.start_ps),
                              .free_s = ToSeconds(crossing.free_ps),
                              .arrive_s = ToSeconds(crossing.arrive_ps),
                              .bytes = bytes,
                              .first_transfer = static_cast<int64_t>(index)});
    events.emplace(crossing.arrive_ps, index, network.head(link).value);
  }
  std::stable_sort(report.trace.begin(), report.trace.end(),
                   [](const SimMessage& a, const SimMessage& b) { return a.start_s < b.start_s; });
  report.time_s = ToSeconds(end_ps);
  if (end_ps > 0) {
    report.algbw = static_cast<double>(options.size_bytes) / report.time_s;
    report.busbw = report.algbw * logical.schedule.collective.BusFactor().ToDouble();
  }
  return report;
}

}  // namespace tutti::tacos
