// tutti-controller: who on a cluster uses which links (tutti/controller/controller.h).
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common.h"
#include "daemon_program.h"
#include "flags.h"
#include "rpc_flags.h"
#include "tutti/controller/requests.h"
#include "tutti/service/daemon.h"

namespace tutti::cli {
namespace {

std::atomic<bool> stops = false;

extern "C" void OnEnd(int) { stops = true; }

struct Flags {
  std::string config, socket, listen;
  RpcFlags rpc;
  int32_t follow_s = 0;
};

constexpr DaemonProgram kProgram{
    "tutti-controller",
    "Decides who on a cluster uses which links, by a policy, and has the daemons of its hosts, "
    "tuttid, do so. Operators ask it by 'tutti service policy'."};

int Fail(const std::string& what) { return FailDaemon(kProgram, what); }

// Looks at the cluster now and then.
void Follow(controller::Requests& requests, int32_t seconds) {
  constexpr std::chrono::milliseconds kStep{100};
  auto next = std::chrono::steady_clock::now();
  while (!stops) {
    if (std::chrono::steady_clock::now() >= next) {
      for (const std::string& line : requests.FollowChanges()) spdlog::info("{}", line);
      next = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    }
    std::this_thread::sleep_for(kStep);
  }
}

int Serve(const Flags& flags) {
  Result<controller::ClusterConfig> config = controller::ReadClusterConfig(flags.config);
  if (!config) return Fail(config.error().message);
  if (const auto policy = FindPolicy(config->policy.name); !policy)
    return Fail(flags.config + ": policy: " + policy.error().message);
  AttachmentPoint attachments;
  std::vector<std::unique_ptr<controller::DaemonLink>> links;
  for (size_t i = 0; i < config->hosts.size(); ++i) {
    const controller::HostConfig& host = config->hosts[i];
    if (host.admin.empty() && flags.listen.empty())
      return Fail(
          fmt::format("{}: hosts[{}].admin: is missing, and without --listen daemons cannot "
                      "attach themselves",
                      flags.config, i));
    links.push_back(host.admin.empty() ? attachments.LinkTo(host.name)
                                       : controller::LinkToSocket(host.admin));
  }
  const std::string socket =
      flags.socket.empty() ? service::DefaultFolder() + "/controller.sock" : flags.socket;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, OnEnd);
  std::signal(SIGPIPE, SIG_IGN);
  controller::Requests requests(controller::Controller(std::move(*config), std::move(links)));
  if (!flags.listen.empty()) {
    const Result<int> port = attachments.Serve(flags.listen, flags.rpc, requests);
    if (!port) return Fail("--listen: " + port.error().message);
    spdlog::info("daemons and clients at {} (port {})", flags.listen, *port);
  }
  std::thread follower;
  const auto ready = [&] {
    spdlog::info("operators at {}", socket);
    if (flags.follow_s > 0) follower = std::thread([&] { Follow(requests, flags.follow_s); });
  };
  const Status served =
      controller::ServeRequests(socket, requests, ready, [] { return stops.load(); });
  stops = true;
  attachments.Stop();
  if (follower.joinable()) follower.join();
  if (!served) return Fail(served.error().message);
  spdlog::info("ended");
  return kDone;
}

void Describe(Command root) {
  auto flags = std::make_shared<Flags>();
  root.AddOption("-c,--config", flags->config,
                 "Configuration file: network, hosts, routes, policy (docs/formats/controller.md)")
      .Required();
  root.AddOption("--socket", flags->socket,
                 "Socket for operators; else $XDG_RUNTIME_DIR/tutti/controller.sock or "
                 "/run/tutti/controller.sock");
  root.AddOption(
          "--follow", flags->follow_s,
          "Look every so many seconds whether communicators have come or gone, and apply the "
          "policy again; 0: only when told")
      .ShowDefault()
      .Within(0, 86400);
  root.AddOption("--listen", flags->listen,
                 "Address and port at which daemons attach themselves and clients ask (gRPC)");
  flags->rpc.AddTo(root);
  root.SetFooter("Example:\n  tutti-controller -c cluster.json --follow 1");
  root.Runs([flags] { return Serve(*flags); });
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  return tutti::cli::RunDaemonProgram(tutti::cli::kProgram, argc, argv, tutti::cli::Describe);
}
