#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "board.h"
#include "board_stream.h"
#include "bootstrap.h"
#include "collective_call.h"
#include "lanes.h"
#include "meeting.h"
#include "operation.h"
#include "rank.h"
#include "schedules.h"
#include "tutti/base/deadline.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

// At most, once this rank has failed: usually the others have said it within a millisecond.
constexpr double kOthersSay_s = 2;
// Bytes that an operation moves before others get a turn.
constexpr int64_t kBudget = int64_t{256} << 10;

// Spares the other thread of a core.
void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether this process may read the memory of another, where `proof` stands.
bool CanRead(int64_t process, int64_t address, uint64_t proof) {
  uint64_t found = 0;
  const iovec into{&found, sizeof(found)};
  const iovec from{reinterpret_cast<void*>(static_cast<intptr_t>(address)), sizeof(found)};
  return process_vm_readv(static_cast<pid_t>(process), &into, 1, &from, 1, 0) ==
             static_cast<ssize_t>(sizeof(found)) &&
         found == proof;
}

class InProcessRank final : public Communicator::Rank {
 public:
  // `meeting`: of the communicator that it was made of by regrouping; null: it makes its own.
  InProcessRank(int32_t num_ranks, int32_t rank, const CommunicatorOptions& options,
                std::shared_ptr<Meeting> meeting = nullptr)
      : Rank(num_ranks, rank, options), meeting_(std::move(meeting)) {}
  ~InProcessRank() override {
    lanes_.reset();
    if (link_) link_->End(progress_);
  }
  InProcessRank(const InProcessRank&) = delete;
  InProcessRank& operator=(const InProcessRank&) = delete;
  Status Join(const UniqueId& id);

  // What runs looks at the flag; where nothing runs the others are told here.
  void Abort() override {
    aborted_ = true;
    const std::unique_lock idle(running_, std::try_to_lock);
    if (idle) static_cast<void>(BeHealthy("nothing"));
  }

  Status RunHere(const CollectiveCall& call) override;
  Status ExchangeHere(std::span<const Message> messages, const std::string& text) override;
  Result<std::vector<std::string>> Share(const std::string& mine, const std::string& text) override;
  Result<std::string> ScheduleFor(const CollectiveCall& call) override;
  Result<UniqueId> MakeId() const override;
  Result<Regrouped> Regroup(const RegroupAsk& ask, const Deadline& deadline) override;
  Result<std::unique_ptr<Communicator::Rank>> JoinAgain(const Regrouped& regrouped) override;

 private:
  struct Failure {
    Error error;
    double wait_s = 0;  // for what other ranks say of it
  };
  using PlanKey = std::pair<const PlannedSchedule*, PlanCall>;
  struct Kept {
    PlanKey key;
    std::unique_ptr<PlanOperation> operation;
  };
  static constexpr size_t kMaxKept = 64;

