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
#include "network_left.h"
#include "strategy_files.h"
#include "tutti/base/check.h"
#include "tutti/base/clock.h"
#include "tutti/base/hash.h"
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

// Those that are to make way for `preferred`.
Result<std::vector<const CommunicatorState*>> FindVictims(const Inventory& inventory,
                                                          const std::string& preferred,
                                                          const std::vector<std::string>& victims) {
  std::vector<const CommunicatorState*> found;
  for (const std::string& label : victims) {
    const Result<const CommunicatorState*> victim = FindComplete(inventory, label);
    if (!victim) return tl::unexpected(victim.error());
    if (label == preferred)
      return InvalidArgument(fmt::format("'{}' is to be preferred and to keep silent", label));
    found.push_back(*victim);
  }
  return found;
}

}  // namespace

std::unique_ptr<DaemonLink> LinkToSocket(std::string admin) {
  return std::make_unique<SocketLink>(std::move(admin));
}

Controller::Controller(ClusterConfig config, std::vector<std::unique_ptr<DaemonLink>> links,
                       const ControllerOptions& options)
    : config_(std::move(config)),
      view_(std::make_shared<const ClusterView>(config_.view)),
      links_(std::move(links)),
      options_(options) {}

Result<const Policy*> Controller::Find(const std::string& name) const {
  for (const Policy& policy : options_.more_policies)
    if (policy.name == name) return &policy;
  return FindPolicy(name);
}

// --- Deciding ------------------------------------------------------------------------------------

struct Controller::Deciding {
  PolicyInput input;
  std::vector<const CommunicatorState*> complete;  // the jobs of the input
  std::vector<std::string> tenants;                // by number
  std::vector<bool> lost;                          // links
  bool is_hurt = false;                            // some are
};

Controller::Deciding Controller::Prepare(const Inventory& inventory, const PolicyChoice& choice,
                                         std::vector<std::string>& left_out) const {
  // What a lost link carries beside others is more than anything that could be gained by using it.
  constexpr int64_t kNothingPasses = 1'000'000'000'000'000;
  Deciding deciding;
  deciding.lost = LostLinks(config_, inventory);
  deciding.is_hurt =
      std::find(deciding.lost.begin(), deciding.lost.end(), true) != deciding.lost.end();
  deciding.input = {.view = &config_.view,
                    .jobs = {},
                    .channels = choice.channels,
                    .nics = NicChoice::kOwn,  // those that the tenant has
                    .background = choice.background,
                    .reserved_routes = choice.reserved_routes,
                    .reserved_from = choice.reserved_from,
                    .seed = choice.seed};
  std::vector<int64_t>& background = deciding.input.background;
  if (deciding.is_hurt) background.resize(static_cast<size_t>(config_.view.num_links()));
  for (size_t link = 0; link < deciding.lost.size(); ++link)
    if (deciding.lost[link]) background[link] = kNothingPasses;
  for (const CommunicatorState& communicator : inventory.communicators) {
    if (!communicator.is_complete()) {
      left_out.push_back(fmt::format("{}: {}", communicator.label, WhyLeftOut(communicator)));
      continue;
    }
    const auto found = config_.tenants.find(communicator.tenant);
    const TenantConfig tenant = found == config_.tenants.end() ? TenantConfig{} : found->second;
    std::vector<std::string>& tenants = deciding.tenants;
    const auto name = std::find(tenants.begin(), tenants.end(), communicator.tenant);
    deciding.input.jobs.push_back({.id = static_cast<int32_t>(deciding.complete.size()),
                                   .ranks = communicator.ranks,
                                   .priority = tenant.priority,
                                   .running = {},
                                   .weight = tenant.weight,
                                   .deadline_ns = tenant.deadline_ns,
                                   .tenant = static_cast<int32_t>(name - tenants.begin()),
                                   .guaranteed = tenant.guaranteed});
    if (name == tenants.end()) tenants.push_back(communicator.tenant);
    deciding.complete.push_back(&communicator);
  }
  return deciding;
}

