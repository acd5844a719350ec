// TcpSender: the end of a TCP connection that connects, sends messages and hears what was taken: see tcp_transport.h.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "connection.h"
#include "posted_message.h"
#include "resource_scarcity.h"
#include "tcp_frames.h"
#include "tcp_transport.h"

namespace tutti {

class TcpSender final : public Connection {
 public:
  TcpSender(const tcp::Hello& hello, const TcpOptions& options, int epoll, const Endpoint& to,
            const TcpSource& source);
  ~TcpSender() override;
  TcpSender(const TcpSender&) = delete;
  TcpSender& operator=(const TcpSender&) = delete;

  bool TryPost(const Piece& source) override;
  uint64_t released() const override { return released_; }
  bool Save(uint64_t message, const Piece& source) override;
  Progress TryTake(const Target&, int64_t&) override { return Progress::kNothing; }
  Status health() const override { return health_; }

  // Connects, reads what came back, writes what is posted. True: something happened.
  bool Advance();
  void Break();
  int64_t resumptions() const { return resumptions_; }
  int fd() const { return fd_; }  // -1: none

 private:
  enum class Stage : uint8_t { kClosed, kConnecting, kGreeted, kOpen, kFailed };

  // Connections tried while that which is there is silent: several, since the answers to some ports may come back by a way that
  // is cut.
  struct Standby {
    int fd = -1;  // -1: none
    uint32_t ready = 0;
  };
  using Standbys = std::array<Standby, 4>;

  // A connection of that route, that is being made. -1: none can be made now.
  int Dial(size_t route);
  bool Connect();
  bool BindSource(int fd, size_t route);
  // It was closed or reset: where that was too often it is not made again and fails soon.
  void Lose(const std::string& why);
  // Looks whether anything comes back. True: something happened.
  bool Watch();
  // The way of the connection, which may still be being made, is silent: others, unless all are, for too long.
  bool TryOthers();
  bool tries_others() const { return AnyOpen(same_) || AnyOpen(next_); }
  static bool AnyOpen(const Standbys& standbys) {
    return std::any_of(standbys.begin(), standbys.end(),
                       [](const auto& one) { return one.fd >= 0; });
  }
  void DialAll(Standbys& standbys, size_t route);
  bool AdvanceStandbys();
  void CloseStandbys();
  static bool IsMade(Standby& standby);
  static Standby* FindMade(Standbys& standbys);
  LostWay WayOf(size_t route) const;
  // The connection that it has is of that route from now on.
  void SetOpenRoute(size_t route);
  // Waits twice as long from now on before it looks for another way; half of that again after a second of acknowledgements.
  void BePatient();
  void WasHeardFor(std::chrono::nanoseconds passed);
  // Messages go on over it.
  void Adopt(Standby& standby, size_t route);
  // What the kernel has heard of the receiver since the last look; how long it has waited in vain.
  struct Silence {
    bool waits = false, heard = false, is_idle = false;
    std::chrono::nanoseconds limit{0}, round_trip{0};
  };
  Silence LookAtKernel();
  // All is written and the kernel has it acknowledged, but what the receiver says itself does not come: the way back may be
  // cut, which shows in what is sent then.
  void Ask(std::chrono::nanoseconds passed);
  void WasAnswered() { unanswered_for_ = ask_after_ = {}; }
  void ForgetRepeats() { repeats_ = answers_heard_ = heard_before_repeat_ = 0; }
  bool Greet();
  std::string WhyNotMade(double within_s) const;
  // The system has nothing left to make a connection of, for too long: then it fails with what is short.
  void CheckScarcity();
  // Reads `size` bytes of what comes back. True: they are all there.
  bool ReadBack(size_t size);
  bool ReadWelcome();
  bool ReadAcks();
  // What came back last is, or begins, a refusal.
  bool IsRefused() const;
  bool Write();
  // The receiver has closed: perhaps it has said why.
  void BreakAfterReading();
  void BeginMessage();
  // Puts what is to be written next into `parts`; their number.
  size_t Gather(iovec* parts, size_t most);
  void Wrote(int64_t bytes);
  void Fail(const std::string& what, ErrorCode code = ErrorCode::kPeerFailed);

  tcp::Hello hello_;
  const TcpOptions& options_;  // of the transport
  int epoll_, fd_ = -1;
  uint32_t ready_ = 0;  // EPOLLIN, EPOLLOUT: what epoll has reported and no call has used up
  Endpoint to_;
  TcpSource source_;
  int32_t next_source_ = 0;  // within its ports
  size_t route_ = 0;         // that it tried last
  size_t open_route_ = 0;    // of the connection that it has
  int64_t* sent_ = nullptr;  // bytes by that route are counted here; null: they are not
  // By other ports of the route of the connection, where it has one of several; and by the route in turn.
  Standbys same_, next_;
  std::chrono::steady_clock::time_point standbys_since_, last_look_;
  std::chrono::nanoseconds silent_{0};   // of this rank's running time
  std::chrono::nanoseconds in_vain_{0};  // on all ways: since the receiver had some of a message
  bool dialled_in_vain_ = false;         // since it was heard
  std::chrono::nanoseconds unanswered_for_{0},
      ask_after_{0};                  // since the receiver said something, or was asked
  int rounds_in_vain_ = 0;            // rounds of attempts to connect, since one was
  double patience_factor_ = 1;        // after ways that were silent, or seemed so
  std::chrono::nanoseconds calm_{0};  // of acknowledgements, since that changed
  uint64_t acked_bytes_ = 0, no_room_us_ = 0;
  // Of the connection: what the kernel has repeated, answers that came, and those before it repeated last.
  uint32_t repeats_ = 0, answers_heard_ = 0, heard_before_repeat_ = 0;
  std::deque<std::chrono::steady_clock::time_point> failures_;
  std::string lost_too_often_;  // why it fails soon; empty: it does not
  int64_t resumptions_ = 0;
  Stage stage_ = Stage::kClosed;
  std::chrono::steady_clock::time_point closed_since_, next_try_;
  int refused_ = 0;  // errno of the last attempt to connect
  ResourceScarcity scarcity_;
  std::array<PostedMessage, kWindow> window_;
  uint64_t posted_ = 0, released_ = 0;
  uint64_t writing_ = 0;  // message
  int64_t body_ = 0;      // bytes of it, or to be resumed at
  int64_t body_bytes_ = 0;
  size_t header_ = 0;  // bytes of its header that are written
  std::array<std::byte, tcp::kHeaderBytes> header_bytes_{};
  std::array<std::byte, tcp::kWelcomeBytes> back_{};
  size_t back_have_ = 0;
  Status health_;
};

}  // namespace tutti
