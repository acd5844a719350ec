#include "groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/sched/cost.h"
#include "tutti/topo/group_network.h"

namespace tutti {
namespace {

bool HasStarts(const Schedule& schedule) { return schedule.kind == ScheduleKind::kTimed; }

// --- Intervals of one shard at one node

// Disjoint intervals of units, by their begin.
class Units {
 public:
  // The parts of [begin, end) that are in it (`inside`) or are not.
  std::vector<std::pair<int32_t, int32_t>> Parts(int32_t begin, int32_t end, bool inside) const {
    std::vector<std::pair<int32_t, int32_t>> parts;
    const auto add = [&](int32_t from, int32_t to) {
      if (from < to) parts.emplace_back(from, to);
    };
    int32_t at = begin;
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin()) --next;
    for (; next != ends_.end() && next->first < end; ++next) {
      if (next->second <= at) continue;
      const int32_t from = std::max(at, next->first), to = std::min(end, next->second);
      if (!inside) add(at, from);
      if (inside) add(from, to);
      at = to;
    }
    if (!inside) add(at, end);
    return parts;
  }
  void Add(int32_t begin, int32_t end) {
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ends_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_[begin] = end;
  }

 private:
  std::map<int32_t, int32_t> ends_;
};

// A Units for each (node, shard) that is met.
class UnitsByPlace {
 public:
  explicit UnitsByPlace(const Collective& collective) : num_shards_(collective.num_shards()) {}
  Units& At(NodeId node, ShardId shard) {
    return units_[int64_t{node.value} * num_shards_ + shard.value];
  }

 private:
  int64_t num_shards_;
  std::unordered_map<int64_t, Units> units_;  // looked up only, never walked
};

// --- From a network of a group to the whole

int64_t ArrivalOf(const Topology& topology, const Schedule& schedule, size_t i) {
  const Transfer& transfer = schedule.transfers[i];
  if (!HasStarts(schedule)) return transfer.step;
  return schedule.start_ps[i] + topology.alpha_ps(transfer.link) +
         TransferPs(schedule, transfer, topology.bandwidth(transfer.link));
}

struct Kept {
  Transfer transfer;
  int64_t start = 0;
};

// Leaves out what brings to a rank what it has already, and then what a rank gets for nothing: neither
// because it is to have it nor to send it on. The schedule copies only.
void DropTwiceBrought(const Topology& topology, Schedule& schedule) {
  const Collective& collective = schedule.collective;
  std::vector<size_t> order(schedule.transfers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<int64_t> arrival(order.size());
  for (size_t i = 0; i < order.size(); ++i) arrival[i] = ArrivalOf(topology, schedule, i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return arrival[a] < arrival[b]; });

  UnitsByPlace held(collective);
  for (const ShardId shard : collective.Shards())
    held.At(collective.contributors(shard).one, shard).Add(0, schedule.units_per_shard);
  std::vector<Kept> kept;
  for (const size_t i : order) {
    const Transfer& transfer = schedule.transfers[i];
    const int64_t start = HasStarts(schedule) ? schedule.start_ps[i] : transfer.step;
    const NodeId head = topology.head(transfer.link);
    if (!topology.is_rank(head)) {
      kept.push_back({transfer, start});
      continue;
    }
    Units& at = held.At(head, transfer.shard);
    for (const auto& [begin, end] : at.Parts(transfer.begin, transfer.end, false)) {
      kept.push_back({transfer, start});
      kept.back().transfer.begin = begin;
      kept.back().transfer.end = end;
    }
    at.Add(transfer.begin, transfer.end);
  }

  std::stable_sort(kept.begin(), kept.end(),
                   [](const Kept& a, const Kept& b) { return a.start < b.start; });
  UnitsByPlace needed(collective);
  std::vector<Kept> useful;  // from the last to the first
  for (size_t i = kept.size(); i-- > 0;) {
    const Kept& one = kept[i];
    const NodeId head = topology.head(one.transfer.link), tail = topology.tail(one.transfer.link);
    std::vector<std::pair<int32_t, int32_t>> parts = {{one.transfer.begin, one.transfer.end}};
    if (!topology.is_rank(head) || !collective.destinations(one.transfer.shard).Contains(head))
      parts = needed.At(head, one.transfer.shard).Parts(one.transfer.begin, one.transfer.end, true);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      useful.push_back(one);
      useful.back().transfer.begin = part->first;
      useful.back().transfer.end = part->second;
      needed.At(tail, one.transfer.shard).Add(part->first, part->second);
    }
  }
  schedule.transfers.clear();
  schedule.start_ps.clear();
  for (size_t i = useful.size(); i-- > 0;) {
    schedule.transfers.push_back(useful[i].transfer);
    if (HasStarts(schedule)) schedule.start_ps.push_back(useful[i].start);
  }
}

