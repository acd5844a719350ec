#include "endpoint.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tutti {

uint32_t FirstAddress() {
  uint32_t found = INADDR_LOOPBACK;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return found;
  for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
    const bool usable = at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
                        (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0 &&
                        std::strncmp(at->ifa_name, "docker", 6) != 0;
    if (!usable) continue;
    sockaddr_in address{};
    std::memcpy(&address, at->ifa_addr, sizeof(address));
    found = ntohl(address.sin_addr.s_addr);
    break;
  }
  freeifaddrs(interfaces);
  return found;
}

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
