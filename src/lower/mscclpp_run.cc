// A symbolic run of an MSCCL++ plan. What is signalled, waited for and touched in which order
// follows the runtime: threads of a block are in order behind `nop` and barriers only, port
// channels move data by themselves, and a wait knows of one signal more.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "machine.h"
#include "mscclpp_agents.h"
#include "mscclpp_memory.h"
#include "tutti/base/cancel.h"
#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

// For each agent of a component the last phase that is over, as known here.
using Clock = std::vector<int32_t>;

// Of all agents, and on their way from one to another: 4 bytes each.
constexpr int64_t kMaxClockEntries = int64_t{1} << 25, kMaxKept = int64_t{1} << 26;

void Join(Clock& to, const Clock& from) {
  for (size_t a = 0; a < to.size(); ++a) to[a] = std::max(to[a], from[a]);
}

// An operation as run: of a pipeline one piece.
struct Step {
  const PpOperation* operation = nullptr;
  int32_t outer = 0, inner = -1;
  int64_t piece = -1;
};

struct RunBlock {
  int32_t rank = 0, number = 0, agent = 0;
  std::vector<Step> steps;
  size_t next = 0;
  int32_t phase = 1;
  Clock clock, pending;
  bool arrived = false;  // at the barrier it waits for
};

// Signals on their way to one end of a channel.
struct Inbox {
  std::deque<Clock> clocks;  // empty ones are relaxed
  PpStamp last_signal, last_wait;
};

struct Semaphore {
  int64_t value = 0, initial = 0, acquired = 0, releases_in_all = 0;
  std::vector<Clock> clocks;  // of releases
  std::set<int32_t> releasers;
};

class MscclppRun {
 public:
  MscclppRun(const PpFile& file, const PpLayout& layout, const PpChannels& channels,
             const PpAgents& agents, int64_t cells, std::vector<PlanFault>& faults)
      : file_(file),
        faults_(faults),
        per_chunk_(cells),
        memory_(file, layout, cells),
        channels_(channels),
        agents_(agents),
        inboxes_(channels.count()) {
    MakeBlocks();
    MakeClocks();
  }

  void Execute() {
    bool moved = true;
    while (moved && MayGoOn()) {
      moved = false;
      for (RunBlock& block : blocks_) {
        if (CancelRequested()) return faults_.push_back({"interrupted"});
        while (MayGoOn() && Advance(block)) moved = true;
      }
    }
    if (!MayGoOn()) return;
    if (ReportDeadlock()) return;
    CheckBalance();
    memory_.CheckResults(
        [this](size_t rank, const PpStamp& writer) { return Arrived(rank, writer); }, faults_);
  }

  // After a run without faults; 0 where the collective has none.
  int32_t root() const { return static_cast<int32_t>(std::max<int64_t>(memory_.root(), 0)); }
  bool too_large() const { return too_large_; }

 private:
  bool MayGoOn() const { return faults_.size() < kMaxFaults && !too_large_; }

  // --- Set-up

  void MakeBlocks() {
    for (size_t r = 0; r < file_.ranks.size(); ++r) {
      first_block_.push_back(blocks_.size());
      for (size_t t = 0; t < file_.ranks[r].blocks.size(); ++t) {
        RunBlock& block = blocks_.emplace_back();
        block.rank = static_cast<int32_t>(r);
        block.number = static_cast<int32_t>(t);
        block.agent = static_cast<int32_t>(blocks_.size()) - 1;
        AddSteps(file_.ranks[r].blocks[t], block);
      }
      semaphores_.emplace_back();
      for (const int64_t value : file_.ranks[r].semaphores)
        semaphores_.back().push_back({value, value, 0, 0, {}, {}});
    }
    for (const RunBlock& block : blocks_)
      for (const Step& step : block.steps)
        if (step.operation->name->kind == PpKind::kRelease)
          for (const int32_t id : step.operation->semaphores)
            ++semaphores_[Index(block.rank)][Index(id)].releases_in_all;
  }

