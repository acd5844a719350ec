#include "operation.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "slot_map.h"
#include "tutti/base/hash.h"

namespace tutti {
namespace {

constexpr int64_t kPieceBytes = int64_t{256} << 10;  // of a pass, as `tutti run` has it

}  // namespace

Result<std::shared_ptr<const PlanProgram>> PlanProgram::Make(const Plan& plan,
                                                             const PlanCall& call) {
  const Result<SlotMap> slots =
      SlotMap::ForCount(plan, call.count, SizeOf(call.type), call.in_place);
  if (!slots) return tl::unexpected(slots.error());
  Result<Program> program = MakeProgram(plan, *slots, kPieceBytes);
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

PlanOperation::PlanOperation(std::shared_ptr<const PlanProgram> program, int32_t rank,
                             LaneSource& lanes)
    : program_(std::move(program)), rank_(rank) {
  const Program& made = program_->program;
  const RankProgram& mine = made.ranks[static_cast<size_t>(rank)];
  const auto connection = [&made](int32_t index) -> const ConnectionProgram& {
    return made.connections[static_cast<size_t>(index)];
  };
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
                        .num_ranks = static_cast<int32_t>(made.ranks.size())},
      std::move(ends), executed_.data());
}

void PlanOperation::Begin(const void* input, void* output, std::byte* scratch) {
  // Plans read their input and write no more to it than the call's placement allows.
  binding_.base = {static_cast<std::byte*>(const_cast<void*>(input)),
                   static_cast<std::byte*>(output), scratch};
  for (LaneEnd& end : ends_) end.Resume();
  interpreter_->Start();
}

ExchangeOperation::ExchangeOperation(std::span<const Message> messages, uint64_t what, int32_t rank,
                                     LaneSource& lanes)
    : lanes_(lanes), what_(what) {
  for (const Message& message : messages) {
    if (message.peer == rank) {
      (message.is_send ? own_sends_ : own_receives_).push_back(message);
      continue;
    }
    Lane& lane = message.is_send ? lanes.To(message.peer, LaneSource::kDirectChannel)
                                 : lanes.From(message.peer, LaneSource::kDirectChannel);
    Part& part = (message.is_send ? sends_ : receives_)
                     .emplace_back(Part{.message = message, .end = LaneEnd(lane)});
    part.binding.base[static_cast<size_t>(Buffer::kInput)] = static_cast<std::byte*>(message.data);
    part.segment = {.src = {0, Buffer::kInput},
                    .dst = {0, Buffer::kInput},
                    .elements = message.bytes,
                    .first_unit = 0,
                    .last_unit = 1};
  }
  received_.resize(receives_.size());
}

Piece ExchangeOperation::PieceOf(const Part& part) const {
  return {.segments = {&part.segment, 1}, .binding = &part.binding};
}

uint64_t ExchangeOperation::SignatureOf(const Part& part) const {
  Fnv1a signature;
  signature.AddWord(static_cast<int64_t>(what_));
  signature.AddWord(part.message.bytes);
  return signature.value();
}

Interpreter::Outcome ExchangeOperation::Poll(int64_t budget) {
  bool moved = false, over = true;
  if (!began_) {
    for (size_t i = 0; i < own_sends_.size(); ++i)
      if (own_sends_[i].bytes > 0)  // else both may be null
        std::memmove(own_receives_[i].data, own_sends_[i].data,
                     static_cast<size_t>(own_sends_[i].bytes));
    began_ = true;
  }
  std::set<int32_t> blocked;  // peers whose earlier message is not posted, or not taken, yet
  for (Part& part : sends_) {
    if (part.posted) continue;
    over = false;
    if (blocked.count(part.message.peer) > 0) continue;
    lanes_.SetSignature(SignatureOf(part));
    part.posted = part.end.TryPost(PieceOf(part));
    if (part.posted)
      moved = true;
    else
      blocked.insert(part.message.peer);
  }
  blocked.clear();
  for (size_t i = 0; i < receives_.size(); ++i) {
    Part& part = receives_[i];
    if (received_[i] || !blocked.insert(part.message.peer).second) continue;
    over = false;
    lanes_.SetSignature(SignatureOf(part));
    const Progress progress = part.end.TryTake({PieceOf(part), nullptr}, budget);
    received_[i] = progress == Progress::kDone;
    if (progress != Progress::kNothing) moved = true;
  }
  for (const Part& part : sends_)
    if (!part.end.is_quiet()) over = false;
  if (over) return Interpreter::Outcome::kOver;
  return moved ? Interpreter::Outcome::kMoved : Interpreter::Outcome::kStuck;
}

Status ExchangeOperation::health() const {
  for (const auto* parts : {&sends_, &receives_})
    for (const Part& part : *parts)
      if (Status health = part.end.health(); !health) return health;
  return {};
}

}  // namespace tutti
