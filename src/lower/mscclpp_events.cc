#include "mscclpp_events.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

// All instructions of a plan in an order in which they may run, a send and its receive at once.
class Order {
 public:
  explicit Order(const Plan& plan) : plan_(plan) {
    NumberInstructions();
    MatchMessages();
    Connect();
  }

  // The send of each message, and each copy.
  struct Place {
    int32_t rank = 0, stream = 0, instruction = 0;
  };
  std::vector<std::pair<Place, Place>> Run() {
    std::vector<std::pair<Place, Place>> order;
    std::priority_queue<std::pair<int32_t, int32_t>, std::vector<std::pair<int32_t, int32_t>>,
                        std::greater<>>
        ready;  // (step, node)
    const auto step = [this](int32_t node) { return At(places_[Index(node)]).step; };
    for (int32_t node = 0; node < static_cast<int32_t>(places_.size()); ++node)
      if (node_[Index(node)] == node && waits_[Index(node)] == 0) ready.push({step(node), node});
    while (!ready.empty()) {
      const int32_t node = ready.top().second;
      ready.pop();
      order.emplace_back(places_[Index(node)], places_[Index(partner_[Index(node)])]);
      for (const int32_t next : after_[Index(node)])
        if (--waits_[Index(next)] == 0) ready.push({step(next), next});
    }
    return order;
  }
  const Instruction& At(const Place& place) const {
    return plan_.ranks[Index(place.rank)]
        .streams[Index(place.stream)]
        .instructions[Index(place.instruction)];
  }

 private:
  void NumberInstructions() {
    for (size_t r = 0; r < plan_.ranks.size(); ++r) {
      first_.emplace_back();
      for (size_t s = 0; s < plan_.ranks[r].streams.size(); ++s) {
        first_.back().push_back(static_cast<int32_t>(places_.size()));
        for (size_t i = 0; i < plan_.ranks[r].streams[s].instructions.size(); ++i)
          places_.push_back(
              {static_cast<int32_t>(r), static_cast<int32_t>(s), static_cast<int32_t>(i)});
      }
    }
    node_.resize(places_.size());
    std::iota(node_.begin(), node_.end(), 0);
    partner_ = node_;
  }

  // A message is one node, that of its send.
  void MatchMessages() {
    std::map<std::tuple<int32_t, int32_t, int32_t>, std::pair<int32_t, size_t>> receives;
    for (size_t r = 0; r < plan_.ranks.size(); ++r)
      for (size_t s = 0; s < plan_.ranks[r].streams.size(); ++s) {
        const Stream& stream = plan_.ranks[r].streams[s];
        if (stream.recv_peer >= 0)
          receives[{stream.recv_peer, static_cast<int32_t>(r), stream.channel}] = {first_[r][s], 0};
      }
    for (size_t r = 0; r < plan_.ranks.size(); ++r)
      for (size_t s = 0; s < plan_.ranks[r].streams.size(); ++s) {
        const Stream& stream = plan_.ranks[r].streams[s];
        if (stream.send_peer < 0) continue;
        const int32_t other =
            receives.at({static_cast<int32_t>(r), stream.send_peer, stream.channel}).first;
        for (size_t i = 0; i < stream.instructions.size(); ++i) {
          const int32_t send = first_[r][s] + static_cast<int32_t>(i);
          const int32_t receive = other + static_cast<int32_t>(i);
          node_[Index(receive)] = send;
          partner_[Index(send)] = receive;
        }
      }
  }

  void Connect() {
    after_.resize(places_.size());
    waits_.assign(places_.size(), 0);
    const auto connect = [this](int32_t earlier, int32_t later) {
      after_[Index(node_[Index(earlier)])].push_back(node_[Index(later)]);
      ++waits_[Index(node_[Index(later)])];
    };
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      const auto here = static_cast<int32_t>(i);
      if (place.instruction > 0) connect(here - 1, here);
      for (const Dependency& dep : At(place).after)
        connect(first_[Index(place.rank)][Index(dep.stream)] + dep.instruction, here);
    }
  }

  const Plan& plan_;
  std::vector<Place> places_;
  std::vector<std::vector<int32_t>> first_;
  std::vector<int32_t> node_, partner_, waits_;
  std::vector<std::vector<int32_t>> after_;
};

// Who touched each piece of memory last: a piece is one unit of a slot.
class Memory {
 public:
  struct Cell {
    int32_t writer = -1;
    std::vector<int32_t> readers;
  };

  Memory(const Plan& plan, int64_t units, bool in_place)
      : plan_(plan), units_(units), in_place_(in_place) {
    for (const RankPlan& rank : plan.ranks) {
      first_.push_back(cells_.size());
      cells_.resize(
          cells_.size() +
          Index((int64_t{rank.input_slots} + rank.output_slots + rank.scratch_slots) * units));
    }
  }
  Cell& At(int32_t rank, const Operand& operand, int64_t at) {
    return cells_[first_[Index(rank)] + Index(Offset(rank, operand, at))];
  }
  bool Same(int32_t rank, const Operand& a, const Operand& b) const {
    return Offset(rank, a, 0) == Offset(rank, b, 0);
  }

