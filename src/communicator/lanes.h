// Lanes: the connections of one rank to the others, made on first use and shared by all operations.
//
// Model       A lane is one direction between this rank and a peer on a channel: a ring in memory to
//             ranks of the same host, TCP to others. Connections number their messages for ever, and an
//             interpreter numbers those of its executions from 0: a LaneEnd translates. Operations run
//             one after the other, so that between two of them nothing is under way.
// Threads     One.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "connection.h"
#include "endpoint.h"
#include "local_area.h"
#include "ring_connection.h"
#include "tcp_transport.h"

namespace tutti {

struct Lane {
  Connection* connection = nullptr;
  uint64_t posted = 0;
};

// A lane as one operation sees it.
class LaneEnd final : public Connection {
 public:
  explicit LaneEnd(Lane& lane) : lane_(&lane) {}

  // Others have used the lane since the last execution.
  void Resume() { others_ = lane_->posted - own_; }

  bool TryPost(const Piece& source) override {
    if (!lane_->connection->TryPost(source)) return false;
    ++lane_->posted;
    ++own_;
    return true;
  }
  uint64_t released() const override { return lane_->connection->released() - others_; }
  bool Save(uint64_t message, const Piece& source) override {
    return lane_->connection->Save(message + others_, source);
  }
  Progress TryTake(const Target& target, int64_t& budget) override {
    return lane_->connection->TryTake(target, budget);
  }
  Status health() const override { return lane_->connection->health(); }
  // All that was posted on it has been released.
  bool is_quiet() const { return lane_->connection->released() == lane_->posted; }

 private:
  Lane* lane_;
  uint64_t own_ = 0, others_ = 0;  // messages
};

// The ranks of this host.
struct LocalRanks {
  std::unique_ptr<LocalArea> area;  // null: all talk over TCP
  std::vector<int32_t> index;       // by rank: its place in the area, -1 on other hosts
  // Numbers of the processes, by place in the area, where all may read each other's memory; else empty.
  std::vector<int64_t> processes = {};
};

class Lanes {
 public:
  // The channel of messages that no plan sends.
  static constexpr int32_t kDirectChannel = 1 << 30;

  Lanes(int32_t rank, std::unique_ptr<TcpTransport> transport, std::vector<Endpoint> peers,
        LocalRanks local);

  Lane& To(int32_t peer, int32_t channel);
  Lane& From(int32_t peer, int32_t channel);
  // Of the call whose messages are posted and taken from now on.
  void SetSignature(uint64_t signature);
  // Moves what can be moved. True: something was.
  bool Poll();
  // Waits for at most a few milliseconds until something may have happened; not if `look`, which is
  // asked after the others know that this rank is about to sleep, says that something has.
  template <class Look>
  void Sleep(Look look) {
    if (local_.area == nullptr) {
      transport_->Poll(kWaitMs);
      return;
    }
    BellState& mine = own_bell();
    const uint32_t bell = mine.bell.load();
    mine.sleeps.store(uses_tcp_ ? Sleeps::kOnSockets : Sleeps::kOnBell);
    if (!look() && !Poll()) Wait(bell);
    mine.sleeps.store(Sleeps::kNo);
  }
  // After an operation: nothing of it stays unsaid.
  void Flush() {
    if (uses_tcp_) transport_->Poll(0);
  }
  // All connections end without a word.
  void Break();

  // All ranks of this host but this one.
  void WakeOthers();

  // Where all ranks are on this host, else null.
  LocalArea* common_area() const { return all_local_ ? local_.area.get() : nullptr; }
  // So often a rank looks around before it sleeps.
  int spins() const { return crowded_ ? kCrowdedSpins : kSpins; }
  bool is_crowded() const { return crowded_; }

 private:
  using Key = std::pair<int32_t, int32_t>;  // peer, channel
  static constexpr int kSpins = 2000, kCrowdedSpins = 50;
  static constexpr int kWaitMs = 2;  // somebody may have aborted

  int32_t LocalIndex(int32_t peer) const { return local_.index[static_cast<size_t>(peer)]; }
  bool HasRing(int32_t peer, int32_t channel) const {
    return local_.area != nullptr && LocalIndex(peer) >= 0 &&
           (channel == 0 || channel == kDirectChannel);
  }
  RingChannel ChannelOf(int32_t from, int32_t to, int32_t channel);
  BellState& own_bell() const { return local_.area->bell(LocalIndex(rank_)); }
  void Wait(uint32_t bell);

  int32_t rank_;
  std::unique_ptr<TcpTransport> transport_;
  std::vector<Endpoint> peers_;  // by rank: where each listens
  LocalRanks local_;
  WakeSocket wake_;
  uint32_t woken_ = 0;            // what epoll says of its socket
  std::vector<LocalBell> bells_;  // by place in the area
  bool all_local_ = false, crowded_ = false, uses_tcp_ = false, broken_ = false;
  uint64_t signature_ = 0;
  std::deque<RingSender> ring_senders_;
  std::deque<RingReceiver> ring_receivers_;
  std::map<Key, Lane> to_, from_;  // addresses stay
};

}  // namespace tutti
