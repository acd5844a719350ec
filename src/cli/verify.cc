// tutti verify
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "files.h"
#include "html.h"
#include "routing.h"
#include "symmetric.h"
#include "tutti/base/cancel.h"
#include "tutti/base/memory.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/lower/mscclpp.h"
#include "tutti/store/store.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/verify/stream.h"
#include "tutti/verify/symmetric.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

struct VerifyFlags {
  std::string path, topology, dialect = "executor-nccl";
  int32_t most = 20;
  bool stream = false;
  HtmlFlag html;
};

int Answer(const Program& program, Json out, const std::string& subject, int64_t violations,
           const std::vector<std::pair<std::string, std::string>>& shown) {
  out["verified"] = violations == 0;
  if (violations > 0) {
    out["violation_count"] = violations;
    for (const auto& [kind, message] : shown)
      out["violations"].push_back({{"kind", kind}, {"message", message}});
  }
  if (program.json) {
    Print(out);
  } else if (violations == 0) {
    fmt::print("{}: proven correct\n", subject);
  } else {
    fmt::print("{}: NOT correct, {} violation{}\n", subject, violations,
               violations == 1 ? "" : "s");
    for (const auto& [kind, message] : shown) fmt::print("  {}: {}\n", kind, message);
    if (static_cast<size_t>(violations) > shown.size())
      fmt::print("  ... and {} more\n", static_cast<size_t>(violations) - shown.size());
  }
  return violations == 0 ? kDone : kAnswerIsNo;
}

int JudgeXml(const Program& program, const VerifyFlags& flags) {
  const Result<MscclDialect> dialect = ParseMscclDialect(flags.dialect);
  if (!dialect) return Report(dialect.error());
  const Result<std::string> text = ReadForeignPlan(flags.path);
  if (!text) return Report(text.error());
  const Result<std::vector<PlanFault>> faults = CheckMscclXml(*text, *dialect);
  if (!faults) return Report({faults.error().code, flags.path + ": " + faults.error().message});
  std::vector<std::pair<std::string, std::string>> shown;
  for (const PlanFault& fault : *faults)
    if (shown.size() < static_cast<size_t>(flags.most))
      shown.emplace_back("msccl-xml", fault.message);
  return Answer(program, {{"format", "msccl-xml"}, {"dialect", flags.dialect}},
                fmt::format("{} (MSCCL XML for {})", flags.path, flags.dialect),
                static_cast<int64_t>(faults->size()), shown);
}

int JudgeMscclpp(const Program& program, const VerifyFlags& flags) {
  const Result<std::string> text = ReadForeignPlan(flags.path);
  if (!text) return Report(text.error());
  const Result<MscclppVerdict> verdict = CheckMscclpp(*text);
  if (!verdict) return Report({verdict.error().code, flags.path + ": " + verdict.error().message});
  std::vector<std::pair<std::string, std::string>> shown;
  for (const PlanFault& fault : verdict->faults)
    if (shown.size() < static_cast<size_t>(flags.most))
      shown.emplace_back("mscclpp", fault.message);
  return Answer(program,
                {{"format", "mscclpp"},
                 {"collective", verdict->collective},
                 {"ranks", verdict->ranks},
                 {"thread_blocks", verdict->thread_blocks},
                 {"operations", verdict->operations}},
                fmt::format("{} (MSCCL++ plan: {} over {} ranks, {} operations)", flags.path,
                            verdict->collective, verdict->ranks, verdict->operations),
                static_cast<int64_t>(verdict->faults.size()), shown);
}

int JudgePlanFile(const Program& program, const VerifyFlags& flags) {
  const Result<Plan> plan = ReadPlanFile(flags.path);
  if (!plan) return Report(plan.error());
  const std::vector<PlanFault> faults = CheckPlan(*plan);
  std::vector<std::pair<std::string, std::string>> shown;
  for (const PlanFault& fault : faults)
    if (shown.size() < static_cast<size_t>(flags.most)) shown.emplace_back("plan", fault.message);
  const Collective& collective = plan->collective;
  return Answer(program,
                {{"format", "plan-file"},
                 {"collective", Name(collective.kind())},
                 {"ranks", collective.num_ranks()},
                 {"algorithm", plan->algorithm}},
                fmt::format("{} (plan: {} over {} ranks by {})", flags.path,
                            Name(collective.kind()), collective.num_ranks(), plan->algorithm),
                static_cast<int64_t>(faults.size()), shown);
}

