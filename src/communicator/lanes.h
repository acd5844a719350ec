// Lanes: the connections of one rank to the others, made on first use and shared by all operations.
//
// Model       A lane is one direction between this rank and a peer on a channel. Connections number
//             their messages for ever, and an interpreter numbers those of its executions from 0: a
//             LaneEnd translates. Operations run one after the other, so that between two of them
//             nothing is under way.
// Threads     One.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "connection.h"
#include "endpoint.h"
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
  // All that was posted on it has been taken.
  bool is_quiet() const { return lane_->connection->released() == lane_->posted; }

 private:
  Lane* lane_;
  uint64_t own_ = 0, others_ = 0;  // messages
};

class Lanes {
 public:
  // The channel of messages that no plan sends.
  static constexpr int32_t kDirectChannel = 1 << 30;

  Lanes(std::unique_ptr<TcpTransport> transport, std::vector<Endpoint> peers)
      : transport_(std::move(transport)), peers_(std::move(peers)) {}

  TcpTransport& transport() const { return *transport_; }
  Lane& To(int32_t peer, int32_t channel) {
    Lane& lane = to_[{peer, channel}];
    if (lane.connection == nullptr)
      lane.connection = transport_->SendTo(peer, peers_[static_cast<size_t>(peer)], channel);
    return lane;
  }
  Lane& From(int32_t peer, int32_t channel) {
    Lane& lane = from_[{peer, channel}];
    if (lane.connection == nullptr) lane.connection = transport_->ReceiveFrom(peer, channel);
    return lane;
  }

 private:
  using Key = std::pair<int32_t, int32_t>;  // peer, channel
  std::unique_ptr<TcpTransport> transport_;
  std::vector<Endpoint> peers_;    // by rank: where each listens
  std::map<Key, Lane> to_, from_;  // addresses stay
};

}  // namespace tutti
