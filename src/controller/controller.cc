#include "tutti/controller/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "ask.h"
#include "strategy_files.h"
#include "tutti/base/clock.h"
#include "tutti/control/isolation.h"
#include "tutti/service/daemon.h"

namespace tutti::controller {
namespace {

using Json = nlohmann::json;

class SocketLink final : public DaemonLink {
 public:
  explicit SocketLink(std::string admin) : admin_(std::move(admin)) {}
  Result<std::string> Ask(const std::string& request) override {
    return service::AskDaemon(admin_, request);
  }

 private:
  std::string admin_;
};

std::string WhyLeftOut(const CommunicatorState& communicator) {
  if (communicator.state == "failed") return "it has failed";
  if (communicator.root_host < 0) return "the daemon that leads it is not among the hosts";
  return "not all its ranks have joined, or their devices are not in the network";
}

// The routes that the flows of a decision have already, in its order.
std::vector<int32_t> RunningRoutes(const CommunicatorState& communicator,
                                   const JobStrategy& strategy) {
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> in_force;
  for (const FlowInForce& flow : communicator.flows)
    in_force[{flow.from, flow.to, flow.channel}] = flow.route;
  std::map<int32_t, int32_t> members;
  for (size_t i = 0; i < communicator.ranks.size(); ++i)
    members[communicator.ranks[i]] = static_cast<int32_t>(i);
  const std::vector<int32_t> channels = ChannelsOfFlows(strategy);
  std::vector<int32_t> running;
  for (size_t i = 0; i < strategy.flows.size(); ++i) {
    const auto found = in_force.find(
        {members[strategy.flows[i].from], members[strategy.flows[i].to], channels[i]});
    running.push_back(found == in_force.end() ? kByEcmp : found->second);
  }
  return running;
}

// Where there is one route, nothing is to be pinned.
void UnpinOnlyRoutes(const ClusterView& view, JobStrategy& strategy) {
  for (size_t i = 0; i < strategy.flows.size(); ++i) {
    const RingFlow& flow = strategy.flows[i];
    if (view.NumRoutes(view.RouteSet(flow.from_port, flow.to_port)) == 1)
      strategy.routes[i] = kByEcmp;
  }
}

Result<const CommunicatorState*> FindComplete(const Inventory& inventory,
                                              const std::string& label) {
  for (const CommunicatorState& communicator : inventory.communicators)
    if (communicator.label == label && communicator.is_complete()) return &communicator;
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("there is no communicator '{}' with all its ranks", label));
}

}  // namespace

std::unique_ptr<DaemonLink> LinkToSocket(std::string admin) {
  return std::make_unique<SocketLink>(std::move(admin));
}

Controller::Controller(ClusterConfig config, std::vector<std::unique_ptr<DaemonLink>> links)
    : config_(std::move(config)), links_(std::move(links)) {}

// --- Deciding ------------------------------------------------------------------------------------

