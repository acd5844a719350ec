// ServiceCommunicator: this daemon's part of a communicator: its local ranks, their commands, and the epochs that
// these run in.
//
// Model       Ranks join one by one; the root (root_part.h) says when all are there. Commands of a rank run one
//             after the other, each when it is its turn; those of different ranks and communicators all
//             at once, none blocking another. Which epoch a command runs in decides barrier.h.
// Errors      A communicator that fails stays failed; all daemons of it are told why.
// Threads     The daemon's.
// Reference   [mccs] 4.2
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "barrier.h"
#include "chunk_trace.h"
#include "command.h"
#include "departures.h"
#include "epoch.h"
#include "following.h"
#include "gate.h"
#include "host_collective.h"
#include "metrics.h"
#include "operation.h"
#include "path_watch.h"
#include "peer_link.h"
#include "regrouping.h"
#include "tenant.h"
#include "tutti/base/result.h"
#include "worker.h"

namespace tutti::service {

// Who wants to hear of a local rank: the process that holds it.
class RankOwner {
 public:
  virtual ~RankOwner() = default;
  virtual void Joined(uint32_t line) = 0;
  virtual void JoinRefused(uint32_t line, const Error& why) = 0;
  virtual void Completed(uint32_t line, uint64_t completed, uint32_t epoch) = 0;
  virtual void Failed(uint32_t line, const Error& why) = 0;
  virtual int32_t process_number() const { return -1; }
};

// One executed command, for traces.
struct TraceRecord {
  int32_t rank = 0;
  uint32_t epoch = 0;
  uint64_t sequence = 0;
  bool is_exchange = false;
  CollectiveCall call;
  size_t messages = 0;
  int64_t bytes = 0, posted_ns = 0, launched_ns = 0, completed_ns = 0;

  std::string Text() const { return Command::TextOf(is_exchange, call, messages); }
};

// What all communicators of a daemon share.
struct DaemonParts {
  EventLoop& loop;
  Worker& planner;
  Endpoint control;  // where this daemon listens for others
  std::string host;
  std::vector<uint32_t>
      nics;  // addresses of the devices of this host; none: all use the control address
  std::function<Result<UniqueId>(const Tenant&)> make_id;
  Regrouping::Await await;
  MoveHelpers* helpers = nullptr;
  BarrierRule barrier = Step;
  PathBytes* path_bytes = nullptr;
};

struct CommunicatorId {
  std::array<uint64_t, 2> secret{};
  Endpoint root;

  // What operators call it; the secret does not follow from it.
  std::string Label() const;
};

class ServiceCommunicator {
 public:
  static constexpr size_t kMaxQueued = 1024, kTraceRecords = 4096;

  struct LocalRank {
    int32_t rank = 0;
    RankOwner* owner = nullptr;  // null: it has left
    uint32_t line = 0;
    int32_t device = 0;         // of this host
    std::deque<Command> queue;  // not launched
    uint64_t issued = 0, completed = 0;
    RankProgress progress;  // what is completed, as other ranks can tell it
    std::optional<Command> running;
    std::optional<std::pair<std::array<uint64_t, 2>, int32_t>>
        promised;  // secret of what it is to join next, after regrouping, and its rank there
    std::string why_failed;   // alone, because of one that left
    bool has_failed = false;  // alone: what it runs stays, as others may still read from its memory
    Epoch* epoch = nullptr;   // of what runs
    std::shared_ptr<PlanOperation> planned;
    std::unique_ptr<ExchangeOperation> exchange;
    std::optional<HostOperation> on_host;
    int64_t launched_ns = 0, polls_stuck = 0;
    uint64_t told_issued = 0, told_completed = 0;  // to the root

    // What it waits for, or will first; null: nothing.
    const Command* next() const {
      return running ? &*running : queue.empty() ? nullptr : &queue.front();
    }
    // Those of messages that only some ranks exchange.
    std::vector<int32_t> PeersWaitedFor() const;
    Operation& operation() {
      if (on_host) return *on_host;
      return planned != nullptr ? static_cast<Operation&>(*planned) : *exchange;
    }
  };

