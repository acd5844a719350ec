// Lane: one direction between this rank and a peer on a channel, whatever carries it; made on first use and
// shared by all operations.
//
// Model       Connections number their messages for ever, and an interpreter numbers those of its
//             executions from 0: a LaneEnd translates. Operations run one after the other, so that
//             between two of them nothing is under way.
// Threads     One.
#pragma once

#include <cstdint>

#include "connection.h"

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

// Where an operation gets the lanes of its rank from.
class LaneSource {
 public:
  // The channel of messages that no plan sends.
  static constexpr int32_t kDirectChannel = 1 << 30;

  virtual ~LaneSource() = default;
  // They live as long as the source.
  virtual Lane& To(int32_t peer, int32_t channel) = 0;
  virtual Lane& From(int32_t peer, int32_t channel) = 0;
  // Signature of the call whose messages are posted and taken from now on.
  virtual void SetSignature(uint64_t signature) = 0;
  // Whether large messages of the operation that begins are better copied by their receivers, from this rank's memory, than by
  // this rank for each of them.
  virtual void LetReceiversCopy(bool /*let*/) {}
};

}  // namespace tutti
