#include "tutti/lower/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "lower_internal.h"
#include "rank_state.h"

namespace tutti::lower {
namespace {

size_t Index(int32_t i) { return static_cast<size_t>(i); }

// The ends of transfers of each shard: its elementary intervals lie between neighbours.
class Intervals {
 public:
  explicit Intervals(const Schedule& schedule) : cuts_(Index(schedule.collective.num_shards())) {
    for (const Transfer& transfer : schedule.transfers) {
      cuts_[transfer.shard.index()].push_back(transfer.begin);
      cuts_[transfer.shard.index()].push_back(transfer.end);
    }
    for (std::vector<int32_t>& cuts : cuts_) {
      cuts.push_back(0);
      cuts.push_back(schedule.units_per_shard);
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      cuts.shrink_to_fit();
    }
  }
  size_t Count(ShardId shard) const { return cuts_[shard.index()].size() - 1; }
  int32_t Begin(ShardId shard, size_t interval) const { return cuts_[shard.index()][interval]; }
  int32_t End(ShardId shard, size_t interval) const { return cuts_[shard.index()][interval + 1]; }
  size_t Find(ShardId shard, int32_t unit) const {
    const std::vector<int32_t>& cuts = cuts_[shard.index()];
    return static_cast<size_t>(std::lower_bound(cuts.begin(), cuts.end(), unit) - cuts.begin());
  }

 private:
  std::vector<std::vector<int32_t>> cuts_;
};

// One interval on its way: what a message is made of.
struct Atom {
  ShardId shard;
  size_t interval = 0;
  TransferOp op = TransferOp::kCopy;
  Place from = kNowhere;  // at the sender
};

struct Message {
  LinkId link;
  int32_t step = 0;
  std::vector<Atom> atoms;
};

// Neighbouring atoms that are contiguous wherever they are read and written: one instruction.
struct Piece {
  TransferOp op = TransferOp::kCopy;
  Operand sent;                // at the sender
  Operand src, dst;            // at the receiver; src of a reduction only
  int64_t count = 0;           // units
  size_t first = 0, last = 0;  // atoms of the message
  std::vector<Place> to;       // of each atom, at the receiver

  bool Continues(const Piece& next) const {
    const auto follows = [this](const Operand& a, const Operand& b) {
      return a.buffer == b.buffer && a.offset + count == b.offset;
    };
    return op == next.op && follows(sent, next.sent) && follows(dst, next.dst) &&
           (op == TransferOp::kCopy || follows(src, next.src));
  }
};

class Lowering {
 public:
  Lowering(const Topology& topology, const Schedule& schedule, const Choices& choices)
      : topology_(topology), schedule_(schedule), choices_(choices), intervals_(schedule) {
    plan_.collective = schedule.collective;
    plan_.units_per_shard = schedule.units_per_shard;
    plan_.algorithm = schedule.algorithm;
    plan_.ranks.resize(Index(topology.num_ranks()));
    order_.resize(plan_.ranks.size());
    for (NodeId rank : topology.Ranks()) ranks_.emplace_back(schedule_.collective, rank);
    MakeStreams();
  }

  Result<Plan> Run() {
    if (choices_.copy_own_first) CopyOwn();
    const Status moved = schedule_.kind == ScheduleKind::kStep ? LowerSteps() : LowerTimed();
    if (!moved) return tl::unexpected(moved.error());
    for (NodeId rank : topology_.Ranks()) {
      const Status done = FinishRank(rank);
      if (!done) return tl::unexpected(done.error());
    }
    for (const RankPlan& rank : plan_.ranks)
      for (const Stream& stream : rank.streams)
        plan_.num_channels = std::max(plan_.num_channels, stream.channel + 1);
    return std::move(plan_);
  }