  static void AddSteps(const PpBlock& from, RunBlock& block) {
    for (size_t i = 0; i < from.operations.size(); ++i) {
      const PpOperation& operation = from.operations[i];
      const auto number = static_cast<int32_t>(i);
      if (operation.name->kind != PpKind::kPipeline) {
        block.steps.push_back({&operation, number, -1, -1});
        continue;
      }
      for (int64_t piece = 0; piece < operation.pipeline_chunks * kPpPiecesOfChunk; ++piece)
        for (size_t inner = 0; inner < operation.inner.size(); ++inner)
          block.steps.push_back(
              {&operation.inner[inner], number, static_cast<int32_t>(inner), piece});
    }
  }

  Clock Unknowing(int32_t agent) const { return Clock(agents_.ComponentSize(agent), 0); }

  void MakeClocks() {
    for (RunBlock& block : blocks_) block.clock = block.pending = Unknowing(block.agent);
    for (const auto& [end, agent] : agents_.ports()) {
      port_clock_[end] = Unknowing(agent);
      port_phase_[end] = 0;
    }
  }

  // --- Names and faults

  std::string NameOf(const RunBlock& block, const Step& step) const {
    std::string text = PpWhere(Index(block.rank), Index(block.number), Index(step.outer));
    if (step.inner >= 0) text += fmt::format(" inner op {} piece {}", step.inner, step.piece);
    return fmt::format("{} ({})", text, step.operation->name->name);
  }
  int32_t Number(const RunBlock& block) {
    // Steps are named when they fault: kept by thread block and place.
    named_.push_back({block.agent, block.next});
    return static_cast<int32_t>(named_.size()) - 1;
  }
  std::string NameOf(int32_t operation) const {
    const auto& [block, step] = named_[Index(operation)];
    return NameOf(blocks_[Index(block)], blocks_[Index(block)].steps[step]);
  }
  void Fault(const RunBlock& block, const std::string& what) {
    if (faults_.size() < kMaxFaults)
      faults_.push_back({fmt::format("{}: {}", NameOf(block, block.steps[block.next]), what)});
  }

  // --- What is known of others

  int32_t& EntryOf(Clock& clock, int32_t agent) const {  // of the same component
    return clock[Index(agents_.place(agent))];
  }
  void Settle(RunBlock& block) {  // nop
    Join(block.clock, block.pending);
    EntryOf(block.clock, block.agent) = block.phase++;
  }
  // The last phase of `other` that is over as the clock of `agent` has it.
  int32_t Known(const Clock& clock, int32_t agent, int32_t other) const {
    if (agents_.component(agent) != agents_.component(other)) return 0;
    return clock[Index(agents_.place(other))];
  }
  bool Saw(const Clock& clock, int32_t agent, int32_t phase, const PpStamp& other) const {
    if (other.agent < 0) return true;
    if (other.agent == agent) return other.phase < phase;
    return Known(clock, agent, other.agent) >= other.phase;
  }

  // --- One step

  bool Advance(RunBlock& block) {
    if (block.next >= block.steps.size()) return false;
    const Step& step = block.steps[block.next];
    if (!CanRun(block, step)) return false;
    switch (step.operation->name->kind) {
      case PpKind::kNop:
        Settle(block);
        break;
      case PpKind::kBarrier:
        return Arrive(block, step);
      case PpKind::kSignal:
        for (const int32_t channel : step.operation->channels)
          Signal(block, *step.operation, channel, step.operation->name->relaxed);
        break;
      case PpKind::kWait:
        for (const int32_t channel : step.operation->channels)
          Wait(block, *step.operation, channel);
        break;
      case PpKind::kFlush:
        for (const int32_t channel : step.operation->channels) Flush(block, channel);
        break;
      case PpKind::kAcquire:
        for (const int32_t id : step.operation->semaphores) Acquire(block, id);
        break;
      case PpKind::kRelease:
        for (const int32_t id : step.operation->semaphores) Release(block, id);
        break;
      case PpKind::kMove:
      case PpKind::kReduce:
        Touch(block, step);
        break;
      case PpKind::kPipeline:
        break;
    }
    ++block.next;
    return true;
  }

  Inbox& InboxOf(const RunBlock& block, const PpOperation& operation, int32_t channel) {
    return inboxes_[Index(
        channels_.End(Index(block.rank), static_cast<size_t>(operation.type), channel))];
  }

