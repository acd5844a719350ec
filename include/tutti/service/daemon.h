// Daemon: collectives as a service for the processes of one host. It owns the buffers, the connections and the
// choice of schedules; processes (tenants) only say what is to be done.
//
// Model       Processes connect to a Unix socket and share memory with the daemon (tutti/ipc/layout.h,
//             docs/formats/service.md); a program gets there by TUTTI_SERVICE=SOCKET, unchanged.
//             Daemons of other hosts are met over TCP, communicator by communicator; each communicator has a
//             root daemon (where its unique id was made) that gathers its ranks, and a control ring.
//             One thread polls everything, sleeps without work, and gives each tenant with work its turn;
//             another one plans.
// Strategy    What runs is chosen by the provider: the built-in schedules, or schedule files given to
//             `reconfigure` while collectives run, judged before they are taken (barrier.h).
// Trust       Tenants are not trusted: what they share is copied, then checked. Other daemons are.
// Errors      Start: kIo (a socket or address that is taken), kInvalidArgument.
// Threads     Run() blocks its thread; Stop() may be called by any, and by a signal handler.
// Reference   [mccs] 4.1, 4.2, 5
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tutti/base/result.h"

namespace tutti::service {

struct TenantOptions {
  std::string name = {};
  std::string token = {};            // empty: whoever has one of the users
  std::vector<uint32_t> users = {};  // empty: any that knows the token
  int32_t weight = 1;                // its share of turns, 1 to 64
  int64_t memory_bytes = int64_t{1} << 40;
  int32_t processes = 64;
  int32_t ranks = 256;  // of communicators, on this host
  // This host's devices, for its ranks of a communicator in turn; empty: 0, 1, ...
  std::vector<int32_t> devices = {};
};

// Where tools of operators ask: metrics (HTTP) or RAS (text).
struct PortOptions {
  std::string listen = {};           // "127.0.0.1:9464", or the path of a Unix socket; empty: off
  std::string token = {};            // of metrics: who shows it sees everything
  std::vector<uint32_t> users = {};  // who see everything, beside root and the daemon's own
  bool remote = false;               // whoever comes from another host sees everything
};

// PEM files; all or none. With them daemons meet by TLS, and whoever has no certificate of the authority is nobody.
struct TlsOptions {
  std::string certificate = {}, key = {}, authority = {};

  bool is_on() const { return !certificate.empty(); }
};

inline constexpr int32_t kMostRuntimes = 64;

struct DaemonOptions {
  std::string socket;  // for tenants
  std::string admin;   // for operators
  std::string listen =
      "";  // IPv4 address of this host for other daemons; empty: that of its first interface
  uint16_t port = 0;      // 0: any
  std::string host = {};  // name in reports; empty: the system's, up to the first dot
  // IPv4 addresses of its devices' NICs, by device: ranks listen at and send from that of theirs. Empty: the one
  // above for all.
  std::vector<std::string> nics = {};
  std::vector<TenantOptions> tenants = {};
  PortOptions metrics = {}, ras = {};
  TlsOptions tls = {};
  // Sockets that listen already, taken over: "tenants", "admin", "peers", "metrics", "ras". Their paths are their
  // owner's to remove.
  std::map<std::string, int> passed = {};
  std::string version = {};  // in reports
  // Called in the daemon's thread about every 100 ms, while it is well.
  std::function<void()> tick = {};
  // Told what operators may want to read, a line each; in the daemon's thread, of TLS in another.
  std::function<void(const std::string&)> log = {};
  // Threads that move data between ranks of this host, to kMostRuntimes: where there are several they share large messages.
  // 0: DefaultRuntimes() of this machine's cores.
  int32_t runtimes = 0;
  bool anybody = true;  // users that no tenant names are tenants of their own, "user-1000"
};

// A configuration file (docs/formats/service.md). kInvalidArgument names the field.
Result<DaemonOptions> ReadDaemonOptions(const std::string& path);
// A quarter of the cores, one at least and four at most.
int32_t DefaultRuntimes(int32_t cores);
// $XDG_RUNTIME_DIR/tutti or /run/tutti: where sockets are by default.
std::string DefaultFolder();

class Daemon {
 public:
  static Result<Daemon> Start(const DaemonOptions& options);
  Daemon(Daemon&&) noexcept;
  Daemon& operator=(Daemon&&) noexcept;
  ~Daemon();

  const DaemonOptions& options() const;  // with what was left out filled in
  const std::string& host() const;       // its name in reports
  // "10.0.0.1:7600": where other daemons reach it.
  std::string address() const;
  // Takes tenants, `anybody` and who may see metrics and RAS from there; in the daemon's thread, that is from
  // `tick`. Processes of tenants that are no longer there end. What it says needs a restart: fields that differ
  // otherwise.
  std::vector<std::string> Reload(const DaemonOptions& options);
  // Until Stop().
  void Run();
  void Stop() const;

  class Core;  // the daemon's own

 private:
  explicit Daemon(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

// Asks the daemon at `admin` (a JSON object {"command": ...}) and gives its answer, as JSON.
Result<std::string> AskDaemon(const std::string& admin, const std::string& request);

}  // namespace tutti::service
