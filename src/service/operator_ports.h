// OperatorPorts: the ports at which tools of operators ask: metrics (HTTP) and RAS (text).
//
// Model       What each sees is a Viewer's: the provider everything; a tenant its own numbers, without hosts, routes and
//             strategies. A scrape is made in the daemon's thread out of what was counted already.
// Complexity  A page: O(communicators + ranks); nothing without a scrape.
// Threads     The daemon's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core.h"
#include "http.h"
#include "prometheus.h"
#include "ras.h"
#include "text_server.h"
#include "viewer.h"

namespace tutti::service {

class OperatorPorts {
 public:
  // Ports from core's options; those that are empty are off. `passed`: sockets that listen already.
  static Result<std::unique_ptr<OperatorPorts>> Start(Daemon::Core& core, ipc::Descriptor metrics,
                                                      ipc::Descriptor ras);

  void Tick(int64_t now_ns);
  // To whoever monitors.
  void Tell(RasEvent event);
  // Empty: off.
  std::string metrics_address() const { return metrics_ == nullptr ? "" : metrics_->address(); }
  std::string ras_address() const { return ras_ == nullptr ? "" : ras_->address(); }

  std::string MetricsPage(const Viewer& viewer) const;
  RasReport Report(const Viewer& viewer) const;

 private:
  struct Seen {
    std::string state, tenant;
    uint32_t epoch = 0;
  };

  explicit OperatorPorts(Daemon::Core& core) : core_(core) {}
  Viewer ViewerAt(int socket, const PortOptions& port) const;
  HttpAnswer AnswerHttp(const Viewer& viewer, const HttpRequest& request) const;
  void WriteTenants(const Viewer& viewer, PrometheusText& page) const;
  void WriteCommunicators(const Viewer& viewer, PrometheusText& page) const;
  void WriteAsNccl(const Viewer& viewer, PrometheusText& page) const;
  void WriteDaemon(PrometheusText& page) const;
  RasCommunicator ReportOf(const ServiceCommunicator& communicator, bool with_hosts) const;
  // What has changed since the last look.
  void TellChanges();

  Daemon::Core& core_;
  std::unique_ptr<TextServer> metrics_, ras_;
  std::map<std::string, Seen> seen_;  // communicators, while somebody monitors
};

}  // namespace tutti::service
