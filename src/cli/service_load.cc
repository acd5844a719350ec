#include "service_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common.h"
#include "service_answer.h"
#include "tutti/base/cancel.h"
#include "tutti/base/estimate.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/communicator.h"
#include "tutti/service/daemon.h"
#include "tutti/tutti.h"

namespace tutti::cli {
namespace {

struct ServiceLoadFlags {
  std::string socket, collective = "all-reduce", size = "1MiB", id_file, output, until;
  std::vector<int32_t> here;
  int32_t ranks = 2, iterations = 10, warm = 1;
  double compute_ms = 0, seconds = 0;
};

// When a collective began and ended, in seconds of the clock that hosts share.
struct Iteration {
  double begin_s = 0, end_s = 0;
};

double RealSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Load {
 public:
  Load(const ServiceLoadFlags& flags, int64_t bytes, CollectiveKind kind, Communicator& ranks)
      : flags_(flags),
        count_(std::max<int64_t>(1, bytes / static_cast<int64_t>(sizeof(float)))),
        kind_(kind),
        ranks_(ranks) {}
  ~Load() { tuttiMemFree(data_); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  Result<std::vector<Iteration>> Run() {
    // Memory that the service sees: nothing is copied to and fro.
    const auto bytes = static_cast<size_t>(count_) * sizeof(float);
    if (tuttiMemAlloc(&data_, bytes) != tuttiSuccess)
      return MakeError(ErrorCode::kResourceExhausted, tuttiGetLastError(nullptr));
    std::vector<Iteration> iterations;
    for (int32_t i = -flags_.warm;; ++i) {
      const Result<bool> goes_on = GoesOn(i);
      if (!goes_on) return tl::unexpected(goes_on.error());
      if (!*goes_on) return iterations;
      Fill();
      Iteration iteration{.begin_s = RealSeconds()};
      if (const Status done = Call(); !done) return tl::unexpected(done.error());
      iteration.end_s = RealSeconds();
      if (!IsRight()) return MakeError(ErrorCode::kCorrupt, "a result is wrong");
      if (i >= 0) iterations.push_back(iteration);
      if (flags_.compute_ms > 0)
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(flags_.compute_ms));
    }
  }

 private:
  float* data() const { return static_cast<float*>(data_); }

  // All ranks have to say the same: where time limits, rank 0 says, and for how many iterations that holds, so that few of
  // them wait for its word.
  Result<bool> GoesOn(int32_t iteration) {
    if (flags_.seconds <= 0 && flags_.until.empty())
      return iteration < flags_.iterations && !CancelRequested();
    if (iteration < next_word_) return true;
    const double now_s = RealSeconds();
    if (iteration == 0) until_s_ = now_s + flags_.seconds;
    const bool is_over =
        flags_.until.empty() ? now_s >= until_s_ : std::filesystem::exists(flags_.until);
    int32_t more = is_over || CancelRequested() ? 0 : Within(now_s - word_s_, iteration - word_);
    if (const Status told = ranks_.Broadcast(&more, &more, 1, DataType::kInt32, 0); !told)
      return tl::unexpected(told.error());
    word_ = iteration;
    word_s_ = now_s;
    next_word_ = iteration + more;
    return more > 0;
  }
  // Iterations that take about a quarter of a second, as so many took `seconds`.
  static int32_t Within(double seconds, int32_t iterations) {
    constexpr double kSeconds = 0.25, kMost = 64;
    return iterations == 0 || seconds <= 0
               ? 1
               : static_cast<int32_t>(std::clamp(kSeconds * iterations / seconds, 1.0, kMost));
  }
  int64_t shard() const { return count_ / ranks_.num_ranks(); }
  // A few elements that tell a wrong result.
  void Fill() {
    if (kind_ == CollectiveKind::kAllReduce) {
      data()[0] = data()[count_ - 1] = 1;
    } else {
      data()[shard() * ranks_.rank()] = static_cast<float>(ranks_.rank() + 1);
    }
  }
  bool IsRight() const {
    if (kind_ == CollectiveKind::kAllReduce) {
      const auto sum = static_cast<float>(ranks_.num_ranks());
      return data()[0] == sum && data()[count_ - 1] == sum;
    }
    for (int32_t rank = 0; rank < ranks_.num_ranks(); ++rank)
      if (data()[shard() * rank] != static_cast<float>(rank + 1)) return false;
    return true;
  }
  Status Call() {
    if (kind_ == CollectiveKind::kAllReduce)
      return ranks_.AllReduce(data(), data(), count_, DataType::kFloat32, ReduceOp::kSum);
    return ranks_.AllGather(data() + shard() * ranks_.rank(), data(), shard(), DataType::kFloat32);
  }

  const ServiceLoadFlags& flags_;
  int64_t count_;
  CollectiveKind kind_;
  Communicator& ranks_;
  void* data_ = nullptr;
  double until_s_ = 0;
  int32_t word_ = 0,
          next_word_ = 0;  // iterations of rank 0's last and next word on whether it goes on
  double word_s_ = 0;      // when the last was
};

Result<std::vector<Iteration>> RunRank(const ServiceLoadFlags& flags, int64_t bytes,
                                       CollectiveKind kind, const UniqueId& id, int32_t rank) {
  constexpr double kPatience_s = 60;
  Result<Communicator> joined = Communicator::Join(
      id, flags.ranks, rank, {.timeout_s = kPatience_s, .service = flags.socket});
  if (!joined) return tl::unexpected(joined.error());
  return Load(flags, bytes, kind, *joined).Run();
}

double BusFactor(CollectiveKind kind, int32_t ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  return kind == CollectiveKind::kAllReduce ? 2 * share : share;
}

Json JsonOf(const ServiceLoadFlags& flags, int64_t bytes, CollectiveKind kind,
            const std::vector<Iteration>& iterations) {
  Json json{{"collective", flags.collective}, {"ranks", flags.ranks}, {"bytes", bytes}};
  std::vector<double> seconds;
  json["iterations"] = Json::array();
  for (const Iteration& iteration : iterations) {
    json["iterations"].push_back({iteration.begin_s, iteration.end_s});
    seconds.push_back(iteration.end_s - iteration.begin_s);
  }
  json["seconds"] = MedianOf(seconds);
  json["busbw"] = seconds.empty() ? 0
                                  : BusFactor(kind, flags.ranks) * static_cast<double>(bytes) /
                                        MedianOf(seconds);
  return json;
}

int Run(const Program& program, ServiceLoadFlags flags) {
  const Result<int64_t> bytes = ParseSizeBytes(flags.size);
  if (!bytes) return Report({bytes.error().code, "--size: " + bytes.error().message});
  const Result<CollectiveKind> kind = TimedCollective(flags.collective);
  if (!kind) return Report(kind.error());
  if (flags.here.empty())
    for (int32_t rank = 0; rank < flags.ranks; ++rank) flags.here.push_back(rank);
  for (const int32_t rank : flags.here)
    if (rank < 0 || rank >= flags.ranks)
      return Report({ErrorCode::kInvalidArgument,
                     fmt::format("--here: there is no rank {} of {}", rank, flags.ranks)});
  if (flags.here.size() < static_cast<size_t>(flags.ranks) && flags.id_file.empty())
    return Report({ErrorCode::kInvalidArgument, "--id: needed where ranks are elsewhere, too"});
  if (flags.socket.empty()) flags.socket = service::DefaultFolder() + "/tuttid.sock";
  setenv("TUTTI_SERVICE", flags.socket.c_str(), 1);  // also for the memory that it gives
  constexpr double kPatience_s = 60;
  const Result<UniqueId> id =
      flags.id_file.empty()
          ? MakeUniqueId(flags.socket)
          : ShareUniqueIdByFile(flags.id_file,
                                *std::min_element(flags.here.begin(), flags.here.end()),
                                kPatience_s);
  if (!id) return Report(id.error());
  std::vector<std::optional<Result<std::vector<Iteration>>>> answers(flags.here.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < flags.here.size(); ++i)
    threads.emplace_back(
        [&, i] { answers[i] = RunRank(flags, *bytes, *kind, *id, flags.here[i]); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& answer : answers)
    if (!*answer) return Report(answer->error());
  const Json json = JsonOf(flags, *bytes, *kind, **answers.front());
  if (!flags.output.empty())
    if (const Status written = WriteFileAtomically(flags.output, json.dump() + "\n"); !written)
      return Report(written.error());
  if (program.json)
    Print(json);
  else
    fmt::print("{} of {} B by {} ranks: {} (median of {}), busbw {}\n", flags.collective,
               Count(*bytes), flags.ranks, Seconds(json["seconds"].get<double>()),
               (*answers.front())->size(), BytesPerSecond(json["busbw"].get<double>()));
  return kDone;
}

}  // namespace

void AddServiceLoad(Program& program, Command service) {
  auto flags = std::make_shared<ServiceLoadFlags>();
  Command command = program.AddCommand(
      service, "load",
      "Ranks of a tenant that communicate and compute in turn, as a training job does",
      "tutti service load --ranks 4 --size 64MiB --compute 5 --iterations 100");
  command.AddOption("--socket", flags->socket,
                    "Socket of the daemon for tenants; else $XDG_RUNTIME_DIR/tutti/tuttid.sock or "
                    "/run/tutti/tuttid.sock");
  command.AddOption("--ranks", flags->ranks, "Ranks in all").ShowDefault().Within(1, 1024);
  command.AddOption("--here", flags->here, "Which of them are here; else all");
  command.AddOption("--id", flags->id_file,
                    "File by which ranks of several calls or hosts meet; rank 0 writes it");
  command.AddOption("--collective", flags->collective, "all-reduce or all-gather").ShowDefault();
  command.AddOption("-s,--size", flags->size, "M of a collective").ShowDefault();
  command.AddOption("--iterations", flags->iterations, "How many").ShowDefault().Within(1, 1 << 30);
  command.AddOption("--seconds", flags->seconds, "In place of a number: for so long")
      .WithinReal(0, 1e9);
  command.AddOption("--until", flags->until, "In place of a number: until this file is there");
  command.AddOption("--warm", flags->warm, "Iterations before, that do not count")
      .ShowDefault()
      .Within(0, 1 << 20);
  command.AddOption("--compute", flags->compute_ms, "Milliseconds between two collectives")
      .WithinReal(0, 1e9);
  command.AddOption("-o,--output", flags->output, "File for what --json prints");
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