// Steps in which nothing is sent go.
void CloseGaps(Schedule& schedule) {
  int32_t steps = 0, last = -1;
  for (Transfer& transfer : schedule.transfers) {
    if (transfer.step != last) ++steps;
    last = transfer.step;
    transfer.step = steps - 1;
  }
  schedule.num_steps = steps;
}

// What `made` does on the group's network, in `topology`, with `shard_of` the shards there.
template <class ShardOf>
Schedule Lift(const Topology& topology, const Collective& collective, const GroupNetwork& group,
              const Schedule& made, const ShardOf& shard_of) {
  Schedule lifted{.collective = collective};
  lifted.kind = made.kind;
  lifted.units_per_shard = made.units_per_shard;
  lifted.num_steps = made.num_steps;
  lifted.size_bytes = made.size_bytes;
  lifted.link_model = made.link_model;
  lifted.topology_fingerprint = topology.Fingerprint();
  lifted.start_ps = made.start_ps;
  lifted.transfers = made.transfers;
  for (Transfer& transfer : lifted.transfers) {
    transfer.link = group.link_of[transfer.link.index()];
    transfer.shard = shard_of(transfer.shard);
  }
  return lifted;
}

// --- Several groups on the same links

// Starts of timed transfers anew, in the order they have: each as soon as its link is free and its data
// are there. The schedule copies only, and brings everything to a place once.
void StartWhenFree(const Topology& topology, Schedule& schedule) {
  struct Piece {
    int32_t begin, end;
    int64_t arrival;
  };
  std::unordered_map<int64_t, std::vector<Piece>> there;  // looked up only, never walked
  const auto place = [&](NodeId node, ShardId shard) -> std::vector<Piece>& {
    return there[int64_t{node.value} * schedule.collective.num_shards() + shard.value];
  };
  std::vector<int64_t> free(static_cast<size_t>(topology.num_links()), 0);
  std::vector<size_t> order(schedule.transfers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return schedule.start_ps[a] < schedule.start_ps[b]; });
  std::vector<std::pair<int64_t, size_t>> starts;
  for (const size_t i : order) {
    const Transfer& transfer = schedule.transfers[i];
    int64_t start = free[transfer.link.index()];
    for (const Piece& piece : place(topology.tail(transfer.link), transfer.shard))
      if (piece.begin < transfer.end && transfer.begin < piece.end)
        start = std::max(start, piece.arrival);
    const int64_t alpha = topology.alpha_ps(transfer.link);
    const int64_t busy = TransferPs(schedule, transfer, topology.bandwidth(transfer.link));
    free[transfer.link.index()] =
        start + busy + (schedule.link_model == LinkModel::kHeld ? alpha : 0);
    place(topology.head(transfer.link), transfer.shard)
        .push_back({transfer.begin, transfer.end, start + busy + alpha});
    starts.emplace_back(start, i);
  }
  std::stable_sort(starts.begin(), starts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Transfer> transfers;
  std::vector<int64_t> start_ps;
  for (const auto& [start, i] : starts) {
    transfers.push_back(schedule.transfers[i]);
    start_ps.push_back(start);
  }
  schedule.transfers = std::move(transfers);
  schedule.start_ps = std::move(start_ps);
}