  // What all ranks have been called for: where this one runs out of memory the others, who wait for it, hear of it.
  template <class Body, class Text>
  Status RunOrTellOthers(Body body, Text text) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return FailBecause({{ErrorCode::kResourceExhausted, "out of memory"}}, text());
    }
  }
  Status RunNow(const CollectiveCall& call);
  Result<const PlannedSchedule*> Choose(const CollectiveCall& call);
  bool HasFixedOrder(CollectiveKind kind) const { return options_.fixed_order && Reduces(kind); }
  bool MayUseBoard(const CollectiveCall& call) const {
    return lanes_->common_area() != nullptr && !book_->Holds(call.kind, call.root) &&
           !HasFixedOrder(call.kind);
  }
  bool UsesBoard(const CollectiveCall& call) const {
    return BoardOperation::Fits(call, num_ranks_) && MayUseBoard(call);
  }
  bool StreamsOverBoard(const CollectiveCall& call) const {
    return BoardStream::Fits(call, num_ranks_) && MayUseBoard(call);
  }
  // A round; who fails in it hears from the others why.
  Result<std::vector<std::string>> ShareWhenJoining(const std::string& mine,
                                                    const Deadline& deadline) {
    const auto look = [this] { return watch_->Look(); };
    auto shares = link_->Share(mine, deadline, aborted_,
                               watch_ == nullptr ? nullptr : std::function<Status()>(look));
    if (!shares) return tl::unexpected(link_->Fail(shares.error(), kOthersSay_s));
    return shares;
  }
  Result<LocalRanks> MeetLocally(const std::vector<uint64_t>& hosts, const Deadline& deadline);
  Status RunPlan(const PlannedSchedule& planned, const CollectiveCall& call);
  Status RunOnBoard(const CollectiveCall& call);
  Status StreamOverBoard(const CollectiveCall& call);
  Status Finish(const std::optional<Failure>& failure, const CollectiveCall& call) {
    return failure ? FailBecause(*failure, ToText(call)) : Status();
  }
  // Block by block, without a plan.
  Status RunDirectly(const CollectiveCall& call);
  Status ExchangeNow(std::span<const Message> messages, const std::string& text);
  Result<PlanOperation*> OperationFor(const PlannedSchedule& planned, const PlanCall& call);
  // Until it is over, or why it cannot be.
  std::optional<Failure> Drive(Operation& operation, const CallOfRank& call = {});
  // A rank that has done its part may have ended since this one looked last.
  bool EndsByWhatHasCome(Operation& operation);
  // Before anything is sent: not failed, not aborted.
  Status BeHealthy(const std::string& text) {
    if (Status healthy = health(); !healthy) return healthy;
    if (aborted_) return FailBecause({Aborted()}, text);
    return {};
  }
  static Error Aborted() { return {ErrorCode::kCancelled, "aborted"}; }
  Status FailBecause(const Failure& failure, const std::string& text);

  std::mutex running_;  // held while an operation runs
  RankProgress progress_;
  std::atomic<bool> aborted_ = false, has_failed_ = false;
  std::optional<ScheduleBook> book_;
  std::optional<bootstrap::Link> link_;
  std::shared_ptr<Meeting> meeting_;  // shared with those that are made of it
  Meeting::Party party_;
  // Those it is to go on with by a decision that was told and whose communicator has not come to be.
  std::optional<Meeting::Party> next_;
  std::unique_ptr<MeetingWatch> watch_;  // while it joins again, as the one that led
  std::list<Kept> kept_;                 // the one used last first
  uint64_t board_sequence_ = 0, board_done_ = 0;
  uint64_t proof_ = 0;  // what others read of this process's memory to see that they may
  std::vector<std::byte> scratch_;
  std::unique_ptr<Lanes> lanes_;  // gone before what its messages point to
};

// --- Joining -------------------------------------------------------------------------------------

