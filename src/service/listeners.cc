#include "listeners.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tutti::service {
namespace {

// The passed socket `name`, which has to be listening and of this family and type; closed: none was passed.
Result<ipc::Descriptor> TakePassed(DaemonOptions& options, const char* name, int family, int type) {
  const auto found = options.passed.find(name);
  if (found == options.passed.end()) return ipc::Descriptor();
  ipc::Descriptor passed(found->second);
  options.passed.erase(found);
  const auto option = [&passed](int which) {
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(passed.fd(), SOL_SOCKET, which, &value, &size) == 0 ? value : -1;
  };
  if (option(SO_DOMAIN) != family || option(SO_TYPE) != type || option(SO_ACCEPTCONN) != 1)
    return InvalidArgument(fmt::format("passed socket '{}': wanted a listening socket, {}", name,
                                       family == AF_INET        ? "TCP over IPv4"
                                       : type == SOCK_SEQPACKET ? "Unix, of packets"
                                                                : "Unix, a stream"));
  return passed;
}

// Path of a Unix socket; empty: it has none.
std::string PathOf(int socket) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return address.sun_path;
}

Result<Listener> OpenUnix(DaemonOptions& options, const char* name, std::string& path,
                          ipc::SocketKind kind, ipc::OpenTo open_to) {
  const int type = kind == ipc::SocketKind::kPackets ? SOCK_SEQPACKET : SOCK_STREAM;
  Result<ipc::Descriptor> passed = TakePassed(options, name, AF_UNIX, type);
  if (!passed) return tl::unexpected(passed.error());
  if (passed->is_open()) {
    if (const std::string bound = PathOf(passed->fd()); !bound.empty()) path = bound;
    return Listener{std::move(*passed), ""};
  }
  std::error_code ignored;  // the socket says it
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  Result<ipc::Descriptor> made = ipc::Listen(path, kind, open_to);
  if (!made) return tl::unexpected(made.error());
  return Listener{std::move(*made), path};
}

Result<Listener> OpenPeers(DaemonOptions& options, Gateway* gateway, Endpoint& control) {
  if (gateway != nullptr) {
    if (options.passed.count("peers") > 0)
      return InvalidArgument("passed socket 'peers': with tls the daemon listens by itself");
    Endpoint plain{INADDR_LOOPBACK, 0};
    ipc::Descriptor made(ListenAt(plain));
    if (!made.is_open())
      return MakeError(ErrorCode::kIo,
                       fmt::format("cannot listen on loopback: {}", std::strerror(errno)));
    const Result<Endpoint> front = gateway->Front(control, plain);
    if (!front) return tl::unexpected(front.error());
    control = *front;
    return Listener{std::move(made), ""};
  }
  Result<ipc::Descriptor> passed = TakePassed(options, "peers", AF_INET, SOCK_STREAM);
  if (!passed) return tl::unexpected(passed.error());
  if (passed->is_open()) {
    const Endpoint at = LocalEndOf(passed->fd());
    // Bound to any address, it is met at the one that is configured.
    if (!at.address.is_any()) control.address = at.address;
    control.port = at.port;
    return Listener{std::move(*passed), ""};
  }
  const Endpoint wanted = control;
  ipc::Descriptor made(ListenAt(control));
  if (!made.is_open())
    return MakeError(ErrorCode::kIo,
                     fmt::format("cannot listen at {}: {}", wanted.ToText(), std::strerror(errno)));
  return Listener{std::move(made), ""};
}

}  // namespace

Result<Listeners> OpenListeners(DaemonOptions& options, Gateway* gateway, Endpoint& control) {
  Listeners listeners;
  Result<Listener> peers = OpenPeers(options, gateway, control);
  if (!peers) return tl::unexpected(peers.error());
  listeners.peers = std::move(*peers);
  Result<Listener> tenants = OpenUnix(options, "tenants", options.socket, ipc::SocketKind::kPackets,
                                      ipc::OpenTo::kAnybody);
  if (!tenants) return tl::unexpected(tenants.error());
  listeners.tenants = std::move(*tenants);
  Result<Listener> admin =
      OpenUnix(options, "admin", options.admin, ipc::SocketKind::kStream, ipc::OpenTo::kOwner);
  if (!admin) return tl::unexpected(admin.error());
  listeners.admin = std::move(*admin);
  for (const auto& [name, into] :
       {std::pair("metrics", &listeners.metrics), std::pair("ras", &listeners.ras)}) {
    // By TCP or a Unix socket, as the one who passes it likes.
    const auto found = options.passed.find(name);
    if (found == options.passed.end()) continue;
    *into = ipc::Descriptor(found->second);
    options.passed.erase(found);
  }
  if (!options.passed.empty())
    return InvalidArgument(
        fmt::format("passed socket '{}': wanted tenants, admin, peers, metrics or ras",
                    options.passed.begin()->first));
  return listeners;
}

}  // namespace tutti::service