// Whether --topology, where it is given, names the network of the file. `ordered`: the file's links
// are in canonical order.
Status CheckTopology(const VerifyFlags& flags, const Topology& of_file, bool ordered) {
  if (flags.topology.empty()) return {};
  Result<Topology> other = ParseTopology(flags.topology);
  if (!other) return tl::unexpected(other.error());
  if (ordered && !HasOrderedLinks(*other)) other = OrderLinks(*other);
  if (other->Fingerprint() == of_file.Fingerprint()) return {};
  return MakeError(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: the schedule was made for '{}' ({} ranks, {} links), which is "
                  "not '{}' ({} ranks, {} links)",
                  flags.path, NameOf(of_file), of_file.num_ranks(), of_file.num_links(),
                  NameOf(*other), other->num_ranks(), other->num_links()));
}

int AnswerReport(const Program& program, Json out, const std::string& subject,
                 const VerifyReport& report) {
  out["deliveries"] = report.deliveries;
  std::vector<std::pair<std::string, std::string>> shown;
  for (const Violation& violation : report.violations)
    shown.emplace_back(Name(violation.kind), violation.message);
  return Answer(program, std::move(out), subject, report.num_violations, shown);
}

int JudgeSymmetric(const Program& program, const VerifyFlags& flags) {
  const Result<SymmetricFile> file = ReadSymmetricFile(flags.path);
  if (!file) return Report(file.error());
  const Topology& topology = file->topology;
  if (const Status same = CheckTopology(flags, topology, true); !same) return Report(same.error());
  const Schedule& root = file->schedule.root;
  const VerifyReport report =
      VerifySymmetric(topology, root.collective, file->schedule, {.max_violations = flags.most});
  if (report.cancelled) return Report(CancelledError());
  Json out;
  std::optional<int32_t> diameter;  // one search where all ranks are alike
  if (report.verified()) {
    const NodeId any{0};
    diameter = CountHops(topology, {&any, 1}).diameter;
  }
  DescribeTopology(topology, diameter, out);
  DescribeSymmetric(file->schedule, out);
  return AnswerReport(
      program, out,
      fmt::format("{}: {} on {} by {}, {} deliveries by symmetry from the {} of "
                  "rank 0's shard",
                  flags.path, Name(root.collective.kind()), NameOf(topology), root.algorithm,
                  CountTransfers(file->schedule), root.transfers.size()),
      report);
}

// Block by block where that is asked for, or where the whole would fill half of the memory.
Result<bool> Streams(const VerifyFlags& flags, const ScheduleReader& reader) {
  const Status streams = CheckStreamable(reader.header());
  if (flags.stream && !streams) return tl::unexpected(streams.error());
  const VerifyMemory memory =
      VerifyMemoryOf(reader.topology(), reader.header(), reader.num_transfers());
  return flags.stream || (streams && memory.in_memory_bytes > AvailableMemoryBytes() / 2);
}

int AnswerOf(const Program& program, const VerifyFlags& flags, const Topology& topology,
             const Schedule& schedule, uint64_t num_transfers, const VerifyReport& report) {
  if (report.cancelled) return Report(CancelledError());
  Json out;
  DescribeTopology(topology, out);
  DescribeSchedule(schedule, out);
  out["transfers"] = num_transfers;
  return AnswerReport(
      program, out,
      fmt::format("{}: {} on {} by {}, {} deliveries", flags.path, Name(schedule.collective.kind()),
                  NameOf(topology), schedule.algorithm, report.deliveries),
      report);
}

// The schedule with what is wrong with it, on the clock of the size it was made for.
Status WritePage(const VerifyFlags& flags, const ScheduleFile& file, const VerifyReport& report) {
  constexpr int64_t kSize = int64_t{1} << 30;  // what `synth` takes for schedules of any size
  if (!flags.html.given()) return {};
  const Result<Bounds> bounds = BoundsOf(file.topology, file.schedule.collective);
  if (!bounds) return tl::unexpected(bounds.error());
  const bool timed = file.schedule.kind == ScheduleKind::kTimed;
  PageData data("verify");
  PageSchedule facts{.label = file.schedule.algorithm,
                     .size_bytes = timed ? file.schedule.size_bytes : kSize,
                     .bounds = &*bounds,
                     .options = {.link_model = file.schedule.link_model}};
  AddVerdict(report, facts);
  if (const Status added = AddToPage(data, file.topology, file.schedule, std::move(facts)); !added)
    return added;
  return flags.html.Write(data);
}