 private:
  int64_t Offset(int32_t rank, const Operand& operand, int64_t at) const {
    const RankPlan& to = plan_.ranks[Index(rank)];
    const int64_t offset = operand.offset + at;
    if (operand.buffer == Buffer::kInput) return offset;
    if (operand.buffer == Buffer::kScratch)
      return (int64_t{to.input_slots} + to.output_slots) * units_ + offset;
    if (in_place_) {
      const int32_t slot =
          InPlaceInputSlot(plan_.collective, NodeId{rank}, static_cast<int32_t>(offset / units_));
      if (slot >= 0) return slot * units_ + offset % units_;
    }
    return to.input_slots * units_ + offset;
  }

  const Plan& plan_;
  int64_t units_;
  bool in_place_;
  std::vector<size_t> first_;
  std::vector<Cell> cells_;
};

class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t Find(int32_t a) {
    while (parent_[Index(a)] != a) {
      parent_[Index(a)] = parent_[Index(parent_[Index(a)])];
      a = parent_[Index(a)];
    }
    return a;
  }
  void Unite(int32_t a, int32_t b) {
    a = Find(a);
    b = Find(b);
    parent_[Index(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

// What all offsets and counts are multiples of.
int64_t CoarsestUnit(const Plan& plan) {
  int64_t unit = plan.units_per_shard;
  for (const RankPlan& rank : plan.ranks)
    for (const Stream& stream : rank.streams)
      for (const Instruction& instruction : stream.instructions)
        for (const int64_t number :
             {instruction.src.offset, instruction.dst.offset, instruction.count})
          unit = std::gcd(unit, number);
  return unit;
}

// Levels, groups and hazards of events that run one after the other.
class Analysis {
 public:
  Analysis(const Plan& plan, bool in_place, Events& events)
      : memory_(plan, events.units_per_slot, in_place),
        groups_(events.all.size()),
        events_(events.all) {}

  void Run() {
    for (size_t e = 0; e < events_.size(); ++e) {
      Event& event = events_[e];
      const auto id = static_cast<int32_t>(e);
      for (int64_t at = 0; at < event.count; ++at) {
        Read(memory_.At(event.from, event.src, at), id);
        if (event.reduces) Read(memory_.At(event.to, event.base, at), id);
      }
      for (int64_t at = 0; at < event.count; ++at) Write(memory_.At(event.to, event.dst, at), id);
      std::sort(event.overwrites.begin(), event.overwrites.end());
      event.overwrites.erase(std::unique(event.overwrites.begin(), event.overwrites.end()),
                             event.overwrites.end());
    }
  }
  int32_t NumberGroups() {
    std::map<int32_t, int32_t> numbers;
    for (size_t e = 0; e < events_.size(); ++e)
      events_[e].group = numbers
                             .try_emplace(groups_.Find(static_cast<int32_t>(e)),
                                          static_cast<int32_t>(numbers.size()))
                             .first->second;
    return static_cast<int32_t>(numbers.size());
  }

 private:
  void After(int32_t event, int32_t earlier) {
    if (event == earlier) return;
    Event& later = events_[Index(event)];
    const Event& first = events_[Index(earlier)];
    const bool one_sum = AddsOn(later) && first.reduces && first.to == later.to &&
                         first.dst == later.dst && first.count == later.count;
    later.level = std::max(later.level, first.level + (one_sum ? 0 : 1));
    groups_.Unite(event, earlier);
  }
  void Read(Memory::Cell& cell, int32_t event) {
    if (cell.writer >= 0) After(event, cell.writer);
    cell.readers.push_back(event);
  }
  void Write(Memory::Cell& cell, int32_t event) {
    std::vector<int32_t>& overwrites = events_[Index(event)].overwrites;
    if (cell.writer >= 0) {
      After(event, cell.writer);
      overwrites.push_back(cell.writer);
    }
    for (const int32_t reader : cell.readers) {
      if (reader == event) continue;
      After(event, reader);
      overwrites.push_back(reader);
      events_[Index(reader)].source_overwritten = true;
    }
    cell.writer = event;
    cell.readers.clear();
  }

  Memory memory_;
  Groups groups_;
  std::vector<Event>& events_;
};

}  // namespace

Events EventsOf(const Plan& plan, bool in_place) {
  const int64_t unit = CoarsestUnit(plan);
  Events events;
  events.units_per_slot = plan.units_per_shard / unit;
  const Memory memory(plan, events.units_per_slot, in_place);
  Order order(plan);
  for (const auto& [first, second] : order.Run()) {
    const Instruction& sent = order.At(first);
    const Instruction& received = order.At(second);
    Event event;
    event.from = first.rank;
    event.to = second.rank;
    event.reduces = received.op == OpCode::kRecvReduce;
    event.src = {sent.src.buffer, sent.src.offset / unit};
    event.dst = {received.dst.buffer, received.dst.offset / unit};
    event.base = {received.src.buffer, received.src.offset / unit};
    event.count = sent.count / unit;
    if (event.from == event.to && memory.Same(event.from, event.src, event.dst)) continue;
    events.all.push_back(std::move(event));
  }
  Analysis analysis(plan, in_place, events);
  analysis.Run();
  events.num_groups = analysis.NumberGroups();
  for (const Event& event : events.all)
    events.num_levels = std::max(events.num_levels, event.level + 1);
  return events;
}

}  // namespace tutti::lower
