#include "classic/forward_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/memory.h"
#include "tutti/graph/distance.h"

namespace tutti::classic {
namespace {

constexpr int64_t kMaxDeliveries = std::numeric_limits<int32_t>::max();

}  // namespace

Result<ForwardBuilder> ForwardBuilder::Make(const Topology& topology, const Collective& collective,
                                            int32_t units_per_shard) {
  TUTTI_CHECK(units_per_shard >= 1 && collective.destinations(ShardId{0}).several());
  const int64_t pieces = int64_t{collective.num_shards()} * units_per_shard;
  if (pieces > kMaxDeliveries / topology.num_nodes())
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} shards of {} chunks on {} nodes are more than 2^31 deliveries",
                                 collective.num_shards(), units_per_shard, topology.num_nodes()));
  return ForwardBuilder(topology, collective, units_per_shard);
}

ForwardBuilder::ForwardBuilder(const Topology& topology, const Collective& collective,
                               int32_t units)
    : topology_(&topology),
      collective_(&collective),
      links_(topology.graph()),
      units_(units),
      distances_(static_cast<size_t>(topology.num_nodes())) {
  delivery_.assign(static_cast<size_t>(collective.num_shards()) *
                       static_cast<size_t>(topology.num_nodes()) * static_cast<size_t>(units),
                   kAbsent);
  // Each piece goes to each node but its own at most.
  ReserveLarge(transfers_, delivery_.size() - static_cast<size_t>(collective.num_shards()) *
                                                  static_cast<size_t>(units));
  for (ShardId shard : collective.Shards())
    for (int32_t unit = 0; unit < units; ++unit)
      delivery_[Slot(collective.contributors(shard).one, shard, unit)] = kInitial;
}

size_t ForwardBuilder::Slot(NodeId node, ShardId shard, int32_t unit) const {
  return (shard.index() * static_cast<size_t>(topology_->num_nodes()) + node.index()) *
             static_cast<size_t>(units_) +
         static_cast<size_t>(unit);
}

int32_t ForwardBuilder::ReadyUnit(NodeId node, ShardId shard, int32_t unit) const {
  const int32_t delivery = delivery_[Slot(node, shard, unit)];
  if (delivery >= 0) return transfers_[static_cast<size_t>(delivery)].step + 1;
  return delivery == kInitial ? 0 : kNever;
}

int32_t ForwardBuilder::Ready(NodeId node, ShardId shard, Part part) const {
  int32_t ready = 0;
  for (int32_t unit = part.begin; unit < part.end; ++unit)
    ready = std::max(ready, ReadyUnit(node, shard, unit));
  return ready;
}

const std::vector<int32_t>& ForwardBuilder::Distances(NodeId from) {
  std::vector<int32_t>& distance = distances_[from.index()];
  if (distance.empty()) distance = DistancesFrom(topology_->graph(), from);
  return distance;
}

uint32_t ForwardBuilder::LoadOf(int32_t step, LinkId link) const {
  const size_t at =
      static_cast<size_t>(step) * static_cast<size_t>(topology_->num_links()) + link.index();
  return at < load_.size() ? load_[at] : 0;
}

uint32_t& ForwardBuilder::Load(int32_t step, LinkId link) {
  const auto links = static_cast<size_t>(topology_->num_links());
  const size_t needed = (static_cast<size_t>(step) + 1) * links;
  if (load_.size() < needed) load_.resize(needed, 0);
  return load_[needed - links + link.index()];
}

int32_t ForwardBuilder::Send(NodeId from, NodeId to, ShardId shard, Part part, int32_t start) {
  const bool adjacent = !links_.Between(from, to).empty();
  const int32_t arrival = start + (adjacent ? 1 : Distances(from)[to.index()]);
  for (int32_t unit = part.begin; unit < part.end; ++unit) {
    TUTTI_DCHECK(ReadyUnit(from, shard, unit) <= start);
    if (ReadyUnit(to, shard, unit) <= arrival) continue;
    SendUnit(from, to, shard, unit, arrival);
  }
  return Ready(to, shard, part);
}

void ForwardBuilder::SendUnit(NodeId from, NodeId to, ShardId shard, int32_t unit,
                              int32_t arrival) {
  for (NodeId node = to; node != from; --arrival) {
    const Hop hop = BestHop(from, node, shard, unit, arrival - 1);
    Load(arrival - 1, hop.link) += 1;
    Deliver(hop.link, shard, unit, arrival - 1);
    if (hop.held) return;
    node = topology_->tail(hop.link);
  }
}

