// Where somebody listens: an IPv4 address and a port.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace tutti {

struct Endpoint {
  uint32_t address = INADDR_LOOPBACK;  // in the order of the host
  uint16_t port = 0;

  static Endpoint Of(const sockaddr_in& socket) {
    return {ntohl(socket.sin_addr.s_addr), ntohs(socket.sin_port)};
  }
  sockaddr_in ToSocket() const {
    sockaddr_in socket{};
    socket.sin_family = AF_INET;
    socket.sin_addr.s_addr = htonl(address);
    socket.sin_port = htons(port);
    return socket;
  }
  std::string AddressText() const {
    return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                       address & 255);
  }
  std::string ToText() const { return fmt::format("{}:{}", AddressText(), port); }
};

// The address at which other hosts reach this one: that of the first interface that is up and leads to other hosts, else the loopback
// address.
uint32_t FirstAddress();

// Whether errno says that a call on a socket is to be made again later.
inline bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// A socket of this process alone that listens at `at`, without blocking; port 0: any, which `at` then
// has. -1: errno says why not.
int ListenAt(Endpoint& at);

}  // namespace tutti
