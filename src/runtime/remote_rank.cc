#include "remote_rank.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "control_link.h"
#include "remote_job.h"
#include "run.h"
#include "session.h"
#include "trial_rank.h"
#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/clock.h"
#include "tutti/base/deadline.h"
#include "tutti/lower/plan_file.h"
#include "tutti/runtime/remote.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

// The coordinator ended the job, or has been told why this rank ends it.
tl::unexpected<Error> Ended(const std::string& why) {
  return MakeError(ErrorCode::kCancelled, why);
}

class LinkToCoordinator final : public RankLink {
 public:
  explicit LinkToCoordinator(ControlLink link) : link_(std::move(link)) {}

  ControlLink& link() { return link_; }
  // While this rank waits, `transport` is polled where it has to be; null: none is.
  void SetTransport(PeerTransport* transport) {
    polled_ = transport != nullptr && !transport->moves_by_itself() ? transport : nullptr;
  }

  // The next frame but kAbort, which is an error as all is that ends the job, and kClock, which is
  // answered.
  Result<Frame> Next() {
    constexpr int kPollMs = 1;
    while (true) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      Result<std::optional<Frame>> frame =
          link_.Receive(remote::kMaxPlanBytes, polled_ != nullptr ? kPollMs : kBeatMs);
      if (!frame) return Within("coordinator", frame.error());
      Status sent;
      if (!*frame) {
        if (polled_ != nullptr) polled_->Poll(0);
        if (Clock::now() >= next_beat_) sent = SendBeat(beats_);
      } else if ((*frame)->type == FrameType::kClock) {
        const auto question = (*frame)->Words(1);
        if (!question) return Unexpected(**frame);
        sent = Send(FrameType::kClock, {question->front(), NowNs()});
      } else if ((*frame)->type == FrameType::kAbort) {
        return Ended((*frame)->body);
      } else {
        return std::move(**frame);
      }
      if (!sent) return tl::unexpected(sent.error());
    }
  }

  Status Barrier(int64_t ran_ns) override {
    if (Status sent = Send(FrameType::kArrived, {ran_ns}); !sent) return sent;
    const Result<Frame> frame = Next();
    if (!frame) return tl::unexpected(frame.error());
    if (frame->type != FrameType::kGo) return Unexpected(*frame);
    return {};
  }

  Status Beat(uint64_t beats) override {
    const Clock::time_point now = Clock::now();
    if (now < next_beat_) return {};
    beats_ = beats;
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (Status sent = SendBeat(beats); !sent) return sent;
    const Result<std::optional<Frame>> frame = link_.TryReceive(remote::kMaxPlanBytes);
    if (!frame) return Within("coordinator", frame.error());
    if (!*frame) return {};
    return (*frame)->type == FrameType::kAbort ? Ended((*frame)->body) : Unexpected(**frame);
  }

  Status Send(FrameType type, std::initializer_list<int64_t> words) {
    if (const Status sent = link_.Send(type, words); !sent)
      return Within("coordinator", sent.error());
    return {};
  }

  static tl::unexpected<Error> Unexpected(const Frame& frame) {
    return MakeError(ErrorCode::kPeerFailed, fmt::format("coordinator: a frame of type {} here",
                                                         static_cast<int>(frame.type)));
  }

 private:
  static constexpr int kBeatMs = 100;

  Status SendBeat(uint64_t beats) {
    next_beat_ = Clock::now() + std::chrono::milliseconds(kBeatMs);
    return Send(FrameType::kBeat, {static_cast<int64_t>(beats)});
  }

  ControlLink link_;
  PeerTransport* polled_ = nullptr;
  Clock::time_point next_beat_;
  uint64_t beats_ = 0;
};

class RemoteRank {
 public:
  RemoteRank(const RemoteRankOptions& options, ControlLink link, const Session::MakeTransport& make)
      : options_(options), link_(std::move(link)), make_(make) {}

