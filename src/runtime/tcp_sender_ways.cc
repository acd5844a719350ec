// The part of TcpSender that looks for another way through the network where nothing comes back.

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tcp_sender.h"
#include "tcp_socket.h"
#include "wire_state.h"

namespace tutti {

TcpSender::Silence TcpSender::LookAtKernel() {
  constexpr std::chrono::milliseconds kDelayedAck{60};  // the other kernel waits 40 at most
  const std::optional<WireState> wire = LookAtWire(fd_);
  if (!wire) return {};
  Silence silence;
  // A receiver without room drops what comes: that stays unacknowledged, but its kernel answers when it is repeated.
  if (wire->repeats != repeats_) {
    repeats_ = wire->repeats;
    heard_before_repeat_ = answers_heard_;
  }
  answers_heard_ = wire->answers_heard;
  const bool no_room =
      repeats_ == 0 ? wire->no_room_us != no_room_us_ : answers_heard_ != heard_before_repeat_;
  no_room_us_ = wire->no_room_us;
  silence.waits =
      (wire->unacked > 0 && !no_room) || wire->probes > 0 || stage_ == Stage::kConnecting;
  silence.heard = wire->acked_bytes != acked_bytes_;
  silence.is_idle = stage_ != Stage::kConnecting && wire->unacked == 0 && wire->unsent_bytes == 0;
  // That a connection is made and greets shows nothing of longer packets.
  if (silence.heard && wire->acked_bytes > 1 + tcp::kHelloBytes) in_vain_ = {};
  acked_bytes_ = wire->acked_bytes;
  // Before anything was answered the kernel's deviation is a second.
  if (wire->rtt_us > 0)
    silence.round_trip = std::chrono::microseconds(wire->rtt_us + 4 * wire->rtt_deviation_us);
  std::chrono::nanoseconds limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options_.silence_s));
  if (stage_ == Stage::kConnecting) {
    // Nothing is known of the round trip yet: it may be longer than that. What is under way goes on.
    constexpr int kTriesAlike = 4, kMostDoublings = 5;
    limit = std::max<std::chrono::nanoseconds>(5 * limit, kDelayedAck) *
            (1 << std::min(rounds_in_vain_ / kTriesAlike, kMostDoublings));
  } else if (options_.is_suspect && options_.is_suspect(source_.PortsOf(open_route_))) {
    limit = std::max(limit / 4, silence.round_trip);
  } else {
    if (wire->unacked <= 1) limit = std::max<std::chrono::nanoseconds>(limit, kDelayedAck);
    limit = std::max<std::chrono::nanoseconds>(
        limit, std::chrono::microseconds(3 * wire->rtt_us + 4 * wire->rtt_deviation_us));
  }
  // A link that is cut must not be found the later the more often queues were full.
  constexpr std::chrono::nanoseconds kMostPatient = std::chrono::milliseconds(300);
  const auto patient =
      std::chrono::duration_cast<std::chrono::nanoseconds>(limit * patience_factor_);
  silence.limit = std::max(limit, std::min(patient, kMostPatient));
  return silence;
}

bool TcpSender::Watch() {
  constexpr std::chrono::milliseconds kLook{2}, kMostCounted{5};
  const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
  if (now - last_look_ < kLook) return tries_others() && AdvanceStandbys();
  const bool was_watched = last_look_ != std::chrono::steady_clock::time_point{};
  // What passed while this rank did not run says nothing of the network.
  const auto passed = std::min<std::chrono::nanoseconds>(now - last_look_, kMostCounted);
  last_look_ = now;
  if (tries_others()) {
    in_vain_ += passed;
    return AdvanceStandbys();
  }
  const Silence silence = LookAtKernel();
  if (silence.heard) WasHeardFor(passed);
  if (!silence.waits || silence.heard || !was_watched) {
    if (silence.is_idle) Ask(passed);
    silent_ = {};
    return false;
  }
  silent_ += passed;
  in_vain_ += passed;
  if (silent_ < silence.limit) return false;
  return TryOthers();
}

void TcpSender::Ask(std::chrono::nanoseconds passed) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(200);
  const bool is_written = stage_ == Stage::kGreeted || (writing_ == posted_ && header_ == 0);
  if (!is_written) return;
  const auto least = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options_.silence_s));
  unanswered_for_ += passed;
  if (unanswered_for_ < std::max(least, ask_after_)) return;
  unanswered_for_ = {};
  ask_after_ = std::min(kMost, 2 * std::max(least, ask_after_));
  std::array<std::byte, tcp::kHeaderBytes> question{};
  tcp::PutWord(tcp::kQuestion, question.data() + 8);
  // A part of it would be taken for a part of a message.
  const ssize_t bytes = send(fd_, question.data(), question.size(), MSG_NOSIGNAL);
  if (bytes >= 0 && bytes != static_cast<ssize_t>(question.size())) Break();
}