 private:
  // Sends by (peer, channel), then receives by (peer, channel), then local copies.
  void MakeStreams() {
    const auto num_links = static_cast<size_t>(topology_.num_links());
    std::vector<int32_t> twin(num_links);  // number among the links with the same ends
    std::map<std::pair<NodeId, NodeId>, int32_t> seen;
    for (LinkId link : topology_.Links())
      twin[link.index()] = seen[{topology_.tail(link), topology_.head(link)}]++;
    send_stream_.resize(num_links);
    recv_stream_.resize(num_links);
    next_channel_.assign(num_links, 0);
    for (NodeId rank : topology_.Ranks()) {
      std::vector<LinkId> out;
      for (LinkId link : topology_.OutLinks(rank)) out.push_back(link);
      AddStreams(rank, true, std::move(out), twin);
      const auto in = topology_.InLinks(rank);
      AddStreams(rank, false, std::vector<LinkId>(in.begin(), in.end()), twin);
      plan_.ranks[rank.index()].streams.emplace_back();
    }
  }

  void AddStreams(NodeId rank, bool sends, std::vector<LinkId> links,
                  const std::vector<int32_t>& twin) {
    const auto peer = [&](LinkId link) {
      return sends ? topology_.head(link) : topology_.tail(link);
    };
    std::sort(links.begin(), links.end(), [&](LinkId a, LinkId b) {
      return peer(a) != peer(b) ? peer(a) < peer(b) : twin[a.index()] < twin[b.index()];
    });
    std::vector<Stream>& streams = plan_.ranks[rank.index()].streams;
    for (LinkId link : links) {
      (sends ? send_stream_ : recv_stream_)[link.index()] = static_cast<int32_t>(streams.size());
      for (int32_t k = 0; k < choices_.channels; ++k) {
        Stream stream;
        (sends ? stream.send_peer : stream.recv_peer) = peer(link).value;
        stream.channel = twin[link.index()] * choices_.channels + k;
        streams.push_back(std::move(stream));
      }
    }
  }

  ShardState& State(NodeId rank, ShardId shard) {
    return ranks_[rank.index()].Shard(shard, intervals_.Count(shard));
  }

  Operand Address(const ShardState& state, Place place, ShardId shard, size_t interval) const {
    Operand operand;
    int32_t slot = state.input_slot;
    if (place == kInOutput) {
      operand.buffer = Buffer::kOutput;
      slot = state.output_slot;
    } else if (place >= kInScratch) {
      operand.buffer = Buffer::kScratch;
      slot = state.scratch_slot[size_t{place} - kInScratch];
    }
    operand.offset = int64_t{slot} * schedule_.units_per_shard + intervals_.Begin(shard, interval);
    return operand;
  }

  Dependency Emit(NodeId rank, int32_t stream, Instruction instruction) {
    std::vector<Instruction>& list = plan_.ranks[rank.index()].streams[Index(stream)].instructions;
    const Dependency at{stream, static_cast<int32_t>(list.size())};
    list.push_back(std::move(instruction));
    order_[rank.index()].push_back(at);
    return at;
  }

  // After the last write of a cell.
  static void AfterWriter(const Cell& cell, std::vector<Dependency>& after) {
    if (cell.writer.stream >= 0) after.push_back(cell.writer);
  }
  // After the last write and every read since.
  void AfterAll(const Cell& cell, std::vector<Dependency>& after) const {
    AfterWriter(cell, after);
    readers_.AppendTo(cell, after);
  }

  // Chooses what a message carries: the values its sender has now.
  Status Start(const Transfer& transfer, Message& message) {
    const NodeId tail = topology_.tail(transfer.link);
    ShardState& state = State(tail, transfer.shard);
    for (size_t i = intervals_.Find(transfer.shard, transfer.begin);
         i < intervals_.Count(transfer.shard) && intervals_.Begin(transfer.shard, i) < transfer.end;
         ++i) {
      if (state.place[i] == kNowhere)
        return InvalidArgument(fmt::format(
            "step {}: rank {} sends units [{}, {}) of shard {} over link {} without holding them",
            message.step, tail.value, intervals_.Begin(transfer.shard, i),
            intervals_.End(transfer.shard, i), transfer.shard.value, transfer.link.value));
      ++state.cell(state.place[i], i).sends_under_way;
      message.atoms.push_back({transfer.shard, i, transfer.op, state.place[i]});
    }
    return {};
  }

