// tutti run
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "executed.h"
#include "files.h"
#include "html.h"
#include "run_remote.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/lower/mscclpp.h"
#include "tutti/runtime/block_runner.h"
#include "tutti/runtime/executor.h"
#include "tutti/sim/simulator.h"
#include "tutti/store/store.h"

namespace tutti::cli {
namespace {

struct RunFlags {
  std::string path, size, type = "float", op = "sum", trace, dialect = "executor-nccl";
  std::string transport = "shared";
  RemoteFlags remote;
  std::string least, most, step = "1M";
  int32_t factor = 1;  // 1: by steps
  int32_t iterations = 20, warmup = 1;
  bool no_check = false, predict = false, fixed_order = false;
  HtmlFlag html;
};

// The sizes from -b to -e as nccl-tests steps through them: times -f, else plus -i.
Result<std::vector<int64_t>> SweptSizes(const RunFlags& flags) {
  constexpr size_t kMaxSizes = 10'000;
  const auto parse = [](const char* flag, const std::string& text) -> Result<int64_t> {
    const Result<int64_t> size = ParseSizeBytes(text);
    if (!size) return Within(flag, size.error());
    if (*size < 1) return InvalidArgument(fmt::format("{} is 0; at least 1 byte", flag));
    return size;
  };
  const Result<int64_t> least = parse("-b", flags.least);
  if (!least) return tl::unexpected(least.error());
  const Result<int64_t> most = flags.most.empty() ? least : parse("-e", flags.most);
  if (!most) return tl::unexpected(most.error());
  const Result<int64_t> step = parse("-i", flags.step);
  if (!step) return tl::unexpected(step.error());
  if (*most < *least)
    return InvalidArgument(fmt::format("-e {} is less than -b {}", flags.most, flags.least));
  std::vector<int64_t> sizes;
  for (int64_t size = *least; size <= *most;
       size = flags.factor > 1 ? size * flags.factor : size + *step) {
    if (sizes.size() == kMaxSizes)
      return InvalidArgument(
          fmt::format("-b {} -e {}: more than {} sizes in steps of {}; give -f 2 or a larger -i",
                      flags.least, flags.most, kMaxSizes, flags.step));
    sizes.push_back(size);
    if (size > *most / std::max(flags.factor, 1) && flags.factor > 1) break;
  }
  return sizes;
}

Result<std::vector<int64_t>> SizesOf(const RunFlags& flags) {
  if (flags.least.empty() == flags.size.empty())
    return InvalidArgument(flags.size.empty()
                               ? "no size: give --size, or -b and -e as in nccl-tests"
                               : "--size and -b exclude each other");
  return flags.least.empty() ? ParseSizes(flags.size) : SweptSizes(flags);
}

// The columns of nccl-tests, so that scripts that read those read these.
constexpr std::array<const char*, 3> kHeader = {
    "#                                                              out-of-place                   "
    "    in-place",
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong",
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)"};

// With --predict behind the lines of the header.
constexpr std::array<const char*, 3> kPredictHeader = {"", "  predicted of bound",
                                                       "              (us)      (%)"};

// Where a collective has no in-place form.
constexpr const char* kNoColumns = "      N/A     N/A     N/A    N/A";

std::string Columns(const RunReport& report) {
  const std::string wrong = report.wrong < 0 ? "N/A" : std::to_string(report.wrong);
  const double us = report.time_s * 1e6;
  return fmt::format("  {:>7.{}f} {:>7.2f} {:>7.2f} {:>6}", us,
                     us < 100    ? 2
                     : us < 1000 ? 1
                                 : 0,
                     report.algbw / 1e9, report.busbw / 1e9, wrong);
}

// The digest of results in --fixed-order; "N/A": not checked.
std::string DigestOf(const RunReport& report) {
  return report.wrong < 0 ? "N/A" : fmt::format("{:016x}", report.digest);
}

Json JsonOf(const RunFlags& flags, const RunReport& report) {
  Json json{{"time_us", report.time_s * 1e6},
            {"algbw", report.algbw / 1e9},
            {"busbw", report.busbw / 1e9},
            {"wrong", report.wrong < 0 ? Json(nullptr) : Json(report.wrong)}};
  if (flags.fixed_order) json["digest"] = report.wrong < 0 ? Json(nullptr) : Json(DigestOf(report));
  return json;
}

struct Job {
  std::vector<int64_t> sizes;
  DataType type;
  ReduceOp op;
  Transport transport;
  // A schedule and its plan, a plan alone, or the programs of a plan that is not ours.
  std::optional<ScheduleFile> file;
  std::optional<Plan> plan;
  std::vector<BlockProgram> programs;
  std::string subject;                  // "NETWORK by ALGORITHM"
  std::unique_ptr<RemoteRanks> remote;  // null: the ranks are local
  std::optional<Bounds> bounds;         // with --predict or --html