Result<StrategyChange> Controller::ChangeFor(const Deciding& deciding, size_t job,
                                             const PolicyChoice& choice,
                                             JobStrategy& strategy) const {
  const CommunicatorState& communicator = *deciding.complete[job];
  // Connections that the network's hash sends anywhere would meet what is lost.
  const bool by_size = choice.by_size && !deciding.is_hurt;
  std::string label = by_size ? choice.name + " by size" : choice.name;
  std::optional<StrategyForLeft> left;
  if (deciding.is_hurt) left = ForLeft(deciding.input, job, deciding.lost, strategy, label);
  if (left) strategy = std::move(left->strategy);
  Result<StrategyTexts> texts =
      left ? Result<StrategyTexts>(std::move(left->texts))
           : MakeStrategyTexts(config_, label, communicator.ranks, strategy, by_size);
  if (!texts) return tl::unexpected(texts.error());
  const bool same_schedules = communicator.strategy.rfind(label + " all-reduce", 0) == 0;
  return StrategyChange{
      .label = communicator.label,
      .tenant = communicator.tenant,
      .root_host = communicator.root_host,
      .strategy = strategy,
      .ranks = communicator.ranks,
      .schedules = std::move(texts->schedules),
      .flows = std::move(texts->flows),
      .is_new = !same_schedules || RunningRoutes(communicator, strategy) != strategy.routes};
}

void Controller::AddLoad(const JobStrategy& strategy, std::vector<int64_t>& load) const {
  const std::vector<int64_t> demands = FlowDemands(config_.view, strategy.flows);
  for (size_t i = 0; i < strategy.flows.size(); ++i)
    if (strategy.routes[i] != kByEcmp)
      for (const LinkId link : config_.view.Route(
               config_.view.RouteSet(strategy.flows[i].from_port, strategy.flows[i].to_port),
               strategy.routes[i]))
        load[link.index()] += demands[i];
}

Result<Decision> Controller::Decide(const Inventory& inventory, const PolicyChoice& choice) const {
  const Result<const Policy*> policy = Find(choice.name);
  if (!policy) return tl::unexpected(policy.error());
  Decision decision;
  decision.policy = choice.name;
  Deciding deciding = Prepare(inventory, choice, decision.left_out);
  PolicyInput& input = deciding.input;
  decision.load = input.background;
  decision.load.resize(static_cast<size_t>(config_.view.num_links()));
  // Rings first: they say what flows there are, and so which of them run already.
  Result<PolicyOutput> output = DecideRings(**policy, input);
  if (!output) return tl::unexpected(output.error());
  for (size_t job = 0; job < input.jobs.size(); ++job)
    input.jobs[job].running = RunningRoutes(*deciding.complete[job], output->jobs[job]);
  output = DecideWithin(**policy, input, view_, options_.patience_s);
  if (!output) return tl::unexpected(output.error());
  for (JobStrategy& strategy : output->jobs) UnpinOnlyRoutes(config_.view, strategy);
  decision.largest_excess = output->largest_excess;
  for (size_t job = 0; job < input.jobs.size(); ++job) {
    Result<StrategyChange> change = ChangeFor(deciding, job, choice, output->jobs[job]);
    if (!change) return tl::unexpected(change.error());
    AddLoad(change->strategy, decision.load);
    decision.changes.push_back(*std::move(change));
  }
  Certify(input, *output, deciding.tenants, decision);
  return decision;
}

