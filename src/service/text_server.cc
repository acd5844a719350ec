#include "text_server.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "endpoint.h"
#include "tutti/base/clock.h"

namespace tutti::service {
namespace {

Result<Endpoint> ParseListen(const std::string& text) {
  const size_t colon = text.rfind(':');
  in_addr address{};
  uint16_t port = 0;
  const std::string host = text.substr(0, colon);
  const char* end = text.data() + text.size();
  const char* digits = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto [read, error] = std::from_chars(digits, end, port);
  if (inet_pton(AF_INET, host.c_str(), &address) != 1 || digits == end || error != std::errc() ||
      read != end)
    return InvalidArgument(
        fmt::format("got '{}', wanted an IPv4 address and a port, or a path", text));
  return Endpoint{ntohl(address.s_addr), port};
}

}  // namespace

Result<std::unique_ptr<TextServer>> TextServer::Start(EventLoop& loop, const std::string& listen,
                                                      ipc::Descriptor passed, Make make) {
  std::unique_ptr<TextServer> server(new TextServer(loop, std::move(make)));
  server->address_ = listen;
  const bool is_path = listen.find('/') != std::string::npos;
  const bool is_passed = passed.is_open();
  ipc::Descriptor listener = std::move(passed);
  if (!is_passed && is_path) {
    // Connecting is everybody's: what one sees depends on who one is.
    Result<ipc::Descriptor> made =
        ipc::Listen(listen, ipc::SocketKind::kStream, ipc::OpenTo::kAnybody);
    if (!made) return tl::unexpected(made.error());
    listener = std::move(*made);
  } else if (!is_passed) {
    Result<Endpoint> at = ParseListen(listen);
    if (!at) return tl::unexpected(at.error());
    listener = ipc::Descriptor(ListenAt(*at));
    if (!listener.is_open())
      return MakeError(ErrorCode::kIo,
                       fmt::format("cannot listen at {}: {}", listen, std::strerror(errno)));
    server->address_ = at->ToText();
  }
  server->acceptor_ = std::make_unique<Acceptor>(
      loop, std::move(listener), is_path && !is_passed ? listen : "",
      [self = server.get()](ipc::Descriptor socket) { self->Accept(std::move(socket)); });
  return server;
}

TextServer::~TextServer() {
  acceptor_.reset();
  for (Connection& connection : connections_) End(connection);
}

void TextServer::Accept(ipc::Descriptor socket) {
  if (connections_.size() >= kMaxConnections) return;
  std::unique_ptr<TextProtocol> protocol = make_(socket.fd());
  if (protocol == nullptr) return;
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  connection.protocol = std::move(protocol);
  connection.heard_ns = NowNs();
  loop_.Add(connection.socket.fd(), EPOLLIN, [this, &connection](uint32_t events) {
    if ((events & EPOLLOUT) != 0) Write(connection);
    if ((events & ~uint32_t{EPOLLOUT}) != 0) Hear(connection);
  });
}

void TextServer::Hear(Connection& connection) {
  std::array<char, 4096> part;
  while (!connection.over) {
    const ssize_t size = recv(connection.socket.fd(), part.data(), part.size(), MSG_DONTWAIT);
    if (size < 0 && WouldBlock()) return;
    if (size <= 0) {
      // Who says no more may still read.
      if (size < 0 || connection.out.empty()) return End(connection);
      connection.ends = true;
      return loop_.Change(connection.socket.fd(), EPOLLOUT);
    }
    if (connection.ends) continue;  // said behind the end is not heard
    connection.heard_ns = NowNs();
    connection.in.append(part.data(), static_cast<size_t>(size));
    connection.ends = !connection.protocol->Hear(connection.in, connection.out);
    if (connection.in.size() > kMaxInput) return End(connection);
    Write(connection);
  }
}

void TextServer::Write(Connection& connection) {
  if (connection.over) return;
  size_t done = 0;
  while (done < connection.out.size()) {
    const ssize_t size = send(connection.socket.fd(), connection.out.data() + done,
                              connection.out.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && WouldBlock()) break;
    if (size <= 0) return End(connection);
    done += static_cast<size_t>(size);
  }
  connection.out.erase(0, done);
  if (connection.out.empty() && connection.ends) {
    // What was not read would turn the answer into a reset.
    shutdown(connection.socket.fd(), SHUT_WR);
    std::array<char, 4096> rest;
    while (recv(connection.socket.fd(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    return End(connection);
  }
  if (connection.out.size() > kMaxOutput) return End(connection);
  loop_.Change(connection.socket.fd(),
               EPOLLIN | (connection.out.empty() ? 0u : uint32_t{EPOLLOUT}));
}

void TextServer::End(Connection& connection) {
  if (connection.over) return;
  connection.over = true;
  loop_.Remove(connection.socket.fd());
  connection.socket = {};
}

void TextServer::Tick(int64_t now_ns) {
  acceptor_->Tick();
  for (Connection& connection : connections_) {
    const bool waits_for_ever = connection.protocol->is_patient() && connection.out.empty();
    if (!waits_for_ever && now_ns - connection.heard_ns > kPatienceNs) End(connection);
  }
  connections_.remove_if([](const Connection& connection) { return connection.over; });
}

void TextServer::Tell(const std::function<void(TextProtocol&, std::string&)>& say) {
  for (Connection& connection : connections_) {
    if (connection.over || connection.ends) continue;
    const size_t before = connection.out.size();
    say(*connection.protocol, connection.out);
    if (connection.out.size() > before) Write(connection);
  }
}

}  // namespace tutti::service
