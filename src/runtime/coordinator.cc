#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "control_link.h"
#include "layout.h"
#include "rates.h"
#include "remote_job.h"
#include "trace_origin.h"
#include "tutti/base/cancel.h"
#include "tutti/base/clock.h"
#include "tutti/base/deadline.h"
#include "tutti/lower/plan_file.h"
#include "tutti/runtime/remote.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMs = 50;

double SecondsSince(Clock::time_point when) {
  return std::chrono::duration<double>(Clock::now() - when).count();
}

Result<Endpoint> ParseAddress(const std::string& host, uint16_t port) {
  const std::optional<IpAddress> address = IpAddress::Parse(host);
  if (!address) return InvalidArgument(fmt::format("'{}' is no IP address", host));
  return Endpoint{*address, port};
}

}  // namespace

class Coordinator::Job {
 public:
  explicit Job(const CoordinatorOptions& options)
      : options_(options), members_(static_cast<size_t>(options.num_ranks)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    if (!failed_) static_cast<void>(SendToAll(FrameType::kEnd, ""));
    if (listener_ >= 0) close(listener_);
  }

  Status Open();
  uint16_t port() const { return port_; }
  Status Gather(const std::function<Status()>& processes);
  Status SetPlan(const Plan& plan);
  Result<RunReport> Run(const RunOptions& options);

 private:
  enum class Stage : uint8_t { kSettingUp, kRunning, kArrived, kDone };
  struct Member {
    std::optional<ControlLink> link;
    Endpoint data;  // where it listens
    Stage stage = Stage::kSettingUp;
    uint64_t beats = 0;
    Clock::time_point heard;
    int64_t clock_ahead_ns = 0;  // of the coordinator's
  };
  struct Stranger {
    ControlLink link;
    Clock::time_point since;
  };

  // What a run has come to.
  struct Progress {
    RunOptions options;
    int32_t ready = 0, arrived = 0, done = 0;
    int32_t barriers = 0;
    int64_t slowest_ns = 0, measured_ns = 0;
    int64_t size_bytes = 0, wrong = 0;
    uint64_t digest = 0;
    std::vector<std::vector<double>> rank_times;
    std::vector<RunEvent> trace;  // seconds of the coordinator's clock since `trace_origin_ns`
    std::optional<int64_t> trace_origin_ns;
    Clock::time_point moved;
  };

  void Accept();
  Status HearStrangers();
  // What somebody who has the secret says first.
  Status Admit(Stranger& stranger, const std::vector<int64_t>& hello);
  std::string MissingRanks() const;
  // Waits a tick for whoever has something to say.
  void Wait();
  Status HearMembers(Progress& progress);
  Status HearMember(int32_t rank, Progress& progress);
  // "; host rank 0: ..." where a process that was started has failed. A library that one rank's end makes abort another may be
  // heard first: "; rank 3 (h1) ended, too" for each that follows at once without a word.
  std::string WhoElseEnded(int32_t than);
  // For a moment after a failure: ranks that come only now would look for the coordinator until their patience ends.
  tl::unexpected<Error> AbortAndTellLateRanks(const Error& error);
  Status Hear(int32_t rank, const Frame& frame, Progress& progress);
  Status TakeTrace(int32_t rank, const Frame& frame, Progress& progress);
  // How far each rank's clock is ahead; gives what that may be wrong by, in seconds.
  Result<double> ReadClocks();
  // The answer to the `number`th question.
  Result<int64_t> ClockOf(int32_t rank, int64_t number);
  Status AllReady();
  Status AllArrived(Progress& progress);
  Status LookForSilence(const Progress& progress) const;
  std::string NameOf(int32_t rank) const;
  // The first that could not be told.
  struct Untold {
    int32_t rank = 0;
    Error error;
  };
  std::optional<Untold> SendToAll(FrameType type, std::string_view body);
  // The error says why a rank that could not be told has ended.
  Status Tell(FrameType type, std::string_view body);
  tl::unexpected<Error> EndOf(int32_t rank, const Error& error);
  // What a rank says of why it cannot go on.
  tl::unexpected<Error> FailureOf(int32_t rank, const std::string& why) const;
  // Tells the ranks why it is over; gives the error back.
  tl::unexpected<Error> Abort(const Error& error);
  Member& member(int32_t rank) { return members_[static_cast<size_t>(rank)]; }
  const Member& member(int32_t rank) const { return members_[static_cast<size_t>(rank)]; }

