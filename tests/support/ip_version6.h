// Whether this host has IP version 6; tests of it are skipped where not.
#pragma once

#include <unistd.h>

#include "runtime/endpoint.h"

namespace tutti {

// False: errno says why not.
inline bool HasIpVersion6() {
  Endpoint at{IpAddress::Loopback6(), 0};
  const int listener = ListenAt(at);
  if (listener < 0) return false;
  close(listener);
  return true;
}

}  // namespace tutti
