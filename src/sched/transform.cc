#include "tutti/sched/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/memory.h"

namespace tutti {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

// A copy of everything but the transfers.
Schedule WithoutTransfers(const Schedule& schedule, Collective collective) {
  Schedule header{.collective = std::move(collective)};
  header.kind = schedule.kind;
  header.units_per_shard = schedule.units_per_shard;
  header.num_steps = schedule.num_steps;
  header.size_bytes = schedule.size_bytes;
  header.link_model = schedule.link_model;
  header.topology_fingerprint = schedule.topology_fingerprint;
  header.algorithm = schedule.algorithm;
  header.seed = schedule.seed;
  return header;
}

Result<int32_t> CommonUnits(const Schedule& first, const Schedule& second) {
  const int64_t units = std::lcm(int64_t{first.units_per_shard}, int64_t{second.units_per_shard});
  if (units > kMaxInt32)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("chunks in {}ths and {}ths of a shard have no common unit below "
                                 "2^31",
                                 first.units_per_shard, second.units_per_shard));
  return static_cast<int32_t>(units);
}

// What two schedules need to be joined by any of the functions here.
Status CheckJoinable(const Schedule& first, const Schedule& second) {
  if (first.kind != ScheduleKind::kStep || second.kind != ScheduleKind::kStep)
    return InvalidArgument("only step schedules can be joined, got a timed one");
  if (first.topology_fingerprint != second.topology_fingerprint)
    return InvalidArgument(
        fmt::format("the schedules are for different topologies: fingerprints {:016x} and {:016x}",
                    first.topology_fingerprint, second.topology_fingerprint));
  return {};
}

bool Covers(const Collective::Ranks& outer, const Collective::Ranks& inner) {
  return outer.all || outer == inner ||
         (!outer.group.empty() && !inner.several() && outer.Contains(inner.one));
}

Status CheckSequence(const Collective& first, const Collective& second, const Collective& whole) {
  for (const Collective* part : {&first, &second})
    if (part->num_ranks() != whole.num_ranks() || part->num_shards() != whole.num_shards())
      return InvalidArgument(fmt::format("{} has {} shards over {} ranks, {} has {} over {}",
                                         Name(part->kind()), part->num_shards(), part->num_ranks(),
                                         Name(whole.kind()), whole.num_shards(),
                                         whole.num_ranks()));
  for (ShardId shard : whole.Shards()) {
    if (first.contributors(shard) != whole.contributors(shard))
      return InvalidArgument(fmt::format("shard {}: {} does not start from what {} starts from",
                                         shard.value, Name(first.kind()), Name(whole.kind())));
    if (!Covers(first.destinations(shard), second.contributors(shard)))
      return InvalidArgument(fmt::format("shard {}: {} does not end at the rank where {} starts",
                                         shard.value, Name(first.kind()), Name(second.kind())));
    if (!Covers(second.destinations(shard), whole.destinations(shard)))
      return InvalidArgument(fmt::format("shard {}: {} does not end where {} ends", shard.value,
                                         Name(second.kind()), Name(whole.kind())));
    if (first.weight(shard) != whole.weight(shard) || second.weight(shard) != whole.weight(shard))
      return InvalidArgument(fmt::format("shard {}: its sizes differ", shard.value));
  }
  return {};
}

// The names of both makers, once where they agree.
std::string JointName(const Schedule& first, const Schedule& second) {
  if (first.algorithm == second.algorithm || second.algorithm.empty()) return first.algorithm;
  if (first.algorithm.empty()) return second.algorithm;
  return first.algorithm + "+" + second.algorithm;
}

// Appends `transfer` in finer units, moved by `offset` of them and by `steps`.
void AppendMoved(std::vector<Transfer>& out, Transfer transfer, int32_t factor, int32_t offset,
                 int32_t steps) {
  transfer.begin = transfer.begin * factor + offset;
  transfer.end = transfer.end * factor + offset;
  transfer.step += steps;
  out.push_back(transfer);
}

