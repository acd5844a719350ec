#include "operator_ports.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tutti/base/clock.h"

namespace tutti::service {
namespace {

constexpr double kNsASecondAtPorts = 1e9;

double SecondsOf(int64_t ns) { return static_cast<double>(ns) / kNsASecondAtPorts; }

// tuttiResult_t, which has NCCL's numbers.
int32_t NcclResultOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return 4;
    case ErrorCode::kPeerFailed:
      return 6;
    default:
      return 2;
  }
}

// What one sees is not to be told apart by how long it takes to compare.
bool IsSameSecret(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (size_t i = 0; i < a.size(); ++i)
    different |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return different == 0;
}

constexpr int32_t kUnknownDevice = -1;

}  // namespace

Result<std::unique_ptr<OperatorPorts>> OperatorPorts::Start(Daemon::Core& core,
                                                            ipc::Descriptor metrics,
                                                            ipc::Descriptor ras) {
  std::unique_ptr<OperatorPorts> ports(new OperatorPorts(core));
  OperatorPorts* self = ports.get();
  const DaemonOptions& options = core.options_;
  if (!options.metrics.listen.empty() || metrics.is_open()) {
    auto server = TextServer::Start(
        *core.loop_, options.metrics.listen, std::move(metrics), [self](int socket) {
          return std::make_unique<HttpProtocol>(
              [self, viewer = self->ViewerAt(socket, self->core_.options_.metrics)](
                  const HttpRequest& request) { return self->AnswerHttp(viewer, request); });
        });
    if (!server) return Within("metrics", server.error());
    ports->metrics_ = std::move(*server);
  }
  if (!options.ras.listen.empty() || ras.is_open()) {
    auto server = TextServer::Start(
        *core.loop_, options.ras.listen, std::move(ras),
        [self](int socket) -> std::unique_ptr<TextProtocol> {
          const Viewer viewer = self->ViewerAt(socket, self->core_.options_.ras);
          if (viewer.sees_nothing()) return nullptr;
          return std::make_unique<RasProtocol>(
              [self, viewer] { return self->Report(viewer); },
              [viewer](const std::string& tenant) { return viewer.Sees(tenant); });
        });
    if (!server) return Within("ras", server.error());
    ports->ras_ = std::move(*server);
  }
  return ports;
}

Viewer OperatorPorts::ViewerAt(int socket, const PortOptions& port) const {
  std::vector<const TenantOptions*> known;
  for (const auto& tenant : core_.tenants_) known.push_back(&tenant->options);
  return ViewerOf(WhoCalls(socket), port, geteuid(), known);
}

void OperatorPorts::Tick(int64_t now_ns) {
  if (metrics_ != nullptr) metrics_->Tick(now_ns);
  if (ras_ == nullptr) return;
  ras_->Tick(now_ns);
  TellChanges();
}

// --- Metrics -------------------------------------------------------------------------------------

HttpAnswer OperatorPorts::AnswerHttp(const Viewer& viewer, const HttpRequest& request) const {
  if (request.path != "/metrics") return {.status = 404, .body = "metrics are at /metrics\n"};
  Viewer sees = viewer;
  if (!request.bearer.empty()) {  // then it decides, and not who holds the connection
    sees = {};
    const std::string& token = core_.options_.metrics.token;
    if (!token.empty() && IsSameSecret(request.bearer, token)) sees.sees_all = true;
    for (const auto& tenant : core_.tenants_)
      if (!tenant->options.token.empty() && tenant->options.users.empty() &&
          IsSameSecret(request.bearer, tenant->options.token))
        sees.tenants.insert(tenant->options.name);
    if (sees.sees_nothing()) return {.status = 401, .body = "this token is nobody's\n"};
  }
  if (sees.sees_nothing())
    return {.status = 403,
            .body =
                "metrics are for the provider, and of each tenant for itself: show a token "
                "(docs/guide/service.md)\n"};
  return {.body = MetricsPage(sees), .type = "text/plain; version=0.0.4; charset=utf-8"};
}

std::string OperatorPorts::MetricsPage(const Viewer& viewer) const {
  PrometheusText page;
  WriteTenants(viewer, page);
  WriteCommunicators(viewer, page);
  WriteAsNccl(viewer, page);
  if (viewer.sees_all) WriteDaemon(page);
  return page.text();
}

