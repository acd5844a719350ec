// TextServer: a port, or Unix socket, at which tools of operators speak a protocol of text: metrics, RAS.
//
// Model       Each connection has a protocol of its own that turns what came into what goes back. Who it is decides what
//             it may see (viewer.h).
// Trust       Nobody: at most kMaxConnections, kMaxInput bytes that no protocol has used, kMaxOutput that are not read,
//             kPatienceNs without a word.
// Threads     The daemon's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "acceptor.h"
#include "event_loop.h"
#include "tutti/base/result.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

class TextProtocol {
 public:
  virtual ~TextProtocol() = default;
  // Takes from the front of `in` what it understands, and appends answers to `out`. False: the connection is over when
  // `out` is written.
  virtual bool Hear(std::string& in, std::string& out) = 0;
  // It may wait for ever.
  virtual bool is_patient() const { return false; }
};

class TextServer {
 public:
  static constexpr size_t kMaxConnections = 64, kMaxInput = 16384, kMaxOutput = size_t{64} << 20;
  static constexpr int64_t kPatienceNs = 10'000'000'000;
  // Null: whoever came on this socket is turned away.
  using Make = std::function<std::unique_ptr<TextProtocol>(int socket)>;

  // `listen`: "127.0.0.1:9464" or a path. `passed`: a socket that listens already, or none.
  // kInvalidArgument, kIo: with the address.
  static Result<std::unique_ptr<TextServer>> Start(EventLoop& loop, const std::string& listen,
                                                   ipc::Descriptor passed, Make make);
  ~TextServer();
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;

  // Where it listens: the port, where any was asked for.
  const std::string& address() const { return address_; }
  size_t num_connections() const { return connections_.size(); }
  void Tick(int64_t now_ns);
  // On each connection what `say` appends goes out.
  void Tell(const std::function<void(TextProtocol& protocol, std::string& out)>& say);

 private:
  struct Connection {
    ipc::Descriptor socket;
    std::unique_ptr<TextProtocol> protocol;
    std::string in, out;
    int64_t heard_ns = 0;
    bool ends = false, over = false;
  };

  TextServer(EventLoop& loop, Make make) : loop_(loop), make_(std::move(make)) {}
  void Accept(ipc::Descriptor socket);
  void Hear(Connection& connection);
  void Write(Connection& connection);
  void End(Connection& connection);

  EventLoop& loop_;
  Make make_;
  std::string address_;
  std::list<Connection> connections_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace tutti::service
