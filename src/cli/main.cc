// The `tutti` command: flags in, rooms called, text or JSON out.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "common.h"

namespace tutti::cli {
namespace {

struct CommandRow {
  std::string_view name;
  void (*add)(Program&);
};

// In the order of the help.
constexpr CommandRow kCommands[] = {
    {.name = "topo", .add = AddTopo},
    {.name = "synth", .add = AddSynth},
    {.name = "verify", .add = AddVerify},
    {.name = "cost", .add = AddCost},
    {.name = "sim", .add = AddSim},
    {.name = "compare", .add = AddCompare},
    {.name = "explain", .add = AddExplain},
    {.name = "diff", .add = AddDiff},
    {.name = "explore", .add = AddExplore},
    {.name = "advise", .add = AddAdvise},
    {.name = "flow", .add = AddFlow},
    {.name = "lower", .add = AddLower},
    {.name = "rules", .add = AddRules},
    {.name = "run", .add = AddRun},
    {.name = "run-ranks", .add = AddRunRanks},
    {.name = "calibrate", .add = AddCalibrate},
    {.name = "design", .add = AddDesign},
    {.name = "train", .add = AddTrain},
    {.name = "mpi", .add = AddMpi},
    {.name = "bench", .add = AddBench},
    {.name = "service", .add = AddService},
    {.name = "docs", .add = AddDocs},
};

// To describe every option of every command takes longer than many a command: where one is named, it alone is added. Its
// own help, and what is wrong with its options, need no other. `docs` tells of all.
void AddCommands(Program& program) {
  const std::string named = program.arguments.size() > 1 ? program.arguments[1] : "";
  const auto* const row = std::ranges::find(kCommands, named, &CommandRow::name);
  if (row != std::end(kCommands) && row->add != AddDocs) return row->add(program);
  for (const CommandRow& command : kCommands) command.add(program);
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  return tutti::cli::RunProgram(argc, argv, tutti::cli::AddCommands);
}