  CoordinatorOptions options_;
  std::function<Status()> processes_ = [] { return Status(); };  // of Gather()
  int listener_ = -1;
  uint16_t port_ = 0;
  std::vector<Member> members_;
  std::list<Stranger> strangers_;
  int32_t present_ = 0;
  const Plan* plan_ = nullptr;
  int64_t runs_ = 0;
  bool failed_ = false;
};

Status Coordinator::Job::Open() {
  Result<Endpoint> endpoint = ParseAddress(options_.host, options_.port);
  if (!endpoint) return tl::unexpected(endpoint.error());
  listener_ = ListenAt(*endpoint);
  if (listener_ < 0)
    return MakeError(ErrorCode::kIo, fmt::format("cannot listen at {}: {}", endpoint->ToText(),
                                                 std::strerror(errno)));
  port_ = endpoint->port;
  return {};
}

std::string Coordinator::Job::NameOf(int32_t rank) const {
  const Member& of = member(rank);
  if (!of.link) return fmt::format("rank {}", rank);
  return fmt::format("rank {} ({})", rank, of.link->remote().AddressText());
}

std::optional<Coordinator::Job::Untold> Coordinator::Job::SendToAll(FrameType type,
                                                                    std::string_view body) {
  std::optional<Untold> first;
  for (int32_t rank = 0; rank < options_.num_ranks; ++rank) {
    if (!member(rank).link) continue;
    const Status sent = member(rank).link->Send(type, body);
    if (!sent && !first) first = Untold{rank, sent.error()};
  }
  return first;
}

Status Coordinator::Job::Tell(FrameType type, std::string_view body) {
  const std::optional<Untold> untold = SendToAll(type, body);
  if (!untold) return {};
  std::string why;
  member(untold->rank).link->Drain(remote::kMaxTextBytes, [&](const Frame& frame) {
    if (frame.type == FrameType::kFailed) why = frame.body;
  });
  if (!why.empty()) return FailureOf(untold->rank, why);
  return EndOf(untold->rank, untold->error);
}

tl::unexpected<Error> Coordinator::Job::FailureOf(int32_t rank, const std::string& why) const {
  return MakeError(ErrorCode::kPeerFailed, NameOf(rank) + ": " + why);
}

tl::unexpected<Error> Coordinator::Job::EndOf(int32_t rank, const Error& error) {
  return Within(NameOf(rank) + " ended", Error{error.code, error.message + WhoElseEnded(rank)});
}

tl::unexpected<Error> Coordinator::Job::Abort(const Error& error) {
  failed_ = true;
  // Who does not hear it has gone already.
  static_cast<void>(SendToAll(FrameType::kAbort, error.message.substr(0, remote::kMaxTextBytes)));
  return tl::unexpected(error);
}

// --- Until all are there ------------------------------------------------------------------------

void Coordinator::Job::Accept() {
  const size_t most = static_cast<size_t>(options_.num_ranks) + 64;
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ControlLink link(fd);
    if (strangers_.size() < most) strangers_.push_back({std::move(link), Clock::now()});
  }
}

Status Coordinator::Job::HearStrangers() {
  constexpr double kHelloPatience_s = 10;  // of a rank on a host that is busy
  constexpr size_t kHelloBytes = remote::kHelloWords * sizeof(int64_t);
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const Result<std::optional<Frame>> frame = stranger->link.TryReceive(kHelloBytes);
    const bool waits = frame && !*frame && SecondsSince(stranger->since) < kHelloPatience_s;
    if (waits) {
      ++stranger;
      continue;
    }
    const auto hello = frame && *frame && (*frame)->type == FrameType::kHello
                           ? (*frame)->Words(remote::kHelloWords)
                           : std::nullopt;
    const bool knows = hello && (*hello)[1] == static_cast<int64_t>(options_.secret[0]) &&
                       (*hello)[2] == static_cast<int64_t>(options_.secret[1]);
    Stranger comes = std::move(*stranger);
    stranger = strangers_.erase(stranger);
    if (knows)
      if (Status admitted = Admit(comes, *hello); !admitted) return admitted;
  }
  return {};
}

