// One rank of `tutti run --transport mpi`: `tutti` under mpirun starts it in its own place, with the words of
// `tutti run-ranks` and the secret of the job on the standard input.
#include <fmt/format.h>
#include <mpi.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "mpi_transport.h"
#include "remote_job.h"
#include "remote_rank.h"
#include "tutti/base/host_port.h"

namespace tutti {
namespace {

constexpr int kWrongInput = 2;

int Complain(const std::string& what) {
  fmt::print(stderr, "tutti: error: {}\n", what);
  return kWrongInput;
}

template <class Number>
bool Parse(std::string_view text, Number& number) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && at == text.data() + text.size();
}

// While all ranks have to come to a call of MPI and nobody would say that one has ended: it waits for ever in either library.
constexpr unsigned kPatience_s = 45;
void EndOfPatience(int) {
  constexpr std::string_view kWhy =
      "tutti: error: MPI waits for another rank, which has ended or does not come\n";
  if (write(STDERR_FILENO, kWhy.data(), kWhy.size()) < 0) _exit(kWrongInput);
  _exit(kWrongInput);
}

// Nothing: they are not the words that `tutti run` gives.
std::optional<RemoteRankOptions> OptionsOf(int argc, char** argv) {
  RemoteRankOptions options;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i], value = argv[i + 1];
    if (name == "--root") {
      const std::optional<HostPort> root = ParseHostPort(value);
      if (!root || !root->port) return std::nullopt;
      options.host = root->host;
      options.port = *root->port;
    } else if ((name == "--ranks" && !Parse(value, options.num_ranks)) ||
               (name == "--first" && !Parse(value, options.rank))) {
      return std::nullopt;
    }
  }
  if (argc < 2 || std::string_view(argv[1]) != "run-ranks" || options.host.empty())
    return std::nullopt;
  return options;
}

// While this rank waits in MPI for others: where the coordinator ends, because one of them has, so does this process. MPICH's
// launcher does not see every rank end that has not come to MPI_Init().
class CoordinatorWatch {
 public:
  explicit CoordinatorWatch(ControlLink& link) : thread_([this, &link] { Watch(link); }) {}
  CoordinatorWatch(const CoordinatorWatch&) = delete;
  CoordinatorWatch& operator=(const CoordinatorWatch&) = delete;
  ~CoordinatorWatch() {
    is_over_ = true;
    thread_.join();
  }

 private:
  void Watch(ControlLink& link) {
    constexpr int kLookMs = 20;
    pollfd fd{.fd = link.fd(), .events = POLLRDHUP, .revents = 0};
    while (!is_over_) {
      if (poll(&fd, 1, kLookMs) <= 0) continue;
      bool told_why = false;
      link.Drain(remote::kMaxPlanBytes, [&](const Frame& frame) {
        told_why = told_why || frame.type == FrameType::kAbort || frame.type == FrameType::kEnd;
      });
      // What the coordinator knows, or refuses, it has said before it closes.
      if (!told_why) Complain("the first rank has ended before all had come to MPI");
      _exit(kWrongInput);
    }
  }

  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

// Waits until there is something to do: all ranks are there by then. MPI is not started before: where a job ends that has not
// begun, its ranks would end within MPI_Init(), and one that ends while it holds a lock of PMIx makes the launcher of Open MPI
// wait for ever.
bool IsGivenAPlan(ControlLink& link) {
  constexpr int kLookMs = 1000;
  while (true) {
    const Result<std::optional<Frame>> frame = link.Receive(remote::kMaxPlanBytes, kLookMs);
    if (!frame) return false;
    if (!*frame) continue;
    link.PutBack(**frame);
    return (*frame)->type == FrameType::kPlan;
  }
}

int CodeOf(const Status& served) {
  if (served) return 0;
  // What the coordinator knows already it says.
  if (served.error().code != ErrorCode::kCancelled) Complain(served.error().message);
  return kWrongInput;
}

// `watch` is of `link`, and ends once all ranks are there.
int Serve(ControlLink& link, std::unique_ptr<CoordinatorWatch> watch,
          const RemoteRankOptions& options) {
  int rank = -1, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank != options.rank || ranks != options.num_ranks)
    return Complain(fmt::format("MPI says that this is rank {} of {}, its launcher rank {} of {}",
                                rank, ranks, options.rank, options.num_ranks));
  MPI_Comm own = MPI_COMM_NULL;
  if (MPI_Comm_dup(MPI_COMM_WORLD, &own) != MPI_SUCCESS)
    return Complain("MPI gives no communicator");
  alarm(0);  // from now on the coordinator looks after this rank
  watch.reset();
  const Status served =
      ServeRankOver(std::move(link), options,
                    [own, rank](uint64_t signature) -> Result<std::unique_ptr<PeerTransport>> {
                      auto made = MpiTransport::Make(own, rank, signature);
                      if (!made) return tl::unexpected(made.error());
                      return std::unique_ptr<PeerTransport>(std::move(*made));
                    });
  MPI_Comm_free(&own);
  return CodeOf(served);
}

int Main(int argc, char** argv) {
  std::optional<RemoteRankOptions> options = OptionsOf(argc, argv);
  if (!options) return Complain("this program is started by `tutti run --transport mpi`");
  std::string text;
  std::getline(std::cin, text);
  const Result<JobSecret> secret = ParseSecret(text);
  if (!secret) return Complain("standard input: " + secret.error().message);
  options->secret = *secret;
  // Who started it may be killed while it waits for the others.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Result<ControlLink> link = GreetCoordinator(*options);
  if (!link) return Complain(link.error().message);
  // Why there is none the coordinator says.
  if (!IsGivenAPlan(*link)) return CodeOf(ServeRankOver(std::move(*link), *options, {}));
  std::signal(SIGALRM, EndOfPatience);
  alarm(kPatience_s);
  auto watch = std::make_unique<CoordinatorWatch>(*link);
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return Complain("MPI does not start");
  const int code = Serve(*link, std::move(watch), *options);
  alarm(kPatience_s);
  // Ranks that failed do not wait for each other: some have ended.
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
