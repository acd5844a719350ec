// tutti run between hosts; tutti run-ranks
#include "run_remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>
#include <utility>

#include "common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/host_port.h"
#include "tutti/base/process.h"

namespace tutti::cli {
namespace {

constexpr uint16_t kDefaultPort = 21357;
constexpr double kTimeToEnd_s = 2;
constexpr double kLateRanks_s = 0.7;
constexpr std::chrono::milliseconds kTimeToBeRead{100};
constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kLoopback6 = "::1";

struct Root {
  std::string host;
  uint16_t port = 0;  // 0: not given
};

Result<Root> ParseRoot(const std::string& text) {
  const std::optional<HostPort> parsed = ParseHostPort(text);
  if (!parsed)
    return InvalidArgument(fmt::format(
        "--root '{}', wanted HOST or HOST:PORT, an address of IP version 6 in brackets", text));
  return Root{parsed->host, parsed->port.value_or(0)};
}

Result<std::optional<JobRank>> FindJobOfProcess() {
  return FindJob([](const char* name) { return std::getenv(name); });
}

// Where the ranks of a launcher's job meet.
Result<Root> RootOf(const JobRank& job, const RemoteFlags& flags) {
  if (flags.root.empty() && job.root_host.empty())
    return InvalidArgument(
        fmt::format("{} does not say on which host rank 0 is: give --root HOST", job.launcher));
  Root root{job.root_host, job.Port()};
  if (flags.root.empty()) return root;
  Result<Root> given = ParseRoot(flags.root);
  if (given && given->port == 0) given->port = kDefaultPort;
  return given;
}

// From TUTTI_SECRET, else what all ranks know; which is none before who can read it, too.
Result<JobSecret> SecretOf(const JobRank& job) {
  constexpr const char* kName = "TUTTI_SECRET";
  if (const char* text = std::getenv(kName)) {
    Result<JobSecret> secret = ParseSecret(text);
    if (!secret) return Within(kName, secret.error());
    return secret;
  }
  return JobSecret{job.identity, ~job.identity};
}

// When a rank has ended: what the coordinator said of it, the first process says.
int ExitCodeOf(const Status& served) {
  if (served) return kDone;
  return served.error().code == ErrorCode::kCancelled ? kBadInput : Report(served.error());
}

std::string ThisProgram() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "tutti" : path.string();
}

// Where its ranks are programs of an MPI library: which one's.
Result<std::string> MpiOf(const JobRank& job) {
  if (job.launcher == "Open MPI") return "openmpi";
  if (job.launcher == "Hydra") return "mpich";
  return InvalidArgument(
      fmt::format("--transport mpi is for ranks that mpirun of Open MPI or MPICH started, and {} "
                  "started these",
                  job.launcher));
}

// The program of one rank.
Result<std::string> RankProgram(const JobRank& job, Transport transport) {
  if (transport != Transport::kMpi) return ThisProgram();
  const Result<std::string> mpi = MpiOf(job);
  if (!mpi) return tl::unexpected(mpi.error());
  return FindProgram("tutti-mpi-rank-" + *mpi, "build it with -DTUTTI_MPI=ON");
}

void PrintLine(const std::string& host, std::string_view line) {
  if (CancelRequested()) return;  // who is ended because of it says so, too
  fmt::print(stderr, "{}: {}\n", host, line);
}

// The command of `count` ranks from `first` on, after the program.
std::vector<std::string> RankWords(const std::string& root, int32_t ranks, int32_t first,
                                   int32_t count) {
  return {"run-ranks",
          "--root",
          root,
          "--ranks",
          std::to_string(ranks),
          "--first",
          std::to_string(first),
          "--count",
          std::to_string(count)};
}

std::vector<std::string> Joined(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

void AddRemoteFlags(Command& command, RemoteFlags& flags) {
  command.AddOption(
      "--hosts", flags.hosts,
      "Hosts and how many ranks each has, h0:2,h1:2; an address of IP version 6 in brackets");
  command
      .AddOption("--launch", flags.launch,
                 "Command that starts a program on a host, {host} in place of its name; "
                 "\"localhost\" needs none")
      .ShowDefault();
  command.AddOption("--root", flags.root,
                    "Address at which all ranks reach the first one, HOST or HOST:PORT; found out "
                    "where it is not given");
  command.AddOption("--remote-tutti", flags.program,
                    "This program on the other hosts; default: at the same path as here");
  command
      .AddOption(
          "--timeout", flags.timeout_s,
          "Seconds that ranks may take to start, or to do nothing before the run is given up")
      .ShowDefault()
      .WithinReal(0.1, 1e6);
}

namespace {

// This rank as a process of an MPI library's, to its end.
int RunMpiRank(const JobRank& job, const Root& root, const JobSecret& secret) {
  const Result<std::string> program = RankProgram(job, Transport::kMpi);
  if (!program) return Report(program.error());
  HostProcesses process(
      [](const std::string&, std::string_view line) { fmt::print(stderr, "{}\n", line); });
  process.Start(
      fmt::format("rank {}", job.rank),
      Joined({*program}, RankWords(HostPortText(root.host, root.port), job.num_ranks, job.rank, 1)),
      ToText(secret));
  process.Wait();
  const Status ended = process.health();
  // What fails otherwise says why itself, or the first rank does.
  if (!process.was_killed() || CancelRequested()) return ended ? kDone : kBadInput;
  // At once: where MPI fails in another rank because this one has ended, its launcher ends all processes.
  const int code = Report(ended.error());
  ReportEndOfRank({.host = root.host,
                   .port = root.port,
                   .rank = job.rank,
                   .num_ranks = job.num_ranks,
                   .secret = secret},
                  ended.error().message);
  return code;
}

}  // namespace

std::optional<int> ServeIfNotFirst(const RemoteFlags& flags, const std::string& transport) {
  const Result<Transport> by = ParseTransport(transport);
  if (!by || !flags.hosts.empty()) return std::nullopt;
  const Result<std::optional<JobRank>> job = FindJobOfProcess();
  if (!job) return Report(job.error());
  if (!*job || (*job)->rank == 0) return std::nullopt;
  // A launcher that ends its ranks would have each of them say so.
  LeaveInterruptionToOthers();
  // The first rank starts processes for all of them.
  if (*by == Transport::kShared) return (*job)->one_host ? kDone : kBadInput;
  const Result<Root> root = RootOf(**job, flags);
  if (!root) return Report(root.error());
  const Result<JobSecret> secret = SecretOf(**job);
  if (!secret) return Report(secret.error());
  if (*by == Transport::kMpi) return RunMpiRank(**job, *root, *secret);
  return ExitCodeOf(ServeRank({.host = root->host,
                               .port = root->port,
                               .rank = (*job)->rank,
                               .num_ranks = (*job)->num_ranks,
                               .secret = *secret,
                               .patience_s = flags.timeout_s}));
}

RemoteRanks::RemoteRanks(const RemoteFlags& flags, Transport transport, int32_t num_ranks)
    : flags_(flags), transport_(transport), num_ranks_(num_ranks), processes_(PrintLine) {}

// Ranks that share memory and were started by a launcher: one process starts them all.
Status RemoteRanks::CheckLocal(int32_t num_ranks) {
  const Result<std::optional<JobRank>> job = FindJobOfProcess();
  if (!job) return tl::unexpected(job.error());
  if (!*job || (*job)->num_ranks == 1) return {};
  if (!(*job)->one_host)
    return InvalidArgument(
        fmt::format("the ranks that {} started are on several hosts and share no "
                    "memory: give --transport tcp or mpi",
                    (*job)->launcher));
  if (num_ranks != 0 && (*job)->num_ranks != num_ranks)
    return InvalidArgument(fmt::format("the plan is for {} ranks, {} started {}", num_ranks,
                                       (*job)->launcher, (*job)->num_ranks));
  return {};
}

RemoteRanks::~RemoteRanks() {
  // The ranks end now, and a launcher that sees one fail does not read on what this process has just printed.
  if (job_ && failed_) std::this_thread::sleep_for(kTimeToBeRead);
  coordinator_.reset();  // which ends the ranks
  processes_.Finish(kTimeToEnd_s);
}

Result<std::unique_ptr<RemoteRanks>> RemoteRanks::Plan(const RemoteFlags& flags,
                                                       Transport transport, int32_t num_ranks) {
  if (transport != Transport::kTcp && !flags.hosts.empty())
    return InvalidArgument("--hosts needs --transport tcp");
  if (transport == Transport::kShared) {
    if (Status local = CheckLocal(num_ranks); !local) return tl::unexpected(local.error());
    return nullptr;
  }
  std::unique_ptr<RemoteRanks> ranks(new RemoteRanks(flags, transport, num_ranks));
  if (!flags.hosts.empty()) {
    Result<std::vector<HostRanks>> hosts = PlaceOnHosts(flags.hosts, num_ranks);
    if (!hosts) return Within("--hosts", hosts.error());
    ranks->hosts_ = std::move(*hosts);
    ranks->num_ranks_ = ranks->hosts_.back().first + ranks->hosts_.back().count;
    ranks->secret_ = DrawSecret();
    if (flags.root.empty()) return ranks;
    const Result<Root> root = ParseRoot(flags.root);
    if (!root) return tl::unexpected(root.error());
    ranks->root_host_ = root->host;
    ranks->root_port_ = root->port;
    return ranks;
  }
  Result<std::optional<JobRank>> job = FindJobOfProcess();
  if (!job) return tl::unexpected(job.error());
  if (!*job && transport == Transport::kMpi)
    return InvalidArgument(
        "--transport mpi is for ranks that mpirun starts: mpirun -np 4 tutti run ...");
  if (!*job) return nullptr;
  if (num_ranks == 0) ranks->num_ranks_ = (*job)->num_ranks;
  if ((*job)->num_ranks != ranks->num_ranks_)
    return InvalidArgument(fmt::format("the plan is for {} ranks, {} started {}", num_ranks,
                                       (*job)->launcher, (*job)->num_ranks));
  const Result<Root> root = RootOf(**job, flags);
  if (!root) return tl::unexpected(root.error());
  const Result<JobSecret> secret = SecretOf(**job);
  if (!secret) return tl::unexpected(secret.error());
  ranks->root_host_ = root->host;
  ranks->root_port_ = root->port;
  ranks->secret_ = *secret;
  ranks->job_ = std::move(**job);
  return ranks;
}

std::string RemoteRanks::where() const {
  if (job_) return "ranks of " + job_->launcher;
  return fmt::format("ranks on {} host{}", hosts_.size(), hosts_.size() == 1 ? "" : "s");
}

Status RemoteRanks::StartHosts(uint16_t port) {
  const auto far = std::find_if(hosts_.begin(), hosts_.end(),
                                [](const HostRanks& host) { return !host.is_local(); });
  for (const HostRanks& host : hosts_) {
    std::string root = root_host_;
    if (root.empty() && far == hosts_.end()) root = kLoopback;
    if (root.empty()) {
      // A rank on this host is to be reached from the others, too.
      const Result<std::string> address = AddressTowards((host.is_local() ? *far : host).host);
      if (!address) return tl::unexpected(address.error());
      root = *address;
    }
    std::vector<std::string> words;
    if (!host.is_local()) words = LaunchWords(flags_.launch, host.host);
    words.push_back(host.is_local() || flags_.program.empty() ? ThisProgram() : flags_.program);
    processes_.Start(host.host,
                     Joined(std::move(words), RankWords(HostPortText(root, port), num_ranks_,
                                                        host.first, host.count)),
                     ToText(secret_));
  }
  return {};
}

Status RemoteRanks::StartFirst(uint16_t port) {
  const Result<std::string> program = RankProgram(*job_, transport_);
  if (!program) return tl::unexpected(program.error());
  processes_.Start("rank 0",
                   Joined({*program}, RankWords(HostPortText(root_host_, port), num_ranks_, 0, 1)),
                   ToText(secret_));
  return {};
}

template <class Outcome>
Outcome RemoteRanks::Noted(Outcome outcome) {
  failed_ = failed_ || !outcome;
  return outcome;
}

Status RemoteRanks::Start() { return Noted(StartAndGather()); }

Status RemoteRanks::StartAndGather() {
  const bool all_local =
      job_ ? root_host_ == kLoopback || root_host_ == kLoopback6
           : root_host_.empty() && std::all_of(hosts_.begin(), hosts_.end(),
                                               [](const HostRanks& h) { return h.is_local(); });
  Result<Coordinator> coordinator = Coordinator::Listen({.host = !all_local ? Coordinator::AnyHost()
                                                                 : root_host_.empty() ? kLoopback
                                                                                      : root_host_,
                                                         .port = root_port_,
                                                         .num_ranks = num_ranks_,
                                                         .secret = secret_,
                                                         .patience_s = flags_.timeout_s,
                                                         .late_ranks_s = job_ ? kLateRanks_s : 0});
  if (!coordinator) return tl::unexpected(coordinator.error());
  coordinator_ = std::move(*coordinator);
  const uint16_t port = coordinator_->port();
  if (Status started = job_ ? StartFirst(port) : StartHosts(port); !started) return started;
  return coordinator_->Gather([this] { return processes_.health(); });
}

int ReportForAllRanks(const RemoteFlags& flags, Transport transport, const Error& error) {
  const int code = Report(error);
  if (!flags.hosts.empty()) return code;
  // Of MPI the others come only where the first one does: all start, and are ended at once.
  LeaveInterruptionToOthers();  // a launcher ends this one where another is sooner
  if (const auto ranks = RemoteRanks::Plan(flags, transport, 0); ranks && *ranks != nullptr)
    (void)(*ranks)->Start();
  return code;
}

Status RemoteRanks::SetPlan(const tutti::Plan& plan) { return Noted(coordinator_->SetPlan(plan)); }

Result<RunReport> RemoteRanks::Run(const RunOptions& options) {
  return Noted(coordinator_->Run(options));
}

// --- tutti run-ranks ----------------------------------------------------------------------------

namespace {

struct RankFlags {
  std::string root;
  int32_t ranks = 1, first = 0, count = 1;
};

int RunRanks(const RankFlags& flags) {
  const Result<Root> root = ParseRoot(flags.root);
  if (!root) return Report(root.error());
  if (root->port == 0) return Report({ErrorCode::kInvalidArgument, "--root needs a port"});
  if (flags.first + flags.count > flags.ranks)
    return Report(
        {ErrorCode::kInvalidArgument, fmt::format("--first {} --count {}: there are {} ranks",
                                                  flags.first, flags.count, flags.ranks)});
  std::string text;
  std::getline(std::cin, text);
  const Result<JobSecret> secret = ParseSecret(text);
  if (!secret) return Report({secret.error().code, "standard input: " + secret.error().message});
  if (flags.count == 1)
    return ExitCodeOf(ServeRank({.host = root->host,
                                 .port = root->port,
                                 .rank = flags.first,
                                 .num_ranks = flags.ranks,
                                 .secret = *secret}));
  HostProcesses ranks(
      [](const std::string&, std::string_view line) { fmt::print(stderr, "{}\n", line); });
  for (int32_t rank = flags.first; rank < flags.first + flags.count; ++rank)
    ranks.Start(fmt::format("rank {}", rank),
                Joined({ThisProgram()}, RankWords(flags.root, flags.ranks, rank, 1)), text);
  ranks.Wait();
  return ranks.health() ? kDone : kBadInput;
}

}  // namespace

void AddRunRanks(Program& program) {
  auto flags = std::make_shared<RankFlags>();
  Command command = program.AddCommand(
      program.line.root(), "run-ranks",
      "Be ranks of a `tutti run --hosts`, which starts it on each host and hands it a secret",
      "tutti run-ranks --root 10.0.0.1:21357 --ranks 4 --first 2 --count 2");
  command.AddOption("--root", flags->root, "Where that run listens, HOST:PORT").Required();
  command.AddOption("--ranks", flags->ranks, "Ranks of the run").Required().Within(1, 1 << 24);
  command.AddOption("--first", flags->first, "First rank to be").Required().Within(0, 1 << 24);
  command.AddOption("--count", flags->count, "How many ranks from there on")
      .ShowDefault()
      .Within(1, 1 << 20);
  command.Runs([flags] { return RunRanks(*flags); });
}

}  // namespace tutti::cli
