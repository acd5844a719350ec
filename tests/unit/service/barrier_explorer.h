// Every interleaving of a few daemons, their tenants and a controller that may die: the reconfiguration
// barrier under all of them.
//
// Model       Tenants issue each of `sequences` collectives whenever they like; ranks may run ahead of
//             each other without limit. The controller makes `requests` one after the other: Prepare
//             to each daemon in any order, Commit to each in any order, then it waits for all
//             Switched. It may die between any two of them, once; then nobody, or a successor that
//             reads all daemons, one after the other, and commits or discards. A daemon may die at any
//             time, once. Opening connections is one step with Prepare.
//             B1 to B6 are looked at after every step, B7 (and that nothing is left over) wherever
//             nothing more can happen.
// Complexity  every reachable state once, known by a hash of 128 bits.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "barrier.h"

namespace tutti::service {

enum class SeededFault : uint8_t {
  kNone,
  kOwnCommitOnly,  // a message of the ring is no request: everybody waits for his own Commit
  kOwnNumber,      // instead of the maximum
  kNoBarrier,      // Commit switches at once
};

struct ExplorerOptions {
  int32_t daemons = 2, sequences = 3, requests = 2;
  bool controller_may_die = false;
  bool successor = false;  // takes over from a controller that died
  bool daemon_may_die = false;
  int32_t first_has_ranks = 1;  // local ranks of daemon 0
  // Ranks of the first two daemons may exchange messages before each collective, once.
  bool some_exchange = false;
  SeededFault fault = SeededFault::kNone;
};

class BarrierExplorer {
 public:
  explicit BarrierExplorer(const ExplorerOptions& options) : options_(options) {}

  // Empty: every invariant holds everywhere. Otherwise what is broken, and how, as a table.
  std::string Explore() {
    World world;
    for (int32_t d = 0; d < options_.daemons; ++d) {
      BarrierState& state = world.daemon[static_cast<size_t>(d)];
      state.daemons = options_.daemons;
      state.self = d;
      state.local_ranks = d == 0 ? options_.first_has_ranks : 1;
    }
    Visit(world);
    if (broken_.empty()) return {};
    std::string table = fmt::format("{}\n", broken_);
    for (size_t i = 0; i < path_.size(); ++i) table += fmt::format("{:3}  {}\n", i + 1, path_[i]);
    return table;
  }
  size_t states() const { return seen_.size(); }

 private:
  static constexpr size_t kMost = 4;  // daemons
  enum class Controller : uint8_t { kPreparing, kCommitting, kDead, kReading, kDiscarding, kDone };
  struct Message {
    bool abort = false;
    int32_t origin = 0;
    uint32_t epoch = 0;
    uint64_t value = 0;
  };
  struct World {
    std::array<BarrierState, kMost> daemon = {};
    std::array<uint8_t, kMost> open = {1, 1, 1, 1};  // connections, a bit an epoch
    std::array<bool, kMost> lost_told = {}, told = {}, read = {};
    std::array<std::array<Message, 8>, kMost> ring = {};  // to each daemon, in order
    std::array<uint8_t, kMost> ring_size = {};
    std::array<uint32_t, 8> epoch_of = {};  // of each sequence, + 1; 0: not launched
    int32_t dead = -1;
    Controller controller = Controller::kPreparing;
    uint32_t request = 1, committed = 0;
    uint64_t generation = 0;
    bool must_commit = false, all_prepared = true, old_commits = false;
  };
  struct Hash {
    size_t operator()(const std::pair<uint64_t, uint64_t>& key) const {
      return static_cast<size_t>(key.first);
    }
  };

  size_t Count() const { return static_cast<size_t>(options_.daemons); }
  static bool Alive(const World& world, size_t d) { return world.dead != static_cast<int32_t>(d); }

