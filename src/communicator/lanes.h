// Lanes: the lanes (lane.h) of one rank that is a process or thread: rings in memory to ranks of the same
// host, TCP to others.
//
// Threads     One.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "endpoint.h"
#include "lane.h"
#include "local_area.h"
#include "ring_connection.h"
#include "tcp_transport.h"

namespace tutti {

// The ranks of this host.
struct LocalRanks {
  std::unique_ptr<LocalArea> area;  // null: all talk over TCP
  std::vector<int32_t> index;       // by rank: its place in the area, -1 on other hosts
  // Numbers of the processes, by place in the area, where all may read each other's memory; else empty.
  std::vector<int64_t> processes = {};
};

class Lanes final : public LaneSource {
 public:
  Lanes(int32_t rank, std::unique_ptr<TcpTransport> transport, std::vector<Endpoint> peers,
        LocalRanks local);

  Lane& To(int32_t peer, int32_t channel) override;
  Lane& From(int32_t peer, int32_t channel) override;
  void SetSignature(uint64_t signature) override;
  void LetReceiversCopy(bool let) override { reference_bytes_ = let ? kReferenceBytes : 0; }
  // Moves what can be moved. True: something was.
  bool Poll();
  // Waits for at most a few milliseconds until something may have happened; not if `look`, which is
  // asked after the others know that this rank is about to sleep, says that something has.
  template <class Look>
  void Sleep(Look look) {
    if (local_.area == nullptr) {
      // Only an abort or the end of another rank comes by no socket of the transport.
      waits_ms_ = transport_->Poll(waits_ms_) ? kWaitMs : std::min(2 * waits_ms_, kMaxWaitMs);
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
  int spins() const { return crowded_ ? kCrowdedSpins : uses_tcp_ ? kSocketSpins : kSpins; }
  bool is_crowded() const { return crowded_; }

 private:
  using Key = std::pair<int32_t, int32_t>;  // peer, channel
  // A look at sockets is a system call, and the kernel likes to wake a rank on the core of the one that sent: two that spin there
  // take turns of milliseconds.
  static constexpr int kSpins = 3500, kSocketSpins = 200, kCrowdedSpins = 50;
  static constexpr int kWaitMs = 2, kMaxWaitMs = 32;  // somebody may have aborted
  static constexpr int64_t kReferenceBytes = int64_t{16} << 10;

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
  int waits_ms_ = kWaitMs;
  uint64_t signature_ = 0;
  int64_t reference_bytes_ = 0;  // of the operation that runs
  std::deque<RingSender> ring_senders_;
  std::deque<RingReceiver> ring_receivers_;
  std::map<Key, Lane> to_, from_;  // addresses stay
};

}  // namespace tutti
