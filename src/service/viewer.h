// Viewer: what somebody who asks at a port of the daemon may see: the provider everything, a tenant its own numbers
// and nothing of the network, anybody else nothing.
//
// Model       Who asks is known by the user that holds the other end: of a Unix socket by its credentials, of a
//             connection within this host by the kernel's table of connections. Who comes from another host is
//             nobody, unless the port says that the provider's network is trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "endpoint.h"
#include "tutti/service/daemon.h"

namespace tutti::service {

struct Viewer {
  bool sees_all = false;
  std::set<std::string> tenants = {};

  bool Sees(const std::string& tenant) const { return sees_all || tenants.count(tenant) > 0; }
  bool sees_nothing() const { return !sees_all && tenants.empty(); }
};

struct Caller {
  bool is_of_this_host = false;
  std::optional<uint32_t> user = {};
};

// Who is at the socket's other end.
Caller WhoCalls(int socket);
// The user that holds the end `its` of an established connection to `other`, by the text of /proc/net/tcp.
std::optional<uint32_t> OwnerOfConnection(std::string_view table, const Endpoint& its,
                                          const Endpoint& other);
// `self`: the daemon's user. `known`: all tenants.
Viewer ViewerOf(const Caller& caller, const PortOptions& port, uint32_t self,
                const std::vector<const TenantOptions*>& known);

}  // namespace tutti::service