Status Coordinator::Job::Admit(Stranger& stranger, const std::vector<int64_t>& hello) {
  const int64_t rank = hello[3], ranks = hello[4];
  const std::string from = stranger.link.remote().AddressText();
  const auto magic = static_cast<uint64_t>(hello[0]);
  if (const std::optional<std::string> other = OtherVersion(magic, remote::kMagic))
    return MakeError(ErrorCode::kPeerFailed, fmt::format("a rank comes from {}: {}", from, *other));
  if (magic != remote::kMagic) return {};
  if (ranks != options_.num_ranks || rank < 0 || rank >= ranks)
    return MakeError(ErrorCode::kPeerFailed,
                     fmt::format("from {} comes rank {} of {} to a job of {} ranks", from, rank,
                                 ranks, options_.num_ranks));
  Member& joins = member(static_cast<int32_t>(rank));
  if (joins.link)
    return MakeError(ErrorCode::kPeerFailed,
                     fmt::format("rank {} comes twice, from {} and from {}", rank,
                                 joins.link->remote().AddressText(), from));
  joins.link = std::move(stranger.link);
  joins.heard = Clock::now();
  ++present_;
  return {};
}

std::string Coordinator::Job::MissingRanks() const {
  constexpr int32_t kNamed = 16;
  std::string text;
  int32_t missing = 0;
  for (int32_t rank = 0; rank < options_.num_ranks; ++rank)
    if (!member(rank).link && missing++ < kNamed)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  return missing > kNamed ? text + fmt::format(" and {} more", missing - kNamed) : text;
}

Status Coordinator::Job::Gather(const std::function<Status()>& processes) {
  processes_ = processes;
  const Deadline deadline(options_.patience_s);
  Progress nothing_yet;
  while (present_ < options_.num_ranks) {
    Wait();
    Accept();
    // Members first: in the place of one that has ended whoever started it may come.
    if (const Status heard = HearMembers(nothing_yet); !heard)
      return AbortAndTellLateRanks(heard.error());
    if (const Status heard = HearStrangers(); !heard) return AbortAndTellLateRanks(heard.error());
    if (CancelRequested()) return Abort(CancelledError());
    if (const Status alive = processes_(); !alive) return AbortAndTellLateRanks(alive.error());
    if (deadline.HasPassed())
      return Abort({ErrorCode::kPeerFailed, fmt::format("after {} s these ranks are not there: {}",
                                                        options_.patience_s, MissingRanks())});
  }
  return {};
}

tl::unexpected<Error> Coordinator::Job::AbortAndTellLateRanks(const Error& error) {
  const tl::unexpected<Error> aborted = Abort(error);
  if (options_.late_ranks_s <= 0) return aborted;
  const Deadline deadline(options_.late_ranks_s);
  while (present_ < options_.num_ranks && !deadline.HasPassed() && !CancelRequested()) {
    Wait();
    Accept();
    const int32_t told = present_;
    static_cast<void>(HearStrangers());  // what else is wrong with them does not count any more
    if (present_ > told) static_cast<void>(Abort(error));
  }
  return aborted;
}

Status Coordinator::Job::SetPlan(const Plan& plan) {
  const Result<std::string> bytes = PlanToFile(plan);
  if (!bytes) return tl::unexpected(bytes.error());
  plan_ = &plan;
  if (const Status told = Tell(FrameType::kPlan, *bytes); !told) return Abort(told.error());
  return {};
}

// --- A run --------------------------------------------------------------------------------------

void Coordinator::Job::Wait() {
  std::vector<pollfd> fds{{.fd = listener_, .events = POLLIN, .revents = 0}};
  for (const Stranger& stranger : strangers_)
    fds.push_back({.fd = stranger.link.fd(), .events = POLLIN, .revents = 0});
  for (const Member& at : members_)
    if (at.link) fds.push_back({.fd = at.link->fd(), .events = POLLIN, .revents = 0});
  poll(fds.data(), fds.size(), kTickMs);
}

