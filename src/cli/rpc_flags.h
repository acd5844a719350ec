// What tuttid and tutti-controller share of the network between them; where Tutti was built without gRPC the flags say so.
#pragma once

#include <memory>
#include <string>

#include "flags.h"
#include "tutti/base/result.h"
#include "tutti/controller/controller.h"
#include "tutti/controller/requests.h"
#ifdef TUTTI_GRPC
#include "rpc.h"
#endif

namespace tutti::cli {

struct RpcFlags {
  std::string certificate, key, authority;
  bool insecure = false;

  void AddTo(Command& command) {
    command.AddOption(
        "--tls-certificate", certificate,
        "PEM file that proves who this is; with a key and an authority both sides do");
    command.AddOption("--tls-key", key, "PEM file with its key");
    command.AddOption("--tls-authority", authority,
                      "PEM file of the authority that the other side's certificate is from");
    command.AddFlag("--insecure", insecure,
                    "Without TLS beyond this host, too: the network is trusted");
  }
};

#ifdef TUTTI_GRPC

inline rpc::RpcSecurity SecurityOf(const RpcFlags& flags) {
  return {.certificate = flags.certificate,
          .key = flags.key,
          .authority = flags.authority,
          .insecure = flags.insecure};
}

// A controller's: where daemons attach.
class AttachmentPoint {
 public:
  std::unique_ptr<controller::DaemonLink> LinkTo(const std::string& host) {
    return daemons_.LinkTo(host);
  }
  // The port.
  Result<int> Serve(const std::string& address, const RpcFlags& flags,
                    controller::Requests& requests) {
    Result<rpc::RpcServer> server =
        rpc::RpcServer::Start(address, SecurityOf(flags), requests, daemons_);
    if (!server) return tl::unexpected(server.error());
    server_ = std::make_unique<rpc::RpcServer>(std::move(*server));
    return server_->port();
  }
  // No request is answered after it.
  void Stop() { server_.reset(); }

 private:
  rpc::AttachedDaemons daemons_;
  std::unique_ptr<rpc::RpcServer> server_;
};

// A daemon's.
class DaemonAttachment {
 public:
  Status Start(const std::string& address, const RpcFlags& flags, const std::string& host,
               const std::string& admin) {
    Result<rpc::DaemonAgent> agent =
        rpc::DaemonAgent::Start(address, SecurityOf(flags), host, admin);
    if (!agent) return tl::unexpected(agent.error());
    agent_ = std::make_unique<rpc::DaemonAgent>(std::move(*agent));
    return {};
  }

 private:
  std::unique_ptr<rpc::DaemonAgent> agent_;
};

#else

inline constexpr const char* kBuiltWithoutGrpc = "this Tutti was built without gRPC";

class AttachmentPoint {
 public:
  std::unique_ptr<controller::DaemonLink> LinkTo(const std::string&) { return nullptr; }
  Result<int> Serve(const std::string&, const RpcFlags&, controller::Requests&) {
    return InvalidArgument(kBuiltWithoutGrpc);
  }
  void Stop() {}
};

class DaemonAttachment {
 public:
  Status Start(const std::string&, const RpcFlags&, const std::string&, const std::string&) {
    return InvalidArgument(kBuiltWithoutGrpc);
  }
};

#endif

}  // namespace tutti::cli
