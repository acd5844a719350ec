// Epoch: the connections of one strategy of a communicator, and the operations of this daemon's ranks on them.
//
// Model       Ranks of the same daemon meet in memory, others over TCP; connections are made on first use along
//             the edges of the plans. An operation's plan is laid out once for all local ranks.
// Lifetime    Operations point to buffers of tenants: they end, or are dropped with the epoch, before
//             those go.
// Threads     The daemon's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "event_loop.h"
#include "lane.h"
#include "local_connection.h"
#include "metrics.h"
#include "move_helpers.h"
#include "operation.h"
#include "strategy.h"
#include "tcp_transport.h"

namespace tutti::service {

struct EpochOptions {
  uint32_t number = 0;
  uint64_t communicator = 0;
  tcp::Cookie cookie{};
  int32_t num_ranks = 1;
  std::vector<int32_t> local_ranks = {};  // in order
  std::vector<uint32_t> addresses = {};   // of each local rank: to listen at
  bool leaves_from_addresses = false;     // connections too, where no flow says otherwise
  std::function<void(int32_t from, const LostWay&)> on_lost = {};
  std::function<bool(const TcpPorts&)> is_suspect = {};
  MoveHelpers* helpers = nullptr;   // of the daemon; null: it has none
  PathBytes* path_bytes = nullptr;  // the same
};

class Epoch {
 public:
  // Listens where some rank is elsewhere.
  static Result<std::unique_ptr<Epoch>> Open(EventLoop& loop, std::shared_ptr<Strategy> strategy,
                                             const EpochOptions& options);
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  uint32_t number() const { return options_.number; }
  Strategy& strategy() const { return *strategy_; }
  const std::shared_ptr<Strategy>& shared_strategy() const { return strategy_; }
  bool one_host() const {
    return options_.local_ranks.size() == static_cast<size_t>(options_.num_ranks);
  }
  // Where local rank `local` (an index) listens.
  Endpoint endpoint(size_t local) const;
  void SetPeers(std::vector<Endpoint> peers) { peers_ = std::move(peers); }

  // A kept operation of a local rank, or a new one.
  Result<std::shared_ptr<PlanOperation>> OperationFor(size_t local, const PlannedSchedule& planned,
                                                      const PlanCall& call);
  LaneSource& lanes(size_t local);
  std::byte* Scratch(size_t local, int64_t bytes);
  // Moves what sockets of that rank can move. True: something was.
  bool PollSockets(size_t local);
  size_t connections() const { return num_connections_; }
  // Whatever its ranks have sent was taken. An operation may be over before: what it had saved is still on its way, and lost if the
  // epoch is closed.
  bool is_quiet() const;

 private:
  class RankLanes;
  struct Kept {
    std::pair<const PlannedSchedule*, PlanCall> key;
    std::shared_ptr<const PlanProgram> program;
    std::vector<std::shared_ptr<PlanOperation>> operations;  // by local rank
  };
  static constexpr size_t kMaxKept = 64;

  Epoch(EventLoop& loop, std::shared_ptr<Strategy> strategy, const EpochOptions& options);
  Status Listen();
  // Index of a local rank; -1: it is elsewhere.
  int32_t LocalIndex(int32_t rank) const;
  LocalConnection& Between(int32_t from, int32_t to, int32_t channel);
  Connection* SendTo(TcpTransport& transport, int32_t from, int32_t to, int32_t channel);

  EventLoop& loop_;
  std::shared_ptr<Strategy> strategy_;
  EpochOptions options_;
  std::vector<Endpoint> peers_;
  std::vector<Endpoint>
      of_gateway_;  // where it listens for us: a front each rank, then what leads to others
  std::vector<std::unique_ptr<TcpTransport>> transports_;  // by local rank; empty: none are needed
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::unique_ptr<LocalConnection>> between_;
  std::vector<std::unique_ptr<RankLanes>> lanes_;
  std::vector<std::vector<std::byte>> scratch_;
  std::list<Kept> kept_;  // the one used last first
  size_t num_connections_ = 0;
};

}  // namespace tutti::service