std::optional<StrategyForLeft> Controller::ForLeft(const PolicyInput& input, size_t job,
                                                   const std::vector<bool>& lost,
                                                   const JobStrategy& rings,
                                                   std::string& label) const {
  // Not worth a change of connections where it gains less.
  const Rational worth(95, 100);
  const ClusterView& view = config_.view;
  const auto crosses = [&view](const PolicyJob& of) {
    return std::any_of(of.ranks.begin(), of.ranks.end(), [&](int32_t rank) {
      return view.place(rank).rack != view.place(of.ranks.front()).rack;
    });
  };
  if (!crosses(input.jobs[job])) return std::nullopt;
  int64_t weights = 0;
  for (const PolicyJob& of : input.jobs)
    if (crosses(of)) weights += of.weight;
  TUTTI_CHECK(weights > 0);  // this one's at least
  // Each has its share of links between racks, and all of its ranks' links.
  std::vector<bool> is_shared(static_cast<size_t>(view.num_links()));
  for (int32_t set = 0; set < view.num_racks() * view.num_racks(); ++set)
    for (int32_t route = 0; route < view.NumRoutes(set); ++route)
      for (const LinkId link : view.Route(set, route)) is_shared[link.index()] = true;
  std::vector<int64_t> bandwidth(view.bandwidths().begin(), view.bandwidths().end());
  Fnv1a which;
  for (size_t link = 0; link < bandwidth.size(); ++link) {
    if (!input.background.empty() && !lost[link])
      bandwidth[link] = std::max<int64_t>(1, bandwidth[link] - input.background[link]);
    if (is_shared[link])
      bandwidth[link] =
          std::max<int64_t>(1, static_cast<int64_t>(static_cast<__int128>(bandwidth[link]) *
                                                    input.jobs[job].weight / weights));
    if (!lost[link]) continue;
    bandwidth[link] = 0;
    which.AddWord(static_cast<int64_t>(link));
  }
  const std::string name =
      fmt::format("{} on what is left ({:08x})", label, which.value() & 0xffffffffu);
  std::optional<StrategyForLeft> left =
      SynthesizeForLeft(config_, bandwidth, input.jobs[job].ranks, name);
  if (!left || left->all_reduce > worth * AllReduceOverRings(config_, bandwidth, rings))
    return std::nullopt;
  label = name;
  return left;
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
  AskAtOnce(changes.size(), options_.at_once, [&](size_t i) {
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
  return applied;
}

Result<Applied> Controller::Install(const Inventory& inventory, const std::string& label,
                                    const OwnStrategy& own) {
  const Result<const CommunicatorState*> communicator = FindComplete(inventory, label);
  if (!communicator) return tl::unexpected(communicator.error());
  const std::vector<int32_t>& ranks = (*communicator)->ranks;
  const std::vector<std::vector<int32_t>>& rings = own.rings;
  if (own.route != kByEcmp &&
      (own.route < 0 || static_cast<size_t>(own.route) >= config_.routes.size()))
    return InvalidArgument(fmt::format("route {}: there are {}", own.route, config_.routes.size()));
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
  if (rings.empty()) {
    PolicyInput input;
    input.view = &config_.view;
    input.jobs.resize(1);
    input.jobs.front().ranks = ranks;
    const Result<const Policy*> by_locality = FindPolicy("locality-ring");
    if (!by_locality) return tl::unexpected(by_locality.error());
    Result<PolicyOutput> output = DecideRings(**by_locality, input);
    if (!output) return tl::unexpected(output.error());
    strategy.rings = std::move(output->jobs.front().rings);
  }
  Random unused(0);
  strategy.flows = FlowsOf(config_.view, strategy.rings, NicChoice::kOwn, unused);
  strategy.routes.assign(strategy.flows.size(), own.route);
  if (const Status pinned = PinAsGiven(ranks, own.routes, strategy); !pinned)
    return tl::unexpected(pinned.error());
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

// Each of `routes` to the flow that it names.
Status Controller::PinAsGiven(std::span<const int32_t> ranks, std::span<const FlowInForce> routes,
                              JobStrategy& strategy) const {
  const std::vector<int32_t> channels = ChannelsOfFlows(strategy);
  for (size_t i = 0; i < routes.size(); ++i) {
    const FlowInForce& given = routes[i];
    const auto is_rank = [&ranks](int32_t rank) {
      return rank >= 0 && static_cast<size_t>(rank) < ranks.size();
    };
    size_t flow = strategy.flows.size();
    if (is_rank(given.from) && is_rank(given.to))
      for (flow = 0; flow < strategy.flows.size(); ++flow)
        if (strategy.flows[flow].from == ranks[static_cast<size_t>(given.from)] &&
            strategy.flows[flow].to == ranks[static_cast<size_t>(given.to)] &&
            channels[flow] == given.channel)
          break;
    if (flow == strategy.flows.size())
      return InvalidArgument(
          fmt::format("routes[{}]: no flow of its rings goes from rank {} to "
                      "rank {} on channel {}",
                      i, given.from, given.to, given.channel));
    const RingFlow& found = strategy.flows[flow];
    const int32_t there =
        std::min(config_.view.NumRoutes(config_.view.RouteSet(found.from_port, found.to_port)),
                 static_cast<int32_t>(config_.routes.size()));
    if (given.route < kByEcmp || given.route >= there)
      return InvalidArgument(
          fmt::format("routes[{}]: route {}, there are {} from rank {} to rank {}", i, given.route,
                      there, given.from, given.to));
    strategy.routes[flow] = given.route;
  }
  return {};
}

// --- Explaining ----------------------------------------------------------------------------------

Result<std::vector<FlowReason>> Controller::Explain(const Decision& decision,
                                                    const std::string& label,
                                                    const PolicyChoice& choice) const {
  const Result<const Policy*> policy = Find(choice.name);
  if (!policy) return tl::unexpected(policy.error());
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
                           .reserved = (*policy)->reserves_routes &&
                                       route < choice.reserved_routes &&
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
  // Over all its hosts: a collective lasts from the first rank's launch to the last one's end.
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
                            int64_t phase_ns, int64_t length_ns, service::GateHolds holds) {
  const Result<Json> answer = AskJson(*links_[static_cast<size_t>(communicator.root_host)],
                                      {{"command", "gates"},
                                       {"communicator", communicator.label},
                                       {"period_ns", period_ns},
                                       {"phase_ns", phase_ns},
                                       {"length_ns", length_ns},
                                       {"holds", NameOf(holds)}});
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

Result<TrafficWindows> Controller::SetWindows(const Inventory& inventory,
                                              const std::string& preferred,
                                              const std::vector<std::string>& victims,
                                              int64_t clock_error_ns, int64_t probe_ns,
                                              service::GateHolds holds) {
  const Result<const CommunicatorState*> of_preferred = FindComplete(inventory, preferred);
  if (!of_preferred) return tl::unexpected(of_preferred.error());
  const auto found = FindVictims(inventory, preferred, victims);
  if (!found) return tl::unexpected(found.error());
  const std::vector<const CommunicatorState*>& of_victims = *found;
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
  if (Status set = SetGates(**of_preferred, period, begins, guarded, holds); !set)
    return tl::unexpected(set.error());
  for (const CommunicatorState* victim : of_victims)
    if (Status set =
            SetGates(*victim, period, (begins + guarded) % period, windows->victims_ns(), holds);
        !set)
      return tl::unexpected(set.error());
  return windows;
}

Status Controller::Follow(const Inventory& inventory, const std::string& preferred,
                          const std::vector<std::string>& victims, int64_t patience_ns,
                          service::GateHolds holds) {
  const Result<const CommunicatorState*> of_preferred = FindComplete(inventory, preferred);
  if (!of_preferred) return tl::unexpected(of_preferred.error());
  const auto of_victims = FindVictims(inventory, preferred, victims);
  if (!of_victims) return tl::unexpected(of_victims.error());
  if (Status set = SetGates(**of_preferred, 0, 0, 0); !set) return set;
  Json followers = Json::array();
  for (const CommunicatorState* victim : *of_victims) {
    const Result<Json> follower =
        AskJson(*links_[static_cast<size_t>(victim->root_host)], {{"command", "follow"},
                                                                  {"communicator", victim->label},
                                                                  {"patience_ns", patience_ns},
                                                                  {"holds", NameOf(holds)}});
    if (!follower) return tl::unexpected(follower.error());
    followers.push_back(
        {{"key", follower->value("key", Json())}, {"daemons", follower->value("daemons", Json())}});
  }
  const Result<Json> announced =
      AskJson(*links_[static_cast<size_t>((*of_preferred)->root_host)],
              {{"command", "announce"}, {"communicator", preferred}, {"followers", followers}});
  if (!announced) return tl::unexpected(announced.error());
  return {};
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
