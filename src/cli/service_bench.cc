#include "service_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/communicator.h"
#include "tutti/service/daemon.h"
#include "tutti/tutti.h"

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Flags {
  std::string socket, size = "8,1KiB,64KiB,1MiB", id_file;
  int32_t ranks = 2, first = 0, batches = 11;
  std::optional<int32_t> here;
  bool alone = false;
};

// One size: seconds of an all-reduce, by way; less than 0: not measured.
struct Row {
  int64_t bytes = 0;
  double service_s = -1, in_process_s = -1;
};

// One rank's communicators: under the service and, to compare, without it.
struct Ways {
  std::optional<Communicator> service, in_process;
};

// A whole number of all-reduces that takes about this long.
constexpr double kBatch_s = 0.05;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// All ranks run `calls` all-reduces; seconds of one.
Result<double> RunBatch(Communicator& ranks, float* data, int64_t count, int32_t calls) {
  if (const Status together = ranks.Barrier(); !together) return tl::unexpected(together.error());
  const Clock::time_point begin = Clock::now();
  for (int32_t call = 0; call < calls; ++call)
    if (const Status done = ranks.AllReduce(data, data, count, DataType::kFloat32, ReduceOp::kMax);
        !done)
      return tl::unexpected(done.error());
  return std::chrono::duration<double>(Clock::now() - begin).count() / calls;
}

// How many calls make a batch: all ranks have to know the same number.
Result<int32_t> CallsInABatch(Communicator& ranks, float* data, int64_t count) {
  constexpr int32_t kWarm = 5, kMost = 10000;
  const Result<double> one = RunBatch(ranks, data, count, kWarm);
  if (!one) return tl::unexpected(one.error());
  int32_t mine = static_cast<int32_t>(std::clamp(kBatch_s / *one, 1.0, double{kMost})), all = 0;
  if (const Status agreed = ranks.AllReduce(&mine, &all, 1, DataType::kInt32, ReduceOp::kMin);
      !agreed)
    return tl::unexpected(agreed.error());
  return all;
}

// The ways take turns, so that what else the machine does meets both.
Result<Row> Measure(Ways& ways, float* data, int64_t bytes, int32_t batches) {
  const int64_t count = std::max<int64_t>(1, bytes / static_cast<int64_t>(sizeof(float)));
  Row row{.bytes = count * static_cast<int64_t>(sizeof(float))};
  std::vector<double> service, in_process;
  const Result<int32_t> calls = CallsInABatch(*ways.service, data, count);
  if (!calls) return tl::unexpected(calls.error());
  if (ways.in_process)
    if (const auto warm = RunBatch(*ways.in_process, data, count, 2); !warm)
      return tl::unexpected(warm.error());
  for (int32_t batch = 0; batch < batches; ++batch) {
    const Result<double> seconds = RunBatch(*ways.service, data, count, *calls);
    if (!seconds) return tl::unexpected(seconds.error());
    service.push_back(*seconds);
    if (!ways.in_process) continue;
    const Result<double> alone = RunBatch(*ways.in_process, data, count, *calls);
    if (!alone) return tl::unexpected(alone.error());
    in_process.push_back(*alone);
  }
  row.service_s = Median(service);
  if (ways.in_process) row.in_process_s = Median(in_process);
  return row;
}

Result<Ways> Join(const Flags& flags, const UniqueId& service, const UniqueId& in_process,
                  int32_t rank) {
  constexpr double kPatience_s = 60;
  Ways ways;
  Result<Communicator> joined = Communicator::Join(
      service, flags.ranks, rank, {.timeout_s = kPatience_s, .service = flags.socket});
  if (!joined) return tl::unexpected(joined.error());
  ways.service.emplace(std::move(*joined));
  if (flags.alone) return ways;
  Result<Communicator> alone = Communicator::Join(in_process, flags.ranks, rank,
                                                  {.timeout_s = kPatience_s, .service = "none"});
  if (!alone) return tl::unexpected(alone.error());
  ways.in_process.emplace(std::move(*alone));
  return ways;
}

Result<std::vector<Row>> RunRank(const Flags& flags, const std::vector<int64_t>& sizes,
                                 const UniqueId& service, const UniqueId& in_process,
                                 int32_t rank) {
  Result<Ways> ways = Join(flags, service, in_process, rank);
  if (!ways) return tl::unexpected(ways.error());
  // Memory that the service sees: nothing is copied to and fro.
  const int64_t most = *std::max_element(sizes.begin(), sizes.end());
  void* data = nullptr;
  const size_t bytes = static_cast<size_t>(std::max<int64_t>(most, sizeof(float)));
  if (tuttiMemAlloc(&data, bytes) != tuttiSuccess)
    return MakeError(ErrorCode::kResourceExhausted, tuttiGetLastError(nullptr));
  std::fill_n(static_cast<float*>(data), bytes / sizeof(float), 1.0F);
  std::vector<Row> rows;
  Status failed;
  for (const int64_t size : sizes) {
    Result<Row> row = Measure(*ways, static_cast<float*>(data), size, flags.batches);
    if (!row) {
      failed = tl::unexpected(row.error());
      break;
    }
    rows.push_back(*row);
  }
  tuttiMemFree(data);
  if (!failed) return tl::unexpected(failed.error());
  return rows;
}