Status InProcessRank::Join(const UniqueId& id) {
  if (options_.schedules.empty())
    if (const char* folder = std::getenv("TUTTI_SCHEDULES"); folder != nullptr)
      options_.schedules = folder;
  if (const char* shared = std::getenv("TUTTI_SHARED_MEMORY"); shared != nullptr)
    options_.shared_memory = options_.shared_memory && std::string_view(shared) != "0";
  if (const char* silence = std::getenv("TUTTI_SILENCE"); silence != nullptr) {
    const std::string_view text(silence);
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), options_.silence_s);
    if (error != std::errc() || end != text.data() + text.size() || !(options_.silence_s >= 0))
      return InvalidArgument(
          fmt::format("TUTTI_SILENCE: got '{}', wanted seconds, 0 for none", text));
  }
  if (const char* fixed = std::getenv("TUTTI_FIXED_ORDER"); fixed != nullptr)
    options_.fixed_order = options_.fixed_order || std::string_view(fixed) == "1";
  Result<ScheduleBook> book = ScheduleBook::Load(options_.schedules, num_ranks_);
  if (!book) return tl::unexpected(book.error());
  book_ = std::move(*book);
  const Result<bootstrap::Address> root = bootstrap::Decode(id);
  if (!root) return tl::unexpected(root.error());
  const Deadline deadline(options_.timeout_s);
  Result<bootstrap::Link> link =
      bootstrap::Link::Join(*root, num_ranks_, rank_, options_.silence_s, deadline);
  if (!link) return tl::unexpected(link.error());
  link_ = std::move(*link);
  TcpOptions tcp;
  tcp.cookie = root->secret;
  tcp.address = link_->local().address;
  // Ranks may come to an operation long after one another: its deadline ends it, not a connection's.
  constexpr double kLong = 1e9;
  tcp.patience_s = options_.timeout_s > 0 ? options_.timeout_s : kLong;
  tcp.max_failures = kMostFailures;
  Result<std::unique_ptr<TcpTransport>> transport = TcpTransport::Listen(rank_, tcp);
  if (!transport) return tl::unexpected(transport.error());
  const Endpoint own = (*transport)->endpoint();
  if (meeting_ == nullptr) {
    Result<std::shared_ptr<Meeting>> meeting = Meeting::Open(own.address);
    if (!meeting) return tl::unexpected(meeting.error());
    meeting_ = std::move(*meeting);
  }
  party_.rank = rank_;
  party_.secret = root->secret;
  const uint64_t host = options_.shared_memory ? HostWord() : 0;
  const auto at = ToWords(own);
  const auto meets_at = ToWords(meeting_->place());
  std::vector<int64_t> mine(at.begin(), at.end());
  mine.insert(mine.end(), {static_cast<int64_t>(book_->digest()), static_cast<int64_t>(host),
                           int64_t{options_.fixed_order}});
  mine.insert(mine.end(), meets_at.begin(), meets_at.end());
  const Result<std::vector<std::string>> shares = ShareWhenJoining(WordsToBytes(mine), deadline);
  if (!shares) return tl::unexpected(shares.error());
  std::vector<Endpoint> peers;
  std::vector<uint64_t> hosts;
  for (size_t peer = 0; peer < shares->size(); ++peer) {
    const auto words = Frame{FrameType::kShare, (*shares)[peer]}.Words(mine.size());
    if (!words)
      return MakeError(ErrorCode::kPeerFailed, fmt::format("rank {} sent nonsense", peer));
    if (static_cast<uint64_t>((*words)[kEndpointWords]) != book_->digest())
      return InvalidArgument(
          fmt::format("the schedule libraries of ranks {} and {} differ", rank_, peer));
    if (((*words)[kEndpointWords + 2] != 0) != options_.fixed_order)
      return InvalidArgument(
          fmt::format("of ranks {} and {} one reduces in a fixed order", rank_, peer));
    peers.push_back(EndpointOfWords(words->data()));
    hosts.push_back(static_cast<uint64_t>((*words)[kEndpointWords + 1]));
    party_.meetings.push_back(MeetingPlaceOfWords(words->data() + kEndpointWords + 3));
  }
  Result<LocalRanks> local = MeetLocally(hosts, deadline);
  if (!local) return tl::unexpected(local.error());
  lanes_ =
      std::make_unique<Lanes>(rank_, std::move(*transport), std::move(peers), std::move(*local));
  return {};
}