Status CheckMaps(const Schedule& schedule, const std::vector<NodeId>& node_map,
                 const std::vector<LinkId>& link_map) {
  const auto num_ranks = static_cast<size_t>(schedule.collective.num_ranks());
  if (node_map.size() < num_ranks)
    return InvalidArgument(
        fmt::format("the map has {} nodes for {} ranks", node_map.size(), num_ranks));
  std::vector<bool> taken(num_ranks, false);
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    const int32_t image = node_map[rank].value;
    if (image < 0 || node_map[rank].index() >= num_ranks)
      return InvalidArgument(fmt::format("rank {} becomes node {}, which is no rank; there are {}",
                                         rank, image, num_ranks));
    if (taken[node_map[rank].index()])
      return InvalidArgument(fmt::format("two ranks become rank {}", image));
    taken[node_map[rank].index()] = true;
  }
  std::vector<LinkId> images = link_map;
  std::sort(images.begin(), images.end());
  if (const auto twice = std::adjacent_find(images.begin(), images.end()); twice != images.end())
    return InvalidArgument(fmt::format("two links become link {}", twice->value));
  if (!images.empty() && images.front().value < 0)
    return InvalidArgument(fmt::format("a link becomes link {}", images.front().value));
  for (size_t i = 0; i < schedule.transfers.size(); ++i)
    if (schedule.transfers[i].link.index() >= link_map.size())
      return InvalidArgument(fmt::format("transfer {} uses link {}, the map has {} links", i,
                                         schedule.transfers[i].link.value, link_map.size()));
  return {};
}

Result<Collective> RenameCollective(const Collective& collective,
                                    const std::vector<NodeId>& node_map) {
  Collective::Options options;
  if (collective.has_groups()) {
    options = collective.GroupOptions();
    for (std::vector<NodeId>& members : options.groups)
      for (NodeId& rank : members) rank = node_map[rank.index()];
    return Collective::Make(collective.kind(), collective.num_ranks(), std::move(options));
  }
  if (collective.has_root()) options.root = node_map[collective.root().index()].value;
  if (collective.kind() == CollectiveKind::kAllReduce)
    options.all_reduce_shards = collective.num_shards();
  if (collective.kind() == CollectiveKind::kAllToAllV) {
    const auto n = static_cast<size_t>(collective.num_ranks());
    options.weight_of_size = collective.weight_of_size();
    options.demand.resize(n * n);
    for (size_t s = 0; s < n; ++s)
      for (size_t d = 0; d < n; ++d)
        options.demand[node_map[s].index() * n + node_map[d].index()] =
            collective.demand()[s * n + d];
  }
  return Collective::Make(collective.kind(), collective.num_ranks(), std::move(options));
}

// A link with the nodes it becomes a link between.
struct MovedLink {
  int32_t tail, head;
  LinkSpec spec;
  LinkId link;

  auto place() const { return std::make_tuple(tail, head, spec.bandwidth, spec.alpha_ps); }
  bool operator<(const MovedLink& other) const {
    return std::make_tuple(place(), link) < std::make_tuple(other.place(), other.link);
  }
};

std::string Describe(const MovedLink& link) {
  return fmt::format("link {} -> {} of {} B/s and {} ps", link.tail, link.head, link.spec.bandwidth,
                     link.spec.alpha_ps);
}

// For each link of `from`, whose ends become ends(link), the link of `to` there.
template <class Ends>
Result<std::vector<LinkId>> MatchLinks(const Topology& from, const Topology& to, const Ends& ends) {
  if (from.num_links() != to.num_links())
    return InvalidArgument(
        fmt::format("no isomorphism leads from {} to {} links", from.num_links(), to.num_links()));
  std::vector<MovedLink> moved, there;
  for (LinkId link : from.Links()) {
    const auto [tail, head] = ends(link);
    moved.push_back({tail.value, head.value, from.spec(link), link});
  }
  for (LinkId link : to.Links())
    there.push_back({to.tail(link).value, to.head(link).value, to.spec(link), link});
  std::sort(moved.begin(), moved.end());
  std::sort(there.begin(), there.end());
  std::vector<LinkId> link_map(moved.size());
  for (size_t i = 0; i < moved.size(); ++i) {
    if (there[i].place() < moved[i].place())
      return InvalidArgument("the map of nodes is no isomorphism: no link becomes " +
                             Describe(there[i]));
    if (moved[i].place() < there[i].place())
      return InvalidArgument(fmt::format("the map of nodes is no isomorphism: link {} finds no {}",
                                         moved[i].link.value, Describe(moved[i])));
    link_map[moved[i].link.index()] = there[i].link;
  }
  return link_map;
}

