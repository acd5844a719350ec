#include "rank_runner.h"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "futex.h"

namespace tutti {
namespace {

constexpr std::byte kGuardByte{0xc5};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

RankRunner::RankRunner(const Session& session, int32_t rank)
    : session_(session),
      rank_(rank),
      program_(session.program().ranks[static_cast<size_t>(rank)]),
      state_(session.rank(rank)),
      reduce_(FindReduceKernel(session.options().type, session.options().op)),
      divide_(FindDivideKernel(session.options().type)),
      progress_(program_.streams.size()),
      stream_of_(session.program().connections.size(), -1) {
  for (size_t s = 0; s < program_.streams.size(); ++s)
    if (program_.streams[s].outgoing >= 0)
      stream_of_[static_cast<size_t>(program_.streams[s].outgoing)] = static_cast<int32_t>(s);
}

void RankRunner::Run() {
  const int32_t iterations = session_.num_iterations();
  for (int32_t i = 0; i < iterations; ++i) {
    state_.phase = Phase::kPreparing;
    // The last iteration is the one that is checked: it starts from fresh data.
    if (i == 0 || (i + 1 == iterations && session_.options().check)) Prepare();
    recording_ = session_.options().record_trace && i + 1 == iterations;
    Barrier(i - 1);
    released_ns_ = session_.control().released_ns;
    Iterate(i);
    state_.ended_ns = NowNs();
    Beat();
  }
  Barrier(iterations - 1);
  if (session_.options().check) {
    state_.phase = Phase::kChecking;
    state_.wrong = CountWrong();
  }
  state_.phase = Phase::kFinished;
  session_.control().finished.fetch_add(1);
  FutexWakeAll(session_.control().finished);
}

// --- Data -------------------------------------------------------------------------------------

template <class Visit>
void RankRunner::ForEachBlock(Buffer buffer, int32_t slot, ShardId shard, Visit visit) {
  constexpr int64_t kBlock = 1 << 20;  // elements
  const Layout& layout = session_.layout();
  const int64_t count = layout.SlotElements(rank_, buffer, slot);
  // No shard is larger than M: positions of different shards do not meet.
  const int64_t start =
      shard.value * layout.ElementsOf(session_.plan().collective.weight_of_size());
  std::byte* data = session_.data() + layout.SlotOffset(rank_, buffer, slot);
  for (int64_t done = 0; done < count; done += kBlock) {
    visit(data + done * layout.element_bytes(), start + done, std::min(kBlock, count - done));
    Beat();
  }
}

const std::byte* RankRunner::ExpectedOf(int32_t slot) const {
  const Collective& collective = session_.plan().collective;
  const ShardId shard = OutputShard(collective, rank_, slot);
  if (!collective.destinations(shard).Contains(NodeId{rank_})) return nullptr;
  const Collective::Ranks from = collective.contributors(shard);
  return from.all ? session_.pattern().Reduction()
                  : session_.pattern().Contribution(from.one.value);
}

void RankRunner::Prepare() {
  const Layout& layout = session_.layout();
  const Pattern& pattern = session_.pattern();
  const Collective& collective = session_.plan().collective;
  // Outputs first, as the opposite of what they have to become; in place, inputs lie over them.
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kOutput); ++slot) {
    const std::byte* expected = ExpectedOf(slot);
    if (expected == nullptr) continue;
    ForEachBlock(Buffer::kOutput, slot, OutputShard(collective, rank_, slot),
                 [&](std::byte* data, int64_t first, int64_t count) {
                   pattern.FillInverted(data, expected, first, count);
                 });
  }
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kInput); ++slot)
    ForEachBlock(Buffer::kInput, slot, InputShard(collective, rank_, slot),
                 [&](std::byte* data, int64_t first, int64_t count) {
                   pattern.Fill(data, pattern.Contribution(rank_), first, count);
                 });
  for (const Layout::Area& area : layout.AreasOf(rank_)) {
    std::byte* begin = session_.data() + area.offset;
    std::byte* end = begin + area.bytes;
    std::fill(begin - Layout::kGuardBytes, begin, kGuardByte);
    std::fill(end, end + Layout::kGuardBytes, kGuardByte);
  }
}

int64_t RankRunner::WrongInGuard(int64_t offset) const {
  const std::byte* guard = session_.data() + offset;
  const int64_t bytes = std::count_if(guard, guard + Layout::kGuardBytes,
                                      [](std::byte byte) { return byte != kGuardByte; });
  const int64_t size = session_.layout().element_bytes();
  return (bytes + size - 1) / size;
}