  // Delivers a message: emits its instructions on both sides.
  Status Finish(const Message& message) {
    Piece piece;
    for (size_t a = 0; a < message.atoms.size(); ++a) {
      Result<Piece> next = PieceOf(message, a);
      if (!next) return tl::unexpected(next.error());
      if (a > 0 && piece.Continues(*next)) {
        piece.count += next->count;
        piece.last = next->last;
        piece.to.push_back(next->to.front());
        continue;
      }
      if (a > 0) EmitPiece(message, piece);
      piece = std::move(*next);
    }
    if (!message.atoms.empty()) EmitPiece(message, piece);
    return {};
  }

  Result<Piece> PieceOf(const Message& message, size_t a) {
    const Atom& atom = message.atoms[a];
    const NodeId tail = topology_.tail(message.link), head = topology_.head(message.link);
    ShardState& state = State(head, atom.shard);
    const Place held = state.place[atom.interval];
    if (atom.op == TransferOp::kReduce && held == kNowhere)
      return InvalidArgument(fmt::format(
          "step {}: rank {} reduces units [{}, {}) of shard {} from rank {} without holding any",
          message.step, head.value, intervals_.Begin(atom.shard, atom.interval),
          intervals_.End(atom.shard, atom.interval), atom.shard.value, tail.value));
    const Place to = ranks_[head.index()].ChoosePlace(atom.shard, state, atom.interval);
    if (to == kNowhere)
      return MakeError(
          ErrorCode::kResourceExhausted,
          fmt::format("step {}: rank {} has more than {} values of shard {} under way at once",
                      message.step, head.value, int{kMaxScratchCopies}, atom.shard.value));
    Piece piece;
    piece.op = atom.op;
    piece.sent = Address(State(tail, atom.shard), atom.from, atom.shard, atom.interval);
    piece.dst = Address(state, to, atom.shard, atom.interval);
    if (atom.op == TransferOp::kReduce) piece.src = Address(state, held, atom.shard, atom.interval);
    piece.count =
        intervals_.End(atom.shard, atom.interval) - intervals_.Begin(atom.shard, atom.interval);
    piece.first = a;
    piece.last = a;
    piece.to.push_back(to);
    return piece;
  }

  void EmitPiece(const Message& message, const Piece& piece) {
    const int32_t channel =
        std::exchange(next_channel_[message.link.index()],
                      (next_channel_[message.link.index()] + 1) % choices_.channels);
    EmitSend(message, piece, channel);
    EmitReceive(message, piece, channel);
  }

  void EmitSend(const Message& message, const Piece& piece, int32_t channel) {
    const NodeId tail = topology_.tail(message.link);
    Instruction send;
    send.op = OpCode::kSend;
    send.src = piece.sent;
    send.count = piece.count;
    send.step = message.step;
    for (size_t a = piece.first; a <= piece.last; ++a) {
      const Atom& atom = message.atoms[a];
      AfterWriter(State(tail, atom.shard).cell(atom.from, atom.interval), send.after);
    }
    const Dependency at = Emit(tail, send_stream_[message.link.index()] + channel, std::move(send));
    for (size_t a = piece.first; a <= piece.last; ++a) {
      const Atom& atom = message.atoms[a];
      Cell& cell = State(tail, atom.shard).cell(atom.from, atom.interval);
      --cell.sends_under_way;
      readers_.Add(cell, at);
    }
  }