// A bijection of the nodes of `from` to those of `to`, as far as numbers go.
Status CheckNodeMap(const Topology& from, const Topology& to, const std::vector<NodeId>& node_map) {
  if (from.num_nodes() != to.num_nodes() || node_map.size() != static_cast<size_t>(to.num_nodes()))
    return InvalidArgument(fmt::format("a map of {} nodes cannot take {} nodes to {}",
                                       node_map.size(), from.num_nodes(), to.num_nodes()));
  std::vector<NodeId> images = node_map;
  std::sort(images.begin(), images.end());
  for (NodeId node : to.Nodes())
    if (images[node.index()] != node)
      return InvalidArgument(
          fmt::format("the map of nodes is no permutation of 0 .. {}", to.num_nodes() - 1));
  return {};
}

}  // namespace

namespace {

// What becomes of a transfer but its time.
class Turned {
 public:
  Turned(const Collective& collective, const std::vector<LinkId>& link_map)
      : link_map_(link_map),
        collective_(collective),
        all_reduce_(collective.kind() == CollectiveKind::kAllReduce),
        op_(collective.Reversed().reduces() ? TransferOp::kReduce : TransferOp::kCopy) {}

  Transfer operator()(Transfer transfer) const {
    transfer.link = link_map_[transfer.link.index()];
    if (all_reduce_)
      transfer.op = transfer.op == TransferOp::kCopy ? TransferOp::kReduce : TransferOp::kCopy;
    else
      transfer.op = op_;
    transfer.shard = collective_.ReversedShard(transfer.shard);
    return transfer;
  }

 private:
  const std::vector<LinkId>& link_map_;
  const Collective& collective_;
  bool all_reduce_;
  TransferOp op_;
};

// When a transfer that starts at 0 has arrived.
int64_t TravelPs(const Topology& topology, const Schedule& schedule, const Transfer& transfer) {
  return topology.alpha_ps(transfer.link) +
         TransferPs(schedule, transfer, topology.bandwidth(transfer.link));
}

// Which of the transfers into switches add. What passed a switch once for each receiver is a sum for
// each, and none are added there; what a switch that reduces gave out several times comes in several
// times before it goes on as one: the first is copied, the others are added to it.
class SwitchSums {
 public:
  SwitchSums(const Topology& topology, const std::vector<LinkId>& twin, Schedule& schedule)
      : topology_(topology), twin_(twin), schedule_(schedule) {
    for (size_t i = 0; i < schedule.transfers.size(); ++i) {
      const Transfer& transfer = schedule.transfers[i];
      if (IsSwitch(From(transfer))) moves_.push_back({schedule.start_ps[i], true, i});
      if (IsSwitch(To(transfer)))
        moves_.push_back(
            {schedule.start_ps[i] + TravelPs(topology, schedule, Forward(transfer)), false, i});
    }
    // At one instant what arrives comes before what is sent.
    std::sort(moves_.begin(), moves_.end());
  }

  void Find() {
    for (const Move& move : moves_) {
      Transfer& transfer = schedule_.transfers[move.transfer];
      const NodeId at = move.leaves ? From(transfer) : To(transfer);
      std::vector<Part>& sums = sums_[{at.value, transfer.shard.value}];
      const Part part{transfer.begin, transfer.end};
      const auto known = std::find(sums.begin(), sums.end(), part);
      if (move.leaves) {
        std::erase_if(sums, [&](const Part& sum) { return part.Meets(sum); });
      } else if (topology_.reduces(at) && known != sums.end()) {
        transfer.op = TransferOp::kReduce;
      } else {
        transfer.op = TransferOp::kCopy;
        if (known == sums.end()) sums.push_back(part);
      }
    }
  }

 private:
  struct Move {
    int64_t at_ps;
    bool leaves;
    size_t transfer;
    auto operator<=>(const Move&) const = default;
  };
  struct Part {
    int32_t begin, end;
    bool operator==(const Part&) const = default;
    bool Meets(const Part& other) const { return begin < other.end && other.begin < end; }
  };