// All of them at once. They are parts of one collective on one network.
Result<Schedule> LayOver(const Topology& topology, std::vector<Schedule> parts) {
  Schedule whole = std::move(parts.front());
  int64_t units = whole.units_per_shard;
  for (const Schedule& part : parts) {
    if (part.kind != whole.kind)
      return MakeError(ErrorCode::kInfeasible,
                       "one group has a schedule in steps and another a timed one");
    units = std::lcm(units, int64_t{part.units_per_shard});
    if (units > std::numeric_limits<int32_t>::max())
      return MakeError(ErrorCode::kResourceExhausted,
                       "the chunks of the groups have no common unit below 2^31");
  }
  const auto refine = [&](Schedule& part) {
    const auto factor = static_cast<int32_t>(units / part.units_per_shard);
    for (Transfer& transfer : part.transfers) {
      transfer.begin *= factor;
      transfer.end *= factor;
    }
    part.units_per_shard = static_cast<int32_t>(units);
  };
  refine(whole);
  for (size_t p = 1; p < parts.size(); ++p) {
    refine(parts[p]);
    whole.num_steps = std::max(whole.num_steps, parts[p].num_steps);
    whole.transfers.insert(whole.transfers.end(), parts[p].transfers.begin(),
                           parts[p].transfers.end());
    whole.start_ps.insert(whole.start_ps.end(), parts[p].start_ps.begin(), parts[p].start_ps.end());
  }
  if (HasStarts(whole)) {
    StartWhenFree(topology, whole);
  } else {
    SortBySteps(whole);
    CloseGaps(whole);
  }
  return whole;
}

// --- What spreads, or goes from one rank to one

class ForwardMaker {
 public:
  ForwardMaker(const Synthesizer& synthesizer, const SynthOptions& options)
      : synthesizer_(synthesizer), options_(options) {}

  Result<Schedule> Make(const Topology& topology, const Collective& collective) const {
    if (collective.is_all_to_all() && collective.groups().size() > 1 &&
        collective.groups_are_apart() && synthesizer_.Makes(CollectiveKind::kAllToAllV))
      return MakeJoined(topology, collective);
    std::optional<Error> fault;
    std::optional<Schedule> best;
    for (const bool through_others : {true, false}) {
      if (through_others && synthesizer_.groups == GroupUse::kOwnLinks) continue;
      Result<Schedule> made = MakeEach(topology, collective, through_others);
      if (!made && made.error().code == ErrorCode::kCancelled) return made;
      if (!made) {
        if (!fault) fault = made.error();
        continue;
      }
      if (!best || Seconds(topology, *made) < Seconds(topology, *best)) best = *std::move(made);
    }
    if (best) return *std::move(best);
    return tl::unexpected(*std::move(fault));
  }

 private:
  Rational Seconds(const Topology& topology, const Schedule& schedule) const {
    return PredictedSeconds(topology, schedule, options_.size_bytes);
  }

  SynthOptions OptionsOn(const Topology& topology, const Collective& collective) const {
    SynthOptions options = options_;
    // Ranks that only forward keep what they pass on, and may send it several ways.
    if (!topology.has_switches() && synthesizer_.Has(SynthOption::kMulticast) &&
        collective.destinations(ShardId{0}).several() && !collective.reduces())
      options.multicast = true;
    return options;
  }

  Result<Schedule> MakeJoined(const Topology& topology, const Collective& collective) const {
    const bool others_forward = synthesizer_.groups != GroupUse::kOwnLinks;
    const Result<GroupNetwork> group =
        MakeGroupNetwork(topology, collective.JoinedRanks(),
                         [&](NodeId node) { return !others_forward && topology.is_rank(node); });
    if (!group) return tl::unexpected(group.error());
    const Collective joined = collective.Joined();
    Result<Schedule> made = synthesizer_.synthesize(group->network, joined, options_);
    if (!made) return made;
    std::vector<ShardId> shard_of(static_cast<size_t>(joined.num_shards()), ShardId{-1});
    std::vector<int32_t> place(static_cast<size_t>(topology.num_ranks()), -1);
    for (const NodeId rank : group->network.Ranks())
      place[group->node_of[rank.index()].index()] = rank.value;
    for (const ShardId shard : collective.Shards()) {
      const int32_t source = place[collective.contributors(shard).one.index()],
                    destination = place[collective.destinations(shard).one.index()];
      shard_of[static_cast<size_t>(source) * static_cast<size_t>(joined.num_ranks()) +
               static_cast<size_t>(destination)] = shard;
    }
    // Pairs in no group send nothing.
    Schedule lifted = Lift(topology, collective, *group, *made,
                           [&](ShardId shard) { return shard_of[shard.index()]; });
    return Finished(topology, std::move(lifted));
  }