  void EmitReceive(const Message& message, const Piece& piece, int32_t channel) {
    const NodeId head = topology_.head(message.link);
    Instruction recv;
    recv.op = piece.op == TransferOp::kCopy ? OpCode::kRecv : OpCode::kRecvReduce;
    recv.src = piece.src;
    recv.dst = piece.dst;
    recv.count = piece.count;
    recv.step = message.step;
    for (size_t a = piece.first; a <= piece.last; ++a) {
      const Atom& atom = message.atoms[a];
      ShardState& state = State(head, atom.shard);
      AfterAll(state.cell(piece.to[a - piece.first], atom.interval), recv.after);
      if (piece.op == TransferOp::kReduce)
        AfterWriter(state.cell(state.place[atom.interval], atom.interval), recv.after);
    }
    const Dependency at = Emit(head, recv_stream_[message.link.index()] + channel, std::move(recv));
    for (size_t a = piece.first; a <= piece.last; ++a) {
      const Atom& atom = message.atoms[a];
      ShardState& state = State(head, atom.shard);
      const Place to = piece.to[a - piece.first];
      if (piece.op == TransferOp::kReduce)
        readers_.Add(state.cell(state.place[atom.interval], atom.interval), at);
      Write(state, to, atom.interval, at);
    }
  }

  static void Write(ShardState& state, Place to, size_t interval, const Dependency& at) {
    Cell& cell = state.cell(to, interval);
    cell.writer = at;
    cell.first_reader = -1;
    state.place[interval] = to;
  }

  // What is sent in a step is the state after the step before: all messages of a step start, then
  // they arrive link by link.
  Status LowerSteps() {
    std::vector<Transfer> now;
    std::vector<Message> messages;
    const std::vector<Transfer>& all = schedule_.transfers;
    for (size_t first = 0; first < all.size();) {
      size_t last = first;
      while (last < all.size() && all[last].step == all[first].step) ++last;
      now.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                 all.begin() + static_cast<std::ptrdiff_t>(last));
      std::stable_sort(now.begin(), now.end(), [](const Transfer& a, const Transfer& b) {
        if (a.link != b.link) return a.link < b.link;
        return a.shard != b.shard ? a.shard < b.shard : a.begin < b.begin;
      });
      messages.clear();
      for (size_t i = 0; i < now.size(); ++i) {
        const Transfer& transfer = now[i];
        const bool same_link = i > 0 && now[i - 1].link == transfer.link;
        if (same_link && now[i - 1].shard == transfer.shard && now[i - 1].end > transfer.begin)
          return InvalidArgument(
              fmt::format("step {}: link {} carries units [{}, {}) of shard {} twice",
                          transfer.step, transfer.link.value, transfer.begin,
                          std::min(transfer.end, now[i - 1].end), transfer.shard.value));
        if (!same_link) messages.push_back({transfer.link, transfer.step, {}});
        if (!Moves(transfer)) continue;
        const Status started = Start(transfer, messages.back());
        if (!started) return started;
      }
      for (const Message& message : messages) {
        const Status finished = Finish(message);
        if (!finished) return finished;
      }
      first = last;
    }
    return {};
  }

