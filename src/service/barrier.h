// The reconfiguration barrier: how the daemons of a communicator change to a new strategy between two
// collectives while tenants go on issuing them.
//
// Model       A pure function of one daemon's state and an event to the next state and what is to be
//             done; no sockets, no clocks. Collectives of a communicator are numbered from 1; an epoch
//             is the time of one strategy. A controller has new connections opened beside the old
//             ones (Prepare), and when all daemons have answered, says Commit to all; one that
//             arrives is enough. Who hears of it holds and sends the largest number that it launched
//             round the control ring; the first message of the next epoch is the request for whoever
//             has not seen one. All numbers known, [M] is their maximum: collectives up to M run
//             under the old epoch, later ones under the new. Messages that only some ranks exchange have the
//             number of the next collective, which all ranks know alike; where no collective follows, the old epoch stays.
// Invariants  B1  Each rank launches every sequence exactly once, in order.
//             B2  All ranks that launch a sequence do so in one epoch.
//             B3  Epochs grow by 1.
//             B4  A holding daemon launches nothing.
//             B5  Messages of an epoch use only connections of that epoch.
//             B6  Without a request no message is sent for it.
//             B7  If one daemon holds and none dies, all reach the new epoch as soon as their
//                 tenants have issued up to M.
//             Tests explore all interleavings; tests/model has the same protocol for spin.
// Order       Ring messages of an epoch arrive in the order of the ring: first that of the daemon
//             before, last that of the daemon behind. Anything else is a fault of the peer.
// Controllers have generations; who has heard of a newer one refuses the older ones' requests, so
//             that a successor that has read all states can decide.
// Errors      What cannot be is refused by name and leaves the state as it was (from controllers and
//             tenants), or fails the communicator (from peers).
// Complexity  O(local ranks).
// Reference   [mccs] 4.2 "Dynamic Reconfiguration". Ours: connections are made before the old ones
//             are broken; a message is a request; faults.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tutti::service {

inline constexpr int32_t kMaxLocalRanks = 128;

enum class BarrierPhase : uint8_t {
  kActive,
  kOpening,    // connections of the next epoch are being opened
  kPrepared,   // and are there
  kHolding,    // numbers are on their way
  kSwitching,  // M is known, some local rank has not launched it
  kFailed,
};
std::string_view Name(BarrierPhase phase);

// One value for each local rank, T{} where none was set. A copy, of which each command makes two, copies those that were.
template <class T>
class PerLocalRank {
 public:
  PerLocalRank() = default;
  PerLocalRank(const PerLocalRank& other) : set_(other.set_) { CopyFrom(other); }
  PerLocalRank& operator=(const PerLocalRank& other) {
    set_ = other.set_;
    CopyFrom(other);
    return *this;
  }
  ~PerLocalRank() = default;

  T operator[](size_t rank) const { return rank < set_ ? values_[rank] : T{}; }
  void Set(size_t rank, T value) {
    for (; set_ <= rank; ++set_) values_[set_] = T{};
    values_[rank] = value;
  }

 private:
  void CopyFrom(const PerLocalRank& other) {
    std::copy_n(other.values_.begin(), other.set_, values_.begin());
  }

  size_t set_ = 0;  // values from here on are not initialised
  std::array<T, kMaxLocalRanks> values_;
};

struct BarrierState {
  int32_t daemons = 1, self = 0;  // on the control ring
  int32_t local_ranks = 1;        // 1 to kMaxLocalRanks
  BarrierPhase phase = BarrierPhase::kActive;
  bool draining = false;            // connections of the epoch before are still open
  int32_t heard = 0;                // numbers known, the own one included
  int32_t culprit = -1;             // of kFailed: a daemon
  uint32_t epoch = 0;               // until all local ranks are past M, the old one
  uint64_t generation = 0;          // of the newest controller heard of
  uint64_t maximum = 0;             // [M] so far; after a switch, that switch's
  PerLocalRank<uint64_t> launched;  // collectives of each
  // It has exchanged messages since its last collective: these are of the next one's number.
  PerLocalRank<bool> exchanged;
};

struct BarrierEvent {
  enum class Kind : uint8_t {
    kCommand,     // of `rank` (local): its tenant's next collective is ready
    kExchange,    // of `rank`: messages are, which not all ranks need exchange
    kPrepare,     // to `epoch`, from the controller of `generation`
    kOpened,      // the connections of `epoch`
    kOpenFailed,  // they could not be opened
    kDiscard,     // `epoch`, from a controller
    kCommit,      // `epoch`, from a controller
    kInventory,   // a controller of `generation` asks
    kMessage,     // of the ring: `epoch`, `origin`, `value` (the largest number that it launched)
    kDrained,     // own collectives up to M are over and acknowledged
    kPeerLost,    // `origin`, for good
    kAbort,       // of the ring: `origin` is the culprit
  };
  Kind kind = Kind::kCommand;
  int32_t rank = 0, origin = 0;
  uint32_t epoch = 0;
  uint64_t value = 0, generation = 0;
};

struct BarrierAction {
  enum class Kind : uint8_t {
    kLaunch,        // what has number `value` of local rank `rank`, under `epoch`
    kOpen,          // connections of `epoch`, then kOpened
    kClose,         // those of `epoch`
    kTellPrepared,  // the controller
    kTellSwitched,  // the controller, `epoch`
    kTellState,     // the controller: an inventory
    kSend,          // to the next daemon: `epoch`, `origin`, `value`
    kSendAbort,     // to the next daemon: `origin` is the culprit
    kFailPending,   // everything of this communicator, with the culprit
  };
  Kind kind = Kind::kLaunch;
  int32_t rank = 0, origin = 0;
  uint32_t epoch = 0;
  uint64_t value = 0;
  friend bool operator==(const BarrierAction&, const BarrierAction&) = default;
};

class BarrierStep {
 public:
  explicit BarrierStep(const BarrierState& from, std::string_view why = {})
      : state(from), refused(why) {}

  BarrierState state;
  std::string_view refused;  // why; empty: accepted

  std::span<const BarrierAction> actions() const { return {action_.data(), count_}; }
  void Add(const BarrierAction& action) { action_[count_++] = action; }

 private:
  std::array<BarrierAction, 4> action_ = {};
  size_t count_ = 0;
};

BarrierStep Step(const BarrierState& state, const BarrierEvent& event);
// Step(), but for tests that break it.
using BarrierRule = BarrierStep (*)(const BarrierState& state, const BarrierEvent& event);

// Whether kCommand and kExchange of that rank would be accepted.
bool MayLaunch(const BarrierState& state, int32_t rank);

}  // namespace tutti::service
