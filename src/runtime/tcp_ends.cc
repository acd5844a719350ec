#include "tcp_ends.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "endpoint.h"
#include "wire_state.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRetry{5};
constexpr int64_t kMaxAtOnce = 1 << 20;  // bytes written before others get their turn
constexpr size_t kParts = 16;
constexpr int64_t kDirectly = 4096;  // bytes from which on staging is not worth its copy

bool HasPassed(Clock::time_point since, double seconds) {
  return std::chrono::duration<double>(Clock::now() - since).count() > seconds;
}

// False: the system watches no more descriptors, and errno says so.
bool Register(int epoll, int fd, uint32_t& ready, int how = EPOLL_CTL_ADD) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &ready;
  return epoll_ctl(epoll, how, fd, &event) == 0;
}

}  // namespace

bool SetCongestion(int fd, const std::string& name) {
  return name.empty() || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                    static_cast<socklen_t>(name.size())) == 0;
}

// --- Sender -------------------------------------------------------------------------------------

TcpSender::TcpSender(const tcp::Hello& hello, const TcpOptions& options, int epoll,
                     const Endpoint& to, const TcpSource& source)
    : hello_(hello),
      options_(options),
      epoll_(epoll),
      to_(to),
      source_(source),
      closed_since_(Clock::now()) {}

TcpSender::~TcpSender() { Break(); }

void TcpSender::Fail(const std::string& what, ErrorCode code) {
  Break();
  stage_ = Stage::kFailed;
  health_ = MakeError(code, fmt::format("connection {} -> {} channel {}: {}", hello_.sender,
                                        hello_.receiver, hello_.channel, what));
}

void TcpSender::Break() {
  CloseStandbys();
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  back_have_ = 0;
  if (stage_ == Stage::kOpen) closed_since_ = Clock::now();
  if (stage_ != Stage::kFailed) stage_ = Stage::kClosed;
}

bool TcpSender::BindSource(int fd, size_t route) {
  const TcpPorts of_route = source_.PortsOf(route);
  if (of_route.count == 0 && source_.address.is_any()) return true;
  const int32_t ports = std::max<int32_t>(1, of_route.count);  // port 0: any
  next_source_ %= ports;
  for (int32_t tries = 0; tries < ports; ++tries) {
    const Endpoint source{source_.address, static_cast<uint16_t>(of_route.first + next_source_)};
    next_source_ = (next_source_ + 1) % ports;
    if (BindTo(fd, source) == 0) return true;
  }
  return false;
}

