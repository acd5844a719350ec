#include "redial.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace tutti::service {

void Redial::Begin(const Endpoint& to, size_t connections, int64_t now_ns) {
  Close();
  has_begun_ = true;
  since_ns_ = now_ns;
  for (size_t i = 0; i < connections; ++i) {
    ipc::Descriptor dial(TcpSocket(to, SOCK_NONBLOCK));
    if (dial.is_open() && (ConnectTo(dial.fd(), to) == 0 || errno == EINPROGRESS))
      dials_.push_back(std::move(dial));
    else
      error_ = errno;
  }
}

void Redial::Close() {
  dials_.clear();
  has_begun_ = false;
  error_ = 0;
}

ipc::Descriptor Redial::Take() {
  std::vector<ipc::Descriptor> waiting;
  for (ipc::Descriptor& dial : dials_) {
    pollfd ready{.fd = dial.fd(), .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) <= 0) {
      waiting.push_back(std::move(dial));
      continue;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(dial.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) {
      ipc::Descriptor made = std::move(dial);
      Close();
      return made;
    }
    error_ = error;
  }
  dials_ = std::move(waiting);
  return ipc::Descriptor(-1);
}

}  // namespace tutti::service
