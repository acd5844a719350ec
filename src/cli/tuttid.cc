// tuttid: the daemon of a host (tutti/service/daemon.h).
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "daemon_program.h"
#include "flags.h"
#include "rpc_flags.h"
#include "service_manager.h"
#include "tutti/service/daemon.h"

namespace tutti::cli {
namespace {

const service::Daemon* running = nullptr;
std::atomic<bool> reload_asked = false;

extern "C" void OnEnd(int) {
  if (running != nullptr) running->Stop();
}
extern "C" void OnReload(int) { reload_asked = true; }

struct Flags {
  std::string config, socket, admin, listen, host, controller, metrics, ras;
  RpcFlags rpc;
};

constexpr DaemonProgram kProgram{
    "tuttid",
    "Collectives as a service: the daemon that runs those of all tenants of this host. "
    "Programs use it by TUTTI_SERVICE=SOCKET, operators by 'tutti service'."};

int Fail(const std::string& what) { return FailDaemon(kProgram, what); }

// "10.0.0.1" or "10.0.0.1:7600". Nothing: fine.
std::string TakeListen(const std::string& text, service::DaemonOptions& options) {
  const size_t colon = text.find(':');
  options.listen = text.substr(0, colon);
  if (colon == std::string::npos) return "";
  const std::string port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), options.port);
  if (error == std::errc() && end == port.data() + port.size()) return "";
  return fmt::format("--listen: got '{}', wanted ADDRESS or ADDRESS:PORT", text);
}

Result<service::DaemonOptions> OptionsOf(const Flags& flags) {
  service::DaemonOptions options;
  if (!flags.config.empty()) {
    Result<service::DaemonOptions> read = service::ReadDaemonOptions(flags.config);
    if (!read) return read;
    options = std::move(*read);
  }
  if (!flags.socket.empty()) options.socket = flags.socket;
  if (!flags.admin.empty()) options.admin = flags.admin;
  if (!flags.host.empty()) options.host = flags.host;
  if (!flags.metrics.empty()) options.metrics.listen = flags.metrics;
  if (!flags.ras.empty()) options.ras.listen = flags.ras;
  if (!flags.listen.empty())
    if (const std::string fault = TakeListen(flags.listen, options); !fault.empty())
      return InvalidArgument(fault);
  options.log = [](const std::string& line) { spdlog::info("{}", line); };
  options.version = TUTTI_VERSION;
  return options;
}

// A configuration that is wrong changes nothing.
void Reload(const Flags& flags, service::Daemon& daemon) {
  const Result<service::DaemonOptions> options = OptionsOf(flags);
  if (!options) {
    spdlog::error("not reloaded: {}", options.error().message);
    return;
  }
  const std::vector<std::string> unlike = daemon.Reload(*options);
  if (unlike.empty())
    spdlog::info("reloaded: {} tenants are configured", options->tenants.size());
  else
    spdlog::warn("reloaded but for {}, which take a restart", fmt::join(unlike, ", "));
}

int Serve(const Flags& flags) {
  ServiceManager manager = ServiceManager::OfEnvironment();
  Result<service::DaemonOptions> options = OptionsOf(flags);
  if (!options) return Fail(options.error().message);
  Result<std::map<std::string, int>> passed = manager.TakeSockets();
  if (!passed) return Fail(passed.error().message);
  options->passed = std::move(*passed);
  std::optional<service::Daemon> daemon;
  options->tick = [&] {
    manager.Beat();
    if (!reload_asked.exchange(false)) return;
    manager.Reloading();
    Reload(flags, *daemon);
    manager.Ready("serves");
  };
  {
    Result<service::Daemon> started = service::Daemon::Start(*options);
    if (!started) return Fail(started.error().message);
    daemon.emplace(std::move(*started));
  }
  running = &*daemon;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, OnEnd);
  std::signal(SIGHUP, OnReload);
  std::signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_DUMPABLE, 0);  // what tenants share with it cannot be looked at through /proc
  spdlog::info("tenants at {}, operators at {}, other daemons at {}", daemon->options().socket,
               daemon->options().admin, daemon->address());
  DaemonAttachment attachment;
  if (!flags.controller.empty()) {
    const Status attached =
        attachment.Start(flags.controller, flags.rpc, daemon->host(), daemon->options().admin);
    if (!attached) return Fail("--controller: " + attached.error().message);
    spdlog::info("attaches to the controller at {}", flags.controller);
  }
  manager.Ready("serves");
  daemon->Run();
  running = nullptr;
  manager.Stopping();
  // First: what the controller has asked meanwhile nobody answers any more, and the attachment would wait for that.
  daemon.reset();
  spdlog::info("ended");
  return kDone;
}

void Describe(Command root) {
  auto flags = std::make_shared<Flags>();
  root.AddOption("-c,--config", flags->config, "Configuration file (docs/formats/service.md)");
  root.AddOption(
      "--socket", flags->socket,
      "Socket for tenants; else of the configuration, else $XDG_RUNTIME_DIR/tutti/tuttid.sock "
      "or /run/tutti/tuttid.sock");
  root.AddOption("--admin", flags->admin,
                 "Socket for operators; else admin.sock in the same places");
  root.AddOption(
      "--listen", flags->listen,
      "IPv4 address, and port, at which daemons of other hosts reach this one; else that of "
      "the first interface, and any port");
  root.AddOption("--host", flags->host, "Name of this host in reports; else the system's");
  root.AddOption("--controller", flags->controller,
                 "Address and port of the controller of the cluster, to attach to");
  root.AddOption("--metrics", flags->metrics,
                 "Address and port, or path, of metrics for Prometheus; else of the configuration, "
                 "else none");
  root.AddOption("--ras", flags->ras,
                 "Address and port, or path, of the RAS text protocol; else of the configuration, "
                 "else none");
  flags->rpc.AddTo(root);
  root.SetFooter("Example:\n  tuttid --listen 10.0.0.1:7600");
  root.Runs([flags] { return Serve(*flags); });
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  return tutti::cli::RunDaemonProgram(tutti::cli::kProgram, argc, argv, tutti::cli::Describe);
}