int64_t RankRunner::CountWrong() {
  const Layout& layout = session_.layout();
  const Pattern& pattern = session_.pattern();
  const Collective& collective = session_.plan().collective;
  int64_t wrong = 0;
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kOutput); ++slot) {
    const std::byte* expected = ExpectedOf(slot);
    if (expected == nullptr) continue;
    ForEachBlock(Buffer::kOutput, slot, OutputShard(collective, rank_, slot),
                 [&](const std::byte* data, int64_t first, int64_t count) {
                   wrong += pattern.Differing(data, expected, first, count);
                 });
  }
  if (!layout.in_place()) {
    for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kInput); ++slot)
      ForEachBlock(Buffer::kInput, slot, InputShard(collective, rank_, slot),
                   [&](const std::byte* data, int64_t first, int64_t count) {
                     wrong += pattern.Differing(data, pattern.Contribution(rank_), first, count);
                   });
  }
  for (const Layout::Area& area : layout.AreasOf(rank_)) {
    wrong += WrongInGuard(area.offset - Layout::kGuardBytes);
    wrong += WrongInGuard(area.offset + area.bytes);
  }
  return wrong;
}

void RankRunner::DivideResults() {
  const Layout& layout = session_.layout();
  const Collective& collective = session_.plan().collective;
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kOutput); ++slot)
    if (ExpectedOf(slot) != nullptr)
      ForEachBlock(Buffer::kOutput, slot, OutputShard(collective, rank_, slot),
                   [&](std::byte* data, int64_t, int64_t count) {
                     divide_(data, count, session_.num_ranks());
                   });
}

// --- Instructions -------------------------------------------------------------------------------

void RankRunner::Iterate(int32_t iteration) {
  state_.phase = Phase::kRunning;
  const auto tiles = static_cast<uint64_t>(session_.program().tiles);
  lowest_pass_ = static_cast<uint64_t>(iteration) * tiles;
  const uint64_t end = lowest_pass_ + tiles;
  Work([this, end] { return RunRound(end); });
  state_.phase = Phase::kDraining;
  Work([this] {
    needs_acks_ = true;
    return AllSendsOver() ? Outcome::kOver : Outcome::kStuck;
  });
  const bool averages =
      session_.options().op == ReduceOp::kAvg && session_.plan().collective.reduces();
  if (averages) DivideResults();
}

RankRunner::Outcome RankRunner::RunRound(uint64_t end) {
  needs_acks_ = false;
  bool moved = false;
  uint64_t lowest = end;
  for (size_t s = 0; s < progress_.size(); ++s) {
    if (TryStep(static_cast<int32_t>(s), end)) moved = true;
    lowest = std::min(lowest, progress_[s].pass);
  }
  lowest_pass_ = lowest;
  if (lowest == end) return Outcome::kOver;
  return moved ? Outcome::kMoved : Outcome::kStuck;
}

bool RankRunner::TryStep(int32_t stream_index, uint64_t end) {
  const StreamProgram& stream = program_.streams[static_cast<size_t>(stream_index)];
  Progress& progress = progress_[static_cast<size_t>(stream_index)];
  if (stream.num_steps == 0) progress.pass = end;
  const uint64_t ahead = lowest_pass_ + static_cast<uint64_t>(session_.tuning().passes_ahead);
  if (progress.pass >= std::min(end, ahead)) return false;
  const int32_t index = stream.first_step + progress.step;
  const Step& step = program_.steps[static_cast<size_t>(index)];
  if (!DependenciesDone(step, progress.pass) || !SourcesFree(step, progress.pass)) return false;
  DieIfAsked();
  const int64_t start_ns = recording_ ? NowNs() : 0;
  switch (step.op) {
    case OpCode::kSend:
      if (!TrySend(stream, progress)) return false;
      break;
    case OpCode::kRecv:
    case OpCode::kRecvReduce:
      if (!TryReceive(stream, progress, step)) return false;
      break;
    case OpCode::kCopy:
      Move(step, progress.pass, nullptr);
      break;
  }
  if (recording_) Record(stream_index, progress.step, start_ns);
  Beat();
  ++executed_;
  session_.executed(rank_, stream_index).fetch_add(1, std::memory_order_relaxed);
  if (++progress.step == stream.num_steps) {
    progress.step = 0;
    ++progress.pass;
  }
  return true;
}