Status Coordinator::Job::HearMembers(Progress& progress) {
  for (int32_t rank = 0; rank < options_.num_ranks; ++rank) {
    if (!member(rank).link) continue;
    if (Status heard = HearMember(rank, progress); !heard) return heard;
  }
  return {};
}

Status Coordinator::Job::HearMember(int32_t rank, Progress& progress) {
  while (true) {
    const Result<std::optional<Frame>> frame = member(rank).link->TryReceive(remote::kMaxTextBytes);
    if (!frame) return EndOf(rank, frame.error());
    if (!*frame) return {};
    member(rank).heard = Clock::now();
    if (Status heard = Hear(rank, **frame, progress); !heard) return heard;
  }
}

std::string Coordinator::Job::WhoElseEnded(int32_t than) {
  constexpr double kMoment_s = 0.03;
  constexpr std::chrono::milliseconds kLook{1};
  const Deadline deadline(kMoment_s);
  Status processes = processes_();
  // Not longer than it takes to know why: a launcher may be about to end this process, too.
  for (; processes && !deadline.HasPassed(); processes = processes_())
    std::this_thread::sleep_for(kLook);
  std::string text = processes ? "" : "; " + processes.error().message;
  for (int32_t rank = 0; rank < options_.num_ranks; ++rank) {
    if (rank == than || !member(rank).link) continue;
    bool said_why = false;
    const bool is_there = member(rank).link->Drain(remote::kMaxTextBytes, [&](const Frame& frame) {
      said_why = said_why || frame.type == FrameType::kFailed;
    });
    if (!is_there && !said_why) text += fmt::format("; {} ended, too", NameOf(rank));
  }
  return text;
}

Status Coordinator::Job::Hear(int32_t rank, const Frame& frame, Progress& progress) {
  Member& from = member(rank);
  const auto unexpected = [&] {
    return MakeError(ErrorCode::kPeerFailed,
                     fmt::format("{} sends a frame of type {} at the wrong time", NameOf(rank),
                                 static_cast<int>(frame.type)));
  };
  if (frame.type == FrameType::kFailed) return FailureOf(rank, frame.body);
  if (frame.type == FrameType::kTrace && from.stage == Stage::kRunning)
    return TakeTrace(rank, frame, progress);
  const auto words = frame.Words(frame.type == FrameType::kReady    ? kEndpointWords + 1
                                 : frame.type == FrameType::kResult ? 2
                                                                    : 1);
  if (!words) return unexpected();
  if (frame.type == FrameType::kBeat) {
    const auto beats = static_cast<uint64_t>(words->front());
    if (beats != from.beats) progress.moved = Clock::now();
    from.beats = beats;
    return {};
  }
  progress.moved = Clock::now();
  if (frame.type == FrameType::kReady && from.stage == Stage::kSettingUp) {
    from.data = EndpointOfWords(words->data());
    from.stage = Stage::kRunning;
    progress.size_bytes = words->back();
    return ++progress.ready < options_.num_ranks ? Status() : AllReady();
  }
  if (frame.type == FrameType::kArrived && from.stage == Stage::kRunning) {
    from.stage = Stage::kArrived;
    progress.slowest_ns = std::max(progress.slowest_ns, words->front());
    if (progress.barriers > progress.options.warmup)
      progress.rank_times[static_cast<size_t>(rank)].push_back(static_cast<double>(words->front()) *
                                                               1e-9);
    return ++progress.arrived < options_.num_ranks ? Status() : AllArrived(progress);
  }
  if (frame.type == FrameType::kResult && from.stage == Stage::kRunning) {
    from.stage = Stage::kDone;
    progress.wrong += words->front();
    progress.digest += static_cast<uint64_t>(words->back());
    ++progress.done;
    return {};
  }
  return unexpected();
}

