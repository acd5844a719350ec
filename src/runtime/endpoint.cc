#include "endpoint.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace tutti {

int ListenAt(Endpoint& at) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  const int on = 1;
  // A port that was asked for is free again as soon as its last owner has gone.
  if (at.port != 0) setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = at.ToSocket();
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, any, size) == 0 && listen(listener, SOMAXCONN) == 0 &&
      getsockname(listener, any, &size) == 0) {
    at = Endpoint::Of(address);
    return listener;
  }
  const int why = errno;
  close(listener);
  errno = why;
  return -1;
}

}  // namespace tutti
