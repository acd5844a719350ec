// tutti verify
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "routing.h"
#include "symmetric.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/memory.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/sched/routing_store.h"
#include "tutti/sched/store.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/verify/stream.h"
#include "tutti/verify/symmetric.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string path, topology, dialect = "executor-nccl";
  int32_t most = 20;
  bool stream = false;
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

int JudgeXml(const Program& program, const Flags& flags) {
  const Result<MscclDialect> dialect = ParseMscclDialect(flags.dialect);
  if (!dialect) return Report(dialect.error());
  const Result<std::string> text = ReadFile(flags.path);
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

// Whether --topology, where it is given, names the network of the file. `ordered`: the file's links
// are in canonical order.
Status CheckTopology(const Flags& flags, const Topology& of_file, bool ordered) {
  if (flags.topology.empty()) return {};
  Result<Topology> other = ParseTopology(flags.topology);
  if (!other) return tl::unexpected(other.error());
  if (ordered && !HasOrderedLinks(*other)) other = OrderLinks(*other);
  if (other->Fingerprint() == of_file.Fingerprint()) return {};
  return MakeError(ErrorCode::kInvalidArgument,
                   fmt::format("{}: the schedule was made for '{}' ({} ranks, {} links), which is "
                               "not '{}' ({} ranks, {} links)",
                               flags.path, of_file.name(), of_file.num_ranks(), of_file.num_links(),
                               other->name(), other->num_ranks(), other->num_links()));
}

int AnswerReport(const Program& program, Json out, const std::string& subject,
                 const VerifyReport& report) {
  out["deliveries"] = report.deliveries;
  std::vector<std::pair<std::string, std::string>> shown;
  for (const Violation& violation : report.violations)
    shown.emplace_back(Name(violation.kind), violation.message);
  return Answer(program, std::move(out), subject, report.num_violations, shown);
}

int JudgeSymmetric(const Program& program, const Flags& flags) {
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
                  flags.path, Name(root.collective.kind()), topology.name(), root.algorithm,
                  CountTransfers(file->schedule), root.transfers.size()),
      report);
}

// Block by block where that is asked for, or where the whole would fill half of the memory.
Result<bool> Streams(const Flags& flags, const ScheduleReader& reader) {
  const Status streams = CheckStreamable(reader.header());
  if (flags.stream && !streams) return tl::unexpected(streams.error());
  const VerifyMemory memory =
      VerifyMemoryOf(reader.topology(), reader.header(), reader.num_transfers());
  return flags.stream || (streams && memory.in_memory_bytes > AvailableMemoryBytes() / 2);
}

int AnswerOf(const Program& program, const Flags& flags, const Topology& topology,
             const Schedule& schedule, uint64_t num_transfers, const VerifyReport& report) {
  if (report.cancelled) return Report(CancelledError());
  Json out;
  DescribeTopology(topology, out);
  DescribeSchedule(schedule, out);
  out["transfers"] = num_transfers;
  return AnswerReport(
      program, out,
      fmt::format("{}: {} on {} by {}, {} deliveries", flags.path, Name(schedule.collective.kind()),
                  topology.name(), schedule.algorithm, report.deliveries),
      report);
}

int JudgeSchedule(const Program& program, const Flags& flags) {
  const Result<std::unique_ptr<ScheduleReader>> reader = ScheduleReader::Open(flags.path);
  if (!reader) return Report(reader.error());
  if (const Status same = CheckTopology(flags, (*reader)->topology(), false); !same)
    return Report(same.error());
  const Result<bool> streams = Streams(flags, **reader);
  if (!streams) return Report(streams.error());
  const VerifyOptions options{.max_violations = flags.most};
  if (*streams) {
    const Result<VerifyReport> report = VerifyStream(**reader, options, AvailableMemoryBytes());
    if (!report) return Report(report.error());
    return AnswerOf(program, flags, (*reader)->topology(), (*reader)->header(),
                    (*reader)->num_transfers(), *report);
  }
  const Result<ScheduleFile> file = ReadSchedule(**reader);
  if (!file) return Report(file.error());
  return AnswerOf(program, flags, file->topology, file->schedule, file->schedule.transfers.size(),
                  Verify(file->topology, file->schedule.collective, file->schedule, options));
}

int Judge(const Program& program, const Flags& flags) {
  if (flags.path.ends_with(".xml")) return JudgeXml(program, flags);
  if (IsRoutingFile(flags.path)) {
    const Result<RoutingVerdict> verdict = JudgeRouting(flags.path, flags.topology, flags.most);
    if (!verdict) return Report(verdict.error());
    return Answer(program, verdict->out, verdict->subject, verdict->violations, verdict->shown);
  }
  if (IsSymmetricFile(flags.path)) return JudgeSymmetric(program, flags);
  return JudgeSchedule(program, flags);
}

}  // namespace

void AddVerify(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(&program.app, "verify",
                                         "Prove the schedule or routing in a file, or name the "
                                         "first violations: who lacks what, when, "
                                         "where",
                                         "tutti verify torus.sched");
  command->add_option("file", flags->path, "Schedule file, routing file, or an MSCCL .xml file")
      ->required();
  command->add_option("--topology", flags->topology,
                      "Refuse a schedule that was made for another network than this");
  command
      ->add_option("--dialect", flags->dialect,
                   "Reader of an .xml file: msccl, executor-nccl or rccl")
      ->capture_default_str();
  command->add_option("--most", flags->most, "Violations to print")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--stream", flags->stream,
                    "Read the file block by block, in little memory (by itself where memory is "
                    "short)");
  command->callback(
      [&program, flags] { program.action = [&program, flags] { return Judge(program, *flags); }; });
}

}  // namespace tutti::cli
