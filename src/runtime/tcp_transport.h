// TcpTransport: the TCP connections of one rank, driven by one epoll, never blocking.
//
// Model       A rank listens on one port; for each connection of the plan (sender, receiver,
//             channel) the sender connects, says who it is (Hello), and learns from where to go on
//             (Welcome). Message bytes go straight from the buffers of the sender; a receiver puts
//             what is only copied straight into its place, and passes what is reduced through a
//             staging piece of 64 KiB.
//             A message is released when the receiver has acknowledged it, so that all that is not
//             still lies in place (or is saved): a connection that breaks is made again and goes on
//             at the byte the receiver asks for; no byte goes twice into a sum.
// Ports       Source ports are chosen from a range where one is given: networks route by them. The
//             next one is taken where one is in use.
// Strangers   What connects and does not send a valid Hello is closed after 64 bytes or
//             kHelloPatience; at most kHalfOpen wait at once.
// Errors      A connection fails, naming the other rank, when it could not be made (again) within
//             `patience_s`, or when the other end runs another call or breaks the protocol.
// Threads     One; ranks in threads each have their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "connection.h"
#include "endpoint.h"
#include "tcp_frames.h"
#include "tutti/base/deadline.h"
#include "tutti/base/result.h"

namespace tutti {

class Interpreter;

// Where a connection leaves from: an address of this host, and the range that its port is of.
struct TcpSource {
  uint32_t address = INADDR_ANY;           // any: the host's routes say
  uint16_t first_port = 0, num_ports = 0;  // none: the kernel chooses
};

struct TcpOptions {
  uint64_t communicator = 0, epoch = 0;
  tcp::Cookie cookie{};
  uint64_t signature = 0;              // of the call: both ends must run the same
  uint32_t address = INADDR_LOOPBACK;  // of this host, in its order: to listen at
  TcpSource source = {};               // of connections that do not say
  double patience_s = 5;
};

class TcpSender;
class TcpReceiver;

class TcpTransport {
 public:
  static constexpr std::chrono::milliseconds kHelloPatience{1000};
  static constexpr size_t kHalfOpen = 64;

  // Listens on a port of options.address that the kernel chooses.
  static Result<std::unique_ptr<TcpTransport>> Listen(int32_t rank, const TcpOptions& options);
  ~TcpTransport();
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  // Of the call whose messages are posted and taken from now on.
  void SetSignature(uint64_t signature) { options_.signature = signature; }
  // To the rank that listens at `to`. The connection is made by and by; messages may be posted.
  Connection* SendTo(int32_t peer, const Endpoint& to, int32_t channel) {
    return SendTo(peer, to, channel, options_.source);
  }
  Connection* SendTo(int32_t peer, const Endpoint& to, int32_t channel, const TcpSource& source);
  Connection* ReceiveFrom(int32_t peer, int32_t channel);

  // Poll() returns early when this socket can be read; `ready` gets what epoll reports of it.
  void Watch(int fd, uint32_t& ready);
  // Can be read when Poll() has something to do.
  int poll_fd() const { return epoll_; }
  // Does what sockets are ready for; waits at most `wait_ms` for that. True: something happened.
  bool Poll(int wait_ms);
  // For tests: ends all connections as a network would, without a word to the other side.
  void Break();
  size_t half_open() const { return strangers_.size(); }

 private:
  struct Stranger {
    int fd = -1;
    size_t have = 0;
    std::chrono::steady_clock::time_point until;
    std::array<std::byte, tcp::kHelloBytes> bytes{};
  };

  // A peer that connected before this rank asked for the connection.
  struct Early {
    int fd = -1;
    std::array<std::byte, tcp::kHelloBytes> hello{};
  };
  static constexpr size_t kMaxEarly = 4096;

  TcpTransport(int32_t rank, const TcpOptions& options);
  Status Open();
  // The hello of a connection of this rank, whoever sends it.
  bool IsOurs(const std::array<std::byte, tcp::kHelloBytes>& hello) const;
  void Accept();
  // True: the stranger was served or closed.
  bool Hear(Stranger& stranger);
  bool HearAll();

  int32_t rank_;
  TcpOptions options_;
  int listener_ = -1, epoll_ = -1;
  Endpoint endpoint_;
  std::deque<Stranger> strangers_;
  std::deque<Early> early_;
  std::vector<std::unique_ptr<TcpSender>> senders_;
  std::vector<std::unique_ptr<TcpReceiver>> receivers_;
};

// One execution of the interpreter, over this transport, until it is over. kPeerFailed: a connection
// failed, or the deadline passed.
Status RunToEnd(Interpreter& interpreter, TcpTransport& transport, const Deadline& deadline);

}  // namespace tutti