  // NOLINTNEXTLINE(misc-no-recursion)
  void Visit(const World& world) {
    if (!broken_.empty() || !seen_.insert(KeyOf(world)).second) return;
    bool moved = false;
    // Lambdas visit; `moved` says whether anything but a death was possible here.
    ForMoves(world, moved);
    if (broken_.empty() && !moved) CheckEnd(world);
    if (broken_.empty()) Deaths(world);
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void Go(World world, std::string label, bool* moved) {
    if (!broken_.empty()) return;
    if (moved != nullptr) *moved = true;
    path_.push_back(std::move(label));
    Visit(world);
    if (broken_.empty()) path_.pop_back();
  }

  // An event at a daemon; the world after it, and what is broken by it.
  // NOLINTNEXTLINE(misc-no-recursion)
  void Deliver(World world, size_t d, const BarrierEvent& event, std::string label, bool* moved) {
    if (!broken_.empty()) return;
    const BarrierState before = world.daemon[d];
    const BarrierStep step = Step(before, event);
    world.daemon[d] = step.state;
    const bool seeded = Seed(world, d, before, event);
    std::string fault;
    const auto expect = [&](bool holds, const char* what) {
      if (!holds && fault.empty()) fault = what;
    };
    expect(step.refused.empty() || event.kind == BarrierEvent::Kind::kCommit,
           "an event was refused that never should be");
    expect(step.state.phase != BarrierPhase::kFailed || world.dead >= 0,
           "a communicator failed though nobody died");
    expect(world.daemon[d].epoch <= before.epoch + 1, "B3: an epoch was left out");
    if (!seeded)
      for (const BarrierAction& action : step.actions()) Act(world, d, before, action, expect);
    if (!fault.empty()) {
      broken_ = fault;
      path_.push_back(std::move(label));
      return;
    }
    Go(std::move(world), std::move(label), moved);
  }

  template <class Expect>
  void Act(World& world, size_t d, const BarrierState& before, const BarrierAction& action,
           const Expect& expect) {
    using Kind = BarrierAction::Kind;
    const auto bit = static_cast<uint8_t>(1u << action.epoch);
    const size_t next = (d + 1) % Count();
    switch (action.kind) {
      case Kind::kLaunch: {
        expect(action.value == before.launched[static_cast<size_t>(action.rank)] + 1,
               "B1: a sequence out of order");
        expect(before.phase != BarrierPhase::kHolding, "B4: a holding daemon launched");
        uint32_t& epoch = world.epoch_of[action.value];
        expect(epoch == 0 || epoch == action.epoch + 1, "B2: one sequence in two epochs");
        epoch = action.epoch + 1;
        for (size_t other = 0; other < Count(); ++other)
          expect(!Alive(world, other) || (world.open[other] & bit) != 0,
                 "B5: a launch without connections of its epoch");
        break;
      }
      case Kind::kOpen:
        world.open[d] |= bit;
        break;
      case Kind::kClose:
        world.open[d] = static_cast<uint8_t>(world.open[d] & ~bit);
        break;
      case Kind::kSend:
        expect(world.committed >= action.epoch, "B6: a message without a request");
        Push(world, next, {false, action.origin, action.epoch, action.value});
        break;
      case Kind::kSendAbort:
        Push(world, next, {true, action.origin, 0, 0});
        break;
      default:
        break;
    }
  }
  void Push(World& world, size_t to, const Message& message) const {
    if (Alive(world, to)) world.ring[to][world.ring_size[to]++] = message;
  }

  // The fault that must be found: nothing is sent, the epoch is changed.
  bool Seed(World& world, size_t d, const BarrierState& before, const BarrierEvent& event) const {
    if (options_.fault != SeededFault::kNoBarrier || event.kind != BarrierEvent::Kind::kCommit ||
        before.phase != BarrierPhase::kPrepared)
      return false;
    BarrierState& state = world.daemon[d];
    state = before;
    state.phase = BarrierPhase::kActive;
    state.draining = true;
    ++state.epoch;
    state.maximum = before.launched[0];
    return true;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void ForMoves(const World& world, bool& moved) {
    for (size_t d = 0; d < Count(); ++d) {
      if (!Alive(world, d)) continue;
      const BarrierState& state = world.daemon[d];
      for (int32_t rank = 0; rank < state.local_ranks; ++rank)
        if (MayLaunch(state, rank) &&
            state.launched[static_cast<size_t>(rank)] < static_cast<uint64_t>(options_.sequences))
          Deliver(
              world, d, {.kind = BarrierEvent::Kind::kCommand, .rank = rank},
              fmt::format("daemon {} launches {} of rank {} ({})", d,
                          state.launched[static_cast<size_t>(rank)] + 1, rank, Name(state.phase)),
              &moved);
      for (int32_t rank = 0; options_.some_exchange && d < 2 && rank < state.local_ranks; ++rank) {
        const auto at = static_cast<size_t>(rank);
        if (MayLaunch(state, rank) && !state.exchanged[at] &&
            state.launched[at] < static_cast<uint64_t>(options_.sequences))
          Deliver(world, d, {.kind = BarrierEvent::Kind::kExchange, .rank = rank},
                  fmt::format("daemon {} exchanges before {} of rank {} ({})", d,
                              state.launched[at] + 1, rank, Name(state.phase)),
                  nullptr);
      }
      if (world.ring_size[d] > 0) TakeMessage(world, d, moved);
      if (state.draining && state.phase != BarrierPhase::kFailed && Drained(world, state))
        Deliver(world, d, {.kind = BarrierEvent::Kind::kDrained},
                fmt::format("daemon {} has drained epoch {}", d, state.epoch - 1), &moved);
      if (world.dead >= 0 && IsNeighbour(d, static_cast<size_t>(world.dead)) &&
          !world.lost_told[d]) {
        World next = world;
        next.lost_told[d] = true;
        if (state.phase == BarrierPhase::kFailed)
          Go(next, "", &moved);
        else
          Deliver(next, d, {.kind = BarrierEvent::Kind::kPeerLost, .origin = world.dead},
                  fmt::format("daemon {} notices that {} is dead", d, world.dead), &moved);
      }
    }
    MoveController(world, moved);
  }

  bool IsNeighbour(size_t a, size_t b) const {
    return (a + 1) % Count() == b || (b + 1) % Count() == a;
  }
  // Collectives end when everybody has launched them.
  bool Drained(const World& world, const BarrierState& state) const {
    for (size_t d = 0; d < Count(); ++d)
      for (int32_t rank = 0; rank < world.daemon[d].local_ranks; ++rank)
        if (world.daemon[d].launched[static_cast<size_t>(rank)] < state.maximum) return false;
    return true;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void TakeMessage(const World& world, size_t d, bool& moved) {
    const Message message = world.ring[d][0];
    const BarrierState& state = world.daemon[d];
    if (options_.fault == SeededFault::kOwnCommitOnly && !message.abort &&
        state.phase == BarrierPhase::kPrepared)
      return;
    World next = world;
    std::copy(next.ring[d].begin() + 1, next.ring[d].end(), next.ring[d].begin());
    next.ring[d].back() = {};
    --next.ring_size[d];
    if (state.phase == BarrierPhase::kFailed) return Go(next, "", &moved);
    const bool own = options_.fault == SeededFault::kOwnNumber;
    Deliver(next, d,
            {.kind = message.abort ? BarrierEvent::Kind::kAbort : BarrierEvent::Kind::kMessage,
             .origin = message.origin,
             .epoch = message.epoch,
             .value = own ? 0 : message.value},
            fmt::format("daemon {} ({}) hears {} {} of daemon {}", d, Name(state.phase),
                        message.abort ? "abort" : "number", message.value, message.origin),
            &moved);
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void MoveController(const World& world, bool& moved) {
    const auto last = static_cast<uint32_t>(options_.requests);
    if (world.dead >= 0) return;  // it takes part no more: the communicator fails
    switch (world.controller) {
      case Controller::kPreparing:
        if (world.request > last) return;
        Prepare(world, moved);
        break;
      case Controller::kCommitting:
        Commit(world, world.generation, moved);
        if (AllSwitched(world)) NextRequest(world, moved);
        break;
      case Controller::kReading:
        // What the one before it sent may still be on its way.
        if (world.old_commits) Commit(world, 0, moved);
        Read(world, moved);
        break;
      case Controller::kDiscarding:
        Discard(world, moved);
        break;
      default:
        if (options_.successor && world.controller == Controller::kDead) {
          World next = world;
          next.controller = Controller::kReading;
          next.generation = 1;
          next.read = {};
          next.must_commit = false;
          next.all_prepared = true;
          Go(next, "a new controller", &moved);
        }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void Prepare(const World& world, bool& moved) {
    for (size_t d = 0; d < Count(); ++d) {
      if (world.told[d]) continue;
      World next = world;
      const BarrierStep opening = Step(world.daemon[d], {.kind = BarrierEvent::Kind::kPrepare,
                                                         .epoch = world.request,
                                                         .generation = world.generation});
      next.daemon[d] = opening.state;
      next.open[d] |= static_cast<uint8_t>(1u << world.request);
      next.told[d] = true;
      if (std::all_of(next.told.begin(), next.told.begin() + options_.daemons,
                      [](bool told) { return told; })) {
        next.controller = Controller::kCommitting;
        next.told = {};
      }
      Deliver(next, d, {.kind = BarrierEvent::Kind::kOpened, .epoch = world.request},
              fmt::format("daemon {} prepares epoch {}", d, world.request), &moved);
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void Commit(const World& world, uint64_t generation, bool& moved) {
    for (size_t d = 0; d < Count(); ++d) {
      if (world.told[d]) continue;
      World next = world;
      next.told[d] = true;
      // Who has heard of a newer controller refuses, and no request has reached it.
      if (generation >= world.daemon[d].generation)
        next.committed = std::max(next.committed, world.request);
      Deliver(
          next, d,
          {.kind = BarrierEvent::Kind::kCommit, .epoch = world.request, .generation = generation},
          fmt::format("commit {} of controller {} reaches daemon {} ({})", world.request,
                      generation, d, Name(world.daemon[d].phase)),
          &moved);
    }
  }

  bool AllSwitched(const World& world) const {
    for (size_t d = 0; d < Count(); ++d)
      if (world.daemon[d].epoch != world.request || world.daemon[d].draining || !world.told[d])
        return false;
    return true;
  }
  // NOLINTNEXTLINE(misc-no-recursion)
  void NextRequest(const World& world, bool& moved) {
    World next = world;
    ++next.request;
    next.told = {};
    next.controller = Controller::kPreparing;
    Go(next, fmt::format("all have switched to epoch {}", world.request), &moved);
  }

  // The successor asks daemon by daemon, then decides.
  // NOLINTNEXTLINE(misc-no-recursion)
  void Read(const World& world, bool& moved) {
    size_t d = 0;
    while (d < Count() && world.read[d]) ++d;
    World next = world;
    if (d < Count()) {
      const BarrierState& state = world.daemon[d];
      next.read[d] = true;
      next.must_commit |= state.epoch >= world.request || state.phase == BarrierPhase::kHolding ||
                          state.phase == BarrierPhase::kSwitching;
      next.all_prepared &= state.phase == BarrierPhase::kPrepared;
      return Deliver(next, d, {.kind = BarrierEvent::Kind::kInventory, .generation = 1},
                     fmt::format("the new controller reads daemon {} ({})", d, Name(state.phase)),
                     &moved);
    }
    next.old_commits = false;
    next.told = {};
    next.generation = 1;
    if (world.must_commit || world.all_prepared) {
      World commits = next;
      commits.controller = Controller::kCommitting;
      Go(commits, "the new controller commits", &moved);
    }
    if (!world.must_commit) {
      next.controller = Controller::kDiscarding;
      Go(next, "the new controller discards", &moved);
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void Discard(const World& world, bool& moved) {
    for (size_t d = 0; d < Count(); ++d) {
      if (world.told[d]) continue;
      World next = world;
      next.told[d] = true;
      if (world.daemon[d].phase != BarrierPhase::kPrepared)
        Go(next, "", &moved);
      else
        Deliver(next, d,
                {.kind = BarrierEvent::Kind::kDiscard, .epoch = world.request, .generation = 1},
                fmt::format("daemon {} discards epoch {}", d, world.request), &moved);
    }
    if (!std::all_of(world.told.begin(), world.told.begin() + options_.daemons,
                     [](bool told) { return told; }))
      return;
    World next = world;
    next.told = {};
    next.controller = Controller::kPreparing;
    Go(next, "the new controller asks again", &moved);
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void Deaths(const World& world) {
    if (options_.controller_may_die && world.generation == 0 && world.dead < 0 &&
        world.request <= static_cast<uint32_t>(options_.requests) &&
        (world.controller == Controller::kPreparing ||
         world.controller == Controller::kCommitting)) {
      World next = world;
      next.old_commits = world.controller == Controller::kCommitting;
      next.controller = Controller::kDead;
      Go(next, "the controller dies", nullptr);
    }
    if (options_.daemon_may_die && world.dead < 0)
      for (size_t d = 0; d < Count(); ++d) {
        World next = world;
        next.dead = static_cast<int32_t>(d);
        next.ring[d] = {};
        next.ring_size[d] = 0;
        Go(next, fmt::format("daemon {} dies", d), nullptr);
      }
  }

  void CheckEnd(const World& world) {
    for (size_t d = 0; d < Count(); ++d) {
      if (!Alive(world, d)) continue;
      const BarrierState& state = world.daemon[d];
      if (world.dead >= 0) {
        if (state.phase != BarrierPhase::kFailed || state.culprit != world.dead)
          broken_ = fmt::format("daemon {} does not know that {} is dead ({})", d, world.dead,
                                Name(state.phase));
        continue;
      }
      const bool idle =
          state.phase == BarrierPhase::kActive ||
          (state.phase == BarrierPhase::kPrepared && world.controller == Controller::kDead);
      const bool gone = world.controller == Controller::kDead;
      for (int32_t rank = 0; rank < state.local_ranks; ++rank)
        if (state.launched[static_cast<size_t>(rank)] != static_cast<uint64_t>(options_.sequences))
          broken_ = fmt::format("B7: daemon {} hangs ({})", d, Name(state.phase));
      if (!idle || world.ring_size[d] != 0 || state.draining ||
          state.epoch != world.daemon[0].epoch || state.epoch < world.committed ||
          (!gone && state.epoch != static_cast<uint32_t>(options_.requests)))
        broken_ =
            fmt::format("B7: daemon {} ends in epoch {} ({})", d, state.epoch, Name(state.phase));
    }
  }

  std::pair<uint64_t, uint64_t> KeyOf(const World& world) const {
    uint64_t a = 0x243f6a8885a308d3u, b = 0x13198a2e03707344u;
    const auto add = [&](uint64_t word) {
      a = (a ^ word) * 0x9e3779b97f4a7c15u;
      a ^= a >> 29;
      b = (b + word) * 0xd6e8feb86659fd93u;
      b ^= b >> 32;
    };
    for (size_t d = 0; d < Count(); ++d) {
      const BarrierState& state = world.daemon[d];
      add(static_cast<uint64_t>(state.phase) | static_cast<uint64_t>(state.draining) << 4 |
          static_cast<uint64_t>(state.heard) << 8 | static_cast<uint64_t>(state.epoch) << 16 |
          state.generation << 24 | state.maximum << 32 |
          static_cast<uint64_t>(world.open[d]) << 40 |
          static_cast<uint64_t>(world.lost_told[d]) << 48 |
          static_cast<uint64_t>(world.told[d]) << 49 | static_cast<uint64_t>(world.read[d]) << 50 |
          static_cast<uint64_t>(world.ring_size[d]) << 52 |
          static_cast<uint64_t>(state.culprit + 1) << 58);
      uint64_t launched = 0;
      for (int32_t rank = 0; rank < state.local_ranks; ++rank)
        launched = launched << 8 | state.launched[static_cast<size_t>(rank)] << 1 |
                   static_cast<uint64_t>(state.exchanged[static_cast<size_t>(rank)]);
      add(launched);
      for (size_t i = 0; i < world.ring_size[d]; ++i) {
        const Message& message = world.ring[d][i];
        add(static_cast<uint64_t>(message.abort) | static_cast<uint64_t>(message.origin) << 8 |
            static_cast<uint64_t>(message.epoch) << 16 | message.value << 32);
      }
    }
    for (const uint32_t epoch : world.epoch_of) add(epoch);
    add(static_cast<uint64_t>(world.controller) | static_cast<uint64_t>(world.dead + 1) << 8 |
        static_cast<uint64_t>(world.request) << 16 | static_cast<uint64_t>(world.committed) << 24 |
        world.generation << 32 | static_cast<uint64_t>(world.must_commit) << 40 |
        static_cast<uint64_t>(world.all_prepared) << 41 |
        static_cast<uint64_t>(world.old_commits) << 42);
    return {a, b};
  }

  ExplorerOptions options_;
  std::unordered_set<std::pair<uint64_t, uint64_t>, Hash> seen_;
  std::vector<std::string> path_;
  std::string broken_;
};

}  // namespace tutti::service