// Three rounds: where the memory of each host is, who could open it, who can read whose own.
Result<LocalRanks> InProcessRank::MeetLocally(const std::vector<uint64_t>& hosts,
                                              const Deadline& deadline) {
  const uint64_t own = hosts[static_cast<size_t>(rank_)];
  LocalRanks local;
  std::vector<size_t> here;
  for (size_t peer = 0; peer < hosts.size(); ++peer) {
    const bool is_here = own != 0 && hosts[peer] == own;
    local.index.push_back(is_here ? static_cast<int32_t>(here.size()) : -1);
    if (is_here) here.push_back(peer);
  }
  // All see the same hosts: nobody has anything to say where no two ranks share one.
  std::vector<uint64_t> by_host = hosts;
  std::sort(by_host.begin(), by_host.end());
  by_host.erase(by_host.begin(), std::upper_bound(by_host.begin(), by_host.end(), 0));
  if (std::adjacent_find(by_host.begin(), by_host.end()) == by_host.end()) return local;
  const bool wanted = here.size() > 1 && here.size() <= LocalArea::kMaxRanks;
  const bool is_first = wanted && here.front() == static_cast<size_t>(rank_);
  const auto num_here = static_cast<int32_t>(here.size());
  std::string place;
  if (is_first)
    if (auto area = LocalArea::Make(num_here)) {
      local.area = std::move(*area);
      const LocalArea::Place& at = local.area->place();
      place = WordsToBytes({at.process, at.descriptor, static_cast<int64_t>(at.token)});
    }
  const auto places = ShareWhenJoining(place, deadline);
  if (!places) return tl::unexpected(places.error());
  if (wanted && !is_first)
    if (const auto words = Frame{FrameType::kShare, (*places)[here.front()]}.Words(3))
      if (auto area = LocalArea::Open(
              {(*words)[0], (*words)[1], static_cast<uint64_t>((*words)[2])}, num_here))
        local.area = std::move(*area);
  // Threads of one process read each other's memory, other processes where the kernel allows it.
  proof_ = DrawSecret()[0];
  const std::string mine =
      local.area == nullptr
          ? std::string()
          : WordsToBytes({getpid(), static_cast<int64_t>(reinterpret_cast<intptr_t>(&proof_)),
                          static_cast<int64_t>(proof_)});
  const auto proofs = ShareWhenJoining(mine, deadline);
  if (!proofs) return tl::unexpected(proofs.error());
  bool all_mapped = true, readable = true;
  for (const size_t peer : here) {
    const auto words = Frame{FrameType::kShare, (*proofs)[peer]}.Words(3);
    all_mapped = all_mapped && words;
    readable =
        readable && words && CanRead((*words)[0], (*words)[1], static_cast<uint64_t>((*words)[2]));
    local.processes.push_back(words ? (*words)[0] : 0);
  }
  if (!all_mapped) local.area.reset();
  if (local.area != nullptr) local.area->CloseFile();
  const auto verdicts = ShareWhenJoining(readable ? "readable" : "", deadline);
  if (!verdicts) return tl::unexpected(verdicts.error());
  for (const size_t peer : here) readable = readable && (*verdicts)[peer] == "readable";
  if (!readable) local.processes.clear();
  return local;
}

// --- Running -------------------------------------------------------------------------------------

Status InProcessRank::FailBecause(const Failure& failure, const std::string& text) {
  const Error& error = failure.error;
  const Error all =
      link_->Fail({error.code, fmt::format("in {}: {}", text, error.message)}, failure.wait_s);
  lanes_->Break();
  Status failed = FailFor(all);
  has_failed_ = true;
  return failed;
}

bool InProcessRank::EndsByWhatHasCome(Operation& operation) {
  while (true) {
    const Interpreter::Outcome outcome = operation.Poll(kBudget);
    if (outcome == Interpreter::Outcome::kOver) return true;
    if (const bool moved = lanes_->Poll(); !moved && outcome != Interpreter::Outcome::kMoved)
      return false;
  }
}

std::optional<InProcessRank::Failure> InProcessRank::Drive(Operation& operation,
                                                           const CallOfRank& call) {
  constexpr std::chrono::milliseconds kCheck{1};
  constexpr int kPauses = 64;
  std::optional<Deadline> deadline;
  Clock::time_point next_check;
  for (int stuck = 0;;) {
    const Interpreter::Outcome outcome = operation.Poll(kBudget);
    if (outcome == Interpreter::Outcome::kOver) break;
    const bool moved = lanes_->Poll();
    stuck = outcome == Interpreter::Outcome::kMoved || moved ? 0 : stuck + 1;
    if (stuck == 0) continue;
    if (const Status health = operation.health(); !health)
      return Failure{health.error(), kOthersSay_s};
    if (stuck < lanes_->spins()) {
      if (!lanes_->is_crowded() && stuck % kPauses != 0) {
        Pause();
        continue;
      }
      // Who is waited for may share the core, even where there are enough of them.
      std::this_thread::yield();
    } else {
      operation.SaveWanted();
      bool over = false;
      lanes_->Sleep([&] {
        const Interpreter::Outcome last = operation.Poll(kBudget);
        over = last == Interpreter::Outcome::kOver;
        return last != Interpreter::Outcome::kStuck;
      });
      if (over) break;
    }
    const Clock::time_point now = Clock::now();
    if (!deadline) {
      deadline.emplace(options_.timeout_s);
      next_check = now + kCheck;
    }
    if (now < next_check) continue;
    next_check = now + kCheck;
    if (aborted_) return Failure{Aborted()};
    if (const Status others = link_->Check(); !others) {
      if (EndsByWhatHasCome(operation)) break;
      return Failure{others.error()};
    }
    if (const auto never = link_->departures().WhyNever(rank_, progress_, call)) {
      if (EndsByWhatHasCome(operation)) break;
      return Failure{{ErrorCode::kPeerFailed, *never}};
    }
    if (deadline->HasPassed())
      return Failure{
          {ErrorCode::kPeerFailed, fmt::format("it did not end within {} s", options_.timeout_s)}};
  }
  lanes_->Flush();
  progress_.Add(call);
  return std::nullopt;
}

