#include "tcp_sender.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "endpoint.h"
#include "tcp_socket.h"
#include "wire_state.h"

namespace tutti {
namespace {

constexpr int64_t kMaxAtOnce = 1 << 20;  // bytes written before others get their turn
constexpr size_t kParts = 16;
// Until a connection that was lost too often fails: another rank's failure, which closed it, may be heard of by then.
constexpr double kOthersSay_s = 0.3;

}  // namespace

TcpSender::TcpSender(const tcp::Hello& hello, const TcpOptions& options, int epoll,
                     const Endpoint& to, const TcpSource& source)
    : hello_(hello),
      options_(options),
      epoll_(epoll),
      to_(to),
      source_(source),
      closed_since_(std::chrono::steady_clock::now()) {}

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
  if (stage_ == Stage::kOpen) closed_since_ = std::chrono::steady_clock::now();
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
  tcp::SetCongestion(fd, options_.congestion);  // which the transport has tried
  const bool under_way = BindSource(fd, route) && (ConnectTo(fd, to_) == 0 || errno == EINPROGRESS);
  if (under_way) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

bool TcpSender::Connect() {
  if (std::chrono::steady_clock::now() < next_try_) return false;
  next_try_ = std::chrono::steady_clock::now() + options_.retry;
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
  if (tcp::Register(epoll_, fd_, ready_)) {
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
  const int error = refused_ = tcp::OutcomeOfConnecting(fd_);
  const auto bytes = tcp::Encode(hello_);
  // A new socket takes so little at once.
  const bool greeted = error == 0 && send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                                         static_cast<ssize_t>(bytes.size());
  if (greeted) {
    stage_ = Stage::kGreeted;
    rounds_in_vain_ = 0;
  } else {
    Break();
  }
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
  const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
  failures_.push_back(now);
  while (now - failures_.front() > TcpTransport::kFailureWindow) failures_.pop_front();
  if (failures_.size() >= static_cast<size_t>(options_.max_failures))
    lost_too_often_ = fmt::format("was lost {} times within {} s, last because {}",
                                  failures_.size(), TcpTransport::kFailureWindow.count(), why);
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
  WasAnswered();
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
    WasAnswered();
  }
  return any;
}

std::string TcpSender::WhyNotMade(double within_s) const {
  return fmt::format("could not be made within {} s{}{}", within_s, refused_ != 0 ? ": " : "",
                     refused_ != 0 ? std::strerror(refused_) : "");
}

bool TcpSender::Advance() {
  bool any = false;
  if (!lost_too_often_.empty()) {
    if (stage_ != Stage::kFailed && tcp::HasPassed(closed_since_, kOthersSay_s))
      Fail(lost_too_often_);
    return false;
  }
  if (stage_ == Stage::kClosed) {
    any = Connect();
    if (!any && stage_ != Stage::kFailed && tcp::HasPassed(closed_since_, options_.patience_s))
      Fail(WhyNotMade(options_.patience_s));
  }
  if (stage_ == Stage::kConnecting) any = Greet() || any;
  if (stage_ == Stage::kGreeted) any = ReadWelcome() || any;
  if (stage_ == Stage::kOpen) any = ReadAcks() || any;
  if (stage_ == Stage::kOpen) any = Write() || any;
  const bool waits = stage_ == Stage::kConnecting || stage_ == Stage::kGreeted;
  if (waits && tcp::HasPassed(closed_since_, options_.patience_s))
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

}  // namespace tutti
