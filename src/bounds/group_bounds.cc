#include "group_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tutti/topo/group_network.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

Result<GroupNetwork> NetworkOf(const Topology& topology, const Collective& collective,
                               const std::vector<NodeId>& ranks) {
  return MakeGroupNetwork(topology, ranks, [&](NodeId node) { return collective.IsIdle(node); });
}

// Bounds on the network of `ranks`, in the units and the nodes of `topology`.
Result<Bounds> BoundsAmong(const Topology& topology, const Collective& collective,
                           const std::vector<NodeId>& ranks, const Collective& among) {
  const Result<GroupNetwork> group = NetworkOf(topology, collective, ranks);
  if (!group) return tl::unexpected(group.error());
  Result<Bounds> bounds = ComputeBounds(group->network, among);
  if (!bounds) return bounds;
  if (topology.has_host_limits()) {
    // With what ranks outside the group may pass on. Steps and alphas are those without NICs.
    const Result<Topology> split = HostForwarding(topology);
    if (!split) return tl::unexpected(split.error());
    const Result<GroupNetwork> hosted = NetworkOf(*split, collective, ranks);
    if (!hosted) return tl::unexpected(hosted.error());
    Result<Bounds> with_hosts = ComputeBounds(hosted->network, among);
    if (!with_hosts) return with_hosts;
    with_hosts->steps = bounds->steps;
    with_hosts->latency_ps = bounds->latency_ps;
    with_hosts->min_alpha_ps = bounds->min_alpha_ps;
    with_hosts->bandwidth_reason += ", with host limits";
    if (with_hosts->cut) {
      std::vector<NodeId>& inside = with_hosts->cut->inside;
      for (NodeId& node : inside) node = hosted->node_of[node.index()];
      std::erase_if(inside, [&](NodeId node) { return node.value >= topology.num_nodes(); });
    }
    if (with_hosts->f_upper)
      *with_hosts->f_upper *=
          Rational(hosted->network.min_bandwidth(), group->network.min_bandwidth());
    bounds = std::move(with_hosts);
  } else if (bounds->cut) {
    for (NodeId& node : bounds->cut->inside) node = group->node_of[node.index()];
  }
  if (bounds->cut) std::sort(bounds->cut->inside.begin(), bounds->cut->inside.end());
  if (bounds->f_upper)
    bounds->f_upper = RateOfGroups(topology, collective, group->network, *bounds->f_upper);
  bounds->tb = bounds->seconds_per_byte * Rational(topology.max_in_bandwidth());
  return bounds;
}

// How often M crosses links at least, in all: every member but one sends or receives all that it needs to.
Rational Crossings(const Collective& collective) {
  const bool twice = collective.reduces() && collective.destinations(ShardId{0}).several();
  const bool of_one = !collective.contributors(ShardId{0}).several() &&
                      !collective.destinations(ShardId{0}).several();
  Rational crossings;
  for (const Collective::Group& group : collective.groups()) {
    const int64_t k = group.size();
    crossings += of_one ? Rational(k - 1, k) : Rational((twice ? 2 : 1) * (k - 1));
  }
  return crossings;
}

// Cuts with what all groups send over them.
class JointCuts {
 public:
  JointCuts(const Topology& topology, const Collective& collective)
      : topology_(topology), collective_(collective) {}

  // Weight of the shards that must leave `inside`.
  Rational Leaving(const std::vector<bool>& inside) const {
    std::vector<int64_t> members(collective_.groups().size(), 0);
    for (size_t g = 0; g < members.size(); ++g)
      for (const NodeId rank : collective_.groups()[g].members) members[g] += inside[rank.index()];
    Rational weight;
    for (const ShardId shard : collective_.Shards()) {
      const auto g = static_cast<size_t>(collective_.GroupOf(shard));
      const Collective::Ranks from = collective_.contributors(shard),
                              to = collective_.destinations(shard);
      const bool starts = from.several() ? members[g] > 0 : inside[from.one.index()];
      const bool ends_outside =
          to.several() ? members[g] < collective_.groups()[g].size() : !inside[to.one.index()];
      if (starts && ends_outside) weight += Rational(collective_.weight(shard));
    }
    return weight;
  }

