// tuttid: the daemon of a host (tutti/service/daemon.h).
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <charconv>
#include <csignal>
#include <memory>
#include <string>

#include "common.h"
#include "daemon_program.h"
#include "flags.h"
#include "rpc_flags.h"
#include "tutti/service/daemon.h"

namespace tutti::cli {
namespace {

const service::Daemon* running = nullptr;

extern "C" void OnEnd(int) {
  if (running != nullptr) running->Stop();
}

struct Flags {
  std::string config, socket, admin, listen, host, controller;
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
  if (!flags.listen.empty())
    if (const std::string fault = TakeListen(flags.listen, options); !fault.empty())
      return InvalidArgument(fault);
  options.log = [](const std::string& line) { spdlog::info("{}", line); };
  return options;
}

int Serve(const Flags& flags) {
  const Result<service::DaemonOptions> options = OptionsOf(flags);
  if (!options) return Fail(options.error().message);
  const Result<service::Daemon> daemon = service::Daemon::Start(*options);
  if (!daemon) return Fail(daemon.error().message);
  running = &*daemon;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, OnEnd);
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
  const_cast<service::Daemon&>(*daemon).Run();
  running = nullptr;
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
  flags->rpc.AddTo(root);
  root.SetFooter("Example:\n  tuttid --listen 10.0.0.1:7600");
  root.Runs([flags] { return Serve(*flags); });
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  return tutti::cli::RunDaemonProgram(tutti::cli::kProgram, argc, argv, tutti::cli::Describe);
}
