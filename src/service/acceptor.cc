#include "acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace tutti::service {

Acceptor::Acceptor(EventLoop& loop, ipc::Descriptor listener, std::string unlink,
                   std::function<void(ipc::Descriptor)> accepted)
    : loop_(loop),
      listener_(std::move(listener)),
      unlink_(std::move(unlink)),
      accepted_(std::move(accepted)) {
  // Whoever passed it may have left it blocking.
  fcntl(listener_.fd(), F_SETFL, fcntl(listener_.fd(), F_GETFL) | O_NONBLOCK);
  Listen();
}

Acceptor::~Acceptor() {
  if (!rests_) loop_.Remove(listener_.fd());
  if (!unlink_.empty()) unlink(unlink_.c_str());
}

void Acceptor::Listen() {
  rests_ = false;
  left_ = kAtOnce;
  loop_.Add(listener_.fd(), EPOLLIN, [this](uint32_t) { Accept(); });
}

void Acceptor::Accept() {
  // One a call: others are polled in between.
  ipc::Descriptor came(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!came.is_open()) {
    const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (!is_short) return;  // who came has gone again
    ++without_;
  }
  if (!came.is_open() || --left_ <= 0) Rest();
  if (came.is_open()) accepted_(std::move(came));
}

void Acceptor::Rest() {
  if (rests_) return;
  rests_ = true;
  loop_.Remove(listener_.fd());
}

void Acceptor::Tick() {
  if (rests_) Listen();
  left_ = kAtOnce;
}

}  // namespace tutti::service