  Result<Schedule> MakeEach(const Topology& topology, const Collective& collective,
                            bool through_others) const {
    std::vector<Schedule> parts;
    for (size_t g = 0; g < collective.groups().size(); ++g) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const Collective::Group& members = collective.groups()[g];
      const Result<GroupNetwork> group =
          MakeGroupNetwork(topology, members.members,
                           [&](NodeId node) { return !through_others && topology.is_rank(node); });
      if (!group) return Within(fmt::format("group {}", g), group.error());
      const Collective own = collective.OfGroup(static_cast<int32_t>(g));
      Result<Schedule> made =
          synthesizer_.synthesize(group->network, own, OptionsOn(topology, own));
      if (!made && made.error().code == ErrorCode::kCancelled) return made;
      if (!made) return Within(fmt::format("group {}", g), made.error());
      Schedule lifted = Lift(topology, collective, *group, *made, [&](ShardId shard) {
        return ShardId{members.first_shard + shard.value};
      });
      Result<Schedule> part = Finished(topology, std::move(lifted));
      if (!part) return part;
      parts.push_back(*std::move(part));
    }
    if (parts.size() == 1) return std::move(parts.front());
    return LayOver(topology, std::move(parts));
  }

  static Result<Schedule> Finished(const Topology& topology, Schedule schedule) {
    const size_t before = schedule.transfers.size();
    DropTwiceBrought(topology, schedule);
    if (HasStarts(schedule)) {
      if (schedule.transfers.size() != before) StartWhenFree(topology, schedule);
    } else {
      CloseGaps(schedule);
    }
    return schedule;
  }

  const Synthesizer& synthesizer_;
  const SynthOptions& options_;
};

Result<Schedule> MakeAmongAll(const Synthesizer& synthesizer, const Topology& topology,
                              const Collective& collective, const SynthOptions& options) {
  if (synthesizer.groups == GroupUse::kTogether)
    return synthesizer.synthesize(topology, collective, options);
  const ForwardMaker maker(synthesizer, options);
  if (!collective.reduces()) return maker.Make(topology, collective);
  if (topology.has_switches())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes what groups reduce over links between ranks, and the "
                                 "network has switches",
                                 synthesizer.name));
  return DeriveFromForward(topology, collective,
                           [&](const Topology& network, const Collective& forward) {
                             return maker.Make(network, forward);
                           });
}

// The groups on the network of those that take part.
Result<Collective> OnlyParticipants(const Collective& collective, const GroupNetwork& group,
                                    int32_t num_ranks) {
  std::vector<NodeId> place(static_cast<size_t>(num_ranks), NodeId{-1});
  for (const NodeId rank : group.network.Ranks()) place[group.node_of[rank.index()].index()] = rank;
  Collective::Options options = collective.GroupOptions();
  options.others = Others::kForward;
  for (std::vector<NodeId>& members : options.groups)
    for (NodeId& rank : members) rank = place[rank.index()];
  return Collective::Make(collective.kind(), group.network.num_ranks(), std::move(options));
}

}  // namespace

Result<Schedule> SynthesizeOfGroups(const Synthesizer& synthesizer, const Topology& topology,
                                    const Collective& collective, const SynthOptions& options) {
  Result<Schedule> schedule = [&]() -> Result<Schedule> {
    if (collective.others() == Others::kForward)
      return MakeAmongAll(synthesizer, topology, collective, options);
    const Result<GroupNetwork> group = MakeGroupNetwork(
        topology, collective.Participants(), [&](NodeId node) { return collective.IsIdle(node); });
    if (!group) return tl::unexpected(group.error());
    const Result<Collective> among = OnlyParticipants(collective, *group, topology.num_ranks());
    if (!among) return tl::unexpected(among.error());
    const Result<Schedule> made = MakeAmongAll(synthesizer, group->network, *among, options);
    if (!made) return made;
    return Lift(topology, collective, *group, *made, [](ShardId shard) { return shard; });
  }();
  if (!schedule) return schedule;
  schedule->algorithm = synthesizer.name;
  schedule->seed = options.seed;
  return schedule;
}

}  // namespace tutti