  // Transfers start when they start and count when they have arrived. Instructions are in order of
  // arrival, so that whatever one waits for comes before it.
  Status LowerTimed() {
    struct Event {
      int64_t time_ps;
      bool start;
      int32_t transfer;
    };
    const std::vector<Transfer>& all = schedule_.transfers;
    std::vector<Event> events;
    std::vector<Message> messages(all.size());
    int32_t step = -1;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || schedule_.start_ps[i] != schedule_.start_ps[i - 1]) ++step;
      messages[i] = {all[i].link, step, {}};
      if (!Moves(all[i])) continue;
      const int64_t start = schedule_.start_ps[i];
      events.push_back({start, true, static_cast<int32_t>(i)});
      events.push_back({ArrivalPs(all[i], start), false, static_cast<int32_t>(i)});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      if (a.time_ps != b.time_ps) return a.time_ps < b.time_ps;
      return a.start != b.start ? b.start : a.transfer < b.transfer;
    });
    for (const Event& event : events) {
      Message& message = messages[Index(event.transfer)];
      const Status done =
          event.start ? Start(all[Index(event.transfer)], message) : Finish(message);
      if (!done) return done;
      if (!event.start) message.atoms = {};
    }
    return {};
  }

  int64_t ArrivalPs(const Transfer& transfer, int64_t start_ps) const {
    const Rational bytes = schedule_.collective.ShardBytes(transfer.shard, schedule_.size_bytes) *
                           Rational(transfer.units(), schedule_.units_per_shard);
    const LinkSpec& spec = topology_.spec(transfer.link);
    const Rational arrival =
        Rational(start_ps) + Rational(spec.alpha_ps) + Rational(BandwidthPs(bytes, spec.bandwidth));
    return arrival.Num64().value_or(std::numeric_limits<int64_t>::max());
  }

  // Shards without bytes need no messages.
  bool Moves(const Transfer& transfer) const {
    return schedule_.collective.weight(transfer.shard) > 0;
  }

  // Own contributions that the rank itself has to deliver, at the start.
  void CopyOwn() {
    for (NodeId rank : topology_.Ranks())
      for (int32_t slot = 0; slot < NumOutputSlots(schedule_.collective, rank); ++slot)
        CopyHome(rank, OutputShard(schedule_.collective, rank, slot), kInInput);
  }

  // Whatever of `shard` does not lie in its output slot yet is copied there: what lies in the input
  // for kInInput, what lies in scratch copy k for kInScratch + k.
  void CopyHome(NodeId rank, ShardId shard, Place from) {
    if (schedule_.collective.weight(shard) == 0) return;
    ShardState& state = State(rank, shard);
    const size_t count = intervals_.Count(shard);
    if (state.output_slot < 0) return;
    for (size_t i = 0; i < count;) {
      size_t end = i;
      while (end < count && state.place[end] == from) ++end;
      if (end == i) {
        ++i;
        continue;
      }
      Instruction copy;
      copy.op = OpCode::kCopy;
      copy.src = Address(state, from, shard, i);
      copy.dst = Address(state, kInOutput, shard, i);
      copy.count = intervals_.End(shard, end - 1) - intervals_.Begin(shard, i);
      copy.step = schedule_.num_steps == 0 ? 0 : schedule_.num_steps - 1;
      for (size_t k = i; k < end && from != kInInput; ++k) {
        AfterWriter(state.cell(from, k), copy.after);
        AfterAll(state.cell(kInOutput, k), copy.after);
      }
      const auto local = static_cast<int32_t>(plan_.ranks[rank.index()].streams.size()) - 1;
      const Dependency at = Emit(rank, local, std::move(copy));
      for (; i < end; ++i) Write(state, kInOutput, i, at);
    }
  }

  Status FinishRank(NodeId rank) {
    const Collective& collective = schedule_.collective;
    RankPlan& plan = plan_.ranks[rank.index()];
    plan.input_slots = NumInputSlots(collective, rank);
    plan.output_slots = NumOutputSlots(collective, rank);
    for (int from = kInInput; from <= kInScratch + kMaxScratchCopies; ++from)
      for (int32_t slot = 0; slot < plan.output_slots && from != kInOutput; ++slot)
        CopyHome(rank, OutputShard(collective, rank, slot), static_cast<Place>(from));
    for (int32_t slot = 0; slot < plan.output_slots; ++slot) {
      const ShardId shard = OutputShard(collective, rank, slot);
      const ShardState& state = State(rank, shard);
      if (state.output_slot < 0 || collective.weight(shard) == 0) continue;
      const auto missing = std::find(state.place.begin(), state.place.end(), kNowhere);
      if (missing == state.place.end()) continue;
      const auto interval = static_cast<size_t>(missing - state.place.begin());
      return InvalidArgument(fmt::format("rank {} never receives units [{}, {}) of shard {}",
                                         rank.value, intervals_.Begin(shard, interval),
                                         intervals_.End(shard, interval), shard.value));
    }
    plan.scratch_slots = ranks_[rank.index()].num_scratch_slots();
    if (!collective.demand().empty()) SetWeights(rank);
    PruneDependencies(order_[rank.index()], plan);
    DropEmptyStreams(plan);
    order_[rank.index()] = {};
    return {};
  }

  void SetWeights(NodeId rank) {
    const Collective& collective = schedule_.collective;
    RankPlan& plan = plan_.ranks[rank.index()];
    for (int32_t slot = 0; slot < plan.input_slots; ++slot)
      plan.input_weights.push_back(collective.weight(InputShard(collective, rank, slot)));
    for (int32_t slot = 0; slot < plan.output_slots; ++slot)
      plan.output_weights.push_back(collective.weight(OutputShard(collective, rank, slot)));
    for (ShardId shard : ranks_[rank.index()].scratch_shards())
      plan.scratch_weights.push_back(collective.weight(shard));
  }

  const Topology& topology_;
  const Schedule& schedule_;
  Choices choices_;
  Intervals intervals_;
  Plan plan_{schedule_.collective, 1, 1, {}, {}};
  std::vector<RankState> ranks_;
  std::vector<std::vector<Dependency>> order_;      // of emission, a rank
  std::vector<int32_t> send_stream_, recv_stream_;  // of each link's first channel
  std::vector<int32_t> next_channel_;               // of each link
  ReaderPool readers_;
};

