// Controller: who on a cluster uses which links, decided by a policy and put into force through the daemons.
//
// Model       Look() asks every daemon what runs, all at once: who does not answer delays nobody else. Decide() gives each complete communicator rings and routes by a
//             policy (tutti/control/policy.h), a pure function of what was seen; Apply() has the root daemon
//             of each change to them while collectives run, those that differ from what is in force only.
//             Where links between switches are lost a communicator gets a schedule for the network that is left,
//             where that takes less than its rings (src/controller/network_left.h).
//             A host that does not answer is left out, with the communicators that have ranks there.
// State       None that could be lost: routes in force are read back from the daemons, so that a controller may die
//             at any moment and another one goes on. What is under way at a daemon ends without it.
// Errors      Those of a policy; a daemon's refusal is part of what Apply() gives, beside the others'.
// Threads     One at a time.
// Reference   [mccs] 4.3; adr/0046
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/control/policy.h"
#include "tutti/control/traffic_windows.h"
#include "tutti/controller/cluster_config.h"
#include "tutti/service/gate_holds.h"

namespace tutti::controller {

// How a daemon is asked: what service::AskDaemon takes and gives.
class DaemonLink {
 public:
  virtual ~DaemonLink() = default;
  virtual Result<std::string> Ask(const std::string& request) = 0;
};

// By the socket for operators, for a daemon of this machine.
std::unique_ptr<DaemonLink> LinkToSocket(std::string admin);

// A flow in force: a pinned connection between two ranks of a communicator.
struct FlowInForce {
  int32_t from = 0, to = 0, channel = 0;  // ranks of the communicator; channel of this pair
  int32_t route = kByEcmp;
};

struct CommunicatorState {
  std::string label, tenant, state, strategy;
  int32_t root_host = -1;  // -1: unknown
  uint32_t epoch = 0;
  std::vector<int32_t> ranks;  // of the network, by rank; -1: not seen
  std::vector<FlowInForce> flows;
  std::vector<FlowInForce>
      lost;  // routes on which nothing comes back, as its daemons say; kByEcmp: some route
  bool is_complete() const;  // all ranks seen, root known, running
};

struct HostState {
  std::string name, address, error;  // error: why it was not asked successfully
};

struct Inventory {
  std::vector<HostState> hosts;
  std::vector<CommunicatorState> communicators;  // by label
};

// Links of the routes that are lost, by link of the network. Those of hosts are none of them: there is no other way.
std::vector<bool> LostLinks(const ClusterConfig& config, const Inventory& inventory);

struct StrategyChange {
  std::string label, tenant;
  int32_t root_host = 0;
  JobStrategy strategy;  // ranks are the network's
  std::vector<int32_t> ranks;
  std::string schedules;  // JSON list of {name, text}
  std::string flows;      // JSON list, service/flow_table.h
  bool is_new = true;     // not what is in force
};

// What a tenant has left on its worst link (tutti/control/isolation.h).
struct TenantCertificate {
  std::string tenant, link;  // link: "leaf0 -> spine1"; empty: it uses none
  Rational share = {};       // bytes/s
  int64_t guaranteed = 0;
};

struct Decision {
  std::string policy;
  std::vector<StrategyChange> changes;  // one a complete communicator, by label
  std::vector<int64_t> load;            // by link of the network: demands of pinned flows
  int64_t largest_excess = 0;
  std::vector<std::string> left_out;  // communicators that are not complete, and why
  std::vector<TenantCertificate> certificate;
  std::vector<std::string>
      certificate_faults;  // what keeps tenants from being isolated; none: it holds
};

// A route that a flow has or might have: how much its fullest link would carry beyond its bandwidth.
struct RouteReason {
  int32_t route = 0;
  int64_t excess = 0;   // bytes/s, negative: room is left
  std::string fullest;  // "leaf0 -> spine1"
  bool chosen = false, reserved = false;
};

struct FlowReason {
  int32_t from = 0, to = 0, channel = 0;  // ranks of the communicator
  std::string from_name, to_name;         // of the network's ranks
  int64_t demand = 0;
  std::vector<RouteReason> routes;  // empty: inside a rack or a host
};

struct Applied {
  std::string label;
  double hold_s = 0, seconds = 0;
  std::string error;  // empty: it runs
};

struct StrategyForLeft;  // of this room

struct ControllerOptions {
  std::span<const Policy> more_policies = {};  // beside Policies(); must outlive the controller
  double patience_s = 10;                      // with a policy
  int32_t at_once = 64;                        // daemons that are asked at a time
};

// For one communicator, by its ranks. No rings: those by locality, one for each route between its racks and rank of a host.
struct OwnStrategy {
  std::vector<std::vector<int32_t>> rings = {};
  int32_t route = kByEcmp;               // of all flows between racks
  std::vector<FlowInForce> routes = {};  // but for these
};

class Controller {
 public:
  // `links`: one a host of the configuration.
  Controller(ClusterConfig config, std::vector<std::unique_ptr<DaemonLink>> links,
             const ControllerOptions& options = {});

