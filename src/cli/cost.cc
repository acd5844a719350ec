// tutti cost
#include <fmt/format.h>

#include <memory>

#include "common.h"
#include "symmetric.h"
#include "tutti/sched/store.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string path, size = "1GiB";
};

int Cost(const Program& program, const Flags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  if (IsSymmetricFile(flags.path)) return CostOfSymmetricFile(program, flags.path, *sizes);
  const Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return Report(file.error());
  Json out;
  DescribeTopology(file->topology, out);
  DescribeSchedule(file->schedule, out);
  std::string text = fmt::format("{} on {} by {}\n", Name(file->schedule.collective.kind()),
                                 file->topology.name(), file->schedule.algorithm);
  for (int64_t size : *sizes) {
    const Result<Evaluation> evaluation = Evaluate(file->topology, file->schedule, size);
    if (!evaluation) return Report(evaluation.error());
    if (sizes->size() == 1) {
      DescribeEvaluation(file->schedule, *evaluation, size, out);
    } else {
      Json row;
      DescribeEvaluation(file->schedule, *evaluation, size, row);
      out["rows"].push_back(row);
    }
    text += EvaluationText(file->schedule, *evaluation, size);
  }
  if (program.json)
    Print(out);
  else
    fmt::print("{}", text);
  return kDone;
}

}  // namespace

void AddCost(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(&program.app, "cost",
                                         "Exact alpha-beta cost of a schedule, with its bounds",
                                         "tutti cost torus.sched --size 1MiB,1GiB");
  command->add_option("file", flags->path, "Schedule file")->required();
  command->add_option("--size", flags->size, "Sizes M, separated by commas")->capture_default_str();
  command->callback(
      [&program, flags] { program.action = [&program, flags] { return Cost(program, *flags); }; });
}

}  // namespace tutti::cli
