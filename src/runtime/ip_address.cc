#include "ip_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

namespace tutti {

IpAddress IpAddress::Of(const in6_addr& bytes) {
  const auto word = [&bytes](size_t first) {
    uint64_t value = 0;
    for (size_t i = first; i < first + 8; ++i) value = value << 8 | bytes.s6_addr[i];
    return value;
  };
  return OfWords(word(0), word(8));
}

std::optional<IpAddress> IpAddress::Parse(const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return IpAddress(ntohl(v4.s_addr));
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return Of(v6);
  return std::nullopt;
}

in6_addr IpAddress::bytes() const {
  in6_addr bytes{};
  for (size_t i = 0; i < sizeof(bytes); ++i) {
    const uint64_t word = i < 8 ? high_ : low_;
    bytes.s6_addr[i] = static_cast<uint8_t>(word >> (56 - 8 * (i % 8)));
  }
  return bytes;
}

std::string IpAddress::ToText() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4()) {
    in_addr address{};
    address.s_addr = htonl(v4());
    inet_ntop(AF_INET, &address, text.data(), text.size());
  } else {
    const in6_addr address = bytes();
    inet_ntop(AF_INET6, &address, text.data(), text.size());
  }
  return text.data();
}

Result<std::vector<IpAddress>> AddressesOf(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &first); error != 0)
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no address of host '{}': {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(first, freeaddrinfo);
  std::vector<IpAddress> addresses;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    IpAddress address;
    if (at->ai_family == AF_INET) {
      sockaddr_in socket{};
      std::memcpy(&socket, at->ai_addr, sizeof(socket));
      address = ntohl(socket.sin_addr.s_addr);
    } else if (at->ai_family == AF_INET6) {
      sockaddr_in6 socket{};
      std::memcpy(&socket, at->ai_addr, sizeof(socket));
      address = IpAddress::Of(socket.sin6_addr);
    } else {
      continue;
    }
    const bool is_new = std::find(addresses.begin(), addresses.end(), address) == addresses.end();
    if (is_new && !address.is_of_one_link()) addresses.push_back(address);
  }
  if (addresses.empty())
    return MakeError(
        ErrorCode::kNotFound,
        fmt::format("host '{}' has only addresses of one link, which no other host knows", host));
  return addresses;
}

}  // namespace tutti