int TcpSender::Dial(size_t route) {
  const int fd = TcpSocket(to_, SOCK_NONBLOCK);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  HastenRepeats(fd);
  SetCongestion(fd, options_.congestion);  // which the transport has tried
  const bool under_way = BindSource(fd, route) && (ConnectTo(fd, to_) == 0 || errno == EINPROGRESS);
  if (under_way) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

bool TcpSender::Connect() {
  if (Clock::now() < next_try_) return false;
  next_try_ = Clock::now() + kRetry;
  fd_ = Dial(route_);
  if (fd_ < 0) {
    refused_ = errno;
    CheckScarcity();
    return false;
  }
  SetOpenRoute(route_);
  stage_ = Stage::kConnecting;
  ForgetRepeats();
  silent_ = {};
  last_look_ = {};
  ready_ = 0;
  if (Register(epoll_, fd_, ready_)) {
    scarcity_.End();
    return true;
  }
  refused_ = errno;
  Break();
  CheckScarcity();
  return false;
}

void TcpSender::CheckScarcity() {
  if (scarcity_.LastsTooLong(refused_, options_.in_vain_s))
    Fail(WhyNotMade(options_.in_vain_s), ErrorCode::kResourceExhausted);
}

void TcpSender::SetOpenRoute(size_t route) {
  open_route_ = route;
  if (options_.counter_of) sent_ = options_.counter_of(source_.PortsOf(route));
}

bool TcpSender::Greet() {
  if ((ready_ & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return false;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  refused_ = error;
  const auto bytes = tcp::Encode(hello_);
  // A new socket takes so little at once.
  const bool greeted = error == 0 && send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                                         static_cast<ssize_t>(bytes.size());
  if (greeted)
    stage_ = Stage::kGreeted;
  else
    Break();
  return true;
}

bool TcpSender::ReadBack(size_t size) {
  if ((ready_ & ~static_cast<uint32_t>(EPOLLOUT)) == 0) return false;
  const ssize_t bytes = recv(fd_, back_.data() + back_have_, size - back_have_, 0);
  if (bytes > 0) {
    back_have_ += static_cast<size_t>(bytes);
    return back_have_ == size;
  }
  if (bytes < 0 && WouldBlock())
    ready_ &= static_cast<uint32_t>(EPOLLOUT);
  else
    Lose("it was closed");
  return false;
}

void TcpSender::Lose(const std::string& why) {
  const bool was_open = stage_ == Stage::kOpen;
  Break();
  if (!was_open || options_.max_failures == 0) return;
  const Clock::time_point now = Clock::now();
  failures_.push_back(now);
  while (now - failures_.front() > TcpTransport::kFailureWindow) failures_.pop_front();
  if (failures_.size() >= static_cast<size_t>(options_.max_failures))
    Fail(fmt::format("was lost {} times within {} s, last because {}", failures_.size(),
                     TcpTransport::kFailureWindow.count(), why));
}

// --- Another way, where nothing comes back

TcpSender::Silence TcpSender::LookAtKernel() {
  constexpr std::chrono::milliseconds kDelayedAck{60};  // the other kernel waits 40 at most
  const std::optional<WireState> wire = LookAtWire(fd_);
  if (!wire) return {};
  Silence silence;
  // A receiver without room drops what comes: that stays unacknowledged, but its kernel answers when it is repeated.
  if (wire->repeats != repeats_) {
    repeats_ = wire->repeats;
    heard_before_repeat_ = segments_heard_;
  }
  segments_heard_ = wire->segments_heard;
  const bool no_room =
      repeats_ == 0 ? wire->no_room_us != no_room_us_ : segments_heard_ != heard_before_repeat_;
  no_room_us_ = wire->no_room_us;
  silence.waits =
      (wire->unacked > 0 && !no_room) || wire->probes > 0 || stage_ == Stage::kConnecting;
  silence.heard = wire->acked_bytes != acked_bytes_;
  // That a connection is made and greets shows nothing of longer packets.
  if (silence.heard && wire->acked_bytes > 1 + tcp::kHelloBytes) in_vain_ = {};
  acked_bytes_ = wire->acked_bytes;
  std::chrono::nanoseconds limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options_.silence_s));
  if (stage_ == Stage::kConnecting) {
    limit = std::max<std::chrono::nanoseconds>(5 * limit, kDelayedAck);
  } else if (options_.is_suspect && options_.is_suspect(source_.PortsOf(open_route_))) {
    limit = std::max<std::chrono::nanoseconds>(
        limit / 4, std::chrono::microseconds(wire->rtt_us + 4 * wire->rtt_deviation_us));
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
  const Clock::time_point now = Clock::now();
  if (now - last_look_ < kLook) return tries_others() && AdvanceStandbys();
  const bool was_watched = last_look_ != Clock::time_point{};
  // What passed while this rank did not run says nothing of the network.
  const auto passed = std::min<std::chrono::nanoseconds>(now - last_look_, kMostCounted);
  last_look_ = now;
  if (tries_others()) {
    in_vain_ += passed;
    return AdvanceStandbys();
  }
  const Silence silence = LookAtKernel();
  if (!silence.waits || silence.heard || !was_watched) {
    silent_ = {};
    return false;
  }
  silent_ += passed;
  in_vain_ += passed;
  if (silent_ < silence.limit) return false;
  return stage_ == Stage::kConnecting ? TryNextRoute() : TryOthers();
}

bool TcpSender::TryNextRoute() {
  if (options_.on_lost) options_.on_lost(WayOf(route_));
  Break();
  ++route_;
  return true;
}

bool TcpSender::TryOthers() {
  const double in_vain_s = std::chrono::duration<double>(in_vain_).count();
  if (options_.max_failures > 0 && in_vain_s >= options_.in_vain_s) {
    Fail(fmt::format("nothing came back for {:.1f} s, by whatever way", in_vain_s));
    return true;
  }
  standbys_since_ = Clock::now();
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
    if (standby.fd >= 0 && !Register(epoll_, standby.fd, standby.ready))
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
}

void TcpSender::CloseStandbys() {
  for (Standbys* standbys : {&same_, &next_})
    for (Standby& standby : *standbys)
      if (standby.fd >= 0) close(std::exchange(standby.fd, -1));
}

bool TcpSender::IsMade(Standby& standby) {
  if (standby.fd < 0 || (standby.ready & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return false;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(standby.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return true;
  close(std::exchange(standby.fd, -1));
  return false;
}

TcpSender::Standby* TcpSender::FindMade(Standbys& standbys) {
  const auto made = std::find_if(standbys.begin(), standbys.end(), IsMade);
  return made == standbys.end() ? nullptr : &*made;
}

bool TcpSender::AdvanceStandbys() {
  constexpr double kDial_s = 0.05;
  if (LookAtKernel().heard) {  // a false alarm
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
  // The same way has as long to answer as it was silent.
  if (!AnyOpen(same_) || HasPassed(standbys_since_, options_.silence_s)) {
    if (Standby* made = FindMade(next_)) {
      if (options_.on_lost) options_.on_lost(WayOf(open_route_));
      Adopt(*made, route_);
      return true;
    }
  }
  if (tries_others() && !HasPassed(standbys_since_, kDial_s)) return false;
  CloseStandbys();  // neither that way: the next one, but for the first time after a while
  if (std::exchange(dialled_in_vain_, true)) silent_ /= 2;
  return true;
}

void TcpSender::Adopt(Standby& standby, size_t route) {
  // Nothing of the old one is sent any more.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  const int fd = std::exchange(standby.fd, -1);
  Break();
  ++resumptions_;
  BePatient();  // where hosts or queues are slow the next way is as silent
  route_ = route;
  SetOpenRoute(route);
  fd_ = fd;
  ready_ = standby.ready;
  Register(epoll_, fd_, ready_, EPOLL_CTL_MOD);
  stage_ = Stage::kConnecting;
  silent_ = {};
  last_look_ = {};
  acked_bytes_ = no_room_us_ = 0;
  ForgetRepeats();
  dialled_in_vain_ = false;
}

bool TcpSender::ReadWelcome() {
  if (!ReadBack(tcp::kWelcomeBytes)) return false;
  back_have_ = 0;
  const tcp::ResumePoint from{tcp::WordAt(back_.data() + 8), tcp::WordAt(back_.data() + 16)};
  const bool known = from.message >= released_ && from.message <= posted_;
  if (tcp::WordAt(back_.data()) != tcp::kWelcomeMagic || !known) {
    Fail(fmt::format("asked to go on at message {} of {} to {}", from.message, released_, posted_));
    return true;
  }
  released_ = writing_ = from.message;
  header_ = 0;
  body_ = static_cast<int64_t>(from.byte);
  if (writing_ < posted_) BeginMessage();
  const int64_t most = writing_ < posted_ ? body_bytes_ : 0;
  if (body_ < 0 || body_ > most)
    Fail(fmt::format("asked to go on at byte {} of {}", from.byte, most));
  else
    stage_ = Stage::kOpen;
  return true;
}

bool TcpSender::IsRefused() const {
  return back_have_ >= tcp::kAckBytes && tcp::WordAt(back_.data()) == tcp::kRefusalMagic;
}

bool TcpSender::ReadAcks() {
  bool any = false;
  while (stage_ == Stage::kOpen && ReadBack(IsRefused() ? tcp::kRefusalBytes : tcp::kAckBytes)) {
    any = true;
    if (IsRefused()) {
      if (back_have_ == tcp::kRefusalBytes)
        Fail(fmt::format(
            "the receiver wanted message {} of call {:016x}, not of call {:016x}: the "
            "ranks do not run the same",
            tcp::WordAt(back_.data() + 8), tcp::WordAt(back_.data() + 16), options_.signature));
      continue;
    }
    back_have_ = 0;
    const uint64_t taken = tcp::WordAt(back_.data());
    if (taken < released_ || taken > writing_)
      Fail(fmt::format("acknowledged message {} of {} to {}", taken, released_, writing_));
    else
      released_ = taken;
  }
  return any;
}

std::string TcpSender::WhyNotMade(double within_s) const {
  return fmt::format("could not be made within {} s{}{}", within_s, refused_ != 0 ? ": " : "",
                     refused_ != 0 ? std::strerror(refused_) : "");
}

bool TcpSender::Advance() {
  bool any = false;
  if (stage_ == Stage::kClosed) {
    any = Connect();
    if (!any && stage_ != Stage::kFailed && HasPassed(closed_since_, options_.patience_s))
      Fail(WhyNotMade(options_.patience_s));
  }
  if (stage_ == Stage::kConnecting) any = Greet() || any;
  if (stage_ == Stage::kGreeted) any = ReadWelcome() || any;
  if (stage_ == Stage::kOpen) any = ReadAcks() || any;
  if (stage_ == Stage::kOpen) any = Write() || any;
  const bool waits = stage_ == Stage::kConnecting || stage_ == Stage::kGreeted;
  if (waits && HasPassed(closed_since_, options_.patience_s))
    Fail(
        stage_ == Stage::kConnecting && refused_ != 0
            ? WhyNotMade(
                  options_.patience_s)  // whatever the attempt that is under way would have brought
            : fmt::format("was not welcomed within {} s", options_.patience_s));
  const bool awaits = waits || (stage_ == Stage::kOpen && posted_ > released_);
  if (!awaits && tries_others()) CloseStandbys();
  if (!awaits || stage_ == Stage::kFailed)
    last_look_ = {};
  else if (options_.silence_s > 0)
    any = Watch() || any;
  return any;
}

bool TcpSender::TryPost(const Piece& source) {
  if (posted_ - released_ >= kWindow) return false;
  window_[posted_ % kWindow].Post(source, options_.signature);
  ++posted_;
  if (stage_ == Stage::kOpen) Write();
  return true;
}

bool TcpSender::Save(uint64_t message, const Piece& source) {
  window_[message % kWindow].Save(source);
  return true;
}

void TcpSender::BeginMessage() {
  const PostedMessage& posted = window_[writing_ % kWindow];
  body_bytes_ = posted.source.Bytes();
  tcp::PutWord(posted.signature, header_bytes_.data());
  tcp::PutWord(writing_, header_bytes_.data() + 8);
}

size_t TcpSender::Gather(iovec* parts, size_t most) {
  size_t count = 0;
  if (header_ < tcp::kHeaderBytes)
    parts[count++] = {header_bytes_.data() + header_, tcp::kHeaderBytes - header_};
  PostedMessage& posted = window_[writing_ % kWindow];
  if (posted.saved) {
    parts[count++] = {posted.copy.data() + body_, static_cast<size_t>(body_bytes_ - body_)};
    return count;
  }
  const Piece& source = posted.source;
  int64_t skip = body_;
  for (const Segment& segment : source.segments) {
    const ElementRange range = source.RangeOf(segment);
    const int64_t bytes = (range.last - range.first) * source.element_bytes;
    if (skip < bytes && count < most) {
      std::byte* start =
          segment.src.In(*source.binding) + range.first * source.element_bytes + skip;
      parts[count++] = {start, static_cast<size_t>(bytes - skip)};
    }
    skip = std::max<int64_t>(0, skip - bytes);
  }
  return count;
}

void TcpSender::Wrote(int64_t bytes) {
  if (sent_ != nullptr) *sent_ += bytes;
  const auto of_header = static_cast<size_t>(
      std::min<int64_t>(bytes, static_cast<int64_t>(tcp::kHeaderBytes - header_)));
  header_ += of_header;
  body_ += bytes - static_cast<int64_t>(of_header);
  if (header_ < tcp::kHeaderBytes || body_ < body_bytes_) return;
  ++writing_;
  header_ = 0;
  body_ = 0;
}

void TcpSender::BreakAfterReading() {
  ready_ |= EPOLLIN;
  ReadAcks();
  if (stage_ == Stage::kOpen) Lose("it was reset");
}

bool TcpSender::Write() {
  bool any = false;
  for (int64_t left = kMaxAtOnce; writing_ < posted_ && left > 0;) {
    if ((ready_ & EPOLLOUT) == 0) break;
    if (header_ == 0) BeginMessage();
    std::array<iovec, kParts> parts;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = Gather(parts.data(), kParts);
    const ssize_t bytes = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (bytes < 0) {
      if (WouldBlock())
        ready_ &= ~static_cast<uint32_t>(EPOLLOUT);
      else
        BreakAfterReading();
      break;
    }
    Wrote(bytes);
    left -= bytes;
    any = true;
  }
  return any;
}

// --- Receiver -----------------------------------------------------------------------------------

TcpReceiver::TcpReceiver(const tcp::Hello& hello, const TcpOptions& options, int epoll)
    : hello_(hello),
      options_(options),
      epoll_(epoll),
      closed_since_(Clock::now()),
      staging_(kStagingBytes) {}

TcpReceiver::~TcpReceiver() { Break(); }

void TcpReceiver::Fail(const std::string& what, ErrorCode code) {
  Break();
  health_ = MakeError(code, fmt::format("connection {} -> {} channel {}: {}", hello_.sender,
                                        hello_.receiver, hello_.channel, what));
}

void TcpReceiver::FailUnaccepted(double within_s, int error) {
  if (fd_ < 0 && health_)
    Fail(fmt::format("could not be accepted within {} s: {}", within_s, std::strerror(error)),
         ErrorCode::kResourceExhausted);
}

void TcpReceiver::Break() {
  if (fd_ >= 0) {
    close(fd_);
    closed_since_ = Clock::now();
  }
  fd_ = -1;
  staged_first_ = staged_last_ = 0;
  header_seen_ = false;
  ack_left_ = 0;
}

void TcpReceiver::Open(int fd) {
  Break();
  std::array<std::byte, tcp::kWelcomeBytes> welcome{};
  tcp::PutWord(tcp::kWelcomeMagic, welcome.data());
  tcp::PutWord(received_, welcome.data() + 8);
  tcp::PutWord(static_cast<uint64_t>(cursor_.bytes), welcome.data() + 16);
  ready_ = EPOLLIN | EPOLLOUT;
  const bool usable = health_ && Register(epoll_, fd, ready_) &&
                      send(fd, welcome.data(), welcome.size(), MSG_NOSIGNAL) ==
                          static_cast<ssize_t>(welcome.size());
  if (!usable) {
    close(fd);  // the sender tries again
    return;
  }
  fd_ = fd;
  acked_ = received_;
}

void TcpReceiver::Advance() {
  if (fd_ < 0 && health_ && HasPassed(closed_since_, options_.patience_s))
    Fail(fmt::format("was not made within {} s", options_.patience_s));
  SendAck();
}

void TcpReceiver::SendAck() {
  while (fd_ >= 0 && (ack_left_ > 0 || acked_ < received_)) {
    if (ack_left_ == 0) {
      tcp::PutWord(received_, ack_.data());
      acked_ = received_;
      ack_left_ = tcp::kAckBytes;
    }
    const ssize_t bytes =
        send(fd_, ack_.data() + (tcp::kAckBytes - ack_left_), ack_left_, MSG_NOSIGNAL);
    if (bytes < 0 && WouldBlock()) return;
    if (bytes < 0) return Break();
    ack_left_ -= static_cast<size_t>(bytes);
  }
}

void TcpReceiver::Refuse() {
  SendAck();
  if (fd_ < 0 || ack_left_ > 0) return;
  std::array<std::byte, tcp::kRefusalBytes> refusal{};
  tcp::PutWord(tcp::kRefusalMagic, refusal.data());
  tcp::PutWord(received_, refusal.data() + 8);
  tcp::PutWord(options_.signature, refusal.data() + 16);
  send(fd_, refusal.data(), refusal.size(), MSG_NOSIGNAL);
}

size_t TcpReceiver::Receive(std::byte* to, size_t most) {
  if (fd_ < 0 || (ready_ & ~static_cast<uint32_t>(EPOLLOUT)) == 0) return 0;
  const ssize_t bytes = recv(fd_, to, most, 0);
  // Fewer than there was room for: epoll reports what comes next. That it has ended stays known (EPOLLRDHUP).
  if (bytes > 0 && static_cast<size_t>(bytes) < most) ready_ &= ~static_cast<uint32_t>(EPOLLIN);
  if (bytes > 0) return static_cast<size_t>(bytes);
  if (bytes < 0 && WouldBlock())
    ready_ &= static_cast<uint32_t>(EPOLLOUT);
  else
    Break();
  return 0;
}

bool TcpReceiver::Stage(size_t most) {
  if (staged_first_ > 0) {
    std::memmove(staging_.data(), staging_.data() + staged_first_, staged());
    staged_last_ = staged();
    staged_first_ = 0;
  }
  const size_t bytes =
      Receive(staging_.data() + staged_last_, std::min(most, staging_.size() - staged_last_));
  staged_last_ += bytes;  // 0 after a Break(), which has cleared it
  return bytes > 0;
}

bool TcpReceiver::ReadHeader(const Target& target) {
  body_bytes_ = target.piece.Bytes();
  // What is to be read into its place must not be staged behind the header.
  const bool directly = target.reduce == nullptr && body_bytes_ >= kDirectly;
  while (staged() < tcp::kHeaderBytes)
    if (!Stage(directly ? tcp::kHeaderBytes - staged() : kStagingBytes)) return false;
  const uint64_t signature = tcp::WordAt(staging_.data() + staged_first_);
  const uint64_t message = tcp::WordAt(staging_.data() + staged_first_ + 8);
  if (message != received_ || signature != options_.signature) {
    Refuse();
    Fail(
        fmt::format("got message {} of call {:016x}, wanted message {} of call {:016x}: the ranks "
                    "do not run the same",
                    message, signature, received_, options_.signature));
    return false;
  }
  staged_first_ += tcp::kHeaderBytes;
  header_seen_ = true;
  return true;
}

bool TcpReceiver::TakeStaged(const Target& target, int64_t& budget) {
  const int64_t size = target.piece.element_bytes;
  const int64_t whole =
      std::min({static_cast<int64_t>(staged()) / size * size, budget, body_bytes_ - cursor_.bytes});
  const int64_t start = cursor_.bytes;
  int64_t left = whole;
  MovePacked(staging_.data() + staged_first_, target, cursor_, left);
  const int64_t moved = cursor_.bytes - start;
  staged_first_ += static_cast<size_t>(moved);
  budget -= moved;
  return moved > 0;
}

bool TcpReceiver::TakeDirectly(const Target& target, int64_t& budget) {
  const Piece& piece = target.piece;
  const int64_t size = piece.element_bytes;
  ElementRange range = piece.RangeOf(piece.segments[cursor_.segment]);
  while (cursor_.elements == range.last - range.first) {
    cursor_.elements = 0;
    range = piece.RangeOf(piece.segments[++cursor_.segment]);
  }
  const int64_t first = range.first + cursor_.elements;
  std::byte* to = piece.segments[cursor_.segment].dst.In(*piece.binding) + first * size;
  const int64_t wanted = std::min((range.last - first) * size, budget / size * size);
  const auto bytes = static_cast<int64_t>(Receive(to, static_cast<size_t>(wanted)));
  // The start of an element that has not come wholly yet.
  const int64_t part = bytes % size;
  std::memcpy(staging_.data(), to + (bytes - part), static_cast<size_t>(part));
  staged_first_ = 0;
  staged_last_ = static_cast<size_t>(part);
  cursor_.elements += (bytes - part) / size;
  cursor_.bytes += bytes - part;
  budget -= bytes - part;
  return bytes > 0;
}

bool TcpReceiver::TakeBody(const Target& target, int64_t& budget) {
  const int64_t size = target.piece.element_bytes;
  while (cursor_.bytes < body_bytes_ && budget >= size) {
    if (TakeStaged(target, budget)) continue;
    const int64_t left = body_bytes_ - cursor_.bytes;
    const bool directly = target.reduce == nullptr && staged() == 0 && left >= kDirectly;
    const bool came = directly ? TakeDirectly(target, budget) : Stage(kStagingBytes);
    if (!came) break;
  }
  return cursor_.bytes == body_bytes_;
}

Progress TcpReceiver::TryTake(const Target& target, int64_t& budget) {
  const int64_t before = budget;
  if (!health_ || (!header_seen_ && !ReadHeader(target))) {
    SendAck();
    return Progress::kNothing;
  }
  if (!TakeBody(target, budget)) return budget < before ? Progress::kPart : Progress::kNothing;
  ++received_;
  cursor_ = {};
  header_seen_ = false;
  if (received_ - acked_ >= kWindow / 2) SendAck();
  return Progress::kDone;
}

}  // namespace tutti
