// Listeners: the sockets at which a daemon is met, bound here or passed by whoever started it.
//
// Errors      kInvalidArgument: a passed descriptor that is no such socket, by its name. kIo: what the system said, with
//             the path or address.
#pragma once

#include <string>

#include "endpoint.h"
#include "gateway.h"
#include "tutti/base/result.h"
#include "tutti/ipc/socket.h"
#include "tutti/service/daemon.h"

namespace tutti::service {

struct Listener {
  ipc::Descriptor socket;
  std::string unlink;  // at the end; empty: nothing
};

struct Listeners {
  Listener tenants, admin, peers;
  ipc::Descriptor metrics, ras;  // closed: not passed
};

// `control`: where peers are to be listened at; then where they are. `gateway`: they come through it; or null.
Result<Listeners> OpenListeners(DaemonOptions& options, Gateway* gateway, Endpoint& control);

}  // namespace tutti::service
