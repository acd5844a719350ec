#include "tutti/launch/hosts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace tutti {

Result<std::vector<HostRanks>> PlaceOnHosts(std::string_view list, int32_t ranks) {
  constexpr int32_t kMaxSlots = 1 << 20;
  std::vector<HostRanks> hosts;
  int32_t placed = 0;
  int64_t slots = 0;
  for (std::string_view rest = list; !rest.empty() || hosts.empty();) {
    const size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    int32_t count = 1;
    if (const size_t colon = word.find(':'); colon != word.npos) {
      const std::string_view digits = word.substr(colon + 1);
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), count);
      if (error != std::errc() || end != digits.data() + digits.size() || count < 1 ||
          count > kMaxSlots)
        return InvalidArgument(fmt::format("host '{}': '{}' is no number of ranks", word, digits));
      word = word.substr(0, colon);
    }
    if (word.empty() || word.find_first_of(" \t\n{}") != word.npos || word.front() == '-')
      return InvalidArgument(fmt::format("'{}' is no list of hosts such as h0:2,h1:2", list));
    slots += count;
    const int32_t here = ranks == 0 ? count : std::min(count, ranks - placed);
    if (here > 0) hosts.push_back({std::string(word), placed, here});
    placed += here;
    if (comma != std::string_view::npos && rest.empty())
      return InvalidArgument(fmt::format("'{}' ends with a comma", list));
  }
  if (slots > kMaxSlots)
    return InvalidArgument(fmt::format("{} ranks; at most {}", slots, kMaxSlots));
  if (placed < ranks)
    return InvalidArgument(fmt::format("{} ranks, but the hosts have room for {}", ranks, slots));
  return hosts;
}

Result<std::string> AddressTowards(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), "9", &wanted, &found); error != 0)
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no IPv4 address of host '{}': {}", host, gai_strerror(error)));
  // Connecting a datagram socket sends nothing and asks the routes.
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t size = sizeof(own);
  const bool routed = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (fd >= 0) close(fd);
  if (!routed)
    return MakeError(ErrorCode::kIo,
                     fmt::format("no way to host '{}': {}", host, std::strerror(error)));
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &own.sin_addr, text.data(), text.size());
  return std::string(text.data());
}

}  // namespace tutti