  Status Serve() {
    Status served = DoAllItIsTold();
    // A launcher ends all of a job where one rank fails: the coordinator's process, which closes once it has reported why, too.
    if (!served && served.error().code == ErrorCode::kCancelled)
      link_.link().WaitForClose(remote::kTimeToReport_s);
    return served;
  }

 private:
  Status DoAllItIsTold() {
    while (true) {
      const Result<Frame> frame = link_.Next();
      if (!frame) return tl::unexpected(frame.error());
      if (frame->type == FrameType::kEnd) return {};
      if (const Status done = Do(*frame); !done) return EndBecause(done.error());
    }
  }

  Status Do(const Frame& frame) {
    if (frame.type == FrameType::kPlan) return TakePlan(frame);
    if (frame.type == FrameType::kCall) return Run(frame);
    return LinkToCoordinator::Unexpected(frame);
  }

  Status TakePlan(const Frame& frame) {
    Result<Plan> plan = PlanFromFile(frame.body);
    if (!plan) return tl::unexpected(plan.error());
    if (plan->collective.num_ranks() != options_.num_ranks)
      return InvalidArgument(fmt::format("the plan is for {} ranks, the job has {}",
                                         plan->collective.num_ranks(), options_.num_ranks));
    plan_ = std::move(*plan);
    return {};
  }

  Status Run(const Frame& frame) {
    const Result<remote::Call> call = remote::ParseCall(frame);
    if (!call) return tl::unexpected(call.error());
    if (!plan_) return InvalidArgument("a run before there is a plan");
    TcpTransport* listening = nullptr;
    const auto over_tcp = [&](uint64_t signature) -> Result<std::unique_ptr<PeerTransport>> {
      Result<std::unique_ptr<TcpTransport>> transport =
          TcpTransport::Listen(options_.rank, {.communicator = static_cast<uint64_t>(call->number),
                                               .cookie = options_.secret,
                                               .signature = signature,
                                               .address = link_.link().local().address,
                                               .patience_s = 10});
      if (!transport) return tl::unexpected(transport.error());
      listening = transport->get();
      return std::unique_ptr<PeerTransport>(std::move(*transport));
    };
    Result<Session> session =
        Session::MakeForRank(*plan_, call->options, RunMode().tuning, options_.rank,
                             make_ ? make_ : Session::MakeTransport(over_tcp));
    if (!session) return tl::unexpected(session.error());
    if (Status met = MeetOthers(*session, listening); !met) return met;
    link_.SetTransport(session->transport(options_.rank));
    TrialRank rank(*session, options_.rank, &link_);
    Status ran = rank.Run();
    if (ran && call->options.record_trace) ran = SendTrace(*session);
    link_.SetTransport(nullptr);
    if (!ran) return ran;
    const RankState& state = session->rank(options_.rank);
    return link_.Send(FrameType::kResult,
                      {state.wrong.load(), static_cast<int64_t>(state.digest.load())});
  }

  // `listening`: of this rank; null where messages go another way.
  Status MeetOthers(const Session& session, TcpTransport* listening) {
    const Endpoint own = listening != nullptr ? listening->endpoint() : Endpoint{INADDR_ANY, 0};
    const auto at = ToWords(own);
    if (Status sent =
            link_.Send(FrameType::kReady, {at[0], at[1], at[2], session.layout().size_bytes()});
        !sent)
      return sent;
    const Result<Frame> frame = link_.Next();
    if (!frame) return tl::unexpected(frame.error());
    const auto words = frame->Words(kEndpointWords * static_cast<size_t>(options_.num_ranks));
    if (frame->type != FrameType::kPeers || !words) return LinkToCoordinator::Unexpected(*frame);
    std::vector<Endpoint> endpoints;
    for (size_t i = 0; i < words->size(); i += kEndpointWords)
      endpoints.push_back(EndpointOfWords(words->data() + i));
    if (listening != nullptr) listening->SetPeers(std::move(endpoints));
    return {};
  }