bool ForwardBuilder::IsLighter(LinkId a, LinkId b, int32_t step) const {
  __extension__ using Wide = unsigned __int128;
  return (Wide{LoadOf(step, a)} + 1) * static_cast<Wide>(topology_->bandwidth(b)) <
         (Wide{LoadOf(step, b)} + 1) * static_cast<Wide>(topology_->bandwidth(a));
}

ForwardBuilder::Hop ForwardBuilder::BestHop(NodeId from, NodeId to, ShardId shard, int32_t unit,
                                            int32_t step) const {
  const std::span<const LinkId> direct = links_.Between(from, to);
  Hop best;
  if (!direct.empty()) {
    best = {direct.front(), true};
    for (LinkId link : direct.subspan(1))
      if (IsLighter(link, best.link, step)) best.link = link;
    return best;
  }
  const std::vector<int32_t>& distance = distances_[from.index()];
  bool found = false;
  for (LinkId link : topology_->InLinks(to)) {
    const NodeId tail = topology_->tail(link);
    if (distance[tail.index()] + 1 != distance[to.index()]) continue;
    const bool held = ReadyUnit(tail, shard, unit) <= step;
    if (found && (held != best.held ? best.held : !IsLighter(link, best.link, step))) continue;
    best = {link, held};
    found = true;
  }
  return best;
}

void ForwardBuilder::Deliver(LinkId link, ShardId shard, int32_t unit, int32_t step) {
  int32_t& delivery = delivery_[Slot(topology_->head(link), shard, unit)];
  if (delivery >= 0) {  // on its way, but too late: bring it forward over this link
    Transfer& late = transfers_[static_cast<size_t>(delivery)];
    TUTTI_DCHECK(late.step > step);
    uint32_t& load = Load(late.step, late.link);
    if (load > 0) --load;  // SendOver() counts none
    late.link = link;
    late.step = step;
    return;
  }
  delivery = static_cast<int32_t>(transfers_.size());
  transfers_.push_back(
      {.shard = shard, .link = link, .begin = unit, .end = unit + 1, .step = step});
}

int32_t ForwardBuilder::SendOver(LinkId link, ShardId shard, Part part, int32_t start) {
  const NodeId head = topology_->head(link);
  for (int32_t unit = part.begin; unit < part.end; ++unit) {
    TUTTI_DCHECK(ReadyUnit(topology_->tail(link), shard, unit) <= start);
    if (ReadyUnit(head, shard, unit) <= start + 1) continue;
    Deliver(link, shard, unit, start);
  }
  return Ready(head, shard, part);
}

Schedule ForwardBuilder::Finish(std::string_view algorithm, uint64_t seed) && {
  return FinishSchedule(*topology_, *collective_, units_, std::move(transfers_), algorithm, seed);
}

Schedule FinishSchedule(const Topology& topology, const Collective& collective,
                        int32_t units_per_shard, std::vector<Transfer> transfers,
                        std::string_view algorithm, uint64_t seed) {
  Schedule schedule{.collective = collective, .units_per_shard = units_per_shard};
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.algorithm = algorithm;
  schedule.seed = seed;

  std::vector<int32_t> step_of;  // first whether it is used
  for (const Transfer& transfer : transfers) {
    const auto step = static_cast<size_t>(transfer.step);
    if (step >= step_of.size()) step_of.resize(step + 1, 0);
    step_of[step] = 1;
  }
  for (int32_t& used : step_of) used = used == 0 ? 0 : schedule.num_steps++;
  if (static_cast<size_t>(schedule.num_steps) < step_of.size())
    for (Transfer& transfer : transfers)
      transfer.step = step_of[static_cast<size_t>(transfer.step)];

  schedule.transfers = std::move(transfers);
  SortBySteps(schedule);
  size_t kept = 0, seen = 0;
  for (const Transfer& transfer : schedule.transfers) {
    Transfer* before = kept > 0 ? &schedule.transfers[kept - 1] : nullptr;
    if (before != nullptr && before->step == transfer.step && before->shard == transfer.shard &&
        before->link == transfer.link && before->end == transfer.begin)
      before->end = transfer.end;
    else if (const size_t at = kept++; at != seen)
      schedule.transfers[at] = transfer;
    ++seen;
  }
  schedule.transfers.resize(kept);
  return schedule;
}

}  // namespace tutti::classic
