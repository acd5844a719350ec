// tutti verify
#include <fmt/format.h>

#include <memory>

#include "common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/sched/store.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string path, topology, dialect = "executor-nccl";
  int32_t most = 20;
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

int Judge(const Program& program, const Flags& flags) {
  if (flags.path.ends_with(".xml")) return JudgeXml(program, flags);
  Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return Report(file.error());
  if (!flags.topology.empty()) {
    Result<Topology> other = ParseTopology(flags.topology);
    if (!other) return Report(other.error());
    if (other->Fingerprint() != file->topology.Fingerprint())
      return Report(
          {ErrorCode::kInvalidArgument,
           fmt::format("{}: the schedule was made for '{}' ({} ranks, {} links), which is "
                       "not '{}' ({} ranks, {} links)",
                       flags.path, file->topology.name(), file->topology.num_ranks(),
                       file->topology.num_links(), other->name(), other->num_ranks(),
                       other->num_links())});
  }
  const VerifyReport report = Verify(file->topology, file->schedule.collective, file->schedule,
                                     {.max_violations = flags.most});
  if (report.cancelled) return Report(CancelledError());
  Json out;
  DescribeTopology(file->topology, out);
  DescribeSchedule(file->schedule, out);
  out["deliveries"] = report.deliveries;
  std::vector<std::pair<std::string, std::string>> shown;
  for (const Violation& violation : report.violations)
    shown.emplace_back(Name(violation.kind), violation.message);
  return Answer(program, out,
                fmt::format("{}: {} on {} by {}, {} deliveries", flags.path,
                            Name(file->schedule.collective.kind()), file->topology.name(),
                            file->schedule.algorithm, report.deliveries),
                report.num_violations, shown);
}

}  // namespace

void AddVerify(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "verify",
      "Prove the schedule in a file, or name the first violations: who lacks what, when, where",
      "tutti verify torus.sched");
  command->add_option("file", flags->path, "Schedule file, or an MSCCL .xml file")->required();
  command->add_option("--topology", flags->topology,
                      "Refuse a schedule that was made for another network than this");
  command
      ->add_option("--dialect", flags->dialect,
                   "Reader of an .xml file: msccl, executor-nccl or rccl")
      ->capture_default_str();
  command->add_option("--most", flags->most, "Violations to print")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->callback(
      [&program, flags] { program.action = [&program, flags] { return Judge(program, *flags); }; });
}

}  // namespace tutti::cli
