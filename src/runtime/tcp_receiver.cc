#include "tcp_receiver.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "endpoint.h"
#include "tcp_socket.h"

namespace tutti {
namespace {

constexpr int64_t kDirectly = 4096;  // bytes from which on staging is not worth its copy

}  // namespace

TcpReceiver::TcpReceiver(const tcp::Hello& hello, const TcpOptions& options, int epoll)
    : hello_(hello),
      options_(options),
      epoll_(epoll),
      closed_since_(std::chrono::steady_clock::now()),
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
    closed_since_ = std::chrono::steady_clock::now();
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
  const bool usable = health_ && tcp::Register(epoll_, fd, ready_) &&
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
  if (fd_ < 0 && health_ && tcp::HasPassed(closed_since_, options_.patience_s))
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
  uint64_t signature = 0, message = 0;
  do {
    while (staged() < tcp::kHeaderBytes)
      if (!Stage(directly ? tcp::kHeaderBytes - staged() : kStagingBytes)) return false;
    signature = tcp::WordAt(staging_.data() + staged_first_);
    message = tcp::WordAt(staging_.data() + staged_first_ + 8);
    staged_first_ += tcp::kHeaderBytes;
  } while (message == tcp::kQuestion);
  if (message != received_ || signature != options_.signature) {
    Refuse();
    Fail(
        fmt::format("got message {} of call {:016x}, wanted message {} of call {:016x}: the ranks "
                    "do not run the same",
                    message, signature, received_, options_.signature));
    return false;
  }
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
