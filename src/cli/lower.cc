// tutti lower
#include <fmt/format.h>

#include <memory>

#include "common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/lower/routes.h"
#include "tutti/sched/routing_store.h"
#include "tutti/sched/store.h"
#include "tutti/verify/routing.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string path, format, output, dialect = "executor-nccl", protocol = "Simple";
  std::string min_size = "0", max_size = "0";
  bool in_place = false;
};

Result<std::string> MscclText(const Flags& flags, const ScheduleFile& file) {
  const Result<MscclDialect> dialect = ParseMscclDialect(flags.dialect);
  if (!dialect) return tl::unexpected(dialect.error());
  const Result<int64_t> min_bytes = ParseSizeBytes(flags.min_size);
  if (!min_bytes) return tl::unexpected(min_bytes.error());
  const Result<int64_t> max_bytes = ParseSizeBytes(flags.max_size);
  if (!max_bytes) return tl::unexpected(max_bytes.error());
  Result<std::string> xml = ToMscclXml(file.topology, file.schedule,
                                       {.dialect = *dialect,
                                        .protocol = flags.protocol,
                                        .min_bytes = *min_bytes,
                                        .max_bytes = *max_bytes,
                                        .in_place = flags.in_place});
  if (!xml) return xml;
  const Result<std::vector<PlanFault>> faults = CheckMscclXml(*xml, *dialect);
  if (!faults) return tl::unexpected(faults.error());
  if (!faults->empty())
    return MakeError(ErrorCode::kInfeasible,
                     "the lowered file does not pass the checker (nothing was written): " +
                         faults->front().message);
  return xml;
}

bool IsRouteFormat(const std::string& format) {
  return format == "routes-per-rank" || format == "route-tables";
}

Result<std::string> RoutesText(const Flags& flags) {
  if (!IsRouteFormat(flags.format))
    return InvalidArgument(fmt::format(
        "{} holds a routing; it is lowered --to routes-per-rank or --to route-tables", flags.path));
  const Result<RoutingFile> file = ReadRoutingFile(flags.path);
  if (!file) return tl::unexpected(file.error());
  const RoutingReport report = CheckRouting(file->topology, file->routing);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible, "the routing is not correct (nothing was written): " +
                                                 report.violations.front().message);
  return flags.format == "route-tables" ? ToRouteTables(file->topology, file->routing)
                                        : ToRoutesPerRank(file->topology, file->routing);
}

Result<std::string> ScheduleText(const Flags& flags) {
  if (IsRouteFormat(flags.format))
    return InvalidArgument(fmt::format("{} holds a schedule; --to {} is for routings (.routes)",
                                       flags.path, flags.format));
  const Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return tl::unexpected(file.error());
  if (flags.format == "msccl-xml") return MscclText(flags, *file);
  const Result<Plan> plan = tutti::Lower(file->topology, file->schedule);
  if (!plan) return tl::unexpected(plan.error());
  return PlanToText(*plan);
}

int Lower(const Program& program, const Flags& flags) {
  const Result<std::string> text =
      IsRoutingFile(flags.path) ? RoutesText(flags) : ScheduleText(flags);
  if (!text) return Report(text.error());
  if (const Status written = WriteFileAtomically(flags.output, *text); !written)
    return Report(written.error());
  Json out{{"format", flags.format}, {"output", flags.output}, {"bytes", text->size()}};
  if (flags.format == "msccl-xml") {
    out["dialect"] = flags.dialect;
    out["verified"] = true;
  }
  if (program.json)
    Print(out);
  else if (flags.output != "/dev/stdout")
    fmt::print(
        "{} written to {} ({} bytes){}\n", flags.format, flags.output, text->size(),
        flags.format == "msccl-xml" ? ", checked as " + flags.dialect + " would read it" : "");
  return kDone;
}

}  // namespace

void AddLower(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "lower", "Write a schedule or routing in the format of a real runtime",
      "tutti lower torus.sched --to msccl-xml --dialect rccl -o torus.xml");
  command->add_option("file", flags->path, "Schedule or routing file")->required();
  command
      ->add_option("--to", flags->format,
                   "Of schedules msccl-xml, or plan for our own executor's text; of routings "
                   "routes-per-rank or route-tables")
      ->required()
      ->check(CLI::IsMember({"msccl-xml", "plan", "routes-per-rank", "route-tables"}));
  command->add_option("-o,--output", flags->output, "File to write")->required();
  command
      ->add_option("--dialect", flags->dialect,
                   "Which runtime will read it: msccl (microsoft/msccl), executor-nccl (Azure) or "
                   "rccl (ROCm)")
      ->capture_default_str();
  command->add_option("--protocol", flags->protocol, "Wire protocol: Simple, LL or LL128")
      ->capture_default_str()
      ->check(CLI::IsMember({"Simple", "LL", "LL128"}));
  command->add_option("--min-size", flags->min_size, "Smallest call the runtime uses it for")
      ->capture_default_str();
  command->add_option("--max-size", flags->max_size, "Largest call; 0 means no limit")
      ->capture_default_str();
  command->add_flag("--in-place", flags->in_place, "For calls in place");
  command->callback(
      [&program, flags] { program.action = [&program, flags] { return Lower(program, *flags); }; });
}

}  // namespace tutti::cli
