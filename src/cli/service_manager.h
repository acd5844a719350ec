// ServiceManager: what systemd, or whoever else starts a daemon, and the daemon say to each other: sockets passed, when it
// is ready, that it is well.
//
// Model       The protocols of sd_listen_fds(3) and sd_notify(3) in the environment: LISTEN_PID, LISTEN_FDS,
//             LISTEN_FDNAMES; NOTIFY_SOCKET; WATCHDOG_USEC, WATCHDOG_PID. Without them all of it does nothing.
// Errors      TakeSockets: kInvalidArgument, where the environment says what cannot be.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tutti/base/result.h"

namespace tutti::cli {

class ServiceManager {
 public:
  // Reads the environment, and takes it out of it, so that no child believes it.
  static ServiceManager OfEnvironment();

  // By name; a socket without a known name is what it is: packets for tenants, a Unix stream for operators, TCP for
  // other daemons.
  Result<std::map<std::string, int>> TakeSockets() const;
  // Microseconds after which it is taken for hung; 0: it is not watched.
  int64_t watchdog_us() const { return watchdog_us_; }
  bool is_there() const { return !notify_.empty(); }

  void Ready(const std::string& status) const;
  void Reloading() const;
  void Stopping() const;
  // Says that it is well, at most every quarter of the watchdog's time.
  void Beat();

 private:
  void Say(const std::string& lines) const;

  std::string notify_;  // its socket
  std::string listen_pid_, listen_fds_, listen_names_;
  int64_t watchdog_us_ = 0;
  int64_t beat_ns_ = 0;
};

}  // namespace tutti::cli
