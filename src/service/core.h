// Daemon::Core: what the daemon's thread polls: sessions, communicators, links, operators.
//
// Model       A round takes the commands of all sessions, then gives each tenant with work its turn:
//             at most weight x kTurnBytes, of its communicators one after the other. Without work it
//             spins for a while, then sleeps until a doorbell, a socket or the planner wakes it.
// Reference   [mccs] 4.2, 5 "engines on runtimes"
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "acceptor.h"
#include "admin.h"
#include "event_loop.h"
#include "gateway.h"
#include "memory_returns.h"
#include "metrics.h"
#include "move_helpers.h"
#include "root_part.h"
#include "served_devices.h"
#include "service_communicator.h"
#include "session.h"
#include "tenant.h"
#include "tutti/service/daemon.h"
#include "worker.h"

namespace tutti::service {

class OperatorPorts;

// What a daemon is made of that is another in simulated time.
struct CoreParts {
  std::unique_ptr<Worker> planner = nullptr;  // null: one with a thread
  BarrierRule barrier = Step;
};

class Daemon::Core final : public SessionHost, public AdminHost {
 public:
  static Result<std::unique_ptr<Core>> Start(const DaemonOptions& options, CoreParts parts = {});
  ~Core() override;

  const DaemonOptions& options() const { return options_; }
  const std::string& host() const { return host_; }
  std::string address() const { return control_.ToText(); }
  void Run();
  // Commands that are there, and a turn for each tenant. True: something moved.
  bool Round();
  // For whoever drives it in place of Run(): everything once, without waiting. True: something happened.
  bool RunOnce() {
    const bool moved = Round();
    return LookUp(0) || moved;
  }
  // After which time it is to be driven again where nothing happens.
  int MostSleepMs() const;
  void Stop() const {
    stops_ = true;
    loop_->Wake();
  }

  Tenant* FindTenant(uint32_t user, const std::string& token) override;
  Result<UniqueId> MakeId(const Tenant& tenant) override;
  Worker& planner() override { return *planner_; }
  ServedDevices& devices() override { return devices_; }
  MemoryReturns& returns() override { return returns_; }
  std::vector<std::string> Reload(const DaemonOptions& options);
  Result<ServiceCommunicator*> JoinCommunicator(Tenant& tenant, const UniqueId& id,
                                                int32_t num_ranks, int32_t rank, RankOwner& owner,
                                                uint32_t line) override;
  void Answer(const std::string& request, AdminReply reply) override;

 private:
  using Secret = std::array<uint64_t, 2>;
  struct Stranger {
    std::unique_ptr<PeerLink> link;
    int64_t until_ns = 0;
    bool done = false;
  };
  static constexpr int64_t kTurnBytes = int64_t{256} << 10;

  Core(const DaemonOptions& options, std::unique_ptr<EventLoop> loop, CoreParts parts);
  Status Listen();
  void AcceptTenant(ipc::Descriptor socket);
  void AcceptPeer(ipc::Descriptor socket);
  void AcceptOperator(ipc::Descriptor socket);
  Tenant& AddTenant(const TenantOptions& options);
  // The first frame of a daemon: whose it is.
  void Hear(Stranger& stranger, const PeerFrame& frame);
  // It was made here, and nobody has joined by it yet.
  bool TakeId(const Secret& secret);
  // Ranks that regroup are to join by it.
  void Await(const UniqueId& id, std::vector<Regrouping::Awaited> awaited);
  // Which ranks of a communicator do not live here, or are not to join it any more.
  void AnswerWhoIsAbsent(PeerLink& link, const PeerFrame& frame) const;
  void RefuseJoin(PeerLink& link, const PeerFrame& frame, const Error& why) const;
  bool GiveTurns();
  void MakeTurns();
  // False: nothing woke it.
  bool Sleep();
  void Tick(int64_t now_ns);
  void RemoveEnded();
  void RemoveStrangersHeard();
  void Log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }
  // Sockets, finished plans, and what is to be done now and then. True: something happened.
  bool LookUp(int wait_ms);
  ServiceCommunicator* FindCommunicator(const std::string& label) const;
  RootPart* FindRoot(const std::string& label) const;
  friend class Reports;
  friend class OperatorPorts;
  int64_t TimesWithoutDescriptors() const;

  DaemonOptions options_;
  std::string host_;
  mutable std::atomic<bool> stops_ = false;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Gateway> gateway_;  // null: daemons meet as they are
  Endpoint control_;
  std::vector<uint32_t> nics_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
  MemoryReturns returns_;  // counts for tenants
  PeerLinks peer_links_;   // that others made
  DaemonMetrics metrics_;  // communicators count in them
  std::list<Stranger> strangers_;
  std::map<const Tenant*, std::deque<Secret>> made_ids_;  // that nobody has joined by yet
  std::map<Secret, std::unique_ptr<RootPart>> roots_;
  std::deque<std::pair<Secret, Error>> failed_joins_;  // newest last: ranks may come yet
  std::map<Secret, std::unique_ptr<ServiceCommunicator>> communicators_;
  std::list<std::unique_ptr<Session>> sessions_;
  std::list<std::unique_ptr<AdminConnection>> operators_;
  std::unique_ptr<Worker> planner_;
  ServedDevices devices_;
  BarrierRule barrier_;
  std::unique_ptr<MoveHelpers> helpers_;  // null: one runtime
  struct Turn {
    Tenant* tenant = nullptr;
    std::vector<ServiceCommunicator*> communicators;
    size_t next = 0;  // where it goes on
  };
  std::vector<Turn> turns_;  // a tenant with communicators each
  bool turns_are_old_ = true;
  int64_t next_tick_ns_ = 0;
  int64_t started_ns_ = 0, rounds_ = 0, sleeps_ = 0, slept_ns_ = 0;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  Acceptor* peers_acceptor_ = nullptr;  // one of them
  std::unique_ptr<OperatorPorts> ports_;
};

}  // namespace tutti::service