Status Coordinator::Job::TakeTrace(int32_t rank, const Frame& frame, Progress& progress) {
  const auto nonsense = [&] {
    return MakeError(ErrorCode::kPeerFailed, NameOf(rank) + " sends a trace that is none");
  };
  const auto words = frame.Words(frame.body.size() / sizeof(int64_t));
  if (!words || words->size() % remote::kEventWords != 1) return nonsense();
  progress.moved = Clock::now();
  const int64_t begin = words->front() - member(rank).clock_ahead_ns;
  const auto& streams = plan_->ranks[static_cast<size_t>(rank)].streams;
  // That of the first rank that is heard: near enough for seconds to tell nanoseconds apart.
  if (!progress.trace_origin_ns) progress.trace_origin_ns = begin;
  const int64_t origin = *progress.trace_origin_ns;
  const auto seconds = [&](int64_t ns) { return static_cast<double>(begin - origin + ns) * 1e-9; };
  for (size_t at = 1; at < words->size(); at += remote::kEventWords) {
    const int64_t* event = words->data() + at;
    const auto stream = static_cast<uint64_t>(event[0]),
               instruction = static_cast<uint64_t>(event[1]);
    if (stream >= streams.size() || instruction >= streams[stream].instructions.size() ||
        event[2] < 0 || event[3] < event[2])
      return nonsense();
    progress.trace.push_back({.rank = rank,
                              .stream = static_cast<int32_t>(stream),
                              .instruction = static_cast<int32_t>(instruction),
                              .start_s = seconds(event[2]),
                              .end_s = seconds(event[3])});
  }
  return {};
}

Result<int64_t> Coordinator::Job::ClockOf(int32_t rank, int64_t number) {
  ControlLink& link = *member(rank).link;
  Status asked = link.Send(FrameType::kClock, {number});
  const Deadline deadline(kSilence_s);
  while (asked) {
    const Result<std::optional<Frame>> frame = link.Receive(remote::kMaxTextBytes, kTickMs);
    if (!frame) {
      asked = tl::unexpected(frame.error());
    } else if (*frame && (*frame)->type == FrameType::kFailed) {
      return FailureOf(rank, (*frame)->body);
    } else if (*frame) {
      const auto words = (*frame)->Words(2);
      const bool is_answer = (*frame)->type == FrameType::kClock && words;
      if (is_answer && words->front() == number) return words->back();
    }
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (asked && deadline.HasPassed())
      return MakeError(ErrorCode::kPeerFailed, NameOf(rank) + " does not tell its clock");
  }
  return EndOf(rank, asked.error());
}

Result<double> Coordinator::Job::ReadClocks() {
  constexpr int64_t kQuestions = 16;
  int64_t worst_ns = 0;
  for (int32_t rank = 0; rank < options_.num_ranks; ++rank) {
    int64_t min_ns = INT64_MAX;
    for (int64_t number = 0; number < kQuestions; ++number) {
      const int64_t before = NowNs();
      const Result<int64_t> clock = ClockOf(rank, number);
      if (!clock) return tl::unexpected(clock.error());
      const int64_t after = NowNs();
      if (after - before >= min_ns) continue;
      min_ns = after - before;
      member(rank).clock_ahead_ns = *clock - (before + min_ns / 2);
    }
    worst_ns = std::max(worst_ns, min_ns);
  }
  return static_cast<double>(worst_ns) / 2 * 1e-9;
}

Status Coordinator::Job::AllReady() {
  std::vector<int64_t> peers;
  for (const Member& at : members_) {
    const auto words = ToWords(at.data);
    peers.insert(peers.end(), words.begin(), words.end());
  }
  return Tell(FrameType::kPeers, WordsToBytes(peers));
}

Status Coordinator::Job::AllArrived(Progress& progress) {
  // Before the first iteration there is one barrier, and one after each.
  if (progress.barriers > progress.options.warmup) progress.measured_ns += progress.slowest_ns;
  ++progress.barriers;
  progress.arrived = 0;
  progress.slowest_ns = 0;
  for (Member& at : members_) at.stage = Stage::kRunning;
  return Tell(FrameType::kGo, "");
}

