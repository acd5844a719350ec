// tutti run
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "common.h"
#include "tutti/base/file.h"
#include "tutti/lower/lowering.h"
#include "tutti/runtime/executor.h"
#include "tutti/sched/store.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string path, size, type = "float", op = "sum", trace;
  int32_t iterations = 20, warmup = 1;
  bool no_check = false;
};

// The columns of nccl-tests, so that scripts that read those read these.
constexpr const char* kHeader =
    "#                                                              out-of-place                   "
    "    in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)\n";

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

Json ToJson(const RunReport& report) {
  return {{"time_us", report.time_s * 1e6},
          {"algbw", report.algbw / 1e9},
          {"busbw", report.busbw / 1e9},
          {"wrong", report.wrong < 0 ? Json(nullptr) : Json(report.wrong)}};
}

int Run(const Program& program, const Flags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  const Result<DataType> type = ParseDataType(flags.type);
  if (!type) return Report(type.error());
  const Result<ReduceOp> op = ParseReduceOp(flags.op);
  if (!op) return Report(op.error());
  const Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return Report(file.error());
  const Result<Plan> plan = tutti::Lower(file->topology, file->schedule);
  if (!plan) return Report(plan.error());
  const Collective& collective = plan->collective;

  Json out;
  DescribeTopology(file->topology, out);
  DescribeSchedule(file->schedule, out);
  out["rows"] = Json::array();
  if (!program.json) {
    fmt::print("# {} on {} by {}: {} local ranks, warmup iters: {} iters: {} validation: {}\n#\n",
               Name(collective.kind()), file->topology.name(), file->schedule.algorithm,
               collective.num_ranks(), flags.warmup, flags.iterations, flags.no_check ? 0 : 1);
    fmt::print("{}", kHeader);
  }
  int64_t wrong = 0;
  double busbw_sum = 0;
  for (int64_t size : *sizes) {
    RunOptions options{.size_bytes = size,
                       .type = *type,
                       .op = *op,
                       .warmup = flags.warmup,
                       .iterations = flags.iterations,
                       .check = !flags.no_check,
                       .record_trace = !flags.trace.empty()};
    const Result<RunReport> apart = RunPlan(*plan, options);
    if (!apart) return Report(apart.error());
    std::vector<RunReport> reports{*apart};
    if (HasInPlaceForm(collective)) {
      options.in_place = true;
      options.record_trace = false;
      const Result<RunReport> in_place = RunPlan(*plan, options);
      if (!in_place) return Report(in_place.error());
      reports.push_back(*in_place);
    }
    int64_t wrong_here = 0;
    double busbw = 0;
    for (const RunReport& report : reports) {
      wrong_here += std::max<int64_t>(report.wrong, 0);
      busbw += report.busbw;
    }
    wrong += wrong_here;
    busbw_sum += busbw / static_cast<double>(reports.size());
    const std::string redop(collective.reduces() ? Name(*op) : "none");
    const int32_t root = collective.has_root() ? collective.root().value : -1;
    out["rows"].push_back({{"size", apart->size_bytes},
                           {"count", apart->count},
                           {"type", Name(*type)},
                           {"redop", redop},
                           {"root", root},
                           {"out_of_place", ToJson(*apart)},
                           {"in_place", reports.size() > 1 ? ToJson(reports[1]) : Json(nullptr)},
                           {"wrong", flags.no_check ? Json(nullptr) : Json(wrong_here)}});
    if (!program.json) {
      fmt::print("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", apart->size_bytes, apart->count,
                 Name(*type), redop, root, Columns(*apart),
                 reports.size() > 1 ? Columns(reports[1]) : kNoColumns);
      std::fflush(stdout);
    }
    if (!flags.trace.empty() && size == sizes->back()) {
      const std::string trace = ToChromeTrace(*plan, *apart);
      if (const Status written = WriteFileAtomically(flags.trace, trace); !written)
        return Report(written.error());
    }
  }
  const double average = busbw_sum / static_cast<double>(sizes->size()) / 1e9;
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
    if (!flags.trace.empty()) fmt::print("# Timeline             : {}\n", flags.trace);
  }
  return wrong == 0 ? kDone : kAnswerIsNo;
}

}  // namespace

void AddRun(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "run",
      "Execute a schedule on local processes over real buffers and check every byte",
      "tutti run torus.sched --size 1MiB,64MiB --type float --op sum");
  command->add_option("file", flags->path, "Schedule file")->required();
  command->add_option("--size", flags->size, "Sizes M, separated by commas")->required();
  command
      ->add_option("--type", flags->type,
                   "float (float32), double (float64), half (float16), bfloat16, int32, int64 or "
                   "uint8")
      ->capture_default_str();
  command->add_option("--op", flags->op, "sum, prod, min, max or avg")->capture_default_str();
  command->add_option("-n,--iters", flags->iterations, "Timed iterations")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->add_option("-w,--warmup", flags->warmup, "Iterations before those")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  command->add_flag("--no-check", flags->no_check, "Do not compare the results");
  command->add_option(
      "--trace", flags->trace,
      "Write a timeline of the last out-of-place iteration in the Chrome trace format");
  command->callback(
      [&program, flags] { program.action = [&program, flags] { return Run(program, *flags); }; });
}

}  // namespace tutti::cli
