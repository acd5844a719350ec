#include "tutti/lower/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "lower_internal.h"
#include "moves.h"
#include "rank_state.h"
#include "tutti/base/cancel.h"
#include "tutti/base/index.h"
#include "tutti/base/memory.h"
#include "tutti/sched/structure.h"

namespace tutti::lower {
namespace {

// The ends of transfers of each shard: its elementary intervals lie between neighbours.
class Intervals {
 public:
  Intervals(const Schedule& schedule, const Moves& moves)
      : cuts_(Index(schedule.collective.num_shards())) {
    for (const Move& move : moves.all) {
      cuts_[move.shard.index()].push_back(move.begin);
      cuts_[move.shard.index()].push_back(move.end);
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
  int32_t connection = 0;
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
  Lowering(const Schedule& schedule, const Moves& moves, const Choices& choices)
      : schedule_(schedule), moves_(moves), choices_(choices), intervals_(schedule, moves) {
    plan_.collective = schedule.collective;
    plan_.units_per_shard = schedule.units_per_shard;
    plan_.algorithm = schedule.algorithm;
    plan_.ranks.resize(Index(schedule.collective.num_ranks()));
    order_.resize(plan_.ranks.size());
    for (NodeId rank : Ranks()) ranks_.emplace_back(schedule_.collective, rank);
    MakeStreams();
  }

  Result<Plan> Run() {
    if (choices_.copy_own_first) CopyOwn();
    const Status moved = schedule_.kind == ScheduleKind::kStep ? LowerSteps() : LowerTimed();
    if (!moved) return tl::unexpected(moved.error());
    for (NodeId rank : Ranks()) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const Status done = FinishRank(rank);
      if (!done) return tl::unexpected(done.error());
    }
    for (const RankPlan& rank : plan_.ranks)
      for (const Stream& stream : rank.streams)
        plan_.num_channels = std::max(plan_.num_channels, stream.channel + 1);
    return std::move(plan_);
  }

 private:
  IdRange<NodeId> Ranks() const { return {0, schedule_.collective.num_ranks()}; }
  NodeId Sender(const Message& message) const {
    return moves_.connections[Index(message.connection)].first;
  }
  NodeId Receiver(const Message& message) const {
    return moves_.connections[Index(message.connection)].second;
  }

  // Sends by (peer, channel), then receives by (peer, channel), then local copies.
  void MakeStreams() {
    const size_t count = moves_.connections.size();
    std::vector<int32_t> twin(count);  // number among the connections with the same ends
    std::map<std::pair<NodeId, NodeId>, int32_t> seen;
    std::vector<std::vector<int32_t>> out(plan_.ranks.size()), in(plan_.ranks.size());
    for (size_t c = 0; c < count; ++c) {
      const auto& [sender, receiver] = moves_.connections[c];
      twin[c] = seen[{sender, receiver}]++;
      out[sender.index()].push_back(static_cast<int32_t>(c));
      in[receiver.index()].push_back(static_cast<int32_t>(c));
    }
    send_stream_.resize(count);
    recv_stream_.resize(count);
    next_channel_.assign(count, 0);
    for (NodeId rank : Ranks()) {
      AddStreams(rank, true, std::move(out[rank.index()]), twin);
      AddStreams(rank, false, std::move(in[rank.index()]), twin);
      plan_.ranks[rank.index()].streams.emplace_back();
    }
  }

  void AddStreams(NodeId rank, bool sends, std::vector<int32_t> connections,
                  const std::vector<int32_t>& twin) {
    const auto peer = [&](int32_t c) {
      const auto& [sender, receiver] = moves_.connections[Index(c)];
      return sends ? receiver : sender;
    };
    std::sort(connections.begin(), connections.end(), [&](int32_t a, int32_t b) {
      return peer(a) != peer(b) ? peer(a) < peer(b) : twin[Index(a)] < twin[Index(b)];
    });
    std::vector<Stream>& streams = plan_.ranks[rank.index()].streams;
    for (const int32_t c : connections) {
      (sends ? send_stream_ : recv_stream_)[Index(c)] = static_cast<int32_t>(streams.size());
      for (int32_t k = 0; k < choices_.channels; ++k) {
        Stream stream;
        (sends ? stream.send_peer : stream.recv_peer) = peer(c).value;
        stream.channel = twin[Index(c)] * choices_.channels + k;
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
  Status Start(const Move& move, Message& message) {
    const NodeId sender = Sender(message);
    ShardState& state = State(sender, move.shard);
    for (size_t i = intervals_.Find(move.shard, move.begin);
         i < intervals_.Count(move.shard) && intervals_.Begin(move.shard, i) < move.end; ++i) {
      if (state.place[i] == kNowhere)
        return InvalidArgument(fmt::format(
            "step {}: rank {} sends units [{}, {}) of shard {} to rank {} without holding them",
            message.step, sender.value, intervals_.Begin(move.shard, i),
            intervals_.End(move.shard, i), move.shard.value, Receiver(message).value));
      ++state.cell(state.place[i], i).sends_under_way;
      message.atoms.push_back({move.shard, i, move.op, state.place[i]});
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
    const NodeId tail = Sender(message), head = Receiver(message);
    ShardState& state = State(head, atom.shard);
    const Place held = state.place[atom.interval];
    // In a sum, what comes first to a rank that contributes nothing is what it holds.
    const bool is_first = atom.op == TransferOp::kReduce && held == kNowhere &&
                          Reduces(schedule_.collective.kind()) &&
                          !schedule_.collective.contributors(atom.shard).Contains(head);
    const TransferOp op = is_first ? TransferOp::kCopy : atom.op;
    if (op == TransferOp::kReduce && held == kNowhere)
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
    piece.op = op;
    piece.sent = Address(State(tail, atom.shard), atom.from, atom.shard, atom.interval);
    piece.dst = Address(state, to, atom.shard, atom.interval);
    if (op == TransferOp::kReduce) piece.src = Address(state, held, atom.shard, atom.interval);
    piece.count =
        intervals_.End(atom.shard, atom.interval) - intervals_.Begin(atom.shard, atom.interval);
    piece.first = a;
    piece.last = a;
    piece.to.push_back(to);
    return piece;
  }

  void EmitPiece(const Message& message, const Piece& piece) {
    const int32_t channel =
        std::exchange(next_channel_[Index(message.connection)],
                      (next_channel_[Index(message.connection)] + 1) % choices_.channels);
    EmitSend(message, piece, channel);
    EmitReceive(message, piece, channel);
  }

  void EmitSend(const Message& message, const Piece& piece, int32_t channel) {
    const NodeId tail = Sender(message);
    Instruction send;
    send.op = OpCode::kSend;
    send.src = piece.sent;
    send.count = piece.count;
    send.step = message.step;
    for (size_t a = piece.first; a <= piece.last; ++a) {
      const Atom& atom = message.atoms[a];
      AfterWriter(State(tail, atom.shard).cell(atom.from, atom.interval), send.after);
    }
    const Dependency at =
        Emit(tail, send_stream_[Index(message.connection)] + channel, std::move(send));
    for (size_t a = piece.first; a <= piece.last; ++a) {
      const Atom& atom = message.atoms[a];
      Cell& cell = State(tail, atom.shard).cell(atom.from, atom.interval);
      --cell.sends_under_way;
      readers_.Add(cell, at);
    }
  }

  void EmitReceive(const Message& message, const Piece& piece, int32_t channel) {
    const NodeId head = Receiver(message);
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
    const Dependency at =
        Emit(head, recv_stream_[Index(message.connection)] + channel, std::move(recv));
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
  // those that end in it arrive, connection by connection. Only through switches a message ends in
  // a later step.
  Status LowerSteps() {
    std::vector<const Move*> moves;
    moves.reserve(moves_.all.size());
    for (const Move& move : moves_.all) moves.push_back(&move);
    std::stable_sort(moves.begin(), moves.end(), [](const Move* a, const Move* b) {
      return std::tuple(a->start, a->finish, a->connection, a->shard, a->begin) <
             std::tuple(b->start, b->finish, b->connection, b->shard, b->begin);
    });
    std::map<int64_t, std::vector<Message>> under_way;  // by the step in which they arrive
    for (size_t first = 0; first < moves.size() || !under_way.empty();) {
      const int64_t now = std::min(first < moves.size() ? moves[first]->start : INT64_MAX,
                                   under_way.empty() ? INT64_MAX : under_way.begin()->first);
      size_t last = first;
      while (last < moves.size() && moves[last]->start == now) ++last;
      if (const Status started =
              StartStep(std::span(moves).subspan(first, last - first), under_way);
          !started)
        return started;
      first = last;
      if (under_way.empty() || under_way.begin()->first != now) continue;
      for (const Message& message : under_way.begin()->second)
        if (const Status finished = Finish(message); !finished) return finished;
      under_way.erase(under_way.begin());
      if (CancelRequested()) return tl::unexpected(CancelledError());
    }
    return {};
  }

  // `now`: the moves that start in one step, by the step in which they arrive, then connection.
  Status StartStep(std::span<const Move* const> now,
                   std::map<int64_t, std::vector<Message>>& under_way) {
    for (size_t i = 0; i < now.size(); ++i) {
      const Move& move = *now[i];
      const bool same =
          i > 0 && now[i - 1]->connection == move.connection && now[i - 1]->finish == move.finish;
      if (same && now[i - 1]->shard == move.shard && now[i - 1]->end > move.begin) {
        const auto& [sender, receiver] = moves_.connections[Index(move.connection)];
        return InvalidArgument(
            fmt::format("step {}: rank {} sends units [{}, {}) of shard {} twice to rank {}",
                        move.step, sender.value, move.begin, std::min(move.end, now[i - 1]->end),
                        move.shard.value, receiver.value));
      }
      std::vector<Message>& messages = under_way[move.finish];
      if (!same) messages.push_back({move.connection, move.step, {}});
      if (const Status started = Start(move, messages.back()); !started) return started;
    }
    return {};
  }

  // Moves start when they start and count when they have arrived. Instructions are in order of
  // arrival, so that whatever one waits for comes before it.
  Status LowerTimed() {
    const std::vector<Move>& all = moves_.all;
    using Event = std::tuple<int64_t, bool, size_t>;  // time, start (after arrivals), move
    std::vector<Event> events;
    std::vector<Message> messages;
    for (size_t i = 0; i < all.size(); ++i) {
      messages.push_back({all[i].connection, all[i].step, {}});
      events.emplace_back(all[i].start, true, i);
      events.emplace_back(all[i].finish, false, i);
    }
    std::sort(events.begin(), events.end());
    size_t done = 0;
    for (const auto& [time, start, i] : events) {
      const Status lowered = start ? Start(all[i], messages[i]) : Finish(messages[i]);
      if (!lowered) return lowered;
      if (!start) messages[i].atoms = {};
      if (++done % kBetweenCancelChecks == 0 && CancelRequested())
        return tl::unexpected(CancelledError());
    }
    return {};
  }

  // Own contributions that the rank itself has to deliver, at the start.
  void CopyOwn() {
    for (NodeId rank : Ranks())
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
    for (ShardId shard : ranks_[rank.index()].scratch_shards())
      plan.scratch_shards.push_back(shard.value);
    if (!collective.equal_weights()) SetWeights(rank);
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

  static constexpr size_t kBetweenCancelChecks = 4096;

  const Schedule& schedule_;
  const Moves& moves_;
  Choices choices_;
  Intervals intervals_;
  Plan plan_{schedule_.collective, 1, 1, {}, {}};
  std::vector<RankState> ranks_;
  std::vector<std::vector<Dependency>> order_;      // of emission, a rank
  std::vector<int32_t> send_stream_, recv_stream_;  // of each connection's first channel
  std::vector<int32_t> next_channel_;               // of each connection
  ReaderPool readers_;
};

Status CheckInput(const Topology& topology, const Schedule& schedule, const Choices& choices) {
  if (choices.channels < 1 || choices.channels > 1024)
    return InvalidArgument(fmt::format("channels must be in [1, 1024], got {}", choices.channels));
  if (schedule.size_bytes < 0)
    return InvalidArgument(fmt::format("size_bytes {} is negative", schedule.size_bytes));
  return CheckMadeFor(topology, schedule);
}

// Refuses from counts, before anything of the plan is there: what each rank keeps of the intervals
// of its shards, and the instructions.
Status CheckPlanMemory(const Schedule& schedule, const Moves& moves) {
  constexpr int64_t kBytesPerInterval = sizeof(Cell) + sizeof(Place);
  constexpr int64_t kBytesPerMessage = 2 * (sizeof(Instruction) + 4 * sizeof(Dependency));
  constexpr int64_t kBytesPerAtom = sizeof(Atom) + 16;  // and one that has read it
  const Intervals intervals(schedule, moves);
  std::vector<int64_t> moves_of(Index(schedule.collective.num_shards()), 0);
  int64_t atoms = 0, cells = 0;
  for (const Move& move : moves.all) {
    ++moves_of[move.shard.index()];
    atoms += static_cast<int64_t>(intervals.Find(move.shard, move.end) -
                                  intervals.Find(move.shard, move.begin));
  }
  for (const ShardId shard : schedule.collective.Shards())
    cells += static_cast<int64_t>(intervals.Count(shard)) *
             std::min<int64_t>(moves_of[shard.index()] + 1, schedule.collective.num_ranks());
  const auto messages = static_cast<int64_t>(moves.all.size());
  return CheckMemory(
      fmt::format("a plan of {} messages of together {} pieces of {} chunks per shard", messages,
                  atoms, schedule.units_per_shard),
      cells * kBytesPerInterval + messages * kBytesPerMessage + atoms * kBytesPerAtom,
      AvailableMemoryBytes());
}

}  // namespace

Result<Plan> LowerWith(const Topology& topology, const Schedule& schedule, const Choices& choices) {
  const Status sound = CheckInput(topology, schedule, choices);
  if (!sound) return tl::unexpected(sound.error());
  const Result<Moves> moves = MovesOf(topology, schedule);
  if (!moves) return tl::unexpected(moves.error());
  if (const Status fits = CheckPlanMemory(schedule, *moves); !fits)
    return tl::unexpected(fits.error());
  return Lowering(schedule, *moves, choices).Run();
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
