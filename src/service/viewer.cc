#include "viewer.h"

#include <sys/socket.h>

#include <algorithm>
#include <charconv>

#include "tutti/base/file.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {
namespace {

// The text up to the next blank.
std::string_view TakeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <class Number>
bool ParseAll(std::string_view text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

// "0100007F:1F90": the address as the machine holds it in the network's order.
std::optional<Endpoint> ParseHex(std::string_view word) {
  uint32_t address = 0;
  uint16_t port = 0;
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos || !ParseAll(word.substr(0, colon), 16, address) ||
      !ParseAll(word.substr(colon + 1), 16, port))
    return std::nullopt;
  return Endpoint{ntohl(address), port};
}

}  // namespace

std::optional<uint32_t> OwnerOfConnection(std::string_view table, const Endpoint& its,
                                          const Endpoint& other) {
  while (!table.empty()) {
    std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(table.size(), line.size() + 1));
    TakeWord(line);  // its number
    const std::optional<Endpoint> local = ParseHex(TakeWord(line));
    const std::optional<Endpoint> remote = ParseHex(TakeWord(line));
    if (local != its || remote != other) continue;
    // IMPORTANT: only while it is established: what is closing has no owner any more and is shown as root's.
    if (TakeWord(line) != "01") return std::nullopt;
    for (int skipped = 0; skipped < 3; ++skipped) TakeWord(line);  // queues, timer, retransmissions
    uint32_t user = 0;
    if (!ParseAll(TakeWord(line), 10, user)) return std::nullopt;
    return user;
  }
  return std::nullopt;
}

Caller WhoCalls(int socket) {
  sockaddr_storage any{};
  socklen_t size = sizeof(any);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&any), &size) != 0) return {};
  if (any.ss_family == AF_UNIX) {
    const Result<ipc::Caller> caller = ipc::CallerOf(socket);
    if (!caller) return {};
    return {true, caller->user};
  }
  if (any.ss_family != AF_INET) return {};
  const Endpoint self = LocalEndOf(socket), peer = RemoteEndOf(socket);
  if (peer.port == 0) return {};  // it has gone
  constexpr uint32_t kLoopback = 127;
  const bool is_of_this_host = peer.address.v4() >> 24 == kLoopback || peer.address == self.address;
  if (!is_of_this_host) return {};
  const Result<std::string> table = ReadFile("/proc/net/tcp");
  return {true, table ? OwnerOfConnection(*table, peer, self) : std::nullopt};
}

Viewer ViewerOf(const Caller& caller, const PortOptions& port, uint32_t self,
                const std::vector<const TenantOptions*>& known) {
  if (!caller.is_of_this_host) return {.sees_all = port.remote};
  if (!caller.user) return {};
  const uint32_t user = *caller.user;
  const auto is_in = [user](const std::vector<uint32_t>& users) {
    return std::find(users.begin(), users.end(), user) != users.end();
  };
  if (user == 0 || user == self || is_in(port.users)) return {.sees_all = true};
  Viewer viewer;
  // Whose tenants need a token, too, are not known by their users alone.
  for (const TenantOptions* tenant : known)
    if (tenant->token.empty() && is_in(tenant->users)) viewer.tenants.insert(tenant->name);
  return viewer;
}

}  // namespace tutti::service
