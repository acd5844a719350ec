// The `tutti` command: flags in, rooms called, text or JSON out.
#include "common.h"

namespace tutti::cli {
namespace {

void AddCommands(Program& program) {
  AddTopo(program);
  AddSynth(program);
  AddVerify(program);
  AddCost(program);
  AddSim(program);
  AddCompare(program);
  AddExplain(program);
  AddDiff(program);
  AddExplore(program);
  AddAdvise(program);
  AddFlow(program);
  AddLower(program);
  AddRules(program);
  AddRun(program);
  AddRunRanks(program);
  AddCalibrate(program);
  AddDesign(program);
  AddTrain(program);
  AddMpi(program);
  AddBench(program);
  AddService(program);
  AddDocs(program);
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  return tutti::cli::RunProgram(argc, argv, tutti::cli::AddCommands);
}
