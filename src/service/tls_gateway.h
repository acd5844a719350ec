// TlsGateway: a gateway that speaks TLS 1.3 with those of other hosts; each side shows a certificate of the
// configured authority.
//
// Model       A thread of its own carries bytes between plain sockets of this host and TLS over memory BIOs, so that ciphers
//             take nothing of the daemon's thread. Nothing reaches a plain listener before the other side's
//             certificate was good.
// Trust       Strangers have kHandshakeNs, and at most kMaxHandshakes are under way. Endpoints on loopback are for processes
//             of the daemon's user.
// Errors      Start: kInvalidArgument, with the field, the file and what OpenSSL says of it; kInfeasible: this build has no
//             TLS. What goes wrong with a peer goes to the log, and FaultWith() says it.
// Reference   RFC 8446
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gateway.h"
#include "tutti/base/result.h"
#include "tutti/ipc/socket.h"
#include "tutti/service/daemon.h"

namespace tutti::service {

using TellFault = std::function<void(const std::string& line)>;

// `tell` is called in the gateway's thread.
Result<std::unique_ptr<Gateway>> StartTlsGateway(const TlsOptions& options, TellFault tell);

}  // namespace tutti::service