Status CheckStructure(const Topology& topology, const Schedule& schedule, const Choices& choices) {
  if (topology.has_switches())
    return InvalidArgument(
        "plans need a network of ranks only, and this one has switches; unwind(...) removes them");
  if (choices.channels < 1 || choices.channels > 1024)
    return InvalidArgument(fmt::format("channels must be in [1, 1024], got {}", choices.channels));
  if (schedule.collective.num_ranks() != topology.num_ranks())
    return InvalidArgument(fmt::format("the schedule is for {} ranks, the topology has {}",
                                       schedule.collective.num_ranks(), topology.num_ranks()));
  if (schedule.topology_fingerprint != topology.Fingerprint())
    return InvalidArgument("the schedule was made for another topology (fingerprints differ)");
  if (schedule.units_per_shard < 1 || schedule.num_steps < 0)
    return InvalidArgument(fmt::format("units_per_shard {} and num_steps {} out of range",
                                       schedule.units_per_shard, schedule.num_steps));
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  if (schedule.start_ps.size() != (timed ? schedule.transfers.size() : 0))
    return InvalidArgument(fmt::format("the schedule has {} start times for {} transfers",
                                       schedule.start_ps.size(), schedule.transfers.size()));
  if (schedule.size_bytes < 0)
    return InvalidArgument(fmt::format("size_bytes {} is negative", schedule.size_bytes));
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const bool in_range = 0 <= transfer.shard.value &&
                          transfer.shard.value < schedule.collective.num_shards() &&
                          0 <= transfer.begin && transfer.begin < transfer.end &&
                          transfer.end <= schedule.units_per_shard && 0 <= transfer.link.value &&
                          transfer.link.value < topology.num_links() && 0 <= transfer.step &&
                          (timed ? transfer.step == 0 && schedule.start_ps[i] >= 0
                                 : transfer.step < schedule.num_steps);
    if (!in_range)
      return InvalidArgument(fmt::format("transfer {} has a field out of range (invariant S2)", i));
    const bool ascends = i == 0 || (timed ? schedule.start_ps[i - 1] <= schedule.start_ps[i]
                                          : schedule.transfers[i - 1].step <= transfer.step);
    if (!ascends) return InvalidArgument(fmt::format("transfer {} is out of order", i));
  }
  return {};
}

}  // namespace

Result<Plan> LowerWith(const Topology& topology, const Schedule& schedule, const Choices& choices) {
  const Status sound = CheckStructure(topology, schedule, choices);
  if (!sound) return tl::unexpected(sound.error());
  return Lowering(topology, schedule, choices).Run();
}

}  // namespace tutti::lower

namespace tutti {

Result<Plan> Lower(const Topology& topology, const Schedule& schedule,
                   const LowerOptions& options) {
  lower::Choices choices;
  choices.channels = options.channels;
  return lower::LowerWith(topology, schedule, choices);
}

}  // namespace tutti
