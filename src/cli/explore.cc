// tutti explore
#include <fmt/format.h>

#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "executed.h"
#include "files.h"
#include "html.h"
#include "sim_flags.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/lower/lowering.h"
#include "tutti/store/store.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

// More are not compared by eye.
constexpr size_t kMaxResults = 8;

struct ExploreFlags {
  std::vector<std::string> files;
  std::string output, size;
  SimFlags sim;
};

// A schedule, and the traces of its executions.
struct Explored {
  std::string path;
  ScheduleFile file;
  VerifyReport verdict;
  Bounds bounds;
  std::optional<Plan> plan;  // with traces
  std::vector<RunReport> executed;
};

Result<Explored> LoadExplored(const std::string& path) {
  const Result<FileKind> kind =
      KindOfInput(path, {FileKind::kSchedule, FileKind::kSymmetricSchedule});
  if (!kind) return tl::unexpected(kind.error());
  Result<ScheduleFile> file = ReadScheduleFile(path);
  if (!file) return tl::unexpected(file.error());
  VerifyReport verdict = Verify(file->topology, file->schedule.collective, file->schedule);
  if (verdict.cancelled) return tl::unexpected(CancelledError());
  Result<Bounds> bounds = BoundsOf(file->topology, file->schedule.collective);
  if (!bounds) return tl::unexpected(bounds.error());
  return Explored{path, *std::move(file), std::move(verdict), *std::move(bounds), {}, {}};
}

Status AddTrace(const std::string& path, Explored& of) {
  if (!of.plan) {
    Result<Plan> plan = tutti::Lower(of.file.topology, of.file.schedule);
    if (!plan) return tl::unexpected(plan.error());
    of.plan = *std::move(plan);
  }
  Result<RunReport> report = ReadExecutedTrace(path, *of.plan);
  if (!report) return tl::unexpected(report.error());
  of.executed.push_back(*std::move(report));
  return {};
}

Result<std::list<Explored>> LoadAll(const std::vector<std::string>& files) {
  if (files.size() > kMaxResults)
    return InvalidArgument(
        fmt::format("{} files; one page compares at most {}", files.size(), kMaxResults));
  std::list<Explored> all;
  for (const std::string& path : files) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (IsTrace(path)) {
      if (all.empty())
        return InvalidArgument(
            fmt::format("{} is a trace: name the schedule that was executed before it", path));
      if (const Status added = AddTrace(path, all.back()); !added)
        return tl::unexpected(added.error());
      continue;
    }
    Result<Explored> one = LoadExplored(path);
    if (!one) return tl::unexpected(one.error());
    all.push_back(*std::move(one));
  }
  return all;
}

// The one asked for, else that of the traces, of a timed schedule, or what `synth` takes.
Result<int64_t> SizeOf(const std::string& asked, const std::list<Explored>& all) {
  constexpr int64_t kSize = int64_t{1} << 30;
  std::optional<int64_t> size;
  if (!asked.empty()) {
    const Result<std::vector<int64_t>> sizes = ParseSizes(asked);
    if (!sizes) return tl::unexpected(sizes.error());
    if (sizes->size() != 1) return InvalidArgument("--size takes one size");
    size = sizes->front();
  }
  for (const Explored& one : all)
    for (const RunReport& report : one.executed)
      if (const int64_t wanted = size.value_or(report.size_bytes); wanted != report.size_bytes)
        return InvalidArgument(
            fmt::format("a trace of {} was executed with {} bytes, not with {}: one page has one "
                        "size",
                        one.path, report.size_bytes, wanted));
      else
        size = wanted;
  for (const Explored& one : all)
    if (!size && one.file.schedule.kind == ScheduleKind::kTimed)
      size = one.file.schedule.size_bytes;
  return size.value_or(kSize);
}

// The algorithm, with the file's name where two have the same.
std::string LabelOf(const Explored& one, const std::list<Explored>& all) {
  int same = 0;
  for (const Explored& other : all)
    same += other.file.schedule.algorithm == one.file.schedule.algorithm ? 1 : 0;
  if (same < 2) return one.file.schedule.algorithm;
  return fmt::format("{} ({})", one.file.schedule.algorithm,
                     std::filesystem::path(one.path).filename().string());
}