  ServiceCommunicator(const DaemonParts& parts, Tenant& tenant, const CommunicatorId& id,
                      int32_t num_ranks);
  ~ServiceCommunicator();
  ServiceCommunicator(const ServiceCommunicator&) = delete;
  ServiceCommunicator& operator=(const ServiceCommunicator&) = delete;

  // kInvalidArgument: ranks that differ, a rank twice, too many.
  Status Join(int32_t rank, int32_t num_ranks, RankOwner& owner, uint32_t line);
  // False: its queue is full.
  bool Issue(uint32_t line, const RankOwner& owner, Command&& command);
  // They need it no more. Unfinished commands of one of them fail the communicator, and all of them are named. Else what they
  // completed ends everywhere; other ranks fail, each for itself, with the first command that one of them has not completed.
  void Leave(std::span<const uint32_t> lines, const RankOwner& owner, const std::string& why);
  void Abort(const Error& why) { Fail(why, true); }
  // A local rank goes on with those that are left; `answer` is called once, unless it leaves before. An error: it cannot ask.
  Status Regroup(uint32_t line, const RankOwner& owner, const RegroupAsk& ask, int64_t until_ns,
                 Regrouping::Answer answer);
  // Another daemon whose ranks regroup.
  void AcceptRegroup(std::unique_ptr<PeerLink> link, const PeerFrame& frame);
  // A daemon of whom it makes way for, whose key this is.
  bool Follows(const FollowKey& key) const { return followed_.Has(key); }
  void AcceptFollowed(std::unique_ptr<PeerLink> link, const PeerFrame& first) {
    followed_.Accept(std::move(link), first);
  }
  // The daemon before this one on the ring.
  void AcceptRing(std::unique_ptr<PeerLink> link);

  // Polls one local rank after the other, from call to call. True: something moved.
  bool PollNext(int64_t budget);
  bool has_work() const;
  // Says to the root what waits for long.
  void Tick(int64_t now_ns);

  // A local rank that is there is to be `rank` of the communicator with that secret, is it already, or may become it.
  bool Promises(const std::array<uint64_t, 2>& secret, int64_t rank) const;

  bool is_over() const;
  // It is over, and who has to hear what it has said has: its root, and others that regroup.
  bool may_go() const {
    const bool root_waits = root_ != nullptr && root_->is_connected() && !root_->is_quiet();
    return is_over() && !root_waits && (regrouping_ == nullptr || regrouping_->is_quiet());
  }
  // No rank that is here can go on.
  bool has_failed() const { return shown_failure_.has_value(); }
  const Error& why_failed() const { return *shown_failure_; }
  Tenant& tenant() const { return tenant_; }
  const CommunicatorId& id() const { return id_; }
  int32_t num_ranks() const { return num_ranks_; }
  const std::vector<std::unique_ptr<LocalRank>>& local() const { return local_; }
  const std::deque<TraceRecord>& trace() const { return trace_; }
  // What its local ranks execute of plans from now on; `done` is called then, or when it ends. False: somebody has asked already.
  bool TraceChunks(int64_t now_ns, int64_t until_ns, ChunkTrace::Done done) {
    return chunks_.Begin(now_ns, until_ns, std::move(done));
  }
  const ChunkTrace& chunks() const { return chunks_; }
  std::string_view phase() const;
  uint32_t epoch() const { return barrier_.epoch; }
  std::string strategy() const;
  // The flow table in force, as it was given.
  std::string flows() const;
  size_t connections() const;
  const Gate& gate() const { return gate_; }
  // Those that it follows communicate.
  bool makes_way() const { return followed_.is_busy(); }
  const CommunicatorMetrics& metrics() const { return metrics_; }
  int32_t num_hosts() const { return barrier_.daemons; }
  const PathWatch& path_watch() const { return path_watch_; }

 private:
  enum class Stage : uint8_t { kJoining, kOpening, kActive };