bool TcpSender::TryOthers() {
  const double in_vain_s = std::chrono::duration<double>(in_vain_).count();
  const bool was_made = stage_ != Stage::kConnecting;  // else `patience_s` is the limit
  if (was_made && options_.max_failures > 0 && in_vain_s >= options_.in_vain_s) {
    Fail(fmt::format("nothing came back for {:.1f} s, by whatever way", in_vain_s));
    return true;
  }
  standbys_since_ = std::chrono::steady_clock::now();
  const size_t routes = 1 + source_.others.size();
  const bool has_own = routes > 1 && source_.PortsOf(open_route_).count > 1;
  ++route_;
  if (routes > 1 && route_ % routes == open_route_ % routes) ++route_;
  if (has_own) DialAll(same_, open_route_);
  DialAll(next_, route_);
  return tries_others();
}

void TcpSender::DialAll(Standbys& standbys, size_t route) {
  for (Standby& standby : standbys) {
    standby.fd = Dial(route);
    standby.ready = 0;
    if (standby.fd >= 0 && !tcp::Register(epoll_, standby.fd, standby.ready))
      close(std::exchange(standby.fd, -1));
  }
}

LostWay TcpSender::WayOf(size_t route) const {
  return {.peer = static_cast<int32_t>(hello_.receiver),
          .channel = static_cast<int32_t>(hello_.channel),
          .to = to_,
          .address = source_.address,
          .ports = source_.PortsOf(route),
          .silent_s = std::chrono::duration<double>(silent_).count()};
}

void TcpSender::BePatient() {
  constexpr double kMostPatience = 50;
  patience_factor_ = std::min(kMostPatience, 2 * patience_factor_);
  calm_ = {};
}

void TcpSender::WasHeardFor(std::chrono::nanoseconds passed) {
  constexpr std::chrono::seconds kCalm{1};
  calm_ += passed;
  if (calm_ < kCalm) return;
  patience_factor_ = std::max(1.0, patience_factor_ / 2);
  calm_ = {};
}

void TcpSender::CloseStandbys() {
  for (Standbys* standbys : {&same_, &next_})
    for (Standby& standby : *standbys)
      if (standby.fd >= 0) close(std::exchange(standby.fd, -1));
}

bool TcpSender::IsMade(Standby& standby) {
  if (standby.fd < 0 || (standby.ready & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return false;
  if (tcp::OutcomeOfConnecting(standby.fd) == 0) return true;
  close(std::exchange(standby.fd, -1));
  return false;
}

TcpSender::Standby* TcpSender::FindMade(Standbys& standbys) {
  const auto made = std::find_if(standbys.begin(), standbys.end(), IsMade);
  return made == standbys.end() ? nullptr : &*made;
}

bool TcpSender::AdvanceStandbys() {
  const Silence silence = LookAtKernel();
  if (silence.heard) {  // a false alarm
    CloseStandbys();
    route_ = open_route_;
    silent_ = {};
    dialled_in_vain_ = false;
    BePatient();
    return true;
  }
  if (Standby* made = FindMade(same_)) {
    Adopt(*made, open_route_);
    return true;
  }
  // The same way has as long to answer as it was silent, or as a round trip takes.
  const double round_trip_s = std::chrono::duration<double>(silence.round_trip).count();
  if (!AnyOpen(same_) ||
      tcp::HasPassed(standbys_since_, std::max(options_.silence_s, round_trip_s))) {
    if (Standby* made = FindMade(next_)) {
      if (options_.on_lost) options_.on_lost(WayOf(open_route_));
      Adopt(*made, route_);
      return true;
    }
  }
  const double dial_s = std::max(0.05, 2 * round_trip_s);
  if (tries_others() && !tcp::HasPassed(standbys_since_, dial_s)) return false;
  CloseStandbys();  // neither that way: the next one, but for the first time after a while
  if (stage_ == Stage::kConnecting) ++rounds_in_vain_;
  if (std::exchange(dialled_in_vain_, true)) silent_ /= 2;
  return true;
}

void TcpSender::Adopt(Standby& standby, size_t route) {
  // Nothing of the old one is sent any more.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  const int fd = std::exchange(standby.fd, -1);
  if (stage_ != Stage::kConnecting) {
    ++resumptions_;
    BePatient();  // where hosts or queues are slow the next way is as silent
  }
  Break();
  route_ = route;
  SetOpenRoute(route);
  fd_ = fd;
  ready_ = standby.ready;
  tcp::Register(epoll_, fd_, ready_, EPOLL_CTL_MOD);
  stage_ = Stage::kConnecting;
  silent_ = {};
  last_look_ = {};
  acked_bytes_ = no_room_us_ = 0;
  ForgetRepeats();
  dialled_in_vain_ = false;
}

}  // namespace tutti
