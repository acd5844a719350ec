// TcpReceiver: the end of a TCP connection that takes messages and acknowledges them: see tcp_transport.h.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "connection.h"
#include "tcp_frames.h"
#include "tcp_transport.h"

namespace tutti {

class TcpReceiver final : public Connection {
 public:
  TcpReceiver(const tcp::Hello& hello, const TcpOptions& options, int epoll);
  ~TcpReceiver() override;
  TcpReceiver(const TcpReceiver&) = delete;
  TcpReceiver& operator=(const TcpReceiver&) = delete;

  bool TryPost(const Piece&) override { return false; }
  uint64_t released() const override { return 0; }
  bool Save(uint64_t, const Piece&) override { return false; }
  Progress TryTake(const Target& target, int64_t& budget) override;
  Status health() const override { return health_; }

  const tcp::Hello& hello() const { return hello_; }
  int fd() const { return fd_; }  // -1: none is open
  // Takes over a socket that has said `hello()`.
  void Open(int fd);
  // Acknowledges what was taken.
  void SendAck();
  // Fails where no connection was made for too long.
  void Advance();
  // The system has had nothing left, as `error` (an errno) says, for `within_s` to accept connections of: fails where it has none.
  void FailUnaccepted(double within_s, int error);
  void Break();

 private:
  static constexpr size_t kStagingBytes = 64 * 1024;

  size_t staged() const { return staged_last_ - staged_first_; }
  // Up to `most` bytes. 0: there are none now, or the connection is over.
  size_t Receive(std::byte* to, size_t most);
  // Behind what is staged. False: no byte came.
  bool Stage(size_t most);
  bool ReadHeader(const Target& target);
  bool TakeBody(const Target& target, int64_t& budget);
  bool TakeStaged(const Target& target, int64_t& budget);
  // Tells the sender what was wanted, as this rank may end before its own messages get anywhere.
  void Refuse();
  // Reads into the place where it belongs.
  bool TakeDirectly(const Target& target, int64_t& budget);
  void Fail(const std::string& what, ErrorCode code = ErrorCode::kPeerFailed);

  tcp::Hello hello_;
  const TcpOptions& options_;  // of the transport
  int epoll_, fd_ = -1;
  uint32_t ready_ = 0;
  std::chrono::steady_clock::time_point closed_since_;
  std::vector<std::byte> staging_;
  size_t staged_first_ = 0, staged_last_ = 0;
  uint64_t received_ = 0, acked_ = 0;
  bool header_seen_ = false;  // on this socket
  Cursor cursor_;             // of the message being taken
  int64_t body_bytes_ = 0;    // of it
  std::array<std::byte, tcp::kAckBytes> ack_{};
  size_t ack_left_ = 0;
  Status health_;
};

}  // namespace tutti