  const Collective& collective() const {
    return plan ? plan->collective : programs.front().collective;
  }
};

RunOptions OptionsOf(const RunFlags& flags, const Job& job, int64_t size) {
  return {.size_bytes = size,
          .type = job.type,
          .op = job.op,
          .fixed_order = flags.fixed_order,
          .transport = job.transport,
          .warmup = flags.warmup,
          .iterations = flags.iterations,
          .check = !flags.no_check,
          .record_trace = !flags.trace.empty() || flags.html.given(),
          .hang_timeout_s = flags.remote.timeout_s};
}

// What the file holds, ready to run.
Status LoadSchedule(const RunFlags& flags, Job& job) {
  Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return tl::unexpected(file.error());
  Result<Plan> plan = tutti::Lower(file->topology, file->schedule);
  if (!plan) return tl::unexpected(plan.error());
  job.subject = fmt::format("{} by {}", NameOf(file->topology), file->schedule.algorithm);
  job.file = std::move(*file);
  job.plan = std::move(*plan);
  return {};
}

// A plan whose network nobody knows any more; it is judged before it runs.
Status LoadPlan(const RunFlags& flags, Job& job) {
  Result<Plan> plan = ReadPlanFile(flags.path);
  if (!plan) return tl::unexpected(plan.error());
  if (const std::vector<PlanFault> faults = CheckPlan(*plan); !faults.empty())
    return InvalidArgument(fmt::format("{} is not correct: {}", flags.path, faults[0].message));
  job.subject = fmt::format("{} by {}", flags.path, plan->algorithm);
  job.plan = std::move(*plan);
  return {};
}

Status LoadForeign(const RunFlags& flags, FileKind kind, Job& job) {
  if (!flags.trace.empty())
    return InvalidArgument("--trace is for schedules: " + flags.path + " is " +
                           std::string(Describe(kind)));
  const Result<MscclDialect> dialect = ParseMscclDialect(flags.dialect);
  if (!dialect) return tl::unexpected(dialect.error());
  const Result<std::string> text = ReadForeignPlan(flags.path);
  if (!text) return tl::unexpected(text.error());
  Result<std::vector<BlockProgram>> programs = kind == FileKind::kMscclXml
                                                   ? BlockProgramsOfMsccl(*text, *dialect)
                                                   : BlockProgramsOfMscclpp(*text);
  if (!programs)
    return MakeError(programs.error().code, flags.path + ": " + programs.error().message);
  job.programs = std::move(*programs);
  job.subject = flags.path;
  return {};
}

Result<int64_t> SizeThatRuns(const Job& job, const RunOptions& options) {
  if (job.remote) return SizeThatRunsRemotely(*job.plan, options);
  return job.plan ? tutti::SizeThatRuns(*job.plan, options)
                  : tutti::SizeThatRuns(job.programs.front(), options);
}

// A page holds a predicted and an executed result a size.
Status CheckPage(const RunFlags& flags, const Job& job) {
  constexpr size_t kMaxSizes = 8;
  if (!flags.html.given()) return {};
  if (job.sizes.size() > kMaxSizes)
    return InvalidArgument(
        fmt::format("--html shows at most {} sizes, got {}", kMaxSizes, job.sizes.size()));
  return flags.html.Check({flags.path}, flags.trace);
}

// All that can be refused is refused here, before anything is printed.
Result<Job> MakeJob(const RunFlags& flags) {
  Result<std::vector<int64_t>> sizes = SizesOf(flags);
  if (!sizes) return tl::unexpected(sizes.error());
  const Result<DataType> type = ParseDataType(flags.type);
  if (!type) return tl::unexpected(type.error());
  const Result<ReduceOp> op = ParseReduceOp(flags.op);
  if (!op) return tl::unexpected(op.error());
  const Result<Transport> transport = ParseTransport(flags.transport);
  if (!transport) return Within("--transport", transport.error());
  const Result<FileKind> kind =
      KindOfInput(flags.path, {FileKind::kSchedule, FileKind::kSymmetricSchedule,
                               FileKind::kMscclXml, FileKind::kMscclppPlan, FileKind::kPlanFile});
  if (!kind) return tl::unexpected(kind.error());
  if (const Status kept = KeepInputs(flags.trace, {flags.path}); !kept)
    return tl::unexpected(kept.error());
  Job job{std::move(*sizes), *type, *op, *transport, {}, {}, {}, {}, {}, {}};
  const bool foreign = *kind == FileKind::kMscclXml || *kind == FileKind::kMscclppPlan;
  if (foreign && flags.fixed_order)
    return InvalidArgument(fmt::format("--fixed-order is for schedules and plans: {} is {}",
                                       flags.path, Describe(*kind)));
  if (foreign && *transport != Transport::kShared)
    return InvalidArgument(fmt::format("--transport {} is for schedules: {} is {}", flags.transport,
                                       flags.path, Describe(*kind)));
  const Status loaded = foreign                        ? LoadForeign(flags, *kind, job)
                        : *kind == FileKind::kPlanFile ? LoadPlan(flags, job)
                                                       : LoadSchedule(flags, job);
  if (!loaded) return tl::unexpected(loaded.error());
  Result<std::unique_ptr<RemoteRanks>> remote =
      RemoteRanks::Plan(flags.remote, *transport, job.collective().num_ranks());
  if (!remote) return tl::unexpected(remote.error());
  job.remote = std::move(*remote);
  if (const Status fits = CheckPage(flags, job); !fits) return tl::unexpected(fits.error());
  if (flags.predict || flags.html.given()) {
    if (!job.file)
      return InvalidArgument(fmt::format("{} is for schedules, which know their network: {} is {}",
                                         flags.predict ? "--predict" : "--html", flags.path,
                                         Describe(*kind)));
    Result<Bounds> bounds = BoundsOf(job.file->topology, job.file->schedule.collective);
    if (!bounds) return tl::unexpected(bounds.error());
    job.bounds = std::move(*bounds);
  }
  for (int64_t size : job.sizes) {
    const Result<int64_t> real = SizeThatRuns(job, OptionsOf(flags, job, size));
    if (!real) return Within(fmt::format("--size {}", FormatSize(size)), real.error());
  }
  return job;
}

void PrintHeader(const RunFlags& flags, const Job& job) {
  const Collective& collective = job.collective();
  fmt::print("# {} {} {}: {} {}, warmup iters: {} iters: {} validation: {}\n",
             Name(collective.kind()), job.plan ? "on" : "from", job.subject, collective.num_ranks(),
             job.remote ? job.remote->where() : "local ranks", flags.warmup, flags.iterations,
             flags.no_check ? 0 : 1);
  if (job.transport != Transport::kShared) fmt::print("# transport: {}\n", Name(job.transport));
  if (flags.fixed_order)
    fmt::print(
        "# fixed order: the plan's, so the same bits, and digest of all results, on every "
        "transport, tile size and placement\n");
  if (!flags.least.empty())
    fmt::print("# minBytes {} maxBytes {} step: {}\n", job.sizes.front(), job.sizes.back(),
               flags.factor > 1 ? fmt::format("{}(factor)", flags.factor)
                                : fmt::format("{}(bytes)", flags.step));
  fmt::print("#\n");
  for (size_t line = 0; line < kHeader.size(); ++line)
    fmt::print("{}{}{}\n", kHeader[line], flags.predict ? kPredictHeader[line] : "",
               flags.fixed_order && line == 1 ? "            digest" : "");
}

// The columns of one row; nothing for a way that the file is not for.
struct Ways {
  std::optional<RunReport> apart, in_place;