Result<Decision> Controller::Decide(const Inventory& inventory, const PolicyChoice& choice) const {
  const Result<const Policy*> policy = FindPolicy(choice.name);
  if (!policy) return tl::unexpected(policy.error());
  Decision decision;
  decision.policy = choice.name;
  decision.load = choice.background;
  decision.load.resize(static_cast<size_t>(config_.view.num_links()));
  PolicyInput input{.view = &config_.view,
                    .jobs = {},
                    .channels = choice.channels,
                    .nics = NicChoice::kOwn,  // those that the tenant has
                    .background = choice.background,
                    .reserved_routes = choice.reserved_routes,
                    .reserved_from = choice.reserved_from,
                    .seed = choice.seed};
  std::vector<const CommunicatorState*> complete;
  std::vector<std::string> tenants;  // by number
  for (const CommunicatorState& communicator : inventory.communicators) {
    if (!communicator.is_complete()) {
      decision.left_out.push_back(
          fmt::format("{}: {}", communicator.label, WhyLeftOut(communicator)));
      continue;
    }
    const auto found = config_.tenants.find(communicator.tenant);
    const TenantConfig tenant = found == config_.tenants.end() ? TenantConfig{} : found->second;
    const auto name = std::find(tenants.begin(), tenants.end(), communicator.tenant);
    input.jobs.push_back({.id = static_cast<int32_t>(complete.size()),
                          .ranks = communicator.ranks,
                          .priority = tenant.priority,
                          .running = {},
                          .weight = tenant.weight,
                          .deadline_ns = tenant.deadline_ns,
                          .tenant = static_cast<int32_t>(name - tenants.begin()),
                          .guaranteed = tenant.guaranteed});
    if (name == tenants.end()) tenants.push_back(communicator.tenant);
    complete.push_back(&communicator);
  }
  // Rings first: they say what flows there are, and so which of them run already.
  Result<PolicyOutput> output = DecideRings(**policy, input);
  if (!output) return tl::unexpected(output.error());
  for (size_t j = 0; j < complete.size(); ++j)
    input.jobs[j].running = RunningRoutes(*complete[j], output->jobs[j]);
  output = tutti::Decide(**policy, input);
  if (!output) return tl::unexpected(output.error());
  for (JobStrategy& strategy : output->jobs) UnpinOnlyRoutes(config_.view, strategy);
  Certify(input, *output, tenants, decision);
  decision.largest_excess = output->largest_excess;
  const std::string label = choice.by_size ? choice.name + " by size" : choice.name;
  for (size_t j = 0; j < complete.size(); ++j) {
    const CommunicatorState& communicator = *complete[j];
    const JobStrategy& strategy = output->jobs[j];
    Result<StrategyTexts> texts =
        MakeStrategyTexts(config_, label, communicator.ranks, strategy, choice.by_size);
    if (!texts) return tl::unexpected(texts.error());
    const std::vector<int64_t> demands = FlowDemands(config_.view, strategy.flows);
    for (size_t i = 0; i < strategy.flows.size(); ++i)
      if (strategy.routes[i] != kByEcmp)
        for (const LinkId link : config_.view.Route(
                 config_.view.RouteSet(strategy.flows[i].from_port, strategy.flows[i].to_port),
                 strategy.routes[i]))
          decision.load[link.index()] += demands[i];
    const bool same_schedules = communicator.strategy.rfind(label + " all-reduce", 0) == 0;
    decision.changes.push_back(
        {.label = communicator.label,
         .tenant = communicator.tenant,
         .root_host = communicator.root_host,
         .strategy = strategy,
         .ranks = communicator.ranks,
         .schedules = std::move(texts->schedules),
         .flows = std::move(texts->flows),
         .is_new = !same_schedules || RunningRoutes(communicator, strategy) != strategy.routes});
  }
  return decision;
}

void Controller::Certify(const PolicyInput& input, const PolicyOutput& output,
                         const std::vector<std::string>& tenants, Decision& decision) const {
  IsolationCertificate certificate = CertifyIsolation(input, output);
  decision.certificate_faults = std::move(certificate.faults);
  for (const TenantShare& share : certificate.tenants)
    decision.certificate.push_back(
        {.tenant = tenants[static_cast<size_t>(share.tenant.tenant)],
         .link = share.link.value < 0 ? "" : config_.view.link_name(share.link),
         .share = share.share,
         .guaranteed = share.guaranteed});
}

std::vector<Applied> Controller::Apply(const Decision& decision) {
  std::vector<const StrategyChange*> changes;
  for (const StrategyChange& change : decision.changes)
    if (change.is_new) changes.push_back(&change);
  std::vector<Applied> applied(changes.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < changes.size(); ++i)
    threads.emplace_back([&, i] {
      const StrategyChange& change = *changes[i];
      applied[i].label = change.label;
      const Result<Json> answer = AskJson(*links_[static_cast<size_t>(change.root_host)],
                                          {{"command", "reconfigure"},
                                           {"communicator", change.label},
                                           {"schedules", Json::parse(change.schedules)},
                                           {"flows", Json::parse(change.flows)}});
      if (!answer) {
        applied[i].error = answer.error().message;
        return;
      }
      applied[i].hold_s = answer->value("hold_s", 0.0);
      applied[i].seconds = answer->value("seconds", 0.0);
    });
  for (std::thread& thread : threads) thread.join();
  return applied;
}