  Transfer Forward(Transfer transfer) const {
    transfer.link = twin_[transfer.link.index()];
    return transfer;
  }
  NodeId From(const Transfer& transfer) const {
    return topology_.head(twin_[transfer.link.index()]);
  }
  NodeId To(const Transfer& transfer) const { return topology_.tail(twin_[transfer.link.index()]); }
  bool IsSwitch(NodeId node) const { return !topology_.is_rank(node); }

  const Topology& topology_;
  const std::vector<LinkId>& twin_;
  Schedule& schedule_;
  std::vector<Move> moves_;
  std::map<std::pair<int32_t, int32_t>, std::vector<Part>> sums_;  // by switch and shard
};

}  // namespace

Schedule Reverse(const Schedule& schedule, const std::vector<LinkId>& link_map,
                 uint64_t new_topology_fingerprint) {
  TUTTI_CHECK(schedule.kind == ScheduleKind::kStep);
  Schedule result = WithoutTransfers(schedule, schedule.collective.Reversed());
  result.topology_fingerprint = new_topology_fingerprint;
  const Turned turned(schedule.collective, link_map);
  ReserveLarge(result.transfers, schedule.transfers.size());
  for (auto it = schedule.transfers.rbegin(); it != schedule.transfers.rend(); ++it) {
    result.transfers.push_back(turned(*it));
    result.transfers.back().step = schedule.num_steps - 1 - it->step;
  }
  return result;
}

int64_t CompletionPs(const Topology& topology, const Schedule& schedule) {
  TUTTI_CHECK(schedule.kind == ScheduleKind::kTimed);
  int64_t last = 0;
  for (size_t i = 0; i < schedule.transfers.size(); ++i)
    last =
        std::max(last, schedule.start_ps[i] + TravelPs(topology, schedule, schedule.transfers[i]));
  return last;
}

Schedule ReverseTimed(const Topology& topology, const Schedule& schedule,
                      const std::vector<LinkId>& link_map, uint64_t new_topology_fingerprint) {
  const int64_t end = CompletionPs(topology, schedule);
  Schedule result = WithoutTransfers(schedule, schedule.collective.Reversed());
  result.topology_fingerprint = new_topology_fingerprint;
  const size_t count = schedule.transfers.size();
  std::vector<std::pair<int64_t, size_t>> order(count);  // new start; from the last to the first
  for (size_t i = 0; i < count; ++i)
    order[i] = {end - schedule.start_ps[i] - TravelPs(topology, schedule, schedule.transfers[i]),
                count - 1 - i};
  std::sort(order.begin(), order.end());
  const Turned turned(schedule.collective, link_map);
  result.transfers.reserve(count);
  result.start_ps.reserve(count);
  for (const auto& [start, from_last] : order) {
    result.transfers.push_back(turned(schedule.transfers[count - 1 - from_last]));
    result.start_ps.push_back(start);
  }
  // Of a link of `result` the twin in `topology`, where it leads the other way.
  std::vector<LinkId> twin(link_map.size());
  for (size_t i = 0; i < link_map.size(); ++i)
    twin[link_map[i].index()] = LinkId{static_cast<int32_t>(i)};
  SwitchSums(topology, twin, result).Find();
  return result;
}

Result<Schedule> Rename(Schedule schedule, const std::vector<NodeId>& node_map,
                        const std::vector<LinkId>& link_map, uint64_t new_topology_fingerprint) {
  if (const Status maps = CheckMaps(schedule, node_map, link_map); !maps)
    return tl::unexpected(maps.error());
  Result<Collective> renamed = RenameCollective(schedule.collective, node_map);
  if (!renamed) return tl::unexpected(renamed.error());
  const int32_t n = schedule.collective.num_ranks();
  // The shards of groups are numbered by positions in them.
  const bool by_number = !schedule.collective.has_groups();
  const bool by_pair = by_number && schedule.collective.is_all_to_all();
  const bool by_rank = by_number && !by_pair && schedule.collective.num_shards() == n;
  const auto image = [&](int32_t rank) { return node_map[static_cast<size_t>(rank)].value; };
  for (Transfer& transfer : schedule.transfers) {
    transfer.link = link_map[transfer.link.index()];
    const int32_t shard = transfer.shard.value;
    if (by_rank) transfer.shard.value = image(shard);
    if (by_pair) transfer.shard.value = image(shard / n) * n + image(shard % n);
  }
  schedule.collective = *std::move(renamed);
  schedule.topology_fingerprint = new_topology_fingerprint;
  return schedule;
}

