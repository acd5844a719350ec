#include "interpreter.h"

#include <algorithm>
#include <utility>

namespace tutti {

std::vector<StreamEnds> PeerEnds(const Program& program, int32_t rank, PeerTransport& transport) {
  std::vector<StreamEnds> by_stream;
  for (const StreamProgram& stream : program.ranks[static_cast<size_t>(rank)].streams) {
    StreamEnds& of_stream = by_stream.emplace_back();
    if (stream.outgoing >= 0) {
      const ConnectionProgram& to = program.connections[static_cast<size_t>(stream.outgoing)];
      of_stream.outgoing = transport.SendTo(to.receiver, to.channel);
    }
    if (stream.incoming >= 0) {
      const ConnectionProgram& from = program.connections[static_cast<size_t>(stream.incoming)];
      of_stream.incoming = transport.ReceiveFrom(from.sender, from.channel);
    }
  }
  return by_stream;
}

Interpreter::Interpreter(const Program& program, int32_t rank, const Binding& binding,
                         const Call& call, std::vector<StreamEnds> ends,
                         std::atomic<uint64_t>* executed)
    : program_(program),
      rank_(rank),
      binding_(binding),
      mine_(program.ranks[static_cast<size_t>(rank)]),
      reduce_(FindReduceKernel(call.type, call.op)),
      divide_(FindDivideKernel(call.type)),
      call_(call),
      averages_(call.op == ReduceOp::kAvg && call.reduces),
      ends_(std::move(ends)),
      states_(mine_.streams.size()),
      stream_of_(program.connections.size(), -1),
      executed_(executed) {
  for (size_t s = 0; s < mine_.streams.size(); ++s)
    if (mine_.streams[s].outgoing >= 0)
      stream_of_[static_cast<size_t>(mine_.streams[s].outgoing)] = static_cast<int32_t>(s);
}

void Interpreter::Start() {
  end_ += static_cast<uint64_t>(program_.tiles);
  dividing_ = 0;
  divided_ = 0;
}

Interpreter::Outcome Interpreter::Poll(int64_t budget) {
  budget = std::max<int64_t>(budget, program_.element_bytes);
  if (!all_executed()) {
    const Outcome outcome = RunRound(budget);
    if (outcome != Outcome::kOver) return outcome;
  }
  if (!AllSendsReleased()) {
    needs_releases_ = true;
    return Outcome::kStuck;
  }
  return Divide(budget) ? Outcome::kOver : Outcome::kMoved;
}

Interpreter::Outcome Interpreter::RunRound(int64_t& budget) {
  needs_releases_ = false;
  bool moved = false;
  uint64_t lowest = end_;
  for (size_t s = 0; s < states_.size(); ++s) {
    if (TryStep(static_cast<int32_t>(s), budget) != Tried::kNo) moved = true;
    lowest = std::min(lowest, states_[s].pass);
  }
  lowest_pass_ = lowest;
  if (lowest == end_) return Outcome::kOver;
  return moved ? Outcome::kMoved : Outcome::kStuck;
}

Interpreter::Tried Interpreter::TryStep(int32_t stream_index, int64_t& budget) {
  const auto s = static_cast<size_t>(stream_index);
  const StreamProgram& stream = mine_.streams[s];
  StreamState& state = states_[s];
  if (stream.num_steps == 0) state.pass = end_;
  const uint64_t ahead = lowest_pass_ + static_cast<uint64_t>(call_.passes_ahead);
  if (state.pass >= std::min(end_, ahead)) return Tried::kNo;
  const Step& step =
      mine_.steps[static_cast<size_t>(stream.first_step) + static_cast<size_t>(state.step)];
  if (!state.moving && (!DependenciesDone(step, state.pass) || !SourcesFree(step, state.pass)))
    return Tried::kNo;
  if (probe_ != nullptr) probe_->BeforeInstruction();
  const Tried tried = Execute(s, step, budget);
  if (tried == Tried::kPart) state.moving = true;
  if (tried != Tried::kDone) return tried;
  state.moving = false;
  if (probe_ != nullptr) probe_->AfterInstruction(stream_index, state.step);
  executed_[s].fetch_add(1, std::memory_order_relaxed);
  if (++state.step == stream.num_steps) {
    state.step = 0;
    ++state.pass;
    if (++state.tile == program_.tiles) state.tile = 0;
  }
  return tried;
}

Interpreter::Tried Interpreter::Execute(size_t stream, const Step& step, int64_t& budget) {
  if (step.op == OpCode::kSend) return TrySend(stream, step);
  StreamState& state = states_[stream];
  const Target target{PieceOf(program_, rank_, binding_, step, state.tile),
                      step.op == OpCode::kRecvReduce ? reduce_ : nullptr, call_.past_cache};
  if (step.op == OpCode::kCopy) {
    if (!state.moving) state.cursor = {};
    return Move(target.piece, target, state.cursor, budget) ? Tried::kDone : Tried::kPart;
  }
  switch (ends_[stream].incoming->TryTake(target, budget)) {
    case Progress::kNothing:
      return Tried::kNo;
    case Progress::kPart:
      return Tried::kPart;
    case Progress::kDone:
      break;
  }
  return Tried::kDone;
}

Interpreter::Tried Interpreter::TrySend(size_t stream, const Step& step) {
  StreamState& state = states_[stream];
  if (!ends_[stream].outgoing->TryPost(PieceOf(program_, rank_, binding_, step, state.tile))) {
    needs_releases_ = true;
    return Tried::kNo;
  }
  ++state.sent;
  return Tried::kDone;
}

bool Interpreter::DependenciesDone(const Step& step, uint64_t pass) const {
  for (int32_t w = step.first_wait; w < step.last_wait; ++w) {
    const Dependency& wait = mine_.waits[static_cast<size_t>(w)];
    const StreamProgram& other = mine_.streams[static_cast<size_t>(wait.stream)];
    const uint64_t needed =
        pass * static_cast<uint64_t>(other.num_steps) + static_cast<uint64_t>(wait.instruction);
    if (executed_[wait.stream].load(std::memory_order_relaxed) <= needed) return false;
  }
  return true;
}

// Sends that come later are none of this write's business: they read what it writes.
bool Interpreter::SourcesFree(const Step& step, uint64_t pass) {
  bool free = true;
  for (int32_t h = step.first_hazard; h < step.last_hazard; ++h) {
    const Hazard& hazard = mine_.hazards[static_cast<size_t>(h)];
    const auto s = static_cast<size_t>(stream_of_[static_cast<size_t>(hazard.connection)]);
    StreamState& sender = states_[s];
    const uint64_t message = pass * static_cast<uint64_t>(mine_.streams[s].num_sends) +
                             static_cast<uint64_t>(hazard.ordinal);
    if (sender.sent <= message || sender.saved > message) continue;
    if (ends_[s].outgoing->released() > message) continue;
    sender.wanted = std::max(sender.wanted, message + 1);
    free = false;
  }
  if (!free) needs_releases_ = true;
  return free;
}

void Interpreter::SaveWanted() {
  for (size_t s = 0; s < states_.size(); ++s) {
    const StreamProgram& stream = mine_.streams[s];
    StreamState& state = states_[s];
    if (stream.outgoing < 0) continue;
    Connection& connection = *ends_[s].outgoing;
    const uint64_t released = connection.released();
    state.saved = std::max(state.saved, released);
    while (state.saved < std::min(state.wanted, released + kBounces)) {
      const Piece source = SourceOf(program_, rank_, binding_, stream, state.saved);
      if (!connection.Save(state.saved, source)) break;
      ++state.saved;
    }
  }
}

bool Interpreter::AllSendsReleased() {
  for (size_t s = 0; s < states_.size(); ++s)
    if (ends_[s].outgoing != nullptr && ends_[s].outgoing->released() < states_[s].sent)
      return false;
  return true;
}

bool Interpreter::Divide(int64_t& budget) {
  // So much at once that a rank with large results is seen to get on.
  constexpr int64_t kBlock = int64_t{1} << 20;  // elements
  if (!averages_) return true;
  const int64_t size = program_.element_bytes;
  for (; dividing_ < mine_.results.size(); ++dividing_, divided_ = 0) {
    if (budget < size) return false;
    const ResultRange& range = mine_.results[dividing_];
    const int64_t left = range.elements - divided_;
    const int64_t count = std::min({left, kBlock, budget / size});
    std::byte* output = binding_.base[static_cast<size_t>(Buffer::kOutput)];
    divide_(output + range.offset + divided_ * size, count, call_.num_ranks);
    divided_ += count;
    budget -= count * size;
    if (divided_ < range.elements) return false;
  }
  return true;
}

Status Interpreter::health() const {
  for (const StreamEnds& ends : ends_)
    for (const Connection* end : {ends.outgoing, ends.incoming})
      if (end != nullptr)
        if (Status status = end->health(); !status) return status;
  return {};
}

}  // namespace tutti