void OperatorPorts::WriteTenants(const Viewer& viewer, PrometheusText& page) const {
  const auto of_each = [&](const auto& write) {
    for (const auto& tenant : core_.tenants_)
      if (viewer.Sees(tenant->options.name)) write(tenant->options.name, *tenant);
  };
  page.Family("tutti_tenant_operations_total", "counter",
              "Ranks' parts of collectives that were completed, of communicators that ended, too");
  of_each([&](const std::string& name, const Tenant& tenant) {
    page.Add({{"tenant", name}}, static_cast<double>(tenant.operations));
  });
  page.Family("tutti_tenant_bytes_total", "counter", "Bytes of the larger buffer of each of them");
  of_each([&](const std::string& name, const Tenant& tenant) {
    page.Add({{"tenant", name}}, static_cast<double>(tenant.bytes));
  });
  page.Family("tutti_tenant_memory_bytes", "gauge", "Service memory that the tenant has");
  of_each([&](const std::string& name, const Tenant& tenant) {
    page.Add({{"tenant", name}}, static_cast<double>(tenant.memory_bytes));
  });
  page.Family("tutti_tenant_processes", "gauge", "Processes of the tenant that are connected");
  of_each([&](const std::string& name, const Tenant& tenant) {
    page.Add({{"tenant", name}}, static_cast<double>(tenant.processes));
  });
  page.Family("tutti_refused_total", "counter", "Requests and commands that were refused");
  of_each([&](const std::string& name, const Tenant& tenant) {
    for (const auto& [code, count] : tenant.metrics.refused())
      page.Add({{"tenant", name}, {"reason", ReasonText(code)}}, static_cast<double>(count));
  });
  const auto histograms = [&](Histogram TenantMetrics::Kind::*which) {
    of_each([&](const std::string& name, const Tenant& tenant) {
      for (size_t kind = 0; kind < kNumKinds; ++kind) {
        const Histogram& of = tenant.metrics.kinds()[kind].*which;
        if (of.count() > 0) page.Add({{"tenant", name}, {"kind", KindText(kind)}}, of);
      }
    });
  };
  page.Family("tutti_collective_seconds", "histogram",
              "From the launch of a rank's part to its end");
  histograms(&TenantMetrics::Kind::seconds);
  page.Family("tutti_launch_delay_seconds", "histogram",
              "From when a rank's command was read to its launch");
  histograms(&TenantMetrics::Kind::delay);
}

void OperatorPorts::WriteCommunicators(const Viewer& viewer, PrometheusText& page) const {
  const auto of_each = [&](const auto& write) {
    for (const auto& [secret, communicator] : core_.communicators_)
      if (const std::string& tenant = communicator->tenant().options.name; viewer.Sees(tenant))
        write(tenant, communicator->id().Label(), *communicator);
  };
  const auto by_kind = [&](int64_t CommunicatorMetrics::Count::*which) {
    of_each([&](const std::string& tenant, const std::string& label,
                const ServiceCommunicator& communicator) {
      for (size_t kind = 0; kind < kNumKinds; ++kind)
        if (const auto& count = communicator.metrics().counts()[kind]; count.operations > 0)
          page.Add({{"tenant", tenant}, {"communicator", label}, {"kind", KindText(kind)}},
                   static_cast<double>(count.*which));
    });
  };
  page.Family("tutti_collectives_total", "counter",
              "Ranks' parts of collectives that were completed, of communicators that are there");
  by_kind(&CommunicatorMetrics::Count::operations);
  page.Family("tutti_bytes_total", "counter", "Bytes of the larger buffer of each of them");
  by_kind(&CommunicatorMetrics::Count::bytes);
  page.Family("tutti_queue_depth", "gauge", "Commands of local ranks that are not launched");
  of_each([&](const std::string& tenant, const std::string& label,
              const ServiceCommunicator& communicator) {
    size_t depth = 0;
    for (const auto& rank : communicator.local()) depth += rank->queue.size();
    page.Add({{"tenant", tenant}, {"communicator", label}}, static_cast<double>(depth));
  });
  page.Family("tutti_communicator_failed", "gauge", "1: it has failed");
  of_each([&](const std::string& tenant, const std::string& label,
              const ServiceCommunicator& communicator) {
    page.Add({{"tenant", tenant}, {"communicator", label}}, communicator.has_failed() ? 1 : 0);
  });
}

