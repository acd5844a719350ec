#include "endpoint.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// A socket of version 6 takes addresses of version 4 as version 6 maps them, but not for any address.
SocketAddress ToSocket(const Endpoint& endpoint, int family) {
  SocketAddress address;
  if (family == AF_INET) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(endpoint.address.v4());
    v4.sin_port = htons(endpoint.port);
    std::memcpy(&address.bytes, &v4, sizeof(v4));
    address.size = sizeof(v4);
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = (endpoint.address.is_any() ? IpAddress::Any6() : endpoint.address).bytes();
    v6.sin6_port = htons(endpoint.port);
    std::memcpy(&address.bytes, &v6, sizeof(v6));
    address.size = sizeof(v6);
  }
  return address;
}

Endpoint OfSocket(const sockaddr* bytes) {
  if (bytes->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, bytes, sizeof(v4));
    return {ntohl(v4.sin_addr.s_addr), ntohs(v4.sin_port)};
  }
  if (bytes->sa_family != AF_INET6) return {INADDR_ANY, 0};
  sockaddr_in6 v6{};
  std::memcpy(&v6, bytes, sizeof(v6));
  return {IpAddress::Of(v6.sin6_addr), ntohs(v6.sin6_port)};
}

int FamilyOf(const Endpoint& endpoint) { return endpoint.address.is_v4() ? AF_INET : AF_INET6; }

int FamilyOf(int socket) {
  int family = AF_INET;
  socklen_t size = sizeof(family);
  getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family;
}

}  // namespace

IpAddress FirstAddress() {
  IpAddress found = INADDR_LOOPBACK;
  bool is_found = false;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return found;
  for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
    const bool usable =
        at->ifa_addr != nullptr &&
        (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6) &&
        (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0 &&
        std::strncmp(at->ifa_name, "docker", 6) != 0;
    if (!usable) continue;
    const IpAddress address = OfSocket(at->ifa_addr).address;
    const bool is_better = !is_found || (address.is_v4() && !found.is_v4());
    if (!is_better || address.is_of_one_link()) continue;
    found = address;
    is_found = true;
  }
  freeifaddrs(interfaces);
  return found;
}

int TcpSocket(const Endpoint& to, int flags) {
  return socket(FamilyOf(to), SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
}

int BindTo(int socket, const Endpoint& from) {
  SocketAddress address = ToSocket(from, FamilyOf(socket));
  return bind(socket, address.get(), address.size);
}

int ConnectTo(int socket, const Endpoint& to) {
  SocketAddress address = ToSocket(to, FamilyOf(socket));
  return connect(socket, address.get(), address.size);
}

Endpoint LocalEndOf(int socket) {
  SocketAddress address;
  getsockname(socket, address.get(), &address.size);
  return OfSocket(address.get());
}

Endpoint RemoteEndOf(int socket) {
  SocketAddress address;
  getpeername(socket, address.get(), &address.size);
  return OfSocket(address.get());
}

int ListenAt(Endpoint& at) {
  const int listener = TcpSocket(at, SOCK_NONBLOCK);
  if (listener < 0) return -1;
  const int on = 1, off = 0;
  // A port that was asked for is free again as soon as its last owner has gone.
  if (at.port != 0) setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (at.address == IpAddress::Any6())
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (BindTo(listener, at) == 0 && listen(listener, SOMAXCONN) == 0) {
    at = LocalEndOf(listener);
    return listener;
  }
  const int why = errno;
  close(listener);
  errno = why;
  return -1;
}

}  // namespace tutti
