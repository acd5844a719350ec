#include "supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "futex.h"
#include "trial_rank.h"
#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/clock.h"

namespace tutti {
namespace {

constexpr int64_t kTickNs = 20'000'000;  // how long a death may go unnoticed

std::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kPreparing:
      return "filling its buffers";
    case Phase::kRunning:
      return "running";
    case Phase::kDraining:
      return "waiting for its last sends";
    case Phase::kAtBarrier:
      return "at the barrier";
    case Phase::kChecking:
      return "checking its result";
    case Phase::kFinished:
      break;
  }
  return "finished";
}

std::string Describe(const Plan& plan, int32_t rank, size_t stream, size_t instruction) {
  const Stream& in = plan.ranks[static_cast<size_t>(rank)].streams[stream];
  const std::string at = fmt::format("stream {} instruction {}", stream, instruction);
  switch (in.instructions[instruction].op) {
    case OpCode::kSend:
      return fmt::format("{} (send to rank {})", at, in.send_peer);
    case OpCode::kRecv:
    case OpCode::kRecvReduce:
      return fmt::format("{} (receive from rank {})", at, in.recv_peer);
    case OpCode::kCopy:
      break;
  }
  return at + " (copy)";
}

// Where a rank stands, for the message of a run that does not get on.
std::string Standing(const Session& session, int32_t rank) {
  const Phase phase = session.rank(rank).phase.load();
  if (phase != Phase::kRunning) return fmt::format("rank {} is {}", rank, Name(phase));
  const bool asleep = session.rank(rank).waiting.load() != WaitsFor::kNo;
  std::string text;
  const auto& streams = session.program().ranks[static_cast<size_t>(rank)].streams;
  const auto tiles = static_cast<uint64_t>(session.program().tiles);
  uint64_t lowest = UINT64_MAX;
  for (size_t s = 0; s < streams.size(); ++s) {
    if (streams[s].num_steps == 0) continue;
    const auto steps = static_cast<uint64_t>(streams[s].num_steps);
    const uint64_t executed = session.executed(rank, static_cast<int32_t>(s)).load();
    const uint64_t pass = executed / steps;
    if (executed % steps == 0 && pass % tiles == 0 && pass > 0 && pass > lowest) continue;
    lowest = std::min(lowest, pass);
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        Describe(session.plan(), rank, s, executed % steps));
  }
  return fmt::format("rank {} {} at {}", rank, asleep ? "waits" : "is", text);
}

class Children {
 public:
  explicit Children(const Session& session) : session_(session) {
    for (int32_t rank = 0; rank < session.num_ranks(); ++rank) runners_.emplace_back(session, rank);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() { KillAll(); }

  Status Start();
  // Returns when all ranks have finished or the run cannot go on.
  Status Watch();

 private:
  [[noreturn]] void RunChild(int32_t rank, pid_t parent);
  void KillAll();
  // The fault, if rank's process has ended before it finished.
  Status LookAt(int32_t rank);
  Status LookAtProgress();

  const Session& session_;
  std::deque<TrialRank> runners_;
  std::vector<pid_t> pids_;  // 0 once reaped
  uint64_t beats_ = 0;
  int64_t last_beat_ns_ = 0;
};

void Children::RunChild(int32_t rank, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent decides what an interrupt means; `timeout` sends its signal to all of a group.
  for (const int interrupt : {SIGINT, SIGTERM, SIGHUP}) signal(interrupt, SIG_IGN);
  if (getppid() != parent) _exit(0);
  const Status ran = runners_[static_cast<size_t>(rank)].Run();
  if (ran) _exit(0);
  session_.NoteFault(rank, ran.error());
  _exit(1);
}

Status Children::Start() {
  const pid_t parent = getpid();
  for (int32_t rank = 0; rank < session_.num_ranks(); ++rank) {
    const pid_t pid = fork();
    if (pid == 0) RunChild(rank, parent);
    if (pid < 0)
      return MakeError(
          ErrorCode::kResourceExhausted,
          fmt::format("cannot start a process for rank {}: {}", rank, std::strerror(errno)));
    pids_.push_back(pid);
  }
  return {};
}

void Children::KillAll() {
  for (const pid_t pid : pids_)
    if (pid > 0) kill(pid, SIGKILL);
  for (pid_t& pid : pids_) {
    while (pid > 0 && waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    pid = 0;
  }
}

Status Children::LookAt(int32_t rank) {
  pid_t& pid = pids_[static_cast<size_t>(rank)];
  if (pid == 0) return {};
  int status = 0;
  const pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return {};
  pid = 0;
  if (session_.rank(rank).phase.load() == Phase::kFinished) return {};
  if (const char* fault = session_.rank(rank).fault.data(); *fault != 0)
    return MakeError(ErrorCode::kPeerFailed, fmt::format("rank {}: {}", rank, fault));
  uint64_t executed = 0;
  const auto& streams = session_.program().ranks[static_cast<size_t>(rank)].streams;
  for (size_t s = 0; s < streams.size(); ++s)
    executed += session_.executed(rank, static_cast<int32_t>(s)).load();
  std::string how = "ended";
  if (ended > 0 && WIFSIGNALED(status))
    how =
        fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else if (ended > 0)
    how = fmt::format("ended with status {}", WEXITSTATUS(status));
  return MakeError(ErrorCode::kPeerFailed,
                   fmt::format("rank {} {} after {} instructions", rank, how, executed));
}

Status Children::LookAtProgress() {
  uint64_t beats = 0;
  for (int32_t rank = 0; rank < session_.num_ranks(); ++rank)
    beats += session_.rank(rank).beats.load();
  const int64_t now = NowNs();
  if (beats != beats_ || last_beat_ns_ == 0) {
    beats_ = beats;
    last_beat_ns_ = now;
    return {};
  }
  const double quiet_s = static_cast<double>(now - last_beat_ns_) * 1e-9;
  if (quiet_s < session_.options().hang_timeout_s) return {};
  constexpr int32_t kNamed = 16;
  std::string text = fmt::format("no rank has got on for {:.1f} s", quiet_s);
  for (int32_t rank = 0; rank < std::min(session_.num_ranks(), kNamed); ++rank)
    text += "; " + Standing(session_, rank);
  return MakeError(ErrorCode::kPeerFailed, text);
}

Status Children::Watch() {
  std::atomic<uint32_t>& finished = session_.control().finished;
  const auto all = static_cast<uint32_t>(session_.num_ranks());
  for (uint32_t seen = finished.load(); seen < all; seen = finished.load()) {
    FutexWait(finished, seen, kTickNs);
    if (CancelRequested()) return tl::unexpected(CancelledError());
    for (int32_t rank = 0; rank < session_.num_ranks(); ++rank) {
      const Status alive = LookAt(rank);
      if (!alive) return alive;
    }
    const Status moving = LookAtProgress();
    if (!moving) return moving;
  }
  return {};
}

}  // namespace

Status RunAsProcesses(const Session& session) {
  Children children(session);
  const Status started = children.Start();
  return started ? children.Watch() : started;
}

void RunAsThreads(const Session& session) {
  std::deque<TrialRank> runners;
  for (int32_t rank = 0; rank < session.num_ranks(); ++rank) runners.emplace_back(session, rank);
  std::vector<std::thread> threads;
  for (TrialRank& runner : runners)
    threads.emplace_back([&runner] { TUTTI_CHECK(runner.Run().has_value()); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti
