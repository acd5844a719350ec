// Where somebody listens: an address of IP and a port; and sockets at one.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ip_address.h"
#include "tutti/base/host_port.h"

namespace tutti {

struct Endpoint {
  IpAddress address = INADDR_LOOPBACK;
  uint16_t port = 0;

  std::string AddressText() const { return address.ToText(); }
  // "10.0.0.1:80", "[fd00::1]:80".
  std::string ToText() const { return HostPortText(AddressText(), port); }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// In frames: the address as two words, and the port.
inline constexpr size_t kEndpointWords = 3;
inline std::array<int64_t, kEndpointWords> ToWords(const Endpoint& endpoint) {
  return {static_cast<int64_t>(endpoint.address.high()),
          static_cast<int64_t>(endpoint.address.low()), endpoint.port};
}
inline Endpoint EndpointOfWords(const int64_t* words) {
  return {IpAddress::OfWords(static_cast<uint64_t>(words[0]), static_cast<uint64_t>(words[1])),
          static_cast<uint16_t>(words[2])};
}

// The address at which other hosts reach this one: that of the first interface that is up and leads to other hosts, of
// version 4 where any has one; else the loopback address.
IpAddress FirstAddress();

// Whether errno says that a call on a socket is to be made again later.
inline bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// A TCP socket that can go to `to`; `flags` as of socket(). -1: errno says why not.
int TcpSocket(const Endpoint& to, int flags = 0);
// As bind() and connect().
int BindTo(int socket, const Endpoint& from);
int ConnectTo(int socket, const Endpoint& to);
// The end of a socket of TCP over IP; any address and port 0 where it has none.
Endpoint LocalEndOf(int socket);
Endpoint RemoteEndOf(int socket);

// A socket of this process alone that listens at `at`, without blocking; port 0: any, which `at` then
// has. At Any6() also what comes by version 4. -1: errno says why not.
int ListenAt(Endpoint& at);

}  // namespace tutti