Result<Applied> Controller::Install(const Inventory& inventory, const std::string& label,
                                    const std::vector<std::vector<int32_t>>& rings, int32_t route) {
  const Result<const CommunicatorState*> communicator = FindComplete(inventory, label);
  if (!communicator) return tl::unexpected(communicator.error());
  const std::vector<int32_t>& ranks = (*communicator)->ranks;
  if (route != kByEcmp && (route < 0 || static_cast<size_t>(route) >= config_.routes.size()))
    return InvalidArgument(fmt::format("route {}: there are {}", route, config_.routes.size()));
  JobStrategy strategy;
  for (size_t i = 0; i < rings.size(); ++i) {
    std::vector<int32_t>& ring = strategy.rings.emplace_back();
    const std::set<int32_t> distinct(rings[i].begin(), rings[i].end());
    if (distinct.size() != ranks.size() || rings[i].size() != ranks.size())
      return InvalidArgument(
          fmt::format("rings[{}]: wanted each of the {} ranks once", i, ranks.size()));
    for (const int32_t rank : rings[i]) {
      if (rank < 0 || static_cast<size_t>(rank) >= ranks.size())
        return InvalidArgument(
            fmt::format("rings[{}]: rank {}, wanted 0 to {}", i, rank, ranks.size() - 1));
      ring.push_back(ranks[static_cast<size_t>(rank)]);
    }
  }
  if (rings.empty()) return InvalidArgument("no rings");
  Random unused(0);
  strategy.flows = FlowsOf(config_.view, strategy.rings, NicChoice::kOwn, unused);
  strategy.routes.assign(strategy.flows.size(), route);
  Result<StrategyTexts> texts = MakeStrategyTexts(config_, "installed", ranks, strategy, false);
  if (!texts) return tl::unexpected(texts.error());
  Decision decision;
  decision.changes.push_back({.label = label,
                              .tenant = (*communicator)->tenant,
                              .root_host = (*communicator)->root_host,
                              .strategy = std::move(strategy),
                              .ranks = ranks,
                              .schedules = std::move(texts->schedules),
                              .flows = std::move(texts->flows),
                              .is_new = true});
  return Apply(decision).front();
}

// --- Explaining ----------------------------------------------------------------------------------