void OperatorPorts::WriteAsNccl(const Viewer& viewer, PrometheusText& page) const {
  const int64_t now = NowNs();
  const auto write = [&](bool messages, double CommunicatorMetrics::Means::*which) {
    for (const auto& [secret, communicator] : core_.communicators_) {
      if (!viewer.Sees(communicator->tenant().options.name)) continue;
      const std::string label = communicator->id().Label();
      const std::string nodes = viewer.sees_all ? fmt::format("{}", communicator->num_hosts()) : "";
      const std::string ranks = fmt::format("{}", communicator->num_ranks());
      const std::string strategy = viewer.sees_all ? communicator->strategy() : "";
      for (const auto& [key, means] : communicator->metrics().MeansAt(now)) {
        if ((key.kind == kExchangeKind) != messages) continue;
        page.Add({{"version", "tutti"},
                  {"slurm_job_id", "unknown"},
                  {"node", viewer.sees_all ? core_.host_ : ""},
                  {"gpu", fmt::format("rank{}", key.rank)},
                  {"comm_name", label},
                  {"n_nodes", nodes},
                  {"nranks", ranks},
                  {messages ? "p2p_operation" : "collective", NcclKindText(key.kind)},
                  {"message_size", key.size},
                  {"algo_proto", strategy}},
                 means.*which);
      }
    }
  };
  page.Family("nccl_bus_bandwidth_gbs", "gauge",
              "Bus bandwidth of collectives in GB/s, mean of the newest 15 to 30 s");
  write(false, &CommunicatorMetrics::Means::bus_gbs);
  page.Family("nccl_collective_exec_time_microseconds", "gauge",
              "Execution time of collectives, mean of the newest 15 to 30 s");
  write(false, &CommunicatorMetrics::Means::microseconds);
  page.Family("nccl_p2p_bus_bandwidth_gbs", "gauge",
              "Bandwidth of exchanges of messages in GB/s, mean of the newest 15 to 30 s");
  write(true, &CommunicatorMetrics::Means::bus_gbs);
  page.Family("nccl_p2p_exec_time_microseconds", "gauge",
              "Execution time of exchanges of messages, mean of the newest 15 to 30 s");
  write(true, &CommunicatorMetrics::Means::microseconds);
}

void OperatorPorts::WriteDaemon(PrometheusText& page) const {
  const DaemonMetrics& metrics = core_.metrics_;
  const double up = SecondsOf(NowNs() - core_.started_ns_), slept = SecondsOf(core_.slept_ns_);
  const auto of_each = [&](const auto& value) {
    for (const auto& [secret, communicator] : core_.communicators_)
      page.Add({{"tenant", communicator->tenant().options.name},
                {"communicator", communicator->id().Label()},
                {"epoch", fmt::format("{}", communicator->epoch())}},
               value(*communicator));
  };
  page.Family("tutti_connections", "gauge", "Connections that local ranks send on");
  of_each([](const ServiceCommunicator& communicator) {
    return static_cast<double>(communicator.connections());
  });
  page.Family("tutti_gate_closed_seconds", "counter",
              "How long traffic windows have kept the communicator's ranks from sending");
  of_each([](const ServiceCommunicator& communicator) {
    return SecondsOf(communicator.gate().closed_ns());
  });
  page.Family("tutti_path_bytes_total", "counter",
              "Bytes sent to other hosts, by the route that the source ports choose");
  for (const auto& [route, bytes] : metrics.path_bytes.all())
    page.Add({{"route", PathBytes::Name(route)}}, static_cast<double>(bytes));
  page.Family("tutti_communicators", "gauge", "Communicators with ranks on this host");
  page.Add({}, static_cast<double>(core_.communicators_.size()));
  page.Family("tutti_processes", "gauge", "Processes of tenants that are connected");
  page.Add({}, static_cast<double>(core_.sessions_.size()));
  page.Family("tutti_reconfigurations_total", "counter",
              "Changes of strategy that were asked of this daemon");
  page.Add({{"result", "done"}}, static_cast<double>(metrics.reconfigured));
  page.Add({{"result", "refused"}}, static_cast<double>(metrics.reconfigurations_refused));
  page.Family("tutti_hold_seconds", "histogram",
              "How long a change of strategy held launches, of the daemon that held longest");
  page.Add({}, metrics.hold);
  page.Family("tutti_uptime_seconds", "gauge", "Since the daemon was started");
  page.Add({}, up);
  page.Family("tutti_runtime_sleep_seconds_total", "counter",
              "How long the daemon's thread has slept without work");
  page.Add({}, slept);
  page.Family("tutti_runtime_busy_ratio", "gauge",
              "Share of its life that the daemon's thread has not slept");
  page.Add({}, up > 0 ? std::max(0.0, 1 - slept / up) : 0);
  page.Family("tutti_without_descriptors_total", "counter",
              "How often nobody could be accepted for want of descriptors");
  page.Add({}, static_cast<double>(core_.TimesWithoutDescriptors()));
  page.Family("tutti_info", "gauge", "1; what the daemon is in its labels");
  page.Add({{"version", core_.options_.version}, {"host", core_.host_}}, 1);
}

// --- RAS -----------------------------------------------------------------------------------------