  void HearRoot(const PeerFrame& frame);
  void HearRing(const PeerFrame& frame);
  void HearFollowers(const PeerFrame& frame);
  bool GateIsOpen();
  // Whether local ranks communicate.
  void Announce();
  void BecomeMember(const PeerFrame& frame);
  void MeetPeers(const PeerFrame& frame);
  void Prepare(const PeerFrame& frame);
  // Opens the connections of an epoch and tells the root.
  void Open(uint32_t epoch, std::shared_ptr<Strategy> strategy);
  void TellOpened(uint32_t epoch, const std::string& why_not);
  void Apply(const BarrierEvent& event);
  void Perform(const BarrierStep& step);
  void Do(const BarrierAction& action);
  // Finds the next daemon again where the connection to it was lost.
  void WatchRing(int64_t now_ns);
  void HearLeft(int32_t rank, const RankProgress& completed, const std::string& why) {
    left_.insert(rank);
    HearEnded(rank, completed, why);
  }
  void HearEnded(int32_t rank, const RankProgress& completed, const std::string& why);
  // To the root.
  void TellEnd(PeerKind kind, const LocalRank& rank, const std::string& why);
  // Its next command may be one that a rank which has ended will never join.
  void CheckEnded(LocalRank& rank);
  void FailRank(LocalRank& rank, const Error& why);
  LocalRank* Find(uint32_t line, const RankOwner& owner);
  Regrouping& Regroups();

  // Fails the communicator where memory runs out.
  bool PollRank(size_t index, int64_t budget, bool may_launch);
  bool Advance(size_t index, int64_t budget, bool may_launch);
  // What other local ranks run that is not what this one runs.
  std::string OtherCalls(const LocalRank& rank) const;
  bool TryLaunch(size_t index);
  // Nothing: the plan has to be made first. False: it failed.
  std::optional<bool> MakeOperation(size_t index, Epoch& epoch, Command& command);
  void PlanFor(const CollectiveCall& call, Epoch& epoch);
  // Null: it runs by a plan, or by messages. Who comes first to a command decides for all.
  std::shared_ptr<HostCollective> HostCollectiveFor(const LocalRank& rank, const Epoch& epoch,
                                                    const CollectiveCall& call);
  void Complete(size_t index);
  void Count(const TraceRecord& done) {
    const CompletedOperation operation{
        .kind = done.is_exchange ? kExchangeKind : static_cast<size_t>(done.call.kind),
        .rank = done.rank,
        .num_ranks = num_ranks_,
        .bytes = done.bytes,
        .posted_ns = done.posted_ns,
        .launched_ns = done.launched_ns,
        .completed_ns = done.completed_ns};
    metrics_.Add(operation);
    tenant_.metrics.Add(operation);
  }
  void CheckDrained();
  void Fail(const Error& why, bool tell);
  EpochOptions OptionsOf(uint32_t epoch);
  // The i-th local rank gets the i-th device of the tenant, from the first again where there are fewer.
  void GiveDevices();

  DaemonParts parts_;
  Tenant& tenant_;
  CommunicatorId id_;
  int32_t num_ranks_;
  Stage stage_ = Stage::kJoining;
  std::vector<std::unique_ptr<LocalRank>> local_;  // by rank, once all are there
  std::unique_ptr<PeerLink> root_, ring_out_, ring_in_;
  bool ring_is_needed_ = false;  // a change has sent something on it
  tcp::Cookie cookie_{};
  std::vector<Regrouping::Member> members_;  // by daemon of the ring
  std::unique_ptr<Regrouping> regrouping_;
  BarrierState barrier_;
  std::map<uint32_t, std::unique_ptr<Epoch>> epochs_;
  std::set<int32_t> left_;
  Departures ended_;  // those, and ranks that have failed alone: they complete nothing more
  std::vector<CollectiveCall> seen_;  // one of each kind, for plans made ahead
  bool planning_ = false;
  int64_t attempt_ = 0;  // the root's last to change the strategy
  size_t next_ = 0;
  int64_t holds_since_ns_ = 0, hold_ns_ = 0;
  Gate gate_;
  Followed followed_;
  Announcer announcer_;
  PathWatch path_watch_;
  std::optional<Error> failed_, shown_failure_;
  // By its number among the communicator's collectives, until it is done.
  std::map<uint64_t, std::shared_ptr<HostCollective>> host_collectives_;
  std::shared_ptr<HostCollective> newest_host_collective_;  // made anew when nobody holds it
  std::deque<TraceRecord> trace_;
  ChunkTrace chunks_;
  CommunicatorMetrics metrics_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tutti::service
