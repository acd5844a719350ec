#include "admin.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "tutti/service/daemon.h"

namespace tutti::service {
namespace {

constexpr std::string_view kNoMemory =
    R"({"error": "the daemon has no memory left for this request"})";

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

AdminConnection::AdminConnection(EventLoop& loop, AdminHost& host, ipc::Descriptor socket)
    : loop_(loop), host_(host), socket_(std::move(socket)) {
  loop_.Add(socket_.fd(), EPOLLIN, [this](uint32_t events) {
    if ((events & EPOLLOUT) != 0) Write();
    if ((events & ~uint32_t{EPOLLOUT}) != 0) Hear();
  });
}

AdminConnection::~AdminConnection() {
  *alive_ = false;
  loop_.Remove(socket_.fd());
}

void AdminConnection::Hear() {
  std::array<char, 65536> part;
  while (true) {
    const ssize_t size = recv(socket_.fd(), part.data(), part.size(), MSG_DONTWAIT);
    if (size < 0 && WouldBlock()) return;
    if (size <= 0 || asked_ || request_.size() > kMaxPacketBytes) return End();
    const std::string_view more(part.data(), static_cast<size_t>(size));
    Keep(more);
    if (more.back() != '\n') continue;
    asked_ = true;
    return lacks_memory_ ? Say(kNoMemory) : Ask();
  }
}

void AdminConnection::Keep(std::string_view part) {
  // Who asks hears why when it has asked, and not that it cannot send.
  if (lacks_memory_) return;
  try {
    request_.append(part);
  } catch (const std::bad_alloc&) {
    lacks_memory_ = true;
    std::string().swap(request_);
  }
}

void AdminConnection::Ask() {
  try {
    host_.Answer(request_, [this, alive = alive_](const std::string& answer) {
      if (*alive) Say(answer);
    });
  } catch (const std::bad_alloc&) {
    Say(kNoMemory);
  }
}

void AdminConnection::Say(std::string_view answer) {
  try {
    answer_ = std::string(answer) + "\n";
  } catch (const std::bad_alloc&) {
    answer_ = std::string(kNoMemory) + "\n";
  }
  Write();
}

void AdminConnection::Write() {
  while (!answer_.empty()) {
    const ssize_t size =
        send(socket_.fd(), answer_.data(), answer_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) {
      answer_.erase(0, static_cast<size_t>(size));
      continue;
    }
    if (WouldBlock()) return loop_.Change(socket_.fd(), EPOLLIN | EPOLLOUT);
    break;
  }
  End();
}

void AdminConnection::End() {
  over_ = true;
  loop_.Remove(socket_.fd());
}

Result<std::string> AskDaemon(const std::string& admin, const std::string& request) {
  const Result<ipc::Descriptor> connected = ipc::Connect(admin, ipc::SocketKind::kStream);
  if (!connected) return tl::unexpected(connected.error());
  const int fd = connected->fd();
  const std::string line = request + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t size = send(fd, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (size <= 0)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("the daemon at {} has gone: {}", admin, std::strerror(errno)));
    done += static_cast<size_t>(size);
  }
  std::string answer;
  std::array<char, 65536> part;
  while (answer.empty() || answer.back() != '\n') {
    const ssize_t size = recv(fd, part.data(), part.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("the daemon at {} closed the connection", admin));
    answer.append(part.data(), static_cast<size_t>(size));
  }
  answer.pop_back();
  return answer;
}

}  // namespace tutti::service