Result<const PlannedSchedule*> InProcessRank::Choose(const CollectiveCall& call) {
  return book_->Choose(call.kind, call.root, ElementsOf(call, num_ranks_) * SizeOf(call.type),
                       lanes_->common_area() != nullptr && !HasFixedOrder(call.kind));
}

Status InProcessRank::RunHere(const CollectiveCall& call) {
  const std::lock_guard running(running_);
  if (Status checked = CheckCall(call, rank_, num_ranks_); !checked) return checked;
  if (aborted_ || has_failed_)
    if (Status healthy = BeHealthy(ToText(call)); !healthy) return healthy;
  if (num_ranks_ == 1) {
    Copy(call);
    return {};
  }
  return RunOrTellOthers([&] { return RunNow(call); }, [&] { return ToText(call); });
}

Status InProcessRank::RunNow(const CollectiveCall& call) {
  if (UsesBoard(call)) return RunOnBoard(call);
  if (StreamsOverBoard(call)) return StreamOverBoard(call);
  const Result<const PlannedSchedule*> planned = Choose(call);
  if (!planned) return tl::unexpected(planned.error());
  return *planned != nullptr ? RunPlan(**planned, call) : RunDirectly(call);
}

Result<PlanOperation*> InProcessRank::OperationFor(const PlannedSchedule& planned,
                                                   const PlanCall& call) {
  const PlanKey key{&planned, call};
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&key](const Kept& kept) { return kept.key == key; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->operation.get();
  }
  const auto program = PlanProgram::MakeOnce(planned.plan, planned.digest, call);
  if (!program) return tl::unexpected(program.error());
  kept_.push_front({key, std::make_unique<PlanOperation>(*program, rank_, *lanes_)});
  if (kept_.size() > kMaxKept) kept_.pop_back();
  return kept_.front().operation.get();
}

Status InProcessRank::RunPlan(const PlannedSchedule& planned, const CollectiveCall& call) {
  const Result<PlanOperation*> operation =
      OperationFor(planned, {.count = ElementsOf(call, num_ranks_),
                             .type = call.type,
                             .op = call.op,
                             .in_place = IsInPlace(call, rank_),
                             .fixed_order = HasFixedOrder(call.kind)});
  if (!operation) return tl::unexpected(operation.error());
  const auto scratch = static_cast<size_t>((*operation)->scratch_bytes());
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  lanes_->SetSignature(SignatureOf(call, planned.digest));
  (*operation)->Begin(call.input, call.output, scratch_.data());
  return Finish(Drive(**operation), call);
}

Status InProcessRank::RunOnBoard(const CollectiveCall& call) {
  BoardOperation operation(call, *lanes_, ++board_sequence_, board_done_, rank_, num_ranks_);
  return Finish(Drive(operation), call);
}

Status InProcessRank::StreamOverBoard(const CollectiveCall& call) {
  BoardStream operation(call, *lanes_, board_sequence_ + 1, board_done_, rank_, num_ranks_);
  board_sequence_ += BoardStream::Rows(call);
  return Finish(Drive(operation), call);
}

Status InProcessRank::RunDirectly(const CollectiveCall& call) {
  return ExchangeNow(DirectMessages(call, rank_, num_ranks_), ToText(call));
}

