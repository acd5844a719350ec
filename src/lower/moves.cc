#include "moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

namespace tutti::lower {
namespace {

class MoveMaker {
 public:
  MoveMaker(const Topology& topology, const Schedule& schedule)
      : topology_(topology), schedule_(schedule) {
    for (LinkId link : topology.Links()) {
      const std::pair ends(topology.tail(link), topology.head(link));
      const bool between_ranks = topology.is_rank(ends.first) && topology.is_rank(ends.second);
      connection_.push_back(between_ranks ? static_cast<int32_t>(moves_.connections.size())
                                          : kThroughSwitch);
      if (between_ranks) moves_.connections.push_back(ends);
    }
    NumberSteps();
  }

  Result<Moves> Run() {
    std::vector<Event> events;  // of what enters or leaves a switch
    const std::vector<Transfer>& all = schedule_.transfers;
    for (size_t i = 0; i < all.size(); ++i) {
      const Transfer& transfer = all[i];
      if (schedule_.collective.weight(transfer.shard) == 0) continue;
      const int32_t connection = connection_[transfer.link.index()];
      if (connection == kThroughSwitch) {
        AddEvents(i, events);
        continue;
      }
      moves_.all.push_back({connection, transfer.shard, transfer.begin, transfer.end, transfer.op,
                            step_[i], StartOf(i), FinishOf(i)});
    }
    std::sort(events.begin(), events.end());
    for (const auto& [time, phase, i, leaves] : events)
      if (const Status done = leaves ? Leave(i) : Arrive(i); !done)
        return tl::unexpected(done.error());
    return std::move(moves_);
  }

 private:
  static constexpr int32_t kThroughSwitch = -1;
  // Time, what comes first at it, transfer, whether it leaves its tail or arrives at its head.
  using Event = std::tuple<int64_t, int32_t, size_t, bool>;

  // Where a part of a shard comes from that is in a switch, or on its way into one.
  struct Origin {
    NodeId rank;
    int64_t start = 0;
    int32_t step = 0;
  };
  struct Piece {
    int32_t begin, end;
    Origin origin;
  };
  struct HeldPart {
    int32_t end;
    Origin origin;
  };
  using Held = std::map<int32_t, HeldPart>;  // by begin, no two overlap

  bool IsTimed() const { return schedule_.kind == ScheduleKind::kTimed; }

  void NumberSteps() {
    step_.reserve(schedule_.transfers.size());
    int32_t step = -1;
    for (size_t i = 0; i < schedule_.transfers.size(); ++i) {
      if (IsTimed() && (i == 0 || schedule_.start_ps[i] != schedule_.start_ps[i - 1])) ++step;
      step_.push_back(IsTimed() ? step : schedule_.transfers[i].step);
    }
  }

  int64_t StartOf(size_t i) const { return IsTimed() ? schedule_.start_ps[i] : step_[i]; }
  int64_t FinishOf(size_t i) const {
    if (!IsTimed()) return step_[i];
    const Transfer& transfer = schedule_.transfers[i];
    const Rational bytes = schedule_.collective.ShardBytes(transfer.shard, schedule_.size_bytes) *
                           Rational(transfer.units(), schedule_.units_per_shard);
    const LinkSpec& spec = topology_.spec(transfer.link);
    const Rational arrival = Rational(schedule_.start_ps[i]) + Rational(spec.alpha_ps) +
                             Rational(BandwidthPs(bytes, spec.bandwidth));
    return arrival.Num64().value_or(std::numeric_limits<int64_t>::max());
  }

  // In one step all leave before any arrives; at one time all arrive before any leaves.
  void AddEvents(size_t i, std::vector<Event>& events) const {
    events.emplace_back(StartOf(i), IsTimed() ? 1 : 0, i, true);
    events.emplace_back(FinishOf(i), IsTimed() ? 0 : 1, i, false);
  }

  Held& HeldBy(NodeId node, ShardId shard) {
    return held_[int64_t{node.value} * schedule_.collective.num_shards() + shard.value];
  }

  Status Leave(size_t i) {
    const Transfer& transfer = schedule_.transfers[i];
    const NodeId tail = topology_.tail(transfer.link);
    std::vector<Piece>& carried = under_way_[i];
    if (topology_.is_rank(tail)) {
      carried.push_back({transfer.begin, transfer.end, {tail, StartOf(i), step_[i]}});
      return {};
    }
    const Held& held = HeldBy(tail, transfer.shard);
    for (int32_t at = transfer.begin; at < transfer.end;) {
      auto part = held.upper_bound(at);
      if (part == held.begin() || (--part)->second.end <= at)
        return InvalidArgument(fmt::format(
            "step {}: switch {} sends unit {} of shard {} over link {} without holding it",
            step_[i], topology_.node_name(tail), at, transfer.shard.value, transfer.link.value));
      const int32_t end = std::min(part->second.end, transfer.end);
      carried.push_back({at, end, part->second.origin});
      at = end;
    }
    return {};
  }

  Status Arrive(size_t i) {
    const Transfer& transfer = schedule_.transfers[i];
    const NodeId head = topology_.head(transfer.link);
    const auto carried = under_way_.extract(i);
    if (!topology_.is_rank(head) && transfer.op != TransferOp::kCopy)
      return InvalidArgument(
          fmt::format("step {}: switch {} cannot reduce shard {} for programs of ranks, which add "
                      "at ranks alone; make the schedule on the network without reduces=",
                      step_[i], topology_.node_name(head), transfer.shard.value));
    for (const Piece& piece : carried.mapped()) {
      if (!topology_.is_rank(head)) {
        Hold(piece, HeldBy(head, transfer.shard));
      } else if (piece.origin.rank != head || transfer.op != TransferOp::kCopy) {
        moves_.all.push_back({ConnectionOf(piece.origin.rank, head), transfer.shard, piece.begin,
                              piece.end, transfer.op, piece.origin.step, piece.origin.start,
                              FinishOf(i)});
      }
    }
    return {};
  }

  // In place of what was held of it before.
  static void Hold(const Piece& piece, Held& held) {
    auto part = held.lower_bound(piece.begin);
    if (part != held.begin() && std::prev(part)->second.end > piece.begin) {
      const auto before = std::prev(part);
      if (before->second.end > piece.end)
        held.emplace(piece.end, HeldPart{before->second.end, before->second.origin});
      before->second.end = piece.begin;
    }
    for (part = held.lower_bound(piece.begin); part != held.end() && part->first < piece.end;) {
      if (part->second.end > piece.end) held.emplace(piece.end, part->second);
      part = held.erase(part);
    }
    held[piece.begin] = {piece.end, piece.origin};
  }

  int32_t ConnectionOf(NodeId sender, NodeId receiver) {
    const auto [at, is_new] =
        switched_.try_emplace({sender, receiver}, static_cast<int32_t>(moves_.connections.size()));
    if (is_new) moves_.connections.emplace_back(sender, receiver);
    return at->second;
  }

  const Topology& topology_;
  const Schedule& schedule_;
  Moves moves_;
  std::vector<int32_t> connection_;  // of a link between ranks
  std::vector<int32_t> step_;        // of a transfer
  std::unordered_map<int64_t, Held> held_;
  std::unordered_map<size_t, std::vector<Piece>> under_way_;
  std::map<std::pair<NodeId, NodeId>, int32_t> switched_;
};

}  // namespace

Result<Moves> MovesOf(const Topology& topology, const Schedule& schedule) {
  return MoveMaker(topology, schedule).Run();
}

}  // namespace tutti::lower