// What is printed.
class Printed {
 public:
  void Add(const Explored& one, const std::string& label, bool executed, double time_s,
           int64_t size) {
    const double bound_s = one.bounds.Seconds(size);
    const double efficiency = Efficiency(bound_s, time_s);
    table_.AddRow({label, executed ? "executed" : "simulated", Seconds(time_s), Seconds(bound_s),
                   Percent(efficiency), one.verdict.verified() ? "proven correct" : "NOT correct"});
    Json row;
    row["file"] = one.path;
    row["topology"] = one.file.topology.name();
    DescribeSchedule(one.file.schedule, row);
    row["executed"] = executed;
    row["time_s"] = time_s;
    row["bound_s"] = bound_s;
    row["efficiency"] = efficiency;
    row["verified"] = one.verdict.verified();
    rows_.push_back(std::move(row));
  }

  void Print(const Program& program, const std::string& path, int64_t size) {
    if (program.json) {
      Json out;
      out["page"] = path;
      out["size_bytes"] = size;
      out["rows"] = rows_;
      return cli::Print(out);
    }
    fmt::print("{}\n{}\npage in {}: open it in a browser\n", ReadableSize(size), table_.ToString(),
               path);
  }

 private:
  Table table_{{"schedule", "how", "time", "bound", "efficiency", "proof"}, Table::Last::kProse};
  Json rows_ = Json::array();
};

Status AddResults(const Explored& one, const std::string& label, SimOptions options, PageData& data,
                  Printed& printed) {
  const auto& [topology, schedule] = one.file;
  const int32_t network = data.AddNetwork(topology);
  const Result<SimReport> report = Simulate(topology, schedule, options);
  if (!report) return Within(one.path, report.error());
  PageSchedule facts{.label = one.executed.empty() ? label : label + ", simulated",
                     .size_bytes = options.size_bytes,
                     .bounds = &one.bounds,
                     .report = &*report,
                     .options = options};
  AddVerdict(one.verdict, facts);
  data.AddSchedule(network, topology, schedule, facts);
  printed.Add(one, label, false, report->time_s, options.size_bytes);
  for (const RunReport& executed : one.executed) {
    facts.label = label + ", executed";
    facts.faults.clear();
    data.AddExecuted(network, topology, schedule, facts, ExecutedMessages(*one.plan, executed));
    printed.Add(one, label, true, executed.time_s, options.size_bytes);
  }
  return {};
}

int Explore(const Program& program, const ExploreFlags& flags) {
  if (const Status kept = KeepInputs(flags.output, flags.files); !kept) return Report(kept.error());
  const Result<std::list<Explored>> all = LoadAll(flags.files);
  if (!all) return Report(all.error());
  const Result<int64_t> size = SizeOf(flags.size, *all);
  if (!size) return Report(size.error());
  SimOptions options = flags.sim.Make();
  options.size_bytes = *size;
  options.record_messages = true;
  PageData data("explore");
  Printed printed;
  for (const Explored& one : *all) {
    if (CancelRequested()) return Report(CancelledError());
    if (const Status added = AddResults(one, LabelOf(one, *all), options, data, printed); !added)
      return Report(added.error());
  }
  if (const Status written = WritePage(flags.output, data); !written)
    return Report(written.error());
  printed.Print(program, flags.output, *size);
  return kDone;
}

}  // namespace

void AddExplore(Program& program) {
  auto flags = std::make_shared<ExploreFlags>();
  Command command = program.AddCommand(
      program.line.root(), "explore",
      "One page of several results: schedules side by side, simulated beside executed",
      "tutti explore ring.sched bfb.sched --size 64MiB -o both.html\n"
      "  tutti explore ring.sched ring.trace.json -o predicted.html");
  command
      .AddOption("files", flags->files,
                 "Files with schedules; behind each, the traces that `tutti run` wrote of it")
      .Required();
  command.AddOption("-o,--output", flags->output, "The page to write").Required();
  command.AddOption("--size", flags->size,
                    "Size M of all; default: that of the traces, of a timed schedule, or 1GiB");
  flags->sim.AddTo(command);
  command.Runs([&program, flags] { return Explore(program, *flags); });
}

}  // namespace tutti::cli