  const ClusterConfig& config() const { return config_; }
  Inventory Look();
  Result<Decision> Decide(const Inventory& inventory, const PolicyChoice& choice) const;
  // All changes at once, each at its root. In the order of `decision.changes`, new ones only.
  std::vector<Applied> Apply(const Decision& decision);
  // What a provider's own logic decides for one communicator. kNotFound: there is no such communicator; kInvalidArgument:
  // rings that lack a rank, routes and flows that there are not. Then as Apply().
  Result<Applied> Install(const Inventory& inventory, const std::string& label,
                          const OwnStrategy& own);
  // Why the flows of a communicator take their routes. kNotFound: there is no such communicator.
  Result<std::vector<FlowReason>> Explain(const Decision& decision, const std::string& label,
                                          const PolicyChoice& choice) const;
  // Keeps the communicators of `victims` silent while the one of `preferred` sends, as a trace of it predicts: for `probe_ns`
  // they are silent altogether, so that the trace is undisturbed; then each has its windows, the preferred one too, which
  // keeps its phase. kInfeasible: its collectives keep no period; then all may always send.
  Result<TrafficWindows> SetWindows(const Inventory& inventory, const std::string& preferred,
                                    const std::vector<std::string>& victims, int64_t clock_error_ns,
                                    int64_t probe_ns,
                                    service::GateHolds holds = service::GateHolds::kSends);
  // Keeps them silent while the ranks of `preferred` communicate, as its daemons say when they do: no period and no clock is
  // needed. At most `patience_ns` at a stretch; then all send until it has ended. kNotFound as above.
  Status Follow(const Inventory& inventory, const std::string& preferred,
                const std::vector<std::string>& victims, int64_t patience_ns,
                service::GateHolds holds = service::GateHolds::kSends);
  // Always open again.
  Status ClearWindows(const Inventory& inventory, const std::vector<std::string>& labels);

 private:
  // Only collectives that began at `since_ns` or later.
  Result<std::vector<TracedCollective>> TraceOf(const CommunicatorState& communicator,
                                                int64_t since_ns);
  // What a policy is asked, and for whom.
  struct Deciding;
  Deciding Prepare(const Inventory& inventory, const PolicyChoice& choice,
                   std::vector<std::string>& left_out) const;
  // What becomes of a job whose rings and routes are decided; where links are lost `strategy` is what is left to it.
  Result<StrategyChange> ChangeFor(const Deciding& deciding, size_t job, const PolicyChoice& choice,
                                   JobStrategy& strategy) const;
  // Demands of its pinned flows, by link.
  void AddLoad(const JobStrategy& strategy, std::vector<int64_t>& load) const;
  // A schedule for the network that is left to a job, where it takes less than its rings would; `label` is then what it is called.
  std::optional<StrategyForLeft> ForLeft(const PolicyInput& input, size_t job,
                                         const std::vector<bool>& lost, const JobStrategy& rings,
                                         std::string& label) const;
  void Certify(const PolicyInput& input, const PolicyOutput& output,
               const std::vector<std::string>& tenants, Decision& decision) const;
  Status SetGates(const CommunicatorState& communicator, int64_t period_ns, int64_t phase_ns,
                  int64_t length_ns, service::GateHolds holds = service::GateHolds::kSends);

  Result<const Policy*> Find(const std::string& name) const;
  Status PinAsGiven(std::span<const int32_t> ranks, std::span<const FlowInForce> routes,
                    JobStrategy& strategy) const;

  ClusterConfig config_;
  std::shared_ptr<const ClusterView>
      view_;  // the configuration's: a policy that was given up may need it for longer
  std::vector<std::unique_ptr<DaemonLink>> links_;
  ControllerOptions options_;
};

}  // namespace tutti::controller
