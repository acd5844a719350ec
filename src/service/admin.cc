#include "admin.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tutti/service/daemon.h"

namespace tutti::service {
namespace {

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
    request_.append(part.data(), static_cast<size_t>(size));
    if (request_.back() != '\n') continue;
    asked_ = true;
    host_.Answer(request_, [this, alive = alive_](const std::string& answer) {
      if (!*alive) return;
      answer_ = answer + "\n";
      Write();
    });
    return;
  }
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