  void Offer(const std::vector<bool>& inside, Bounds& bounds) const {
    Rational capacity;
    for (const LinkId link : topology_.Links())
      if (inside[topology_.tail(link).index()] && !inside[topology_.head(link).index()])
        capacity += Rational(topology_.bandwidth(link));
    if (capacity.is_zero()) return;
    const Rational leaving = Leaving(inside);
    Rational limit = leaving / (Rational(collective_.weight_of_size()) * capacity);
    if (limit <= bounds.seconds_per_byte) return;
    bounds.seconds_per_byte = std::move(limit);
    CutCertificate cut;
    int64_t ranks = 0;
    for (const NodeId node : topology_.Nodes())
      if (inside[node.index()]) {
        cut.inside.push_back(node);
        ranks += topology_.is_rank(node);
      }
    cut.shards_out = leaving;
    cut.capacity_out = std::move(capacity);
    bounds.bandwidth_reason =
        fmt::format("cut of {} of {} ranks, what all {} groups send over it", ranks,
                    topology_.num_ranks(), collective_.groups().size());
    bounds.cut = std::move(cut);
  }

  void OfferBothSides(std::vector<bool> inside, Bounds& bounds) const {
    Offer(inside, bounds);
    inside.flip();
    Offer(inside, bounds);
  }

 private:
  const Topology& topology_;
  const Collective& collective_;
};

std::vector<bool> Nowhere(const Topology& topology) {
  return std::vector<bool>(static_cast<size_t>(topology.num_nodes()), false);
}

void OfferJointCuts(const Topology& topology, const Collective& collective,
                    const std::vector<std::vector<NodeId>>& own, Bounds& bounds) {
  // Shards and links looked at: about a second.
  constexpr int64_t kMaxVisits = 50'000'000;
  const JointCuts cuts(topology, collective);
  const int64_t each = collective.num_shards() + topology.num_links();
  int64_t left = kMaxVisits / std::max<int64_t>(1, 2 * each);
  const auto offer = [&](const std::vector<bool>& inside) {
    if (left-- > 0) cuts.OfferBothSides(inside, bounds);
  };
  for (const std::vector<NodeId>& cut : own) {
    std::vector<bool> inside = Nowhere(topology);
    for (const NodeId node : cut) inside[node.index()] = true;
    offer(inside);
  }
  for (const NodeId rank : topology.Ranks()) {
    std::vector<bool> inside = Nowhere(topology);
    inside[rank.index()] = true;
    offer(inside);
  }
  std::vector<bool> first = Nowhere(topology);
  for (const NodeId rank : topology.Ranks()) {
    first[rank.index()] = true;
    offer(first);
  }
}

Result<Bounds> JointBounds(const Topology& topology, const Collective& collective) {
  Bounds bounds;
  std::vector<std::vector<NodeId>> own;
  for (size_t g = 0; g < collective.groups().size(); ++g) {
    Result<Bounds> alone = BoundsAmong(topology, collective, collective.groups()[g].members,
                                       collective.OfGroup(static_cast<int32_t>(g)));
    if (!alone) return alone;
    if (alone->cut) own.push_back(alone->cut->inside);
    const int32_t steps = std::max(bounds.steps, alone->steps);
    const int64_t latency = std::max(bounds.latency_ps, alone->latency_ps);
    if (g == 0 || alone->seconds_per_byte > bounds.seconds_per_byte) {
      bounds = *std::move(alone);
      bounds.bandwidth_reason += fmt::format(", of group {} alone", g);
    }
    bounds.steps = steps;
    bounds.latency_ps = latency;
  }
  bounds.rsag_seconds_per_byte.reset();
  Rational capacity;
  for (const LinkId link : topology.Links())
    if (!collective.IsIdle(topology.tail(link)) && !collective.IsIdle(topology.head(link)))
      capacity += Rational(topology.bandwidth(link));
  const Rational crossings = Crossings(collective), by_total = crossings / capacity;
  if (by_total > bounds.seconds_per_byte) {
    bounds.seconds_per_byte = by_total;
    bounds.bandwidth_reason = fmt::format(
        "total link capacity: {} crossings of M, all groups together", crossings.ToString());
    bounds.cut.reset();
  }
  OfferJointCuts(topology, collective, own, bounds);
  bounds.tb = bounds.seconds_per_byte * Rational(topology.max_in_bandwidth());
  return bounds;
}

}  // namespace

Rational RateOfGroups(const Topology& topology, const Collective& collective,
                      const Topology& joined, const Rational& rate) {
  return rate * collective.RateOverJoined() *
         Rational(joined.min_bandwidth(), topology.min_bandwidth());
}

Result<Bounds> ComputeGroupBounds(const Topology& topology, const Collective& collective) {
  if (topology.original() != nullptr)
    return InvalidArgument("groups are not supported on a network whose switches were unwound");
  if (collective.is_all_to_all())
    return BoundsAmong(topology, collective, collective.JoinedRanks(), collective.Joined());
  if (collective.groups().size() == 1)
    return BoundsAmong(topology, collective, collective.groups()[0].members, collective.OfGroup(0));
  return JointBounds(topology, collective);
}

}  // namespace tutti