Result<std::vector<FlowReason>> Controller::Explain(const Decision& decision,
                                                    const std::string& label,
                                                    const PolicyChoice& choice) const {
  const auto change =
      std::find_if(decision.changes.begin(), decision.changes.end(),
                   [&label](const StrategyChange& each) { return each.label == label; });
  if (change == decision.changes.end())
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("there is no communicator '{}' with all its ranks", label));
  const JobStrategy& strategy = change->strategy;
  const std::vector<int64_t> demands = FlowDemands(config_.view, strategy.flows);
  const std::vector<int32_t> channels = ChannelsOfFlows(strategy);
  std::map<int32_t, int32_t> members;
  for (size_t i = 0; i < change->ranks.size(); ++i)
    members[change->ranks[i]] = static_cast<int32_t>(i);
  const auto tenant = config_.tenants.find(change->tenant);
  const int32_t priority = tenant == config_.tenants.end() ? 0 : tenant->second.priority;
  std::vector<FlowReason> reasons;
  for (size_t i = 0; i < strategy.flows.size(); ++i) {
    const RingFlow& flow = strategy.flows[i];
    FlowReason reason{.from = members[flow.from],
                      .to = members[flow.to],
                      .channel = channels[i],
                      .from_name = config_.topology.node_name(NodeId{flow.from_port}),
                      .to_name = config_.topology.node_name(NodeId{flow.to_port}),
                      .demand = demands[i],
                      .routes = {}};
    const int32_t set = config_.view.RouteSet(flow.from_port, flow.to_port);
    const int32_t routes = config_.view.NumRoutes(set);
    for (int32_t route = 0; route < routes && routes > 1; ++route) {
      RouteReason of_route{.route = route,
                           .excess = INT64_MIN,
                           .fullest = {},
                           .chosen = route == strategy.routes[i],
                           .reserved = choice.name == "pfa" && route < choice.reserved_routes &&
                                       priority < choice.reserved_from};
      for (const LinkId link : config_.view.Route(set, route)) {
        const int64_t others = decision.load[link.index()] - (of_route.chosen ? demands[i] : 0);
        const int64_t excess = others + demands[i] - config_.view.bandwidth(link);
        if (excess <= of_route.excess) continue;
        of_route.excess = excess;
        of_route.fullest = config_.view.link_name(link);
      }
      reason.routes.push_back(std::move(of_route));
    }
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

// --- Traffic windows -----------------------------------------------------------------------------

Result<std::vector<TracedCollective>> Controller::TraceOf(const CommunicatorState& communicator,
                                                          int64_t since_ns) {
  // Of all its hosts: a collective lasts from the first rank's launch to the last one's end.
  std::map<int64_t, TracedCollective> by_sequence;
  std::set<int32_t> hosts;
  for (const int32_t rank : communicator.ranks) hosts.insert(config_.view.place(rank).host);
  for (const int32_t host : hosts) {
    const Result<Json> trace =
        AskJson(*links_[static_cast<size_t>(host)],
                {{"command", "trace"}, {"communicator", communicator.label}});
    if (!trace) return tl::unexpected(trace.error());
    constexpr double kNsAUs = 1e3;
    const auto nanoseconds = [](double us) { return static_cast<int64_t>(us * kNsAUs); };
    // Added as whole numbers: the offset is too large for a fraction of a sum to be exact.
    const int64_t offset_ns = nanoseconds(trace->value("realtime_offset_us", 0.0));
    for (const Json& event : trace->value("traceEvents", Json::array())) {
      if (event.value("name", "") == "waits for its turn") continue;
      const int64_t from = nanoseconds(event.value("ts", 0.0)) + offset_ns;
      if (from < since_ns) continue;
      const int64_t to = from + nanoseconds(event.value("dur", 0.0));
      const int64_t sequence = event.value("args", Json::object()).value("sequence", int64_t{0});
      const auto [at, is_new] = by_sequence.try_emplace(sequence, TracedCollective{from, to});
      at->second.first_byte_ns = std::min(at->second.first_byte_ns, from);
      at->second.last_byte_ns = std::max(at->second.last_byte_ns, to);
    }
  }
  std::vector<TracedCollective> trace;
  for (const auto& [sequence, collective] : by_sequence) trace.push_back(collective);
  std::sort(trace.begin(), trace.end(),
            [](const auto& a, const auto& b) { return a.first_byte_ns < b.first_byte_ns; });
  return trace;
}

Status Controller::SetGates(const CommunicatorState& communicator, int64_t period_ns,
                            int64_t phase_ns, int64_t length_ns) {
  const Result<Json> answer = AskJson(*links_[static_cast<size_t>(communicator.root_host)],
                                      {{"command", "gates"},
                                       {"communicator", communicator.label},
                                       {"period_ns", period_ns},
                                       {"phase_ns", phase_ns},
                                       {"length_ns", length_ns}});
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

Result<TrafficWindows> Controller::SetWindows(const Inventory& inventory,
                                              const std::string& preferred,
                                              const std::vector<std::string>& victims,
                                              int64_t clock_error_ns, int64_t probe_ns) {
  const Result<const CommunicatorState*> of_preferred = FindComplete(inventory, preferred);
  if (!of_preferred) return tl::unexpected(of_preferred.error());
  std::vector<const CommunicatorState*> of_victims;
  for (const std::string& label : victims) {
    const Result<const CommunicatorState*> victim = FindComplete(inventory, label);
    if (!victim) return tl::unexpected(victim.error());
    if (label == preferred)
      return InvalidArgument(fmt::format("'{}' is to be preferred and to keep silent", label));
    of_victims.push_back(*victim);
  }
  // Opens for an instant once in much more than the probe, just now.
  const int64_t begin_ns = RealNowNs(), silence_ns = 4 * probe_ns;
  if (Status set = SetGates(**of_preferred, 0, 0, 0); !set) return tl::unexpected(set.error());
  for (const CommunicatorState* victim : of_victims)
    if (Status set = SetGates(*victim, silence_ns, begin_ns % silence_ns, 1); !set)
      return tl::unexpected(set.error());
  std::this_thread::sleep_for(std::chrono::nanoseconds(probe_ns));
  const Result<TrafficWindows> windows =
      TraceOf(**of_preferred, begin_ns).and_then([&](const std::vector<TracedCollective>& trace) {
        return EstimateKeptWindows(trace, clock_error_ns);
      });
  if (!windows) {
    if (Status cleared = ClearWindows(inventory, victims); !cleared)
      return tl::unexpected(cleared.error());
    return windows;
  }
  const int64_t period = windows->period_ns, guarded = windows->length_ns + 2 * windows->guard_ns;
  const int64_t begins = (windows->phase_ns - windows->guard_ns + period) % period;
  if (Status set = SetGates(**of_preferred, period, begins, guarded); !set)
    return tl::unexpected(set.error());
  for (const CommunicatorState* victim : of_victims)
    if (Status set = SetGates(*victim, period, (begins + guarded) % period, windows->victims_ns());
        !set)
      return tl::unexpected(set.error());
  return windows;
}

Status Controller::ClearWindows(const Inventory& inventory,
                                const std::vector<std::string>& labels) {
  for (const std::string& label : labels) {
    const Result<const CommunicatorState*> communicator = FindComplete(inventory, label);
    if (!communicator) return tl::unexpected(communicator.error());
    if (Status set = SetGates(**communicator, 0, 0, 0); !set) return set;
  }
  return {};
}

}  // namespace tutti::controller
