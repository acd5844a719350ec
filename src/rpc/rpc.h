// The network between a controller, the daemons of its cluster, and clients that decide (gRPC, src/rpc/controller.proto).
//
// Model       A controller serves; daemons attach themselves, so that nothing on a host listens for it. A daemon that is cut
//             off tries again every second; what runs goes on. Files of TLS make both sides prove who they are; without them
//             a controller listens at loopback addresses only, unless told that the network is trusted.
// Threads     The library's own; both objects may be made and destroyed by any.
// Errors      kInvalidArgument: an address that others could reach, without TLS. kIo: it cannot be listened at, a file
//             that cannot be read.
// Reference   [mccs] 4.3
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/controller/controller.h"
#include "tutti/controller/requests.h"

namespace tutti::rpc {

struct RpcSecurity {
  std::string certificate = {}, key = {}, authority = {};  // PEM files; all or none
  bool insecure = false;                                   // without TLS at any address

  bool has_tls() const { return !certificate.empty(); }
};

// Daemons that have attached, by host.
class AttachedDaemons {
 public:
  AttachedDaemons();
  ~AttachedDaemons();
  AttachedDaemons(const AttachedDaemons&) = delete;
  AttachedDaemons& operator=(const AttachedDaemons&) = delete;

  // kPeerFailed: no daemon of this host is attached, or it gave no answer within ten seconds.
  std::unique_ptr<controller::DaemonLink> LinkTo(std::string host);

  class State;
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

class RpcServer {
 public:
  // `address`: "10.0.0.1:7700"; port 0: any.
  static Result<RpcServer> Start(const std::string& address, const RpcSecurity& security,
                                 controller::Requests& requests, AttachedDaemons& daemons);
  RpcServer(RpcServer&&) noexcept;
  RpcServer& operator=(RpcServer&&) noexcept;
  ~RpcServer();

  int port() const;

 private:
  class Service;
  struct Parts;
  explicit RpcServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// A daemon's end: attaches to the controller at `address` as `host`, and hands its questions to the socket for operators.
class DaemonAgent {
 public:
  static Result<DaemonAgent> Start(const std::string& address, const RpcSecurity& security,
                                   const std::string& host, const std::string& admin);
  DaemonAgent(DaemonAgent&&) noexcept;
  DaemonAgent& operator=(DaemonAgent&&) noexcept;
  ~DaemonAgent();

 private:
  struct Parts;
  explicit DaemonAgent(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tutti::rpc