  bool CanRun(RunBlock& block, const Step& step) {
    const PpOperation& operation = *step.operation;
    if (operation.name->kind == PpKind::kWait) {
      std::map<int32_t, size_t> wanted;
      for (const int32_t channel : operation.channels) ++wanted[channel];
      return std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
        return InboxOf(block, operation, one.first).clocks.size() >= one.second;
      });
    }
    if (operation.name->kind == PpKind::kAcquire)
      return std::all_of(operation.semaphores.begin(), operation.semaphores.end(), [&](int32_t id) {
        return semaphores_[Index(block.rank)][Index(id)].value > 0;
      });
    for (const PpReference& source : operation.src)
      if (source.role == 'p' && !PacketsAreThere(source, operation, step)) return false;
    return true;
  }

  bool PacketsAreThere(const PpReference& source, const PpOperation& operation, const Step& step) {
    const auto [first, last] = CellsOf(source, operation, step);
    for (int64_t cell = first; cell < last; ++cell) {
      const PpValue& value = memory_.At(source.ranks.front(), source.buffer, cell).value;
      if (!value.packet && !value.spoilt) return false;
    }
    return true;
  }

  void Signal(RunBlock& block, const PpOperation& operation, int32_t channel, bool relaxed) {
    const auto type = static_cast<size_t>(operation.type);
    const int32_t other = channels_.Other(Index(block.rank), type, channel);
    if (other < 0)
      return Fault(block, fmt::format("gpu {} has no such channel back, so nobody "
                                      "waits for the signal",
                                      PeerOf(block, operation, channel)));
    Inbox& inbox = inboxes_[Index(other)];
    if (!Saw(block.clock, block.agent, block.phase + 1, inbox.last_signal))
      Fault(block, fmt::format("signals in no certain order with {}",
                               NameOf(inbox.last_signal.operation)));
    inbox.last_signal = {block.agent, block.phase, Number(block)};
    if (relaxed) return inbox.clocks.emplace_back(), void();
    Clock clock = block.clock;
    if (operation.type == PpChannelType::kPort) {
      const int32_t end = channels_.End(Index(block.rank), 1, channel);
      Join(clock, port_clock_[end]);
      EntryOf(clock, agents_.OfPort(end)) = port_phase_[end];
    }
    Keep(clock);
    inbox.clocks.push_back(std::move(clock));
  }

  void Wait(RunBlock& block, const PpOperation& operation, int32_t channel) {
    Inbox& inbox = InboxOf(block, operation, channel);
    if (!Saw(block.clock, block.agent, block.phase + 1, inbox.last_wait))
      Fault(block,
            fmt::format("waits in no certain order with {}", NameOf(inbox.last_wait.operation)));
    inbox.last_wait = {block.agent, block.phase, Number(block)};
    if (!operation.name->relaxed && !inbox.clocks.front().empty())
      Join(block.pending, inbox.clocks.front());
    kept_ -= static_cast<int64_t>(inbox.clocks.front().size());
    inbox.clocks.pop_front();
  }

  // Clocks on their way take memory that only a run can tell.
  void Keep(const Clock& clock) {
    kept_ += static_cast<int64_t>(clock.size());
    if (kept_ <= kMaxKept || too_large_) return;
    too_large_ = true;
    faults_.push_back(
        {fmt::format("plan: too large to judge: signals on their way know of more "
                     "than {} phases of thread blocks",
                     kMaxKept)});
  }

  void Flush(RunBlock& block, int32_t channel) {
    const int32_t end = channels_.End(Index(block.rank), 1, channel);
    Join(block.pending, port_clock_[end]);
    EntryOf(block.pending, agents_.OfPort(end)) = port_phase_[end];
  }

  void Release(RunBlock& block, int32_t id) {
    Semaphore& semaphore = semaphores_[Index(block.rank)][Index(id)];
    ++semaphore.value;
    semaphore.releasers.insert(block.agent);
    Keep(block.clock);
    semaphore.clocks.push_back(block.clock);
  }

  // Which release an acquire has seen is certain where one thread block releases, or where it takes
  // the last one.
  void Acquire(RunBlock& block, int32_t id) {
    Semaphore& semaphore = semaphores_[Index(block.rank)][Index(id)];
    --semaphore.value;
    const int64_t needed = ++semaphore.acquired - semaphore.initial;
    if (needed < 1) return;
    if (needed == semaphore.releases_in_all)
      for (const Clock& clock : semaphore.clocks) Join(block.pending, clock);
    else if (semaphore.releasers.size() == 1)
      Join(block.pending, semaphore.clocks[Index(needed - 1)]);
  }

  bool Arrive(RunBlock& block, const Step& step) {
    if (block.arrived) return false;
    block.arrived = true;
    std::vector<RunBlock*> there;
    const size_t first = first_block_[Index(block.rank)];
    for (size_t b = first; b < blocks_.size() && blocks_[b].rank == block.rank; ++b) {
      RunBlock& other = blocks_[b];
      if (!other.arrived) continue;
      const PpOperation& theirs = *other.steps[other.next].operation;
      if (theirs.barrier != step.operation->barrier) continue;
      if (theirs.barrier_blocks != step.operation->barrier_blocks)
        Fault(block, fmt::format("barrier {} is of {} thread blocks here and of {} in tb {}",
                                 theirs.barrier, step.operation->barrier_blocks,
                                 theirs.barrier_blocks, other.number));
      there.push_back(&other);
    }
    if (static_cast<int64_t>(there.size()) < step.operation->barrier_blocks) return false;
    Clock all = block.clock;
    for (RunBlock* other : there) {
      Settle(*other);
      Join(all, other->clock);
    }
    for (RunBlock* other : there) {
      other->clock = all;
      other->arrived = false;
      ++other->next;
    }
    return true;
  }

  // --- Data

  std::pair<int64_t, int64_t> CellsOf(const PpReference& reference, const PpOperation& operation,
                                      const Step& step) const {
    const int64_t total = reference.size * per_chunk_;
    int64_t first = total * operation.slice / operation.slices;
    int64_t last = total * (operation.slice + 1) / operation.slices;
    if (step.piece >= 0) {
      const int64_t piece = per_chunk_ / kPpPiecesOfChunk;
      const int64_t begin = first + step.piece * piece;
      last = std::min(last, begin + piece);
      first = std::min(begin, last);
    }
    return {reference.index * per_chunk_ + first, reference.index * per_chunk_ + last};
  }

  // Who touches cells, and what it has seen.
  struct Actor {
    const Clock* clock;
    int32_t agent, phase;
  };

  void Touch(RunBlock& block, const Step& step) {
    const PpOperation& operation = *step.operation;
    const int32_t number = Number(block);
    const bool by_port = operation.type == PpChannelType::kPort &&
                         operation.name->kind == PpKind::kMove && operation.name->dst != "l";
    if (operation.name->kind == PpKind::kReduce) {
      ReduceAll(block, step, number);
    } else {
      for (size_t i = 0; i < operation.src.size(); ++i) {
        const Actor actor = by_port ? PortActor(block, operation.channels[i])
                                    : Actor{&block.clock, block.agent, block.phase};
        Move(block, step, i, actor, number);
      }
    }
    if (operation.name->signals)
      for (const int32_t channel : operation.channels) Signal(block, operation, channel, false);
    if (operation.name->flushes)
      for (const int32_t channel : operation.channels) Flush(block, channel);
  }

  // A port channel starts with what its thread block has seen, and goes on by itself.
  Actor PortActor(const RunBlock& block, int32_t channel) {
    const int32_t end = channels_.End(Index(block.rank), 1, channel);
    Clock& clock = port_clock_[end];
    Join(clock, block.clock);
    return {&clock, agents_.OfPort(end), ++port_phase_[end]};
  }

  void Move(RunBlock& block, const Step& step, size_t i, const Actor& actor, int32_t number) {
    const PpReference& source = step.operation->src[i];
    const PpReference& target = step.operation->dst[i];
    const auto [from, end] = CellsOf(source, *step.operation, step);
    const auto [to, unused] = CellsOf(target, *step.operation, step);
    std::vector<PpValue> values;
    for (int64_t cell = from; cell < end; ++cell)
      values.push_back(
          Read(block, source, source.ranks.front(), cell, actor, number,
               step.operation->name->dst == "P" && step.operation->type == PpChannelType::kPort));
    for (const int32_t rank : target.ranks)
      for (size_t c = 0; c < values.size(); ++c)
        Write(block, target, rank, to + static_cast<int64_t>(c), actor, number, values[c]);
  }

  void ReduceAll(RunBlock& block, const Step& step, int32_t number) {
    const PpOperation& operation = *step.operation;
    const Actor actor{&block.clock, block.agent, block.phase};
    const auto [first, last] = CellsOf(operation.src.front(), operation, step);
    for (int64_t at = 0; at < last - first; ++at) {
      std::optional<PpValue> value;
      for (const PpReference& source : operation.src) {
        const int64_t cell = CellsOf(source, operation, step).first + at;
        for (const int32_t rank : source.ranks) {
          const PpValue read = Read(block, source, rank, cell, actor, number, false);
          value = value ? Combined(block, *value, read) : read;
        }
      }
      for (const PpReference& target : operation.dst) {
        const int64_t cell = CellsOf(target, operation, step).first + at;
        for (const int32_t rank : target.ranks)
          Write(block, target, rank, cell, actor, number, *value);
      }
    }
  }

  PpValue Combined(const RunBlock& block, const PpValue& a, const PpValue& b) {
    std::string fault;
    const std::optional<PpValue> reduced = memory_.Reduce(a, b, fault);
    if (reduced) return *reduced;
    Fault(block, fault);
    return {-1, -1, false, true};
  }

  void Race(const PpStamp& one, int32_t other, int32_t rank, Buffer buffer, int64_t cell) {
    const auto& a = named_[Index(one.operation)];
    const auto& b = named_[Index(other)];
    if (!races_.insert({std::min(a, b), std::max(a, b)}).second || faults_.size() >= kMaxFaults)
      return;
    faults_.push_back(
        {fmt::format("{} and {} touch {}[{}] of gpu {} in no certain order", NameOf(one.operation),
                     NameOf(other), "ios"[static_cast<size_t>(buffer)], cell / per_chunk_, rank)});
  }

  PpValue Read(const RunBlock& block, const PpReference& reference, int32_t rank, int64_t cell,
               const Actor& actor, int32_t number, bool packet_as_is) {
    PpMemory::Cell& at = memory_.At(rank, reference.buffer, cell);
    // A packet is read with its flag: whoever finds it has the data.
    const bool flagged = reference.role == 'p';
    if (!flagged && !Same(at.writer, number) &&
        !Saw(*actor.clock, actor.agent, actor.phase, at.writer))
      Race(at.writer, number, rank, reference.buffer, cell);
    at.readers.push_back({actor.agent, actor.phase, number});
    if (at.value.position < 0 && !at.value.spoilt) {
      Fault(block,
            fmt::format("reads {}[{}] of gpu {}, which nothing has written",
                        "ios"[static_cast<size_t>(reference.buffer)], cell / per_chunk_, rank));
      return {-1, -1, false, true};
    }
    if (at.value.packet != (flagged || packet_as_is) && !at.value.spoilt) {
      Fault(block, fmt::format("reads {}[{}] of gpu {}, which holds {}",
                               "ios"[static_cast<size_t>(reference.buffer)], cell / per_chunk_,
                               rank, at.value.packet ? "packets" : "no packets"));
      return {-1, -1, false, true};
    }
    PpValue value = at.value;
    value.packet = false;
    return value;
  }
  bool Same(const PpStamp& stamp, int32_t operation) const { return stamp.operation == operation; }

  void Write(const RunBlock& block, const PpReference& reference, int32_t rank, int64_t cell,
             const Actor& actor, int32_t number, PpValue value) {
    PpMemory::Cell& at = memory_.At(rank, reference.buffer, cell);
    if (!Same(at.writer, number) && !Saw(*actor.clock, actor.agent, actor.phase, at.writer))
      Race(at.writer, number, rank, reference.buffer, cell);
    for (const PpStamp& reader : at.readers)
      if (!Same(reader, number) && !Saw(*actor.clock, actor.agent, actor.phase, reader))
        Race(reader, number, rank, reference.buffer, cell);
    value.packet = reference.role == 'p' || reference.role == 'P';
    if (value.packet && at.value.packet)
      Fault(block, fmt::format("writes packets to s[{}] of gpu {} again; their flag is the same",
                               cell / per_chunk_, rank));
    at.value = value;
    at.writer = {actor.agent, actor.phase, number};
    at.readers.clear();
  }

  // --- The end

  int32_t PeerOf(const RunBlock& block, const PpOperation& operation, int32_t channel) const {
    return file_.ranks[Index(block.rank)]
        .peers[static_cast<size_t>(operation.type)][Index(channel)];
  }

  std::string Explain(const RunBlock& block) {
    const Step& step = block.steps[block.next];
    const PpOperation& operation = *step.operation;
    std::string text = NameOf(block, step) + " waits for ";
    if (operation.name->kind == PpKind::kBarrier)
      return text + fmt::format("others at barrier {}", operation.barrier);
    if (operation.name->kind == PpKind::kAcquire) return text + "a release";
    if (operation.name->kind != PpKind::kWait) return text + "packets";
    for (const int32_t channel : operation.channels)
      if (InboxOf(block, operation, channel).clocks.empty())
        return text + fmt::format("a signal of gpu {}", PeerOf(block, operation, channel));
    return text + "a second signal";
  }

  bool ReportDeadlock() {
    std::string text;
    int64_t stuck = 0;
    constexpr int64_t kMaxShown = 4;
    for (const RunBlock& block : blocks_) {
      if (block.next >= block.steps.size()) continue;
      if (stuck++ < kMaxShown) text += (text.empty() ? "deadlock: " : "; ") + Explain(block);
    }
    if (stuck > kMaxShown) text += fmt::format("; and {} more", stuck - kMaxShown);
    if (stuck > 0) faults_.push_back({std::move(text)});
    return stuck > 0;
  }

  // A rank is done when all its thread blocks are; what they wrote and waited for is there.
  bool Arrived(size_t rank, const PpStamp& writer) const {
    if (writer.agent < 0) return true;
    for (size_t b = first_block_[rank]; b < blocks_.size() && Index(blocks_[b].rank) == rank; ++b)
      if (blocks_[b].agent == writer.agent ||
          std::max(Known(blocks_[b].clock, blocks_[b].agent, writer.agent),
                   Known(blocks_[b].pending, blocks_[b].agent, writer.agent)) >= writer.phase)
        return true;
    return false;
  }

  // What is left over would be taken for the next run's.
  void CheckBalance() {
    for (size_t i = 0; i < inboxes_.size() && faults_.size() < kMaxFaults; ++i)
      if (!inboxes_[i].clocks.empty())
        faults_.push_back(
            {fmt::format("{}: {} of the signals on its channel are never waited for",
                         NameOf(inboxes_[i].last_signal.operation), inboxes_[i].clocks.size())});
    for (size_t r = 0; r < semaphores_.size(); ++r)
      for (size_t s = 0; s < semaphores_[r].size() && faults_.size() < kMaxFaults; ++s)
        if (semaphores_[r][s].value != semaphores_[r][s].initial)
          faults_.push_back({fmt::format("gpu {}: semaphore {} starts at {} and ends at {}", r, s,
                                         semaphores_[r][s].initial, semaphores_[r][s].value)});
  }

  const PpFile& file_;
  std::vector<PlanFault>& faults_;
  int64_t per_chunk_;
  PpMemory memory_;
  const PpChannels& channels_;
  const PpAgents& agents_;
  std::vector<Inbox> inboxes_;
  std::vector<RunBlock> blocks_;
  std::vector<size_t> first_block_;
  std::vector<std::vector<Semaphore>> semaphores_;
  std::map<int32_t, int32_t> port_phase_;
  std::map<int32_t, Clock> port_clock_;
  std::vector<std::pair<int32_t, size_t>> named_;
  std::set<std::pair<std::pair<int32_t, size_t>, std::pair<int32_t, size_t>>> races_;
  int64_t kept_ = 0;  // entries of clocks in inboxes and semaphores
  bool too_large_ = false;
};