Status InProcessRank::ExchangeHere(std::span<const Message> messages, const std::string& text) {
  const std::lock_guard running(running_);
  return RunOrTellOthers([&] { return ExchangeNow(messages, text); }, [&] { return text; });
}

Status InProcessRank::ExchangeNow(std::span<const Message> messages, const std::string& text) {
  if (Status checked = CheckMessages(messages, rank_, num_ranks_); !checked) return checked;
  if (Status healthy = BeHealthy(text); !healthy) return healthy;
  ExchangeOperation operation(messages, SignatureOfText(text), rank_, *lanes_);
  const std::optional<Failure> failure =
      Drive(operation, {.is_of_all = text != kMessages, .messages = messages});
  return failure ? FailBecause(*failure, text) : Status();
}

Result<std::vector<std::string>> InProcessRank::Share(const std::string& mine,
                                                      const std::string& text) {
  const std::lock_guard running(running_);
  if (Status healthy = BeHealthy(text); !healthy) return tl::unexpected(healthy.error());
  Result<std::vector<std::string>> shares =
      link_->Share(mine, Deadline(options_.timeout_s), aborted_);
  if (!shares) return tl::unexpected(FailBecause({shares.error()}, text).error());
  return shares;
}

Result<UniqueId> InProcessRank::MakeId() const {
  const Result<bootstrap::Address> root = bootstrap::StartRoot(meeting_->place().endpoint.address);
  if (!root) return tl::unexpected(root.error());
  return bootstrap::Encode(*root);
}

Result<Regrouped> InProcessRank::Regroup(const RegroupAsk& ask, const Deadline& deadline) {
  // Whatever became of this communicator, it may be left by a new one.
  static const std::atomic<bool> never = false;
  const auto make_id = [this] { return MakeId(); };
  if (!next_) return meeting_->Regroup(party_, ask, make_id, deadline, never);
  // Who is to be left out has been already.
  return meeting_->Regroup(*next_, {.grows_to = ask.grows_to, .id = ask.id}, make_id, deadline,
                           never);
}

Result<std::unique_ptr<Communicator::Rank>> InProcessRank::JoinAgain(const Regrouped& regrouped) {
  auto again =
      std::make_unique<InProcessRank>(regrouped.num_ranks, regrouped.rank, options_, meeting_);
  // Newcomers meet nobody before they have joined.
  const bool all_survive = static_cast<int32_t>(regrouped.survivors.size()) == regrouped.num_ranks;
  Result<Meeting::Party> next = Meeting::Descend(next_ ? *next_ : party_, regrouped);
  if (!next) return tl::unexpected(next.error());
  std::vector<MeetingWatch::Member> others;
  // The first one has led, and made the id.
  for (size_t i = 1; i < next->meetings.size() && regrouped.rank == 0; ++i)
    others.push_back({static_cast<int32_t>(i), next->meetings[i]});
  if (!others.empty())
    again->watch_ = std::make_unique<MeetingWatch>(meeting_, next->secret, std::move(others));
  if (all_survive) {
    again->party_.before = next->before;
    again->party_.decision = next->decision;
    next_ = *std::move(next);
  }
  if (const Status joined = again->Join(regrouped.id); !joined)
    return tl::unexpected(joined.error());
  again->watch_.reset();
  next_.reset();
  return again;
}

Result<std::string> InProcessRank::ScheduleFor(const CollectiveCall& call) {
  if (num_ranks_ == 1) return "copy";
  if (UsesBoard(call) || StreamsOverBoard(call)) return "shared board";
  const Result<const PlannedSchedule*> planned = Choose(call);
  if (!planned) return tl::unexpected(planned.error());
  return *planned == nullptr ? "direct messages" : (*planned)->name;
}

}  // namespace

Result<std::unique_ptr<Communicator::Rank>> JoinInProcess(const UniqueId& id, int32_t num_ranks,
                                                          int32_t rank,
                                                          const CommunicatorOptions& options) {
  auto self = std::make_unique<InProcessRank>(num_ranks, rank, options);
  if (const Status joined = self->Join(id); !joined) return tl::unexpected(joined.error());
  return self;
}

}  // namespace tutti
