#include "operation.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "once_made.h"
#include "slot_map.h"
#include "tutti/base/copy.h"
#include "tutti/base/hash.h"

namespace tutti {
namespace {

constexpr int64_t kPieceBytes = int64_t{256} << 10;  // of a pass, as `tutti run` has it

Load LoadOf(const Program& program, int32_t rank) {
  const auto bytes = [&program](int32_t index) {
    if (index < 0) return int64_t{0};
    const ConnectionProgram& connection = program.connections[static_cast<size_t>(index)];
    return connection.messages * connection.largest_message * program.tiles;
  };
  Load load{.ranks = static_cast<int32_t>(program.ranks.size())};
  for (const StreamProgram& stream : program.ranks[static_cast<size_t>(rank)].streams) {
    const int64_t sent = bytes(stream.outgoing);
    load.sent += sent;
    load.most_to_one = std::max(load.most_to_one, sent);
    load.received += bytes(stream.incoming);
  }
  return load;
}

}  // namespace

bool Forwards(const Program& program, int32_t rank) {
  // Slots by where they begin: two that overlap begin alike.
  std::set<std::pair<Buffer, int64_t>> received;
  const RankProgram& mine = program.ranks[static_cast<size_t>(rank)];
  const auto segments = [&mine](const Step& step) {
    return std::span(mine.segments)
        .subspan(static_cast<size_t>(step.first_segment),
                 static_cast<size_t>(step.last_segment - step.first_segment));
  };
  for (const Step& step : mine.steps)
    if (step.op == OpCode::kRecv)
      for (const Segment& segment : segments(step))
        received.emplace(segment.dst.buffer, segment.dst.offset);
  for (const StreamProgram& stream : mine.streams)
    for (const int32_t step : stream.sends)
      for (const Segment& segment : segments(mine.steps[static_cast<size_t>(step)]))
        if (received.contains({segment.src.buffer, segment.src.offset})) return true;
  return false;
}

bool Load::FansOut() const {
  // Below, what the receivers would pay for each read weighs more.
  constexpr int64_t kWorthIt = int64_t{1} << 20, kMany = 3;
  return most_to_one >= kWorthIt && sent >= kMany * std::max(received, most_to_one);
}

Result<std::shared_ptr<const PlanProgram>> PlanProgram::Make(const Plan& plan,
                                                             const PlanCall& call) {
  const Result<SlotMap> slots =
      SlotMap::ForCount(plan, call.count, SizeOf(call.type), call.in_place);
  if (!slots) return tl::unexpected(slots.error());
  Result<Program> program =
      MakeProgram(plan, *slots, kPieceBytes, call.fixed_order ? TilesOf::kUnits : TilesOf::kSlots);
  if (!program) return tl::unexpected(program.error());
  auto made = std::make_shared<PlanProgram>();
  made->call = call;
  made->program = std::move(*program);
  made->reduces = plan.collective.reduces();
  for (int32_t rank = 0; rank < plan.collective.num_ranks(); ++rank)
    made->scratch_bytes.push_back(slots->BufferElements(rank, Buffer::kScratch) *
                                  slots->element_bytes());
  return made;
}

Result<std::shared_ptr<const PlanProgram>> PlanProgram::MakeOnce(const Plan& plan, uint64_t digest,
                                                                 const PlanCall& call) {
  static OnceMade<std::pair<uint64_t, PlanCall>, const PlanProgram> programs;
  return programs.Get({digest, call}, [&] { return Make(plan, call); });
}

PlanOperation::PlanOperation(std::shared_ptr<const PlanProgram> program, int32_t rank,
                             LaneSource& lanes)
    : program_(std::move(program)), lanes_(lanes), rank_(rank) {
  const Program& made = program_->program;
  const RankProgram& mine = made.ranks[static_cast<size_t>(rank)];
  const auto connection = [&made](int32_t index) -> const ConnectionProgram& {
    return made.connections[static_cast<size_t>(index)];
  };
  const Load load = LoadOf(made, rank);
  fans_out_ = load.FansOut();
  std::vector<StreamEnds> ends;
  for (const StreamProgram& stream : mine.streams) {
    StreamEnds& of_stream = ends.emplace_back();
    if (stream.outgoing >= 0) {
      const ConnectionProgram& out = connection(stream.outgoing);
      of_stream.outgoing = &ends_.emplace_back(lanes.To(out.receiver, out.channel));
    }
    if (stream.incoming >= 0) {
      const ConnectionProgram& in = connection(stream.incoming);
      of_stream.incoming = &ends_.emplace_back(lanes.From(in.sender, in.channel));
    }
  }
  executed_ = std::vector<std::atomic<uint64_t>>(std::max<size_t>(1, ends.size()));
  interpreter_ = std::make_unique<Interpreter>(
      made, rank, binding_,
      Interpreter::Call{.type = program_->call.type,
                        .op = program_->call.op,
                        .reduces = program_->reduces,
                        .num_ranks = static_cast<int32_t>(made.ranks.size()),
                        .past_cache = load.IsMoreThanCached() && !Forwards(made, rank)},
      std::move(ends), executed_.data());
}

void PlanOperation::Begin(const void* input, void* output, std::byte* scratch) {
  // Plans read their input and write no more to it than the call's placement allows.
  binding_.base = {static_cast<std::byte*>(const_cast<void*>(input)),
                   static_cast<std::byte*>(output), scratch};
  for (LaneEnd& end : ends_) end.Resume();
  lanes_.LetReceiversCopy(fans_out_);
  interpreter_->Start();
}

ExchangeOperation::ExchangeOperation(std::span<const Message> messages, uint64_t what, int32_t rank,
                                     LaneSource& lanes)
    : lanes_(lanes) {
  for (const Message& message : messages) {
    if (message.peer == rank) {
      (message.is_send ? own_sends_ : own_receives_).push_back(message);
      continue;
    }
    Fnv1a signature;
    signature.AddWord(static_cast<int64_t>(what));
    signature.AddWord(message.bytes);
    Part& part =
        WayOf(message).parts.emplace_back(Part{.message = message, .signature = signature.value()});
    part.binding.base[static_cast<size_t>(Buffer::kInput)] = static_cast<std::byte*>(message.data);
    part.segment = {.src = {0, Buffer::kInput},
                    .dst = {0, Buffer::kInput},
                    .elements = message.bytes,
                    .first_unit = 0,
                    .last_unit = 1};
  }
}

ExchangeOperation::Way& ExchangeOperation::WayOf(const Message& message) {
  const std::pair key(message.peer, message.is_send);
  const auto found = ways_.find(key);
  if (found != ways_.end()) return found->second;
  Lane& lane = message.is_send ? lanes_.To(message.peer, LaneSource::kDirectChannel)
                               : lanes_.From(message.peer, LaneSource::kDirectChannel);
  Way& way = ways_.try_emplace(key, lane, message.peer).first->second;
  (message.is_send ? posting_ : taking_).push_back(&way);
  return way;
}

void ExchangeOperation::MoveOwn() {
  for (size_t i = 0; i < own_sends_.size(); ++i) {
    const auto bytes = static_cast<size_t>(own_sends_[i].bytes);
    void* to = own_receives_[i].data;
    if (past_cache_ && !Overlap(to, own_sends_[i].data, bytes))
      CopyPastCache(to, own_sends_[i].data, bytes);
    else
      MoveMemory(to, own_sends_[i].data, bytes);
  }
  if (past_cache_) EndCopiesPastCache();
}

bool ExchangeOperation::Post() {
  bool moved = false;
  std::erase_if(posting_, [&](Way* way) {
    for (; !way->is_over(); ++way->next) {
      const Part& part = way->parts[way->next];
      lanes_.SetSignature(part.signature);
      if (!way->end.TryPost({.segments = {&part.segment, 1}, .binding = &part.binding}))
        return false;
      moved = true;
    }
    leaving_.push_back(way);
    return true;
  });
  return moved;
}

bool ExchangeOperation::Take(int64_t& budget) {
  bool moved = false;
  std::erase_if(taking_, [&](Way* way) {
    while (!way->is_over()) {
      const Part& part = way->parts[way->next];
      lanes_.SetSignature(part.signature);
      const Progress progress = way->end.TryTake(
          {{.segments = {&part.segment, 1}, .binding = &part.binding}, nullptr, past_cache_},
          budget);
      if (progress != Progress::kNothing) moved = true;
      if (progress != Progress::kDone) return false;
      ++way->next;
    }
    return true;
  });
  return moved;
}

Load ExchangeOperation::TotalLoad() const {
  Load load;
  for (const auto& [peer, way] : ways_) {
    int64_t bytes = 0;
    for (const Part& part : way.parts) bytes += part.message.bytes;
    const bool is_sent = peer.second;
    (is_sent ? load.sent : load.received) += bytes;
    if (is_sent) load.most_to_one = std::max(load.most_to_one, bytes);
    if (!is_sent || !ways_.contains({peer.first, false})) ++load.ranks;
  }
  return load;
}

Interpreter::Outcome ExchangeOperation::Poll(int64_t budget) {
  if (!std::exchange(began_, true)) {
    const Load load = TotalLoad();
    past_cache_ = load.IsMoreThanCached();
    MoveOwn();
    lanes_.LetReceiversCopy(load.FansOut());
  }
  const bool posted = Post(), took = Take(budget);
  std::erase_if(leaving_, [](Way* way) { return way->end.is_quiet(); });
  if (posting_.empty() && taking_.empty() && leaving_.empty()) return Interpreter::Outcome::kOver;
  return posted || took ? Interpreter::Outcome::kMoved : Interpreter::Outcome::kStuck;
}

std::vector<int32_t> ExchangeOperation::PeersWaitedFor() const {
  std::set<int32_t> peers;
  for (const Ways* ways : {&posting_, &taking_, &leaving_})
    for (const Way* way : *ways) peers.insert(way->peer);
  return {peers.begin(), peers.end()};
}

Status ExchangeOperation::health() const {
  for (const Ways* ways : {&posting_, &taking_, &leaving_})
    for (const Way* way : *ways)
      if (Status health = way->end.health(); !health) return health;
  return {};
}

}  // namespace tutti