Result<UniqueId> IdOf(const Flags& flags) {
  if (flags.id_file.empty()) return MakeUniqueId(flags.socket);
  constexpr double kPatience_s = 60;
  return ShareUniqueIdByFile(flags.id_file, flags.first, kPatience_s);
}

void PrintRows(const Flags& flags, const std::vector<Row>& rows) {
  std::vector<std::string> header = {"size (B)", "time", "algbw"};
  if (!flags.alone) header.insert(header.end(), {"in process", "added"});
  Table table(header);
  for (const Row& row : rows) {
    std::vector<std::string> cells = {
        Count(row.bytes), Seconds(row.service_s),
        BytesPerSecond(static_cast<double>(row.bytes) / row.service_s)};
    if (!flags.alone) {
      cells.push_back(Seconds(row.in_process_s));
      cells.push_back(Seconds(row.service_s - row.in_process_s));
    }
    table.AddRow(cells);
  }
  fmt::print("{}", table.ToString());
}

Json ToJson(const Flags& flags, const std::vector<Row>& rows) {
  Json json{{"ranks", flags.ranks}};
  for (const Row& row : rows) {
    Json of{{"bytes", row.bytes}, {"seconds", row.service_s}};
    if (row.in_process_s >= 0) of["in_process_s"] = row.in_process_s;
    json["sizes"].push_back(of);
  }
  return json;
}

int Run(const Program& program, Flags flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report({sizes.error().code, "--size: " + sizes.error().message});
  const int32_t here = flags.here.value_or(flags.ranks - flags.first);
  if (flags.first + here > flags.ranks || here < 1)
    return Report({ErrorCode::kInvalidArgument,
                   fmt::format("ranks {} to {} of {} cannot be here", flags.first,
                               flags.first + here - 1, flags.ranks)});
  if (here < flags.ranks && flags.id_file.empty())
    return Report({ErrorCode::kInvalidArgument, "--id: needed where ranks are elsewhere, too"});
  if (here < flags.ranks) flags.alone = true;
  if (flags.socket.empty()) flags.socket = service::DefaultFolder() + "/tuttid.sock";
  // Also for the memory that it gives.
  setenv("TUTTI_SERVICE", flags.socket.c_str(), 1);
  const Result<UniqueId> id = IdOf(flags);
  if (!id) return Report(id.error());
  const Result<UniqueId> in_process = flags.alone ? UniqueId{} : MakeUniqueId("none");
  if (!in_process) return Report(in_process.error());
  std::vector<std::optional<Result<std::vector<Row>>>> answers(static_cast<size_t>(here));
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < here; ++i)
    threads.emplace_back([&, i] {
      answers[static_cast<size_t>(i)] = RunRank(flags, *sizes, *id, *in_process, flags.first + i);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& answer : answers)
    if (!*answer) return Report(answer->error());
  if (program.json)
    Print(ToJson(flags, **answers.front()));
  else
    PrintRows(flags, **answers.front());
  return kDone;
}

}  // namespace

void AddServiceBench(Program& program, Command service) {
  auto flags = std::make_shared<Flags>();
  Command command = program.AddCommand(
      service, "bench", "Time all-reduces under the service, beside the same ranks without it",
      "tutti service bench --ranks 4 --size 8,1MiB");
  command.AddOption("--socket", flags->socket,
                    "Socket of the daemon for tenants; else $XDG_RUNTIME_DIR/tutti/tuttid.sock or "
                    "/run/tutti/tuttid.sock");
  command.AddOption("--ranks", flags->ranks, "Ranks in all").ShowDefault().Within(1, 1024);
  command.AddOption("-s,--size", flags->size, "Sizes M, separated by commas").ShowDefault();
  command.AddOption("--batches", flags->batches, "Batches of each way, of which the median counts")
      .ShowDefault()
      .Within(1, 1 << 20);
  command.AddFlag("--alone", flags->alone, "Do not compare with ranks without the service");
  command.AddOption("--first", flags->first, "The first rank of those here").Within(0, 1023);
  command.AddOption("--here", flags->here, "How many ranks are here; else all from the first on")
      .Within(1, 1024);
  command.AddOption("--id", flags->id_file,
                    "File by which ranks of several calls or hosts meet; rank 0 writes it");
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