  const RunReport& any() const { return apart ? *apart : *in_place; }
};

// Out of place and, where there is such a form, in place.
Result<Ways> RunBothWays(const Job& job, RunOptions options) {
  const Plan& plan = *job.plan;
  const auto run = [&] { return job.remote ? job.remote->Run(options) : RunPlan(plan, options); };
  Ways reports;
  Result<RunReport> apart = run();
  if (!apart) return tl::unexpected(apart.error());
  reports.apart = std::move(*apart);
  if (!HasInPlaceForm(plan.collective)) return reports;
  options.in_place = true;
  options.record_trace = false;
  Result<RunReport> in_place = run();
  if (!in_place) return tl::unexpected(in_place.error());
  reports.in_place = std::move(*in_place);
  return reports;
}

Result<Ways> RunAll(const Job& job, const RunOptions& options) {
  if (job.plan) return RunBothWays(job, options);
  Ways reports;
  for (const BlockProgram& program : job.programs) {
    Result<RunReport> report = RunBlocks(program, options);
    if (!report) return tl::unexpected(report.error());
    (program.in_place ? reports.in_place : reports.apart) = std::move(*report);
  }
  return reports;
}

// What the network of the file promises of the size that was run: by simulation, and at best.
struct Promise {
  double simulated_s = 0, bound_s = 0;
};

Result<Promise> PromiseOf(const Job& job, int64_t size) {
  const Result<SimReport> report =
      Simulate(job.file->topology, job.file->schedule, {.size_bytes = size});
  if (!report) return Within("--predict", report.error());
  return Promise{report->time_s, job.bounds->Seconds(size)};
}

// What was predicted of one size, and the last iteration that was executed.
Status AddResults(const RunFlags& flags, const Job& job, const RunReport& run, PageData& data) {
  const auto& [topology, schedule] = *job.file;
  const std::string size = ReadableSize(run.size_bytes);
  const PageSchedule facts{
      .label = size + ", predicted", .size_bytes = run.size_bytes, .bounds = &*job.bounds};
  if (const Status added = AddToPage(data, topology, schedule, facts); !added) return added;
  PageSchedule executed = facts;
  executed.label = size + ", executed";
  executed.note = fmt::format("The last of {} iterations; their mean is {}", flags.iterations,
                              Seconds(run.time_s));
  data.AddExecuted(data.AddNetwork(topology), topology, schedule, executed,
                   ExecutedMessages(*job.plan, run));
  return {};
}

// Prints the row of one size, or adds it to `rows`.
void ShowRow(bool json, const RunFlags& flags, const Job& job, size_t i, const Ways& reports,
             const std::optional<Promise>& promise, Json& rows) {
  const Collective& collective = job.collective();
  const RunReport& any = reports.any();
  const std::string redop(collective.reduces() ? Name(job.op) : "none");
  const int32_t root = collective.has_root() ? collective.root().value : -1;
  int64_t wrong = 0;
  for (const auto* report : {&reports.apart, &reports.in_place})
    wrong += *report ? std::max<int64_t>((*report)->wrong, 0) : 0;
  rows.push_back({{"size", any.size_bytes},
                  {"asked_size", job.sizes[i]},
                  {"count", any.count},
                  {"type", Name(job.type)},
                  {"redop", redop},
                  {"root", root},
                  {"out_of_place", reports.apart ? JsonOf(flags, *reports.apart) : Json(nullptr)},
                  {"in_place", reports.in_place ? JsonOf(flags, *reports.in_place) : Json(nullptr)},
                  {"wrong", any.wrong < 0 ? Json(nullptr) : Json(wrong)}});
  if (promise) {
    rows.back()["predicted_us"] = promise->simulated_s * 1e6;
    rows.back()["of_bound"] = any.time_s > 0 ? promise->bound_s / any.time_s : 0;
  }
  if (json) return;
  if (any.size_bytes > job.sizes[i])
    fmt::print("# size {} is run as {}: an element of every {} at least\n", job.sizes[i],
               any.size_bytes, job.plan ? "shard" : "chunk");
  fmt::print("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}", any.size_bytes, any.count, Name(job.type),
             redop, root, reports.apart ? Columns(*reports.apart) : kNoColumns,
             reports.in_place ? Columns(*reports.in_place) : kNoColumns);
  if (promise)
    fmt::print("  {:>9.1f} {:>8.1f}", promise->simulated_s * 1e6,
               any.time_s > 0 ? promise->bound_s / any.time_s * 100 : 0);
  if (flags.fixed_order) fmt::print("  {:>16}", DigestOf(any));
  fmt::print("\n");
  std::fflush(stdout);
}

int Run(const Program& program, const RunFlags& flags) {
  if (const std::optional<int> code = ServeIfNotFirst(flags.remote, flags.transport)) return *code;
  const Result<Job> job = MakeJob(flags);
  if (!job) {
    const Result<Transport> transport = ParseTransport(flags.transport);
    return transport ? ReportForAllRanks(flags.remote, *transport, job.error())
                     : Report(job.error());
  }
  if (job->remote) {
    Status started = job->remote->Start();
    if (started) started = job->remote->SetPlan(*job->plan);
    if (!started) return Report(started.error());
  }
  Json out;
  if (job->file) {
    DescribeTopology(job->file->topology, out);
    DescribeSchedule(job->file->schedule, out);
  } else {
    out["file"] = flags.path;
    out["ranks"] = job->collective().num_ranks();
    out["collective"] = Name(job->collective().kind());
  }
  out["rows"] = Json::array();
  if (!program.json) PrintHeader(flags, *job);
  int64_t wrong = 0;
  double busbw_sum = 0, clock_error_s = 0;
  PageData data("run");
  for (size_t i = 0; i < job->sizes.size(); ++i) {
    const Result<Ways> reports = RunAll(*job, OptionsOf(flags, *job, job->sizes[i]));
    if (!reports) return Report(reports.error());
    std::optional<Promise> promise;
    if (flags.predict) {
      Result<Promise> promised = PromiseOf(*job, reports->any().size_bytes);
      if (!promised) return Report(promised.error());
      promise = *promised;
    }
    ShowRow(program.json, flags, *job, i, *reports, promise, out["rows"]);
    if (flags.html.given())
      if (const Status added = AddResults(flags, *job, *reports->apart, data); !added)
        return Report(added.error());
    double busbw = 0;
    int32_t ways = 0;
    for (const auto* report : {&reports->apart, &reports->in_place}) {
      if (!*report) continue;
      wrong += std::max<int64_t>((*report)->wrong, 0);
      busbw += (*report)->busbw;
      ++ways;
    }
    busbw_sum += busbw / ways;
    if (flags.trace.empty() || i + 1 < job->sizes.size()) continue;
    clock_error_s = reports->apart->clock_error_s;
    out["clock_error_us"] = job->remote ? Json(clock_error_s * 1e6) : Json(nullptr);
    const std::string trace = ToChromeTrace(*job->plan, *reports->apart);
    if (const Status written = WriteFileAtomically(flags.trace, trace); !written)
      return Report(written.error());
  }
  if (const Status written = flags.html.Write(data); !written) return Report(written.error());
  const double average = busbw_sum / static_cast<double>(job->sizes.size()) / 1e9;
  out["avg_busbw"] = average;
  out["wrong"] = flags.no_check ? Json(nullptr) : Json(wrong);
  if (program.json) {
    Print(out);
  } else {
    fmt::print("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:g}\n#\n", wrong,
               flags.no_check ? "(not checked)"
               : wrong == 0   ? "OK"
                              : "FAILED",
               average);
    if (!flags.trace.empty())
      fmt::print(
          "# Timeline             : {}{}\n", flags.trace,
          job->remote ? fmt::format(" (clocks of ranks within {})", Seconds(clock_error_s)) : "");
    if (flags.html.given()) fmt::print("# Page                 : {}\n", flags.html.path());
  }
  return wrong == 0 ? kDone : kAnswerIsNo;
}

}  // namespace

void AddRun(Program& program) {
  auto flags = std::make_shared<RunFlags>();
  Command command = program.AddCommand(
      program.line.root(), "run",
      "Execute a schedule, a plan, MSCCL XML or an MSCCL++ plan over real buffers and check every "
      "byte",
      "tutti run torus.sched -b 1K -e 64M -f 4 --type float --op sum");
  command
      .AddOption(
          "file", flags->path,
          "File with a schedule, a plan (lower --to plan-file), MSCCL XML or an MSCCL++ plan")
      .Required();
  command.AddOption("--size", flags->size, "Sizes M, separated by commas; or -b and -e");
  command.AddOption("-b,--minbytes", flags->least,
                    "Smallest size of a sweep, as in nccl-tests: 8, 1K, 64M (binary)");
  command.AddOption("-e,--maxbytes", flags->most, "Largest size of the sweep; default: -b")
      .Needs("-b");
  command.AddOption("-i,--stepbytes", flags->step, "From one size of the sweep to the next")
      .Needs("-b")
      .ShowDefault();
  command
      .AddOption("-f,--stepfactor", flags->factor,
                 "From one size of the sweep to the next by this factor, in place of -i")
      .Needs("-b")
      .Within(2, 1 << 20);
  command
      .AddOption("--type", flags->type,
                 "float (float32), double (float64), half (float16), bfloat16, int32, int64 or "
                 "uint8")
      .ShowDefault();
  command.AddFlag("--fixed-order", flags->fixed_order,
                  "Reduce in the order of the plan whatever the tiles: the same bits on every "
                  "transport, tile size and placement, shown by a digest of all results");
  command.AddOption("--op", flags->op, "sum, prod, min, max or avg").ShowDefault();
  command.AddOption("-n,--iters", flags->iterations, "Timed iterations")
      .ShowDefault()
      .Within(1, 1000000);
  command.AddOption("-w,--warmup", flags->warmup, "Iterations before those")
      .ShowDefault()
      .Within(0, 1000000);
  command
      .AddOption("--dialect", flags->dialect, "Reader of MSCCL XML: msccl, executor-nccl or rccl")
      .ShowDefault();
  command
      .AddOption(
          "--transport", flags->transport,
          "What carries the messages: shared or shm (memory), tcp (on this host by the loopback "
          "interface; under mpirun, torchrun or Slurm, or with --hosts, between hosts) or "
          "mpi (under mpirun)")
      .ShowDefault();
  AddRemoteFlags(command, flags->remote);
  command.AddFlag(
      "--predict", flags->predict,
      "Add what a simulation on the schedule's network predicts, and the time's share of "
      "its proven bound");
  command.AddFlag("--no-check", flags->no_check, "Do not compare the results");
  command.AddOption(
      "--trace", flags->trace,
      "Write a timeline of the last out-of-place iteration in the Chrome trace format");
  flags->html.AddTo(command);
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
