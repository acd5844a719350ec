#include "tutti/launch/hosts.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "tutti/base/host_port.h"

namespace tutti {
namespace {

// The address that packets to `to` leave from; empty: errno says why there is none.
std::string SourceTowards(const addrinfo& to) {
  // Connecting a datagram socket sends nothing and asks the routes.
  const int fd = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  std::array<char, NI_MAXHOST> text{};
  const bool routed = connect(fd, to.ai_addr, to.ai_addrlen) == 0 &&
                      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int why = errno;
  close(fd);
  errno = why;
  if (!routed) return "";
  // An address of one link alone, with its interface behind a percent sign: nothing that another host could use.
  errno = EADDRNOTAVAIL;
  const bool named = getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(),
                                 nullptr, 0, NI_NUMERICHOST) == 0;
  return named && std::strchr(text.data(), '%') == nullptr ? text.data() : "";
}

}  // namespace

Result<std::vector<HostRanks>> PlaceOnHosts(std::string_view list, int32_t ranks) {
  constexpr int32_t kMaxSlots = 1 << 20;
  std::vector<HostRanks> hosts;
  const auto no_list = [list] {
    return InvalidArgument(fmt::format("'{}' is no list of hosts such as h0:2,h1:2", list));
  };
  int32_t placed = 0;
  int64_t slots = 0;
  for (std::string_view rest = list; !rest.empty() || hosts.empty();) {
    const size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    int32_t count = 1;
    const std::optional<SplitHost> split = SplitBehindHost(word);
    if (!split && (word.find_first_of("[]") != word.npos || word.find(':') != word.rfind(':')))
      return InvalidArgument(fmt::format(
          "host '{}': an address of IP version 6 stands in brackets, [fd00::1]:2", word));
    if (!split) return no_list();
    if (!split->rest.empty()) {
      const std::string_view digits = split->rest.substr(1);
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), count);
      if (error != std::errc() || end != digits.data() + digits.size() || count < 1 ||
          count > kMaxSlots)
        return InvalidArgument(fmt::format("host '{}': '{}' is no number of ranks", word, digits));
    }
    word = split->host;
    if (word.find_first_of(" \t\n{}") != word.npos || word.front() == '-') return no_list();
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
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* first = nullptr;
  if (const int error = getaddrinfo(host.c_str(), "9", &wanted, &first); error != 0)
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no address of host '{}': {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(first, freeaddrinfo);
  int why = EHOSTUNREACH;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    std::string own = SourceTowards(*at);
    if (!own.empty()) return own;
    why = errno;
  }
  return MakeError(ErrorCode::kIo,
                   fmt::format("no way to host '{}': {}", host, std::strerror(why)));
}

}  // namespace tutti
