#include "trial_rank.h"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "futex.h"
#include "tutti/base/clock.h"
#include "tutti/base/hash.h"

namespace tutti {
namespace {

constexpr std::byte kGuardByte{0xc5};

Interpreter::Call CallOf(const Session& session) {
  return {.type = session.options().type,
          .op = session.options().op,
          .reduces = session.plan().collective.reduces(),
          .num_ranks = session.num_ranks(),
          .passes_ahead = session.tuning().passes_ahead};
}

// The ends of a rank's connections, in the order of its streams, those to send on first.
std::vector<SharedConnection> MakeEnds(const Session& session, int32_t rank) {
  std::vector<SharedConnection> ends;
  for (const StreamProgram& stream : session.program().ranks[static_cast<size_t>(rank)].streams)
    for (const int32_t connection : {stream.outgoing, stream.incoming})
      if (connection >= 0) ends.emplace_back(session.ChannelOf(connection));
  return ends;
}

std::vector<StreamEnds> EndsOf(const Session& session, int32_t rank,
                               std::vector<SharedConnection>& ends) {
  if (session.transport(rank) != nullptr)
    return PeerEnds(session.program(), rank, *session.transport(rank));
  std::vector<StreamEnds> by_stream;
  auto next = ends.begin();
  for (const StreamProgram& stream : session.program().ranks[static_cast<size_t>(rank)].streams) {
    StreamEnds& of_stream = by_stream.emplace_back();
    if (stream.outgoing >= 0) of_stream.outgoing = &*next++;
    if (stream.incoming >= 0) of_stream.incoming = &*next++;
  }
  return by_stream;
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

TrialRank::TrialRank(const Session& session, int32_t rank, RankLink* link)
    : session_(session),
      rank_(rank),
      state_(session.rank(rank)),
      transport_(session.transport(rank)),
      link_(link),
      ends_(MakeEnds(session, rank)),
      interpreter_(session.program(), rank, session.binding(rank), CallOf(session),
                   EndsOf(session, rank, ends_), &session.executed(rank, 0)) {}

Status TrialRank::Run() {
  const int32_t iterations = session_.num_iterations();
  for (int32_t i = 0; i < iterations; ++i) {
    state_.phase = Phase::kPreparing;
    // The last iteration is the one that is checked: it starts from fresh data.
    if (i == 0 || (i + 1 == iterations && session_.options().check)) Prepare();
    recording_ = session_.options().record_trace && i + 1 == iterations;
    const bool watched = recording_ || session_.death().rank == rank_;
    interpreter_.Watch(watched ? this : nullptr);
    if (Status all_here = Barrier(i - 1); !all_here) return all_here;
    state_.began_ns = released_ns_ = session_.control().released_ns;
    if (Status ran = Iterate(); !ran) return ran;
    state_.ended_ns = NowNs();
    if (Status alive = Beat(); !alive) return alive;
  }
  if (Status all_here = Barrier(iterations - 1); !all_here) return all_here;
  if (session_.options().check) {
    state_.phase = Phase::kChecking;
    state_.wrong = CountWrong();
    if (session_.options().fixed_order) state_.digest = DigestOfResults();
  }
  state_.phase = Phase::kFinished;
  session_.control().finished.fetch_add(1);
  FutexWakeAll(session_.control().finished);
  return {};
}

// --- Data -------------------------------------------------------------------------------------

template <class Visit>
void TrialRank::ForEachBlock(Buffer buffer, int32_t slot, ShardId shard, Visit visit) {
  constexpr int64_t kBlock = 1 << 20;  // elements
  const Layout& layout = session_.layout();
  const int64_t count = layout.SlotElements(rank_, buffer, slot);
  // No shard is larger than M: positions of different shards do not meet.
  const int64_t start =
      shard.value * layout.ElementsOf(session_.plan().collective.weight_of_size());
  std::byte* data = session_.data() + layout.SlotOffset(rank_, buffer, slot);
  for (int64_t done = 0; done < count; done += kBlock) {
    visit(data + done * layout.element_bytes(), start + done, std::min(kBlock, count - done));
    if (!Beat()) return;  // the next barrier says why
  }
}

const std::byte* TrialRank::ExpectedOf(int32_t slot) const {
  const Collective& collective = session_.plan().collective;
  const ShardId shard = OutputShard(collective, NodeId{rank_}, slot);
  if (!collective.destinations(shard).Contains(NodeId{rank_})) return nullptr;
  const Collective::Ranks from = collective.contributors(shard);
  return from.several() ? session_.pattern().Reduction(collective.GroupOf(shard))
                        : session_.pattern().Contribution(from.one.value);
}

void TrialRank::Prepare() {
  const Layout& layout = session_.layout();
  const Pattern& pattern = session_.pattern();
  const Collective& collective = session_.plan().collective;
  // Outputs first, as the opposite of what they have to become; in place, inputs lie over them.
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kOutput); ++slot) {
    const std::byte* expected = ExpectedOf(slot);
    if (expected == nullptr) continue;
    ForEachBlock(Buffer::kOutput, slot, OutputShard(collective, NodeId{rank_}, slot),
                 [&](std::byte* data, int64_t first, int64_t count) {
                   pattern.FillInverted(data, expected, first, count);
                 });
  }
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kInput); ++slot)
    ForEachBlock(Buffer::kInput, slot, InputShard(collective, NodeId{rank_}, slot),
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

int64_t TrialRank::WrongInGuard(int64_t offset) const {
  const std::byte* guard = session_.data() + offset;
  const int64_t bytes = std::count_if(guard, guard + Layout::kGuardBytes,
                                      [](std::byte byte) { return byte != kGuardByte; });
  const int64_t size = session_.layout().element_bytes();
  return (bytes + size - 1) / size;
}

int64_t TrialRank::CountWrong() {
  const Layout& layout = session_.layout();
  const Pattern& pattern = session_.pattern();
  const Collective& collective = session_.plan().collective;
  int64_t wrong = 0;
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kOutput); ++slot) {
    const std::byte* expected = ExpectedOf(slot);
    if (expected == nullptr) continue;
    ForEachBlock(Buffer::kOutput, slot, OutputShard(collective, NodeId{rank_}, slot),
                 [&](const std::byte* data, int64_t first, int64_t count) {
                   wrong += pattern.Differing(data, expected, first, count);
                 });
  }
  if (!layout.in_place()) {
    for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kInput); ++slot)
      ForEachBlock(Buffer::kInput, slot, InputShard(collective, NodeId{rank_}, slot),
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

uint64_t TrialRank::DigestOfResults() {
  const Layout& layout = session_.layout();
  Fnv1a digest;
  digest.AddWord(rank_);
  for (int32_t slot = 0; slot < layout.NumSlots(rank_, Buffer::kOutput); ++slot) {
    if (ExpectedOf(slot) == nullptr) continue;
    ForEachBlock(Buffer::kOutput, slot,
                 OutputShard(session_.plan().collective, NodeId{rank_}, slot),
                 [&](const std::byte* data, int64_t, int64_t count) {
                   digest.AddBytes({reinterpret_cast<const char*>(data),
                                    static_cast<size_t>(count * layout.element_bytes())});
                 });
  }
  return digest.value();
}

// --- Instructions -------------------------------------------------------------------------------

Status TrialRank::Iterate() {
  state_.phase = Phase::kRunning;
  interpreter_.Start();
  bool draining = false;
  const auto try_round = [this, &draining] {
    const Interpreter::Outcome outcome = interpreter_.Poll(kNoBudget);
    if (outcome == Interpreter::Outcome::kMoved)
      state_.beats.fetch_add(1, std::memory_order_relaxed);
    if (!draining && interpreter_.all_executed()) {
      draining = true;
      state_.phase = Phase::kDraining;
    }
    return outcome;
  };
  if (transport_ != nullptr) return WorkOverPeers(try_round);
  Work(try_round);
  return {};
}

// --- Waiting ------------------------------------------------------------------------------------

template <class TryRound>
void TrialRank::Work(TryRound try_round) {
  for (int32_t idle = 0;;) {
    const Interpreter::Outcome outcome = try_round();
    if (outcome == Interpreter::Outcome::kOver) return;
    if (outcome == Interpreter::Outcome::kMoved) {
      idle = 0;
      continue;
    }
    if (++idle < session_.spins()) {
      Pause();
    } else if (idle == session_.spins()) {
      interpreter_.SaveWanted();
    } else {
      // Announce, look once more, sleep: whoever posts or acks after the announcement rings, and
      // the announcement, the look and the post are in one order that all ranks agree on.
      const WaitsFor kind =
          interpreter_.needs_releases() ? WaitsFor::kForAnything : WaitsFor::kForMessages;
      const uint32_t bell = state_.bell.load();
      state_.waiting.store(kind);
      const Interpreter::Outcome last = try_round();
      const bool sleep = last == Interpreter::Outcome::kStuck &&
                         interpreter_.needs_releases() == (kind == WaitsFor::kForAnything);
      if (sleep) FutexWait(state_.bell, bell);
      state_.waiting.store(WaitsFor::kNo);
      if (last == Interpreter::Outcome::kOver) return;
      idle = 0;
    }
  }
}

template <class TryRound>
Status TrialRank::WorkOverPeers(TryRound try_round) {
  constexpr int kWaitMs = 10;
  for (int32_t idle = 0;;) {
    const Interpreter::Outcome outcome = try_round();
    if (outcome == Interpreter::Outcome::kOver) break;
    idle = outcome == Interpreter::Outcome::kMoved ? 0 : idle + 1;
    if (idle > 1) interpreter_.SaveWanted();
    if (transport_->Poll(idle > 2 ? kWaitMs : 0)) idle = 0;
    if (Status health = interpreter_.health(); !health) return health;
    if (Status alive = LookAtOthers(); !alive) return alive;
  }
  // The others must not wait for the last acknowledgements until this rank works again.
  transport_->Poll(0);
  while (!transport_->is_quiet()) {
    transport_->Poll(kWaitMs);
    if (Status alive = LookAtOthers(); !alive) return alive;
  }
  return {};
}

Status TrialRank::Barrier(int32_t ended) {
  state_.phase = Phase::kAtBarrier;
  if (link_ == nullptr) {
    BarrierInMemory(ended);
    return {};
  }
  Status all_here = link_->Barrier(ended < 0 ? -1 : state_.ended_ns.load() - released_ns_);
  session_.control().released_ns = NowNs();
  return all_here;
}

void TrialRank::BarrierInMemory(int32_t ended) {
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

void TrialRank::BeforeInstruction() {
  const Death& death = session_.death();
  if (death.rank == rank_ && executed_ == death.at_instruction) raise(SIGKILL);
  if (recording_) start_ns_ = NowNs();
}

void TrialRank::AfterInstruction(int32_t stream, int32_t step) {
  ++executed_;
  if (!recording_) return;
  const auto seconds = [this](int64_t ns) { return static_cast<double>(ns - released_ns_) * 1e-9; };
  const int64_t at = state_.events.fetch_add(1, std::memory_order_relaxed);
  session_.events(rank_)[at] = {.rank = rank_,
                                .stream = stream,
                                .instruction = step,
                                .start_s = seconds(start_ns_),
                                .end_s = seconds(NowNs())};
}

}  // namespace tutti