Result<std::vector<LinkId>> LinkMapOf(const Topology& from, const Topology& to,
                                      const std::vector<NodeId>& node_map) {
  if (const Status fine = CheckNodeMap(from, to, node_map); !fine)
    return tl::unexpected(fine.error());
  return MatchLinks(from, to, [&](LinkId link) {
    return std::make_pair(node_map[from.tail(link).index()], node_map[from.head(link).index()]);
  });
}

Result<Schedule> Mirror(const Topology& topology, const Schedule& schedule,
                        const std::vector<NodeId>& node_map) {
  if (schedule.kind != ScheduleKind::kStep)
    return InvalidArgument("only step schedules can be mirrored, got a timed one");
  if (const Status fine = CheckNodeMap(topology, topology, node_map); !fine)
    return tl::unexpected(fine.error());
  const Result<std::vector<LinkId>> link_map = MatchLinks(topology, topology, [&](LinkId link) {
    return std::make_pair(node_map[topology.head(link).index()],
                          node_map[topology.tail(link).index()]);
  });
  if (!link_map) return tl::unexpected(link_map.error());
  // On the transpose a link keeps its number here; only Rename() gives it its place.
  std::vector<LinkId> same;
  for (LinkId link : topology.Links()) same.push_back(link);
  return Rename(Reverse(schedule, same, 0), node_map, *link_map, topology.Fingerprint());
}

namespace {

// `second` starts `delay` steps after `first`; delay(units) is asked once the parts are known to
// fit together.
template <class Delay>
Result<Schedule> Join(const Schedule& first, const Schedule& second, const Collective& collective,
                      const Delay& delay_of) {
  if (const Status status = CheckJoinable(first, second); !status)
    return tl::unexpected(status.error());
  if (const Status status = CheckSequence(first.collective, second.collective, collective); !status)
    return tl::unexpected(status.error());
  const Result<int32_t> units = CommonUnits(first, second);
  if (!units) return tl::unexpected(units.error());
  if (int64_t{first.num_steps} + second.num_steps > kMaxInt32)
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("{} + {} steps are more than 2^31 - 1", first.num_steps, second.num_steps));
  const int32_t delay = delay_of(*units);
  Schedule result = WithoutTransfers(first, collective);
  result.algorithm = JointName(first, second);
  result.units_per_shard = *units;
  result.num_steps = std::max(first.num_steps, delay + second.num_steps);
  ReserveLarge(result.transfers, first.transfers.size() + second.transfers.size());
  for (const Transfer& transfer : first.transfers)
    AppendMoved(result.transfers, transfer, *units / first.units_per_shard, 0, 0);
  for (const Transfer& transfer : second.transfers)
    AppendMoved(result.transfers, transfer, *units / second.units_per_shard, 0, delay);
  SortBySteps(result);
  return result;
}

// For every unit of every shard the step after which `first` has finished it at its destination:
// no step of `first` touches it there later.
class FinishedAt {
 public:
  FinishedAt(const Topology& topology, const Schedule& first, int32_t units)
      : units_(units),
        step_(static_cast<size_t>(first.collective.num_shards()) * static_cast<size_t>(units), 0) {
    const int32_t factor = units / first.units_per_shard;
    for (const Transfer& transfer : first.transfers) {
      if (!first.collective.destinations(transfer.shard).Contains(topology.head(transfer.link)))
        continue;
      for (int32_t unit = transfer.begin * factor; unit < transfer.end * factor; ++unit)
        at(transfer.shard, unit) = std::max(at(transfer.shard, unit), transfer.step + 1);
    }
  }

  int32_t& at(ShardId shard, int32_t unit) {
    return step_[shard.index() * static_cast<size_t>(units_) + static_cast<size_t>(unit)];
  }

 private:
  int32_t units_;
  std::vector<int32_t> step_;
};

}  // namespace

Result<Schedule> Concatenate(const Schedule& first, const Schedule& second,
                             const Collective& collective) {
  return Join(first, second, collective, [&](int32_t) { return first.num_steps; });
}

