#include "machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "happens_before.h"
#include "machine_index.h"
#include "machine_memory.h"
#include "tutti/base/cancel.h"
#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

class MachineRun {
 public:
  MachineRun(const Machine& machine, const MachineIndex& index, std::vector<PlanFault>& faults)
      : machine_(machine),
        index_(index),
        faults_(faults),
        order_(index),
        memory_(machine, index, order_, faults),
        streams_(Index(index.num_streams())),
        fifos_(index.connections().size()) {}

  void Execute() {
    for (int32_t s = 0; s < index_.num_streams(); ++s) Wake(s);
    while (!awake_.empty() && faults_.size() < kMaxFaults) {
      const int32_t s = awake_.front();
      awake_.pop_front();
      streams_[Index(s)].awake = false;
      while (faults_.size() < kMaxFaults && Advance(s))
        if (CancelRequested()) return faults_.push_back({"interrupted"});
    }
    if (faults_.size() >= kMaxFaults) return;
    if (ReportDeadlock()) return;
    for (const auto& race : order_.Races(kMaxFaults))
      faults_.push_back(
          {fmt::format("{} and {} touch the same {} in no certain order", index_.NameOf(race.first),
                       index_.NameOf(race.second), machine_.words.unit)});
    memory_.CheckResults();
  }

 private:
  struct StreamState {
    int32_t next = 0;      // action
    bool started = false;  // it has; its dependencies are done
    int64_t moved = 0;     // cells of it
    bool awake = false;
    std::vector<int32_t> waiting;  // streams of this rank that wait for this one
  };
  using Message = std::vector<Value>;

  enum class Wait { kNone, kDependency, kFull, kEmpty };
  struct Blocked {
    Wait why = Wait::kNone;
    int32_t on = -1;  // stream
  };

  void Wake(int32_t s) {
    if (s < 0 || streams_[Index(s)].awake) return;
    streams_[Index(s)].awake = true;
    awake_.push_back(s);
  }

  const Action* Current(int32_t s) const {
    const ActionStream& stream = index_.stream(s);
    const auto next = Index(streams_[Index(s)].next);
    return next < stream.actions.size() ? &stream.actions[next] : nullptr;
  }

  bool Done(int32_t s, int32_t instruction) const { return streams_[Index(s)].next > instruction; }

  Blocked BlockedBy(int32_t s, const Action& action) const {
    if (!streams_[Index(s)].started)
      for (const Dependency& dep : action.after) {
        const int32_t other = index_.first_stream(index_.rank(s)) + dep.stream;
        if (!Done(other, dep.instruction)) return {Wait::kDependency, other};
      }
    if (action.receives && fifos_[Index(index_.recv_connection(s))].empty())
      return {Wait::kEmpty, index_.connections()[Index(index_.recv_connection(s))].sender};
    if (action.sends && !HasRoom(s))
      return {Wait::kFull, index_.connections()[Index(index_.send_connection(s))].receiver};
    return {};
  }

  // Without a queue a message needs its receiver to be waiting for it.
  bool HasRoom(int32_t s) const {
    const int32_t connection = index_.send_connection(s);
    const size_t held = fifos_[Index(connection)].size();
    if (machine_.fifo_depth > 0) return held < Index(machine_.fifo_depth);
    const int32_t receiver = index_.connections()[Index(connection)].receiver;
    const Action* action = Current(receiver);
    if (held > 0 || action == nullptr || !action->receives) return false;
    return BlockedBy(receiver, *action).why == Wait::kEmpty;
  }

  // Runs one action of the stream, or one piece of it; false when it has to wait.
  bool Advance(int32_t s) {
    const Action* action = Current(s);
    if (action == nullptr) return false;
    StreamState& state = streams_[Index(s)];
    const Blocked blocked = BlockedBy(s, *action);
    if (blocked.why == Wait::kDependency) {
      streams_[Index(blocked.on)].waiting.push_back(s);
      return false;
    }
    const int32_t id = index_.action(s, state.next);
    if (!state.started) {
      state.started = true;
      order_.Start(id);
    }
    if (blocked.why != Wait::kNone) {
      Wake(blocked.why == Wait::kEmpty && machine_.fifo_depth == 0 ? blocked.on : -1);
      return false;
    }
    const int64_t count = machine_.piecewise ? std::min<int64_t>(action->count, 1) : action->count;
    Move(s, *action, id, state.moved, count);
    state.moved += count;
    if (state.moved < action->count) return true;
    ++state.next;
    state.started = false;
    state.moved = 0;
    for (const int32_t waiting : state.waiting) Wake(waiting);
    state.waiting.clear();
    return true;
  }

