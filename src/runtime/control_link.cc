#include "control_link.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "endpoint.h"
#include "tcp_frames.h"
#include "tutti/base/cancel.h"
#include "tutti/base/deadline.h"

namespace tutti {
namespace {

constexpr int kPatienceMs = 10'000;  // for a peer that does not read
constexpr size_t kWord = 8;

tl::unexpected<Error> Gone(const std::string& why) {
  return MakeError(ErrorCode::kPeerFailed, why);
}

// -1: not yet.
int TryConnect(const sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  close(fd);
  return -1;
}

Result<sockaddr_in> Resolve(const std::string& host, uint16_t port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0)
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no IPv4 address of host '{}': {}", host, gai_strerror(error)));
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  address.sin_port = htons(port);
  return address;
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
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  remote_ = Endpoint::Of(address);
}

Result<ControlLink> ControlLink::Connect(const std::string& host, uint16_t port,
                                         double patience_s) {
  const Result<sockaddr_in> address = Resolve(host, port);
  if (!address) return tl::unexpected(address.error());
  const Deadline deadline(patience_s);
  while (true) {
    if (const int fd = TryConnect(*address); fd >= 0) return ControlLink(fd);
    const std::string why = std::strerror(errno);
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (deadline.HasPassed())
      return Gone(fmt::format("nobody could be reached at {}:{} within {} s: {}", host, port,
                              patience_s, why));
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
  std::string bytes = WordsToBytes(
      {static_cast<int64_t>(static_cast<uint64_t>(type) << 56 | uint64_t{body.size()})});
  bytes += body;
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

Result<std::optional<Frame>> ControlLink::Receive(size_t largest, int wait_ms) {
  Result<std::optional<Frame>> frame = TryReceive(largest);
  if (!frame || *frame) return frame;
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  poll(&ready, 1, wait_ms);
  return TryReceive(largest);
}

Endpoint ControlLink::local() const {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  return Endpoint::Of(address);
}

}  // namespace tutti