RasCommunicator OperatorPorts::ReportOf(const ServiceCommunicator& communicator,
                                        bool with_hosts) const {
  RasCommunicator report{.label = communicator.id().Label(),
                         .tenant = communicator.tenant().options.name,
                         .state = std::string(communicator.phase()),
                         .size = communicator.num_ranks()};
  // What the label is made of, not the secret.
  report.hash = std::stoull(report.label.substr(report.label.find('-') + 1), nullptr, 16);
  if (communicator.has_failed()) report.error = communicator.why_failed().message;
  const bool is_active = !communicator.has_failed() && report.state != "joining";
  const std::string here = with_hosts ? core_.host_ : "";
  for (const auto& local : communicator.local()) {
    RasRank rank{
        .rank = local->rank,
        .host = here,
        .process = local->owner == nullptr ? -1 : local->owner->process_number(),
        .device = local->device,
        .is_active = is_active,
        .async_error = communicator.has_failed() ? NcclResultOf(communicator.why_failed()) : 0,
        .has_left = local->owner == nullptr,
        .issued = static_cast<int64_t>(local->issued),
        .completed = static_cast<int64_t>(local->completed)};
    if (local->running) rank.waits_for = local->running->Text();
    const auto counts = communicator.metrics().by_rank().find(local->rank);
    if (counts != communicator.metrics().by_rank().end()) rank.counts = counts->second;
    report.ranks.push_back(std::move(rank));
  }
  const RootPart* root = core_.FindRoot(report.label);
  if (root == nullptr) return report;
  for (size_t number = 0; number < root->progress().size(); ++number) {
    const RootPart::Progress& progress = root->progress()[number];
    const auto is_it = [number](const RasRank& rank) {
      return rank.rank == static_cast<int32_t>(number);
    };
    const auto local = std::find_if(report.ranks.begin(), report.ranks.end(), is_it);
    const bool is_local = local != report.ranks.end();
    RasRank rank{.rank = static_cast<int32_t>(number),
                 .host = with_hosts ? root->HostOf(number) : "",
                 .device = kUnknownDevice,
                 .is_active = is_active,
                 .has_left = root->has_left(number),
                 .issued = is_local ? local->issued : progress.issued,
                 .completed = is_local ? local->completed : progress.completed,
                 .waits_for = progress.waits_ns > 0 ? progress.what : ""};
    rank.why_missing = root->WhyMissing(number);
    if (!rank.why_missing.empty() && !(is_local && rank.has_left))
      report.missing.push_back(rank);
    else if (!is_local)
      report.ranks.push_back(rank);
  }
  return report;
}

RasReport OperatorPorts::Report(const Viewer& viewer) const {
  const int64_t begin = NowNs();
  RasReport report{.version = core_.options_.version,
                   .host = viewer.sees_all ? core_.host_ : "the service",
                   .real_ns = RealNowNs()};
  for (const auto& [secret, communicator] : core_.communicators_)
    if (viewer.Sees(communicator->tenant().options.name))
      report.communicators.push_back(ReportOf(*communicator, viewer.sees_all));
  report.collection_s = SecondsOf(NowNs() - begin);
  return report;
}

void OperatorPorts::Tell(RasEvent event) {
  if (ras_ == nullptr) return;
  event.real_ns = RealNowNs();
  ras_->Tell([&event](TextProtocol& protocol, std::string& out) {
    static_cast<RasProtocol&>(protocol).Tell(event, out);
  });
}

void OperatorPorts::TellChanges() {
  if (ras_->num_connections() == 0) return seen_.clear();
  std::map<std::string, Seen> now;
  for (const auto& [secret, communicator] : core_.communicators_) {
    const std::string label = communicator->id().Label();
    Seen& seen = now[label] = {std::string(communicator->phase()),
                               communicator->tenant().options.name, communicator->epoch()};
    const auto before = seen_.find(label);
    const bool was_failed = before != seen_.end() && before->second.state == "failed";
    RasEvent event{.tenant = seen.tenant};
    if (before == seen_.end() && seen.state != "failed") {
      event.event = "COMM_INIT";
      event.details = fmt::format("{} of {} ranks", label, communicator->num_ranks());
    } else if (seen.state == "failed" && !was_failed) {
      event.event = "COMM_ERROR";
      event.details = fmt::format("{}: {}", label, communicator->why_failed().message);
    } else if (before != seen_.end() && before->second.epoch != seen.epoch) {
      event.group = RasGroup::kTrace;
      event.event = "STRATEGY_CHANGED";
      event.details = fmt::format("{} is in epoch {}", label, seen.epoch);
    }
    if (!event.event.empty()) Tell(std::move(event));
  }
  for (const auto& [label, seen] : seen_)
    if (now.count(label) == 0)
      Tell({.event = "COMM_DESTROYED", .tenant = seen.tenant, .details = label});
  seen_ = std::move(now);
}

}  // namespace tutti::service