int JudgeSchedule(const Program& program, const VerifyFlags& flags) {
  const Result<std::unique_ptr<ScheduleReader>> reader = ScheduleReader::Open(flags.path);
  if (!reader) return Report(reader.error());
  if (const Status same = CheckTopology(flags, (*reader)->topology(), false); !same)
    return Report(same.error());
  const Result<bool> streams = Streams(flags, **reader);
  if (!streams) return Report(streams.error());
  const VerifyOptions options{.max_violations = flags.most};
  if (*streams) {
    if (const Status shown = flags.html.Refuse("this one is proven block by block"); !shown)
      return Report(shown.error());
    const Result<VerifyReport> report = VerifyStream(**reader, options, AvailableMemoryBytes());
    if (!report) return Report(report.error());
    return AnswerOf(program, flags, (*reader)->topology(), (*reader)->header(),
                    (*reader)->num_transfers(), *report);
  }
  const Result<ScheduleFile> file = ReadSchedule(**reader);
  if (!file) return Report(file.error());
  const VerifyReport report =
      Verify(file->topology, file->schedule.collective, file->schedule, options);
  if (!report.cancelled)
    if (const Status written = WritePage(flags, *file, report); !written)
      return Report(written.error());
  return AnswerOf(program, flags, file->topology, file->schedule, file->schedule.transfers.size(),
                  report);
}

int Judge(const Program& program, const VerifyFlags& flags) {
  const Result<FileKind> kind = KindOfInput(
      flags.path, {FileKind::kSchedule, FileKind::kSymmetricSchedule, FileKind::kRouting,
                   FileKind::kMscclXml, FileKind::kMscclppPlan, FileKind::kPlanFile});
  if (!kind) return Report(kind.error());
  if (const Status kept = flags.html.Check({flags.path}, ""); !kept) return Report(kept.error());
  if (*kind != FileKind::kSchedule)
    if (const Status shown = flags.html.Refuse(flags.path + " holds none"); !shown)
      return Report(shown.error());
  if (*kind == FileKind::kMscclXml) return JudgeXml(program, flags);
  if (*kind == FileKind::kPlanFile) return JudgePlanFile(program, flags);
  if (*kind == FileKind::kMscclppPlan) return JudgeMscclpp(program, flags);
  if (*kind == FileKind::kSymmetricSchedule) return JudgeSymmetric(program, flags);
  if (*kind == FileKind::kSchedule) return JudgeSchedule(program, flags);
  const Result<RoutingVerdict> verdict = JudgeRouting(flags.path, flags.topology, flags.most);
  if (!verdict) return Report(verdict.error());
  return Answer(program, verdict->out, verdict->subject, verdict->violations, verdict->shown);
}

}  // namespace

void AddVerify(Program& program) {
  auto flags = std::make_shared<VerifyFlags>();
  Command command = program.AddCommand(program.line.root(), "verify",
                                       "Prove the schedule or routing in a file, or name the "
                                       "first violations: who lacks what, when, "
                                       "where",
                                       "tutti verify torus.sched");
  command
      .AddOption("file", flags->path,
                 "File with a schedule, a routing, MSCCL XML or an MSCCL++ plan")
      .Required();
  command.AddOption("--topology", flags->topology,
                    "Refuse a schedule that was made for another network than this");
  command
      .AddOption("--dialect", flags->dialect, "Reader of MSCCL XML: msccl, executor-nccl or rccl")
      .ShowDefault();
  command.AddOption("--most", flags->most, "Violations to print").ShowDefault().Within(1, 1000000);
  flags->html.AddTo(command);
  command.AddFlag("--stream", flags->stream,
                  "Read the file block by block, in little memory (by itself where memory is "
                  "short)");
  command.Runs([&program, flags] { return Judge(program, *flags); });
}

}  // namespace tutti::cli
