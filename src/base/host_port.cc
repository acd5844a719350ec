#include "tutti/base/host_port.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace tutti {

std::optional<SplitHost> SplitBehindHost(std::string_view text) {
  SplitHost split;
  if (!text.empty() && text.front() == '[') {
    const size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    split = {text.substr(1, end - 1), text.substr(end + 1)};
    // A name needs no brackets, and what has them is more likely a slip.
    if (split.host.find(':') == text.npos) return std::nullopt;
    if (!split.rest.empty() && split.rest.front() != ':') return std::nullopt;
  } else {
    const size_t colon = text.find(':');
    split.host = text.substr(0, colon);
    if (colon != text.npos) split.rest = text.substr(colon);
  }
  const bool is_whole = !split.host.empty() && split.host.find_first_of("[]") == text.npos &&
                        split.rest.find(':', 1) == text.npos;
  return is_whole ? std::optional(split) : std::nullopt;
}

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const std::optional<SplitHost> split = SplitBehindHost(text);
  if (!split) return std::nullopt;
  HostPort parsed{std::string(split->host), std::nullopt};
  if (split->rest.empty()) return parsed;
  uint16_t port = 0;
  const char* begin = split->rest.data() + 1;
  const char* end = split->rest.data() + split->rest.size();
  const auto [at, error] = std::from_chars(begin, end, port);
  if (error != std::errc() || at != end || port == 0) return std::nullopt;
  parsed.port = port;
  return parsed;
}

std::string HostPortText(std::string_view host, uint16_t port) {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                     : fmt::format("[{}]:{}", host, port);
}

}  // namespace tutti
