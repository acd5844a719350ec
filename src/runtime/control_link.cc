#include "control_link.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "endpoint.h"
#include "tcp_frames.h"
#include "tutti/base/cancel.h"
#include "tutti/base/deadline.h"
#include "tutti/base/host_port.h"

namespace tutti {
namespace {

constexpr int kPatienceMs = 10'000;  // for a peer that does not read
constexpr size_t kWord = 8;

tl::unexpected<Error> Gone(const std::string& why) {
  return MakeError(ErrorCode::kPeerFailed, why);
}

// Waits for it at most `wait_ms`. -1: not yet, errno says why.
int TryConnect(const Endpoint& to, int wait_ms) {
  const int fd = TcpSocket(to, SOCK_NONBLOCK);
  if (fd < 0) return -1;
  int error = ConnectTo(fd, to) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
    error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if (poll(&ready, 1, wait_ms) > 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  // Whoever reads or writes says that it does not wait.
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

std::string ToBytes(FrameType type, std::string_view body) {
  std::string bytes = WordsToBytes(
      {static_cast<int64_t>(static_cast<uint64_t>(type) << 56 | uint64_t{body.size()})});
  bytes += body;
  return bytes;
}

}  // namespace

std::optional<std::vector<int64_t>> Frame::Words(size_t count) const {
  if (body.size() != count * kWord) return std::nullopt;
  std::vector<int64_t> words;
  for (size_t at = 0; at < body.size(); at += kWord)
    words.push_back(
        static_cast<int64_t>(tcp::WordAt(reinterpret_cast<const std::byte*>(body.data() + at))));
  return words;
}

std::optional<std::string> OtherVersion(uint64_t theirs, uint64_t magic) {
  constexpr int kVersionAt = 48;
  if (theirs == magic || (theirs ^ magic) >> kVersionAt << kVersionAt != (theirs ^ magic))
    return std::nullopt;
  return fmt::format(
      "version {} of Tutti's protocol meets version {}: all hosts need the same version of Tutti",
      theirs >> kVersionAt, magic >> kVersionAt);
}

std::string WordsToBytes(const std::vector<int64_t>& words) {
  std::string bytes(words.size() * kWord, '\0');
  for (size_t i = 0; i < words.size(); ++i)
    tcp::PutWord(static_cast<uint64_t>(words[i]),
                 reinterpret_cast<std::byte*>(bytes.data() + i * kWord));
  return bytes;
}

ControlLink::ControlLink(int fd) : fd_(fd) {
  const int on = 1;
  const unsigned patience = kPatienceMs;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A host that is gone without a word shows when nobody acknowledges.
  setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof(patience));
  remote_ = RemoteEndOf(fd_);
}

Result<ControlLink> ControlLink::Connect(const std::string& host, uint16_t port,
                                         double patience_s) {
  constexpr int kFirstWaitMs = 250, kMostWaitMs = 8'000;
  const Result<std::vector<IpAddress>> addresses = AddressesOf(host);
  if (!addresses) return tl::unexpected(addresses.error());
  const Deadline deadline(patience_s);
  // An address that does not answer must not keep the others waiting; each gets longer in every round.
  for (int round_ms = kFirstWaitMs;; round_ms = std::min(2 * round_ms, kMostWaitMs)) {
    std::string why;
    for (const IpAddress& address : *addresses) {
      const double left_ms = patience_s > 0 ? 1 + deadline.Left() * 1e3 : kMostWaitMs;
      const int wait_ms = static_cast<int>(std::min<double>(round_ms, left_ms));
      if (const int fd = TryConnect({address, port}, wait_ms); fd >= 0) return ControlLink(fd);
      if (!why.empty()) why += "; ";
      why += addresses->size() == 1 ? std::strerror(errno)
                                    : fmt::format("{}: {}", address.ToText(), std::strerror(errno));
      if (CancelRequested()) return tl::unexpected(CancelledError());
    }
    if (deadline.HasPassed())
      return Gone(fmt::format("nobody could be reached at {} within {} s: {}",
                              HostPortText(host, port), patience_s, why));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

ControlLink::ControlLink(ControlLink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      remote_(other.remote_),
      received_(std::move(other.received_)) {}

ControlLink& ControlLink::operator=(ControlLink&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(remote_, other.remote_);
  std::swap(received_, other.received_);
  return *this;
}

ControlLink::~ControlLink() {
  if (fd_ >= 0) close(fd_);
}

Status ControlLink::Send(FrameType type, std::initializer_list<int64_t> words) {
  return Send(type, WordsToBytes(words));
}

Status ControlLink::Send(FrameType type, std::string_view body) {
  return SendBytes(ToBytes(type, body));
}

void ControlLink::SendIfRoom(FrameType type, std::string_view body) {
  const std::string bytes = ToBytes(type, body);
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // A frame that has begun has to end. Who reads the link hears of its faults.
  if (sent > 0)
    static_cast<void>(SendBytes(std::string_view(bytes).substr(static_cast<size_t>(sent))));
}

Status ControlLink::SendBytes(std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t sent =
        send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      done += static_cast<size_t>(sent);
      continue;
    }
    if (sent < 0 && !WouldBlock()) return Gone(std::strerror(errno));
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, kPatienceMs) == 0) return Gone("it does not read");
  }
  return {};
}

Result<std::optional<Frame>> ControlLink::TryReceive(size_t largest) {
  while (true) {
    size_t wanted = kWord;
    if (received_.size() >= kWord) {
      const uint64_t head = tcp::WordAt(reinterpret_cast<const std::byte*>(received_.data()));
      const uint64_t type = head >> 56, size = head & ((uint64_t{1} << 56) - 1);
      if (type < 1 || type > static_cast<uint64_t>(kLastFrameType) || size > largest)
        return Gone(fmt::format("a frame of type {} and {} bytes", type, size));
      wanted += static_cast<size_t>(size);
      if (received_.size() == wanted) {
        Frame frame{static_cast<FrameType>(type), received_.substr(kWord)};
        received_.clear();
        return frame;
      }
    }
    // No more than this frame, and no more memory than bytes have come.
    constexpr size_t kPart = size_t{64} << 10;
    const size_t have = received_.size();
    received_.resize(std::min(wanted, have + kPart));
    const ssize_t bytes = recv(fd_, received_.data() + have, received_.size() - have, MSG_DONTWAIT);
    received_.resize(have + (bytes > 0 ? static_cast<size_t>(bytes) : 0));
    if (bytes == 0) return Gone("it closed the connection");
    if (bytes > 0) continue;
    if (WouldBlock()) return std::optional<Frame>();
    return Gone(std::strerror(errno));
  }
}

bool ControlLink::Drain(size_t largest, const std::function<void(const Frame&)>& take) {
  while (true) {
    const Result<std::optional<Frame>> frame = TryReceive(largest);
    if (!frame) return false;
    if (!*frame) return true;
    take(**frame);
  }
}

void ControlLink::PutBack(const Frame& frame) { received_ = ToBytes(frame.type, frame.body); }

void ControlLink::WaitForClose(double patience_s) {
  constexpr int kLookMs = 20;
  const Deadline deadline(patience_s);
  pollfd said{.fd = fd_, .events = POLLIN, .revents = 0};
  char forgotten[4096];
  while (!deadline.HasPassed() && !CancelRequested()) {
    if (poll(&said, 1, kLookMs) <= 0) continue;
    const ssize_t got = recv(fd_, forgotten, sizeof forgotten, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

Result<std::optional<Frame>> ControlLink::Receive(size_t largest, int wait_ms) {
  Result<std::optional<Frame>> frame = TryReceive(largest);
  if (!frame || *frame) return frame;
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  poll(&ready, 1, wait_ms);
  return TryReceive(largest);
}

Endpoint ControlLink::local() const { return LocalEndOf(fd_); }

}  // namespace tutti
