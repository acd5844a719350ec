// Gateway: what carries the connections between daemons where they are not to cross the network as they are.
//
// Model       A listener of this host is fronted: others reach it at an endpoint of the gateway. Who connects to another
//             host connects to an endpoint on loopback that leads through the gateway to the other one's front.
//             Both ends stay what they are without it; bytes arrive in order, and an end shows at the other.
// Threads     Any.
#pragma once

#include <string>

#include "endpoint.h"
#include "tcp_transport.h"
#include "tutti/base/result.h"

namespace tutti::service {

class Gateway {
 public:
  virtual ~Gateway() = default;
  // Others reach what listens at `to` by a listener at `at` (port 0: any): where that is. kIo.
  virtual Result<Endpoint> Front(const Endpoint& at, const Endpoint& to) = 0;
  // On loopback, for this user's processes: leads to the front at `to`, from `source`. kIo.
  virtual Result<Endpoint> Through(const Endpoint& to, const TcpSource& source) = 0;
  // One that Front() or Through() gave: nobody is taken there any more; connections that are there stay.
  virtual void Close(const Endpoint& made) = 0;
  // Why the last connection to `to` could not be made; empty: nothing is known.
  virtual std::string FaultWith(const Endpoint& to) const = 0;
};

}  // namespace tutti::service