// So fine that every slice of a thread block and every piece of a pipeline is whole cells.
int64_t CellsPerChunk(const PpFile& file) {
  int64_t cells = 1;
  const auto refine = [&](const PpOperation& operation) {
    for (const std::vector<PpReference>* list : {&operation.src, &operation.dst})
      for (const PpReference& reference : *list)
        if (cells < (1 << 20))
          cells = std::lcm(cells, operation.slices / std::gcd(reference.size, operation.slices));
  };
  bool pipelines = false;
  for (const PpRank& rank : file.ranks)
    for (const PpBlock& block : rank.blocks)
      for (const PpOperation& operation : block.operations) {
        refine(operation);
        for (const PpOperation& inner : operation.inner) refine(inner);
        pipelines = pipelines || !operation.inner.empty();
      }
  return pipelines ? std::lcm(cells, kPpPiecesOfChunk) : cells;
}

// Nothing where it can be judged.
std::string TooLarge(const PpFile& file, const PpLayout& layout, const PpAgents& agents,
                     int64_t cells) {
  constexpr int64_t kMaxCells = int64_t{1} << 22, kMaxSteps = 1 << 20;
  int64_t total = 0, steps = 0;
  std::string beyond;  // the operation up to which there are too many
  for (size_t r = 0; r < file.ranks.size(); ++r) {
    for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput, Buffer::kScratch})
      total += std::min(layout.Chunks(r, buffer), kMaxCells + 1);
    for (size_t t = 0; t < file.ranks[r].blocks.size(); ++t) {
      const std::vector<PpOperation>& operations = file.ranks[r].blocks[t].operations;
      for (size_t i = 0; i < operations.size(); ++i) {
        steps += 1 + operations[i].pipeline_chunks * kPpPiecesOfChunk *
                         static_cast<int64_t>(operations[i].inner.size());
        if (steps > kMaxSteps && beyond.empty()) beyond = PpWhere(r, t, i);
      }
    }
  }
  if (total > kMaxCells / cells)
    return fmt::format("{} chunks in {} parts each, at most {} in all", total, cells, kMaxCells);
  if (steps > kMaxSteps)
    return fmt::format("{} operations to run, at most {}, which {} exceeds", steps, kMaxSteps,
                       beyond);
  if (agents.ClockEntries() > kMaxClockEntries)
    return fmt::format(
        "{} thread blocks and port channels, of which so many may hear of each other that there "
        "are {} pairs, at most {}",
        agents.count(), agents.ClockEntries(), kMaxClockEntries);
  return {};
}