  void Move(int32_t s, const Action& action, int32_t id, int64_t first, int64_t count) {
    const int32_t rank = index_.rank(s);
    Message message;
    if (action.receives) {
      auto& fifo = fifos_[Index(index_.recv_connection(s))];
      message = std::move(fifo.front());
      fifo.pop_front();
      Wake(index_.connections()[Index(index_.recv_connection(s))].sender);
    } else {
      message.resize(Index(count));
    }
    // A copy of memory onto itself does nothing, whatever else happens there.
    const bool idle = action.reads && action.writes && !action.receives && !action.reads_dst &&
                      memory_.SameCells(rank, action.src, action.dst);
    if (idle) return;
    for (int64_t c = 0; c < count; ++c) {
      Value& value = message[Index(c)];
      if (action.reads) {
        const Value own = memory_.Read(rank, action.src, first + c, id);
        value = action.receives ? memory_.Reduce(own, value, id) : own;
      }
      if (action.reads_dst)
        value = memory_.Reduce(memory_.Read(rank, action.dst, first + c, id), value, id);
    }
    if (action.writes)
      for (int64_t c = 0; c < count; ++c)
        memory_.Write(rank, action.dst, first + c, id, message[Index(c)]);
    if (!action.sends) return;
    const int32_t connection = index_.send_connection(s);
    fifos_[Index(connection)].push_back(std::move(message));
    Wake(index_.connections()[Index(connection)].receiver);
  }

  std::string Explain(int32_t s) const {
    const Action& action = *Current(s);
    const Blocked blocked = BlockedBy(s, action);
    std::string text = index_.NameOf(s, streams_[Index(s)].next) + " waits for ";
    switch (blocked.why) {
      case Wait::kDependency:
        return text + index_.NameOfStream(blocked.on);
      case Wait::kFull:
        return text + fmt::format("room in the queue to rank {}", index_.stream(s).send_peer);
      case Wait::kEmpty:
        return text + fmt::format("a message from rank {}", index_.stream(s).recv_peer);
      case Wait::kNone:
        break;
    }
    return text + "nothing";
  }

  // Follows who waits for whom from the first stream that is stuck into its circle.
  bool ReportDeadlock() {
    int32_t at = 0;
    while (at < index_.num_streams() && Current(at) == nullptr) ++at;
    if (at == index_.num_streams()) return false;
    std::vector<int32_t> path;
    while (std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      const int32_t on = BlockedBy(at, *Current(at)).on;
      if (on < 0 || Current(on) == nullptr) break;
      at = on;
    }
    const auto first = std::find(path.begin(), path.end(), at);
    std::string text = "deadlock: ";
    constexpr std::ptrdiff_t kMaxShown = 8;
    for (auto s = first; s != path.end() && s - first < kMaxShown; ++s)
      text += (s == first ? "" : "; ") + Explain(*s);
    if (path.end() - first > kMaxShown)
      text += fmt::format("; and {} more", path.end() - first - kMaxShown);
    faults_.push_back({std::move(text)});
    return true;
  }

  const Machine& machine_;
  const MachineIndex& index_;
  std::vector<PlanFault>& faults_;
  HappensBefore order_;
  MachineMemory memory_;
  std::vector<StreamState> streams_;
  std::vector<std::deque<Message>> fifos_;
  std::deque<int32_t> awake_;
};

}  // namespace

std::vector<PlanFault> RunMachine(const Machine& machine) {
  std::vector<PlanFault> faults;
  const MachineIndex index(machine, faults);
  if (faults.empty()) MachineRun(machine, index, faults).Execute();
  if (faults.size() > kMaxFaults) faults.resize(kMaxFaults);
  return faults;
}

}  // namespace tutti::lower