  Status SendTrace(const Session& session) {
    const RunEvent* events = session.events(options_.rank);
    const int64_t count = session.rank(options_.rank).events.load();
    const auto ns = [](double seconds) { return std::llround(seconds * 1e9); };
    std::vector<int64_t> words;
    for (int64_t i = 0; i < count; ++i) {
      if (words.empty()) words.push_back(session.rank(options_.rank).began_ns.load());
      const RunEvent& event = events[i];
      words.insert(words.end(),
                   {event.stream, event.instruction, ns(event.start_s), ns(event.end_s)});
      const bool is_full = words.size() > (remote::kMaxEvents - 1) * remote::kEventWords;
      if (!is_full && i + 1 < count) continue;
      if (Status sent = link_.link().Send(FrameType::kTrace, WordsToBytes(words)); !sent)
        return Within("coordinator", sent.error());
      words.clear();
    }
    return {};
  }

  // The coordinator tells the others, and the user.
  Status EndBecause(const Error& error) {
    if (error.code == ErrorCode::kCancelled) return tl::unexpected(error);
    if (!link_.link().Send(FrameType::kFailed, error.message.substr(0, remote::kMaxTextBytes)))
      return tl::unexpected(error);
    return Ended(error.message);
  }

  RemoteRankOptions options_;
  LinkToCoordinator link_;
  Session::MakeTransport make_;  // empty: TCP
  std::optional<Plan> plan_;
};

}  // namespace

JobSecret DrawSecret() {
  JobSecret secret{};
  // Not by std::random_device: each asks the processor what it can do, which took 70 us in a virtual machine.
  TUTTI_CHECK(getrandom(secret.data(), sizeof(secret), 0) == static_cast<ssize_t>(sizeof(secret)));
  return secret;
}

std::string ToText(const JobSecret& secret) {
  return fmt::format("{:016x}{:016x}", secret[0], secret[1]);
}

Result<JobSecret> ParseSecret(std::string_view text) {
  constexpr size_t kDigits = 32;
  if (text.size() != kDigits || text.find_first_not_of("0123456789abcdef") != text.npos)
    return InvalidArgument("the secret of a job is 32 hexadecimal digits");
  const auto word = [text](size_t at) {
    return std::stoull(std::string(text.substr(at, kDigits / 2)), nullptr, 16);
  };
  return JobSecret{word(0), word(kDigits / 2)};
}

Result<ControlLink> GreetCoordinator(const RemoteRankOptions& options) {
  const auto failed = [&](const Error& error) {
    return Within(fmt::format("rank {}", options.rank), error);
  };
  Result<ControlLink> link = ControlLink::Connect(options.host, options.port, options.patience_s);
  if (!link) return failed(link.error());
  const auto word = [&](size_t i) { return static_cast<int64_t>(options.secret[i]); };
  const Status greeted =
      link->Send(FrameType::kHello, {static_cast<int64_t>(remote::kMagic), word(0), word(1),
                                     int64_t{options.rank}, int64_t{options.num_ranks}});
  if (!greeted) return failed(greeted.error());
  return link;
}

void ReportEndOfRank(RemoteRankOptions options, const std::string& why) {
  constexpr double kOneLook_s = 0.2, kToSaySo_s = 0.5;
  constexpr int kPollMs = 20;
  options.patience_s = kOneLook_s;
  Result<ControlLink> link = GreetCoordinator(options);
  if (!link || !link->Send(FrameType::kFailed, why.substr(0, remote::kMaxTextBytes))) return;
  const Deadline deadline(kToSaySo_s);
  while (!deadline.HasPassed() && !CancelRequested())
    if (!link->Receive(remote::kMaxPlanBytes, kPollMs)) return;
}

Status ServeRankOver(ControlLink link, const RemoteRankOptions& options,
                     const Session::MakeTransport& make) {
  return RemoteRank(options, std::move(link), make).Serve();
}

Status ServeRank(const RemoteRankOptions& options) {
  Result<ControlLink> link = GreetCoordinator(options);
  if (!link) return tl::unexpected(link.error());
  return ServeRankOver(std::move(*link), options, {});
}

}  // namespace tutti