// In place one buffer may be declared for both, so that only the layout knows where they end.
void CheckRanges(const PpOperation& operation, const std::string& where, const PpLayout& layout,
                 std::vector<PlanFault>& faults) {
  for (const std::vector<PpReference>* list : {&operation.src, &operation.dst})
    for (const PpReference& reference : *list)
      for (const int32_t rank : reference.ranks) {
        const int64_t chunks = layout.Chunks(Index(rank), reference.buffer);
        if (reference.index + reference.size <= chunks || faults.size() >= kMaxFaults) continue;
        faults.push_back(
            {fmt::format("{}: {}[{}, {}) is outside the buffer of {} chunks of gpu {}", where,
                         "ios"[static_cast<size_t>(reference.buffer)], reference.index,
                         reference.index + reference.size, chunks, rank)});
      }
}

void CheckAllRanges(const PpFile& file, const PpLayout& layout, std::vector<PlanFault>& faults) {
  for (size_t r = 0; r < file.ranks.size(); ++r)
    for (size_t t = 0; t < file.ranks[r].blocks.size(); ++t) {
      const std::vector<PpOperation>& operations = file.ranks[r].blocks[t].operations;
      for (size_t i = 0; i < operations.size(); ++i) {
        CheckRanges(operations[i], PpWhere(r, t, i), layout, faults);
        for (const PpOperation& inner : operations[i].inner)
          CheckRanges(inner, PpWhere(r, t, i), layout, faults);
      }
    }
}

}  // namespace

PpOutcome RunMscclppPlan(const PpFile& file, std::vector<PlanFault>& faults) {
  const std::optional<PpLayout> layout = PpLayout::Make(file, faults);
  if (!layout) return {};
  CheckAllRanges(file, *layout, faults);
  if (!faults.empty()) return {};
  const int64_t cells = CellsPerChunk(file);
  const PpChannels channels(file);
  const PpAgents agents(file, channels);
  if (const std::string excess = TooLarge(file, *layout, agents, cells); !excess.empty()) {
    faults.push_back({"plan: too large to judge: " + excess});
    return {.meaning = {}, .too_large = true};
  }
  MscclppRun run(file, *layout, channels, agents, cells, faults);
  run.Execute();
  return {PpMeaning{cells, layout->chunks_per_slot(), run.root()}, run.too_large()};
}

}  // namespace tutti::lower
