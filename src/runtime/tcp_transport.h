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
// Silence     A way through the network may end without a word. Where the kernel has sent something and heard nothing
//             for `silence_s` (of time in which this rank ran; longer for one segment alone, whose receiver's
//             kernel may wait 40 ms before it answers, and where round trips take long), two connections are
//             tried: from another port of the same route, as answers may come back by another way, and from the ports
//             of the next one. Messages go on, at the byte the receiver asks for, over that of the same route if it is
//             made, over the other one if the same route stays silent for `silence_s` more, over the old one if that is
//             heard before. Of each several are tried, as the answers to some ports may come back by a way that is cut too. A false
//             alarm costs these connections. After each
//             the sender waits twice as long the next time, up to 0.3 s: what is silent on one way after the other is a slow host;
//             a second of acknowledgements halves that. So it is while a connection is being made, which goes on meanwhile. A
//             sender all of whose bytes the kernel has acknowledged, but not the receiver, asks by a header that is none.
//             What the receiver's window stops is asked about at the intervals of the kernel's probes only.
// Ports       Source ports are chosen from a range where one is given: networks route by them. The
//             next one is taken where one is in use.
// Strangers   What connects and does not send a valid Hello is closed after 64 bytes or
//             kHelloPatience; at most kHalfOpen wait at once.
// Errors      A connection fails, naming the other rank, when it could not be made (again) within
//             `patience_s`, 0.3 s after it was closed or reset `max_failures` times within kFailureWindow, when no byte of a message
//             was acknowledged for `in_vain_s` by whatever way, or when the other end runs another call or breaks the protocol.
//             However many ways were left, bytes that come show that the receiver lives, and how slow it is, nobody knows.
//             kResourceExhausted: for `in_vain_s` there were no descriptors, or no memory, to make it of, or to accept
//             one that came to this rank.
// Threads     One; ranks in threads each have their own.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "connection.h"
#include "endpoint.h"
#include "resource_scarcity.h"
#include "tcp_frames.h"
#include "tutti/base/deadline.h"
#include "tutti/base/result.h"

namespace tutti {

class Interpreter;

struct TcpPorts {
  uint16_t first = 0, count = 0;  // none: the kernel chooses
  friend auto operator<=>(const TcpPorts&, const TcpPorts&) = default;
};

// Where a connection leaves from: an address of this host, and the range that its port is of.
struct TcpSource {
  IpAddress address = INADDR_ANY;          // any: the host's routes say
  uint16_t first_port = 0, num_ports = 0;  // none: the kernel chooses
  std::vector<TcpPorts> others = {};       // of other routes, taken in turn when that one is silent

  // Source port of the `route`-th path, from 0 on, in turn.
  TcpPorts PortsOf(size_t route) const {
    const size_t at = route % (1 + others.size());
    return at == 0 ? TcpPorts{first_port, num_ports} : others[at - 1];
  }
};

// A way that was left because nothing came back.
struct LostWay {
  int32_t peer = 0, channel = 0;
  Endpoint to;
  IpAddress address = INADDR_ANY;  // of this host, and the ports of the route
  TcpPorts ports;
  double silent_s = 0;
};

// Within TcpTransport::kFailureWindow, where programs run.
inline constexpr int32_t kMostFailures = 3;

struct TcpOptions {
  uint64_t communicator = 0, epoch = 0;
  tcp::Cookie cookie{};
  uint64_t signature = 0;               // of the call: both ends must run the same
  IpAddress address = INADDR_LOOPBACK;  // of this host: to listen at
  TcpSource source = {};                // of connections that do not say
  double patience_s = 5;
  std::chrono::milliseconds retry{5};  // between attempts to connect
  double silence_s = 0.02;             // 0: never
  int32_t max_failures = 0;            // 0: any number, and in vain for any time
  double in_vain_s = 10;               // of time in which this rank ran
  // Congestion control of what is sent, as the kernel names it; empty: TUTTI_TCP_CONGESTION, else the kernel's default.
  std::string congestion = {};
  std::function<void(const LostWay&)> on_lost = {};
  // Another connection has left the route of these ports of late: silence of a round trip is enough.
  std::function<bool(const TcpPorts&)> is_suspect = {};
  // Where bytes are counted that leave from such ports; must outlive the transport.
  std::function<int64_t*(const TcpPorts&)> counter_of = {};
};

class TcpSender;
class TcpReceiver;

class TcpTransport final : public PeerTransport {
 public:
  static constexpr std::chrono::milliseconds kHelloPatience{1000};
  static constexpr size_t kHalfOpen = 64;
  static constexpr std::chrono::seconds kFailureWindow{10};

  // Listens on a port of options.address that the kernel chooses.
  static Result<std::unique_ptr<TcpTransport>> Listen(int32_t rank, const TcpOptions& options);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  // Signature of the call whose messages are posted and taken from now on.
  void SetSignature(uint64_t signature) { options_.signature = signature; }
  // To the rank that listens at `to`. The connection is made by and by; messages may be posted.
  Connection* SendTo(int32_t peer, const Endpoint& to, int32_t channel) {
    return SendTo(peer, to, channel, options_.source);
  }
  Connection* SendTo(int32_t peer, const Endpoint& to, int32_t channel, const TcpSource& source);
  // To where SetPeers() said that the peer listens.
  Connection* SendTo(int32_t peer, int32_t channel) override {
    return SendTo(peer, peers_[static_cast<size_t>(peer)], channel);
  }
  void SetPeers(std::vector<Endpoint> by_rank) { peers_ = std::move(by_rank); }
  Connection* ReceiveFrom(int32_t peer, int32_t channel) override;

  // Poll() returns early when this socket can be read; `ready` gets what epoll reports of it.
  void Watch(int fd, uint32_t& ready);
  // Can be read when Poll() has something to do.
  int poll_fd() const { return epoll_; }
  // Does what sockets are ready for; waits at most `wait_ms` for that. True: something happened.
  bool Poll(int wait_ms) override;
  // For tests: ends all connections as a network would, without a word to the other side.
  void Break();
  // For tests: from now on what comes to this rank from source ports `first` to `last` is lost without a word, as where a
  // route is cut; of connections that are there, and of those to come. Mend() ends that.
  void Cut(uint16_t first = 0, uint16_t last = UINT16_MAX);
  void Mend();
  // Likewise all that comes back to its senders over the connections that they have.
  void CutAnswers();
  // Connections that go on another way, so far.
  int64_t resumptions() const;
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
  bool somebody_waits_ = false;  // to be accepted
  ResourceScarcity scarcity_;    // of accepting
  Endpoint endpoint_;
  std::vector<Endpoint> peers_;
  std::deque<Stranger> strangers_;
  std::deque<Early> early_;
  std::vector<std::unique_ptr<TcpSender>> senders_;
  std::vector<std::unique_ptr<TcpReceiver>> receivers_;
};

// One execution of the interpreter, over this transport, until it is over. kPeerFailed: a connection
// failed, or the deadline passed.
Status RunToEnd(Interpreter& interpreter, TcpTransport& transport, const Deadline& deadline);

}  // namespace tutti
