// tutti cost
#include <fmt/format.h>

#include <memory>

#include "common.h"
#include "files.h"
#include "routing.h"
#include "symmetric.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/store/store.h"

namespace tutti::cli {
namespace {

struct CostFlags {
  std::string path, size = "1GiB";
};

int Cost(const Program& program, const CostFlags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  const Result<FileKind> kind = KindOfInput(
      flags.path, {FileKind::kSchedule, FileKind::kSymmetricSchedule, FileKind::kRouting});
  if (!kind) return Report(kind.error());
  if (*kind == FileKind::kRouting) return CostOfRoutingFile(program, flags.path, *sizes);
  if (*kind == FileKind::kSymmetricSchedule)
    return CostOfSymmetricFile(program, flags.path, *sizes);
  const Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return Report(file.error());
  const Result<Bounds> bounds = BoundsOf(file->topology, file->schedule.collective);
  if (!bounds) return Report(bounds.error());
  Json out;
  DescribeTopology(file->topology, out);
  DescribeSchedule(file->schedule, out);
  std::string text = fmt::format("{} on {} by {}\n", Name(file->schedule.collective.kind()),
                                 NameOf(file->topology), file->schedule.algorithm);
  for (int64_t size : *sizes) {
    const Evaluation evaluation = Evaluate(file->topology, file->schedule, size, *bounds);
    if (sizes->size() == 1) {
      DescribeEvaluation(file->schedule, evaluation, size, out);
    } else {
      Json row;
      DescribeEvaluation(file->schedule, evaluation, size, row);
      out["rows"].push_back(row);
    }
    text += EvaluationText(file->schedule, evaluation, size);
  }
  if (program.json)
    Print(out);
  else
    fmt::print("{}", text);
  return kDone;
}

}  // namespace

void AddCost(Program& program) {
  auto flags = std::make_shared<CostFlags>();
  Command command =
      program.AddCommand(program.line.root(), "cost",
                         "Exact alpha-beta cost of a schedule or routing, with its bounds",
                         "tutti cost torus.sched --size 1MiB,1GiB");
  command.AddOption("file", flags->path, "File with a schedule or a routing").Required();
  command.AddOption("--size", flags->size, "Sizes M, separated by commas").ShowDefault();
  command.Runs([&program, flags] { return Cost(program, *flags); });
}

}  // namespace tutti::cli