Result<Schedule> ConcatenateTimed(const Topology& topology, const Schedule& first,
                                  const Schedule& second, const Collective& collective) {
  if (first.kind != ScheduleKind::kTimed || second.kind != ScheduleKind::kTimed)
    return InvalidArgument("both schedules must be timed");
  if (first.topology_fingerprint != second.topology_fingerprint ||
      first.size_bytes != second.size_bytes || first.link_model != second.link_model)
    return InvalidArgument(
        "the timed schedules were made for different topologies, sizes or link models");
  if (const Status status = CheckSequence(first.collective, second.collective, collective); !status)
    return tl::unexpected(status.error());
  const Result<int32_t> units = CommonUnits(first, second);
  if (!units) return tl::unexpected(units.error());
  const int64_t delay = CompletionPs(topology, first);
  Schedule result = WithoutTransfers(first, collective);
  result.algorithm = JointName(first, second);
  result.units_per_shard = *units;
  ReserveLarge(result.transfers, first.transfers.size() + second.transfers.size());
  for (const Transfer& transfer : first.transfers)
    AppendMoved(result.transfers, transfer, *units / first.units_per_shard, 0, 0);
  for (const Transfer& transfer : second.transfers)
    AppendMoved(result.transfers, transfer, *units / second.units_per_shard, 0, 0);
  result.start_ps = first.start_ps;
  for (int64_t start : second.start_ps) result.start_ps.push_back(delay + start);
  return result;
}

Result<Schedule> Overlap(const Topology& topology, const Schedule& first, const Schedule& second,
                         const Collective& collective) {
  return Join(first, second, collective, [&](int32_t units) {
    FinishedAt finished(topology, first, units);
    const int32_t factor = units / second.units_per_shard;
    int32_t delay = 0;
    for (const Transfer& transfer : second.transfers) {
      if (!first.collective.destinations(transfer.shard).Contains(topology.tail(transfer.link)))
        continue;
      for (int32_t unit = transfer.begin * factor; unit < transfer.end * factor; ++unit)
        delay = std::max(delay, finished.at(transfer.shard, unit) - transfer.step);
    }
    return delay;
  });
}

Schedule FlipShards(Schedule schedule) {
  for (Transfer& transfer : schedule.transfers) {
    const int32_t begin = transfer.begin;
    transfer.begin = schedule.units_per_shard - transfer.end;
    transfer.end = schedule.units_per_shard - begin;
  }
  return schedule;
}

Result<Schedule> SplitHalves(const Schedule& first, const Schedule& second) {
  if (const Status status = CheckJoinable(first, second); !status)
    return tl::unexpected(status.error());
  if (!(first.collective == second.collective))
    return InvalidArgument("both halves must run the same collective over the same ranks");
  const Result<int32_t> units = CommonUnits(first, second);
  if (!units) return tl::unexpected(units.error());
  if (int64_t{*units} * 2 > kMaxInt32)
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("half of 1/{} shard is too fine a unit; at most 2^31 - 1 units", *units));
  Schedule result = WithoutTransfers(first, first.collective);
  result.algorithm = JointName(first, second);
  result.units_per_shard = *units * 2;
  result.num_steps = std::max(first.num_steps, second.num_steps);
  ReserveLarge(result.transfers, first.transfers.size() + second.transfers.size());
  auto next = second.transfers.begin();
  const auto append_second_before = [&](int64_t step) {
    for (; next != second.transfers.end() && next->step < step; ++next)
      AppendMoved(result.transfers, *next, *units / second.units_per_shard, *units, 0);
  };
  for (const Transfer& transfer : first.transfers) {
    append_second_before(transfer.step);
    AppendMoved(result.transfers, transfer, *units / first.units_per_shard, 0, 0);
  }
  append_second_before(int64_t{result.num_steps});
  return result;
}

Result<Schedule> Refine(const Schedule& schedule, int32_t factor) {
  if (factor < 1)
    return InvalidArgument(fmt::format("the factor of a refinement is at least 1, got {}", factor));
  if (int64_t{schedule.units_per_shard} * factor > kMaxInt32)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} x {} units a shard are more than 2^31 - 1",
                                 schedule.units_per_shard, factor));
  Schedule result = schedule;
  result.units_per_shard *= factor;
  for (Transfer& transfer : result.transfers) {
    transfer.begin *= factor;
    transfer.end *= factor;
  }
  return result;
}

}  // namespace tutti