Status Coordinator::Job::LookForSilence(const Progress& progress) const {
  for (int32_t rank = 0; rank < options_.num_ranks; ++rank) {
    const Member& of = member(rank);
    const double silent_s = SecondsSince(of.heard);
    if (of.stage != Stage::kSettingUp && of.stage != Stage::kDone && silent_s > kSilence_s)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("{} has said nothing for {:.1f} s", NameOf(rank), silent_s));
  }
  const double quiet_s = SecondsSince(progress.moved);
  if (quiet_s < progress.options.hang_timeout_s) return {};
  constexpr int32_t kNamed = 16;
  std::string text = fmt::format("no rank has got on for {:.1f} s", quiet_s);
  for (int32_t rank = 0; rank < std::min(options_.num_ranks, kNamed); ++rank) {
    const Stage stage = member(rank).stage;
    text += fmt::format("; {} is {}", NameOf(rank),
                        stage == Stage::kSettingUp ? "setting up"
                        : stage == Stage::kRunning ? "running"
                        : stage == Stage::kArrived ? "at the barrier"
                                                   : "done");
  }
  return MakeError(ErrorCode::kPeerFailed, text);
}

Result<RunReport> Coordinator::Job::Run(const RunOptions& options) {
  double clock_error_s = 0;
  if (options.record_trace) {
    const Result<double> clocks = ReadClocks();
    if (!clocks) return Abort(clocks.error());
    clock_error_s = *clocks;
  }
  Progress progress;
  progress.options = options;
  progress.rank_times.resize(members_.size());
  progress.moved = Clock::now();
  for (Member& at : members_) {
    at.stage = Stage::kSettingUp;
    at.heard = progress.moved;
  }
  if (const Status told = Tell(FrameType::kCall, remote::ToBody({runs_++, options})); !told)
    return Abort(told.error());
  while (progress.done < options_.num_ranks) {
    Wait();
    Accept();
    if (const Status heard = HearMembers(progress); !heard) return Abort(heard.error());
    if (const Status heard = HearStrangers(); !heard) return Abort(heard.error());
    if (CancelRequested()) return Abort(CancelledError());
    if (const Status lively = LookForSilence(progress); !lively) return Abort(lively.error());
  }
  RunReport report;
  report.size_bytes = progress.size_bytes;
  report.time_s = static_cast<double>(progress.measured_ns) * 1e-9 / options.iterations;
  report.wrong = options.check ? progress.wrong : -1;
  report.digest = progress.digest;
  report.rank_times = std::move(progress.rank_times);
  report.trace = std::move(progress.trace);
  CountFromFirstStart(report.trace);
  report.clock_error_s = clock_error_s;
  FillRates(plan_->collective, SizeOf(options.type), report);
  return report;
}

// --- The coordinator ----------------------------------------------------------------------------

Coordinator::Coordinator(std::unique_ptr<Job> job) : job_(std::move(job)) {}
Coordinator::Coordinator(Coordinator&&) noexcept = default;
Coordinator& Coordinator::operator=(Coordinator&&) noexcept = default;
Coordinator::~Coordinator() = default;

const char* Coordinator::AnyHost() {
  Endpoint at{IpAddress::Any6(), 0};
  const int listener = ListenAt(at);
  if (listener >= 0) close(listener);
  return listener >= 0 ? "::" : "0.0.0.0";
}

Result<Coordinator> Coordinator::Listen(const CoordinatorOptions& options) {
  auto job = std::make_unique<Job>(options);
  if (const Status open = job->Open(); !open) return tl::unexpected(open.error());
  return Coordinator(std::move(job));
}

uint16_t Coordinator::port() const { return job_->port(); }

Status Coordinator::Gather(const std::function<Status()>& processes) {
  return job_->Gather(processes);
}

Status Coordinator::SetPlan(const Plan& plan) { return job_->SetPlan(plan); }

Result<RunReport> Coordinator::Run(const RunOptions& options) { return job_->Run(options); }

Result<int64_t> SizeThatRunsRemotely(const Plan& plan, const RunOptions& options) {
  const Result<Layout> layout = Layout::Make(plan, options);
  if (!layout) return tl::unexpected(layout.error());
  return layout->size_bytes();
}

}  // namespace tutti
