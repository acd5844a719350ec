// A host and a port as text: "h0:80", "10.0.0.1:80", and "[fd00::1]:80" for an address of IP version 6, whose colons would
// else be taken for that before the port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

struct HostPort {
  std::string host;              // without brackets
  std::optional<uint16_t> port;  // nothing: none was given
};

// Nothing: no host, no port from 1 to 65535 behind the colon, or an address of version 6 without brackets.
std::optional<HostPort> ParseHostPort(std::string_view text);
// "[fd00::1]:4" gives "fd00::1" and ":4": the host, without brackets, and what stands behind it from its colon on.
struct SplitHost {
  std::string_view host, rest;
};
std::optional<SplitHost> SplitBehindHost(std::string_view text);

std::string HostPortText(std::string_view host, uint16_t port);

}  // namespace tutti