bool RankRunner::DependenciesDone(const Step& step, uint64_t pass) const {
  for (int32_t w = step.first_wait; w < step.last_wait; ++w) {
    const Dependency& wait = program_.waits[static_cast<size_t>(w)];
    const StreamProgram& other = program_.streams[static_cast<size_t>(wait.stream)];
    const uint64_t needed =
        pass * static_cast<uint64_t>(other.num_steps) + static_cast<uint64_t>(wait.instruction);
    const uint64_t executed = session_.executed(rank_, wait.stream).load(std::memory_order_relaxed);
    if (executed <= needed) return false;
  }
  return true;
}

// Sends that come later are none of this write's business: they read what it writes.
bool RankRunner::SourcesFree(const Step& step, uint64_t pass) {
  bool free = true;
  for (int32_t h = step.first_hazard; h < step.last_hazard; ++h) {
    const Hazard& hazard = program_.hazards[static_cast<size_t>(h)];
    const auto s = static_cast<size_t>(stream_of_[static_cast<size_t>(hazard.connection)]);
    Progress& sender = progress_[s];
    const uint64_t message = pass * static_cast<uint64_t>(program_.streams[s].num_sends) +
                             static_cast<uint64_t>(hazard.ordinal);
    if (sender.sent <= message || sender.saved > message) continue;
    if (session_.connection(hazard.connection).acked.load() > message) continue;
    sender.wanted = std::max(sender.wanted, message + 1);
    free = false;
  }
  if (!free) needs_acks_ = true;
  return free;
}

bool RankRunner::TrySend(const StreamProgram& stream, Progress& progress) {
  ConnectionState& connection = session_.connection(stream.outgoing);
  if (progress.sent - connection.acked.load() >= kWindow) {
    needs_acks_ = true;
    return false;
  }
  connection.claim[progress.sent % kWindow].store(Claim::kOpen, std::memory_order_relaxed);
  connection.posted.store(++progress.sent);
  const auto c = static_cast<size_t>(stream.outgoing);
  Ring(session_.program().connections[c].receiver, WaitsFor::kForMessages);
  return true;
}

bool RankRunner::TryReceive(const StreamProgram& stream, Progress& progress, const Step& step) {
  ConnectionState& connection = session_.connection(stream.incoming);
  if (connection.posted.load() <= progress.received) return false;
  std::atomic<Claim>& claim = connection.claim[progress.received % kWindow];
  Claim found = Claim::kOpen;
  const bool taken = claim.compare_exchange_strong(found, Claim::kTaken);
  if (!taken && found == Claim::kSaving) return false;
  Move(step, progress.pass, taken ? nullptr : session_.bounce(stream.incoming, progress.received));
  connection.acked.store(++progress.received);
  const auto c = static_cast<size_t>(stream.incoming);
  Ring(session_.program().connections[c].sender, WaitsFor::kForAnything);
  return true;
}

void RankRunner::Move(const Step& step, uint64_t pass, const std::byte* packed) {
  const Program& program = session_.program();
  const auto tile = static_cast<int64_t>(pass % static_cast<uint64_t>(program.tiles));
  const int64_t size = session_.layout().element_bytes();
  std::byte* data = session_.data();
  for (int32_t s = step.first_segment; s < step.last_segment; ++s) {
    const Segment& segment = program_.segments[static_cast<size_t>(s)];
    const ElementRange range = RangeInTile(segment, program.units, tile, program.tiles);
    const int64_t count = range.last - range.first;
    const std::byte* from = packed != nullptr ? packed : data + segment.from + range.first * size;
    std::byte* to = data + segment.to + range.first * size;
    if (step.op == OpCode::kRecvReduce)
      reduce_(to, data + segment.combine + range.first * size, from, count);
    else if (to != from)
      std::memcpy(to, from, static_cast<size_t>(count * size));
    if (packed != nullptr) packed += count * size;
  }
}

// --- Saving messages ----------------------------------------------------------------------------

void RankRunner::SaveWanted() {
  for (size_t s = 0; s < progress_.size(); ++s) {
    const StreamProgram& stream = program_.streams[s];
    Progress& progress = progress_[s];
    if (stream.outgoing < 0) continue;
    const uint64_t acked = session_.connection(stream.outgoing).acked.load();
    progress.saved = std::max(progress.saved, acked);
    while (progress.saved < std::min(progress.wanted, acked + kBounces)) {
      std::atomic<Claim>& claim =
          session_.connection(stream.outgoing).claim[progress.saved % kWindow];
      Claim found = Claim::kOpen;
      if (!claim.compare_exchange_strong(found, Claim::kSaving)) break;  // the receiver is at it
      Save(stream, progress.saved);
      claim.store(Claim::kSaved);
      ++progress.saved;
      const auto c = static_cast<size_t>(stream.outgoing);
      Ring(session_.program().connections[c].receiver, WaitsFor::kForMessages);
    }
  }
}

void RankRunner::Save(const StreamProgram& stream, uint64_t message) {
  const auto num_sends = static_cast<uint64_t>(stream.num_sends);
  const Program& program = session_.program();
  const Step& step =
      program_.steps[static_cast<size_t>(stream.sends[static_cast<size_t>(message % num_sends)])];
  const auto tile =
      static_cast<int64_t>(message / num_sends % static_cast<uint64_t>(program.tiles));
  const int64_t size = session_.layout().element_bytes();
  std::byte* to = session_.bounce(stream.outgoing, message);
  for (int32_t s = step.first_segment; s < step.last_segment; ++s) {
    const Segment& segment = program_.segments[static_cast<size_t>(s)];
    const ElementRange range = RangeInTile(segment, program.units, tile, program.tiles);
    const auto bytes = static_cast<size_t>((range.last - range.first) * size);
    std::memcpy(to, session_.data() + segment.from + range.first * size, bytes);
    to += bytes;
  }
}

bool RankRunner::AllSendsOver() {
  for (size_t s = 0; s < progress_.size(); ++s) {
    const int32_t outgoing = program_.streams[s].outgoing;
    if (outgoing >= 0 && session_.connection(outgoing).acked.load() < progress_[s].sent)
      return false;
  }
  return true;
}

// --- WaitsFor
// --------------------------------------------------------------------------------------

template <class TryRound>
void RankRunner::Work(TryRound try_round) {
  for (int32_t idle = 0;;) {
    const Outcome outcome = try_round();
    if (outcome == Outcome::kOver) return;
    if (outcome == Outcome::kMoved) {
      idle = 0;
      continue;
    }
    if (++idle < session_.spins()) {
      Pause();
    } else if (idle == session_.spins()) {
      SaveWanted();
    } else {
      // Announce, look once more, sleep: whoever posts or acks after the announcement rings, and
      // the announcement, the look and the post are in one order that all ranks agree on.
      const WaitsFor kind = needs_acks_ ? WaitsFor::kForAnything : WaitsFor::kForMessages;
      const uint32_t bell = state_.bell.load();
      state_.waiting.store(kind);
      const Outcome last = try_round();
      const bool sleep = last == Outcome::kStuck && needs_acks_ == (kind == WaitsFor::kForAnything);
      if (sleep) FutexWait(state_.bell, bell);
      state_.waiting.store(WaitsFor::kNo);
      if (last == Outcome::kOver) return;
      idle = 0;
    }
  }
}

void RankRunner::Ring(int32_t rank, WaitsFor at_least) {
  RankState& other = session_.rank(rank);
  if (other.waiting.load() < at_least) return;
  if (other.waiting.exchange(WaitsFor::kNo) == WaitsFor::kNo) return;
  other.bell.fetch_add(1);
  FutexWakeAll(other.bell);
}

void RankRunner::Barrier(int32_t ended) {
  state_.phase = Phase::kAtBarrier;
  ControlState& control = session_.control();
  const uint32_t generation = control.generation.load();
  if (control.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(session_.num_ranks())) {
    control.arrived.store(0);
    if (ended >= session_.options().warmup) {
      int64_t last = 0;
      for (int32_t rank = 0; rank < session_.num_ranks(); ++rank)
        last = std::max(last, session_.rank(rank).ended_ns.load());
      control.measured_ns += last - control.released_ns;
    }
    control.released_ns = NowNs();
    control.generation.fetch_add(1);
    FutexWakeAll(control.generation);
    return;
  }
  for (int32_t i = 0; i < session_.spins() && control.generation.load() == generation; ++i) Pause();
  while (control.generation.load() == generation) FutexWait(control.generation, generation);
}

void RankRunner::DieIfAsked() {
  const RunOptions& options = session_.options();
  if (options.die_rank == rank_ && executed_ == options.die_at_instruction) raise(SIGKILL);
}

void RankRunner::Record(int32_t stream, int32_t step, int64_t start_ns) {
  const auto seconds = [this](int64_t ns) { return static_cast<double>(ns - released_ns_) * 1e-9; };
  const int64_t at = state_.events.fetch_add(1, std::memory_order_relaxed);
  session_.events(rank_)[at] = {.rank = rank_,
                                .stream = stream,
                                .instruction = step,
                                .start_s = seconds(start_ns),
                                .end_s = seconds(NowNs())};
}

}  // namespace tutti
