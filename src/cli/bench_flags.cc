#include "bench_flags.h"

namespace tutti::cli {

Command AddBenchCommand(Program& program, const std::shared_ptr<BenchFlags>& flags) {
  Command command =
      program.AddCommand(program.line.root(), "bench",
                         "Makes a table or figure of a paper again, side by side with the paper's "
                         "figures; without a name, lists them",
                         "tutti bench direct-table5");
  command.AddOption("name", flags->name, "Experiment; none: list them");
  command.AddOption("-o,--output", flags->output, "Also draw the figure to this SVG file");
  command.AddFlag("--markdown", flags->markdown, "Print tables as Markdown");
  command
      .AddOption("--max-ranks", flags->max_ranks,
                 "Leave out larger networks; 0: as large as the paper's")
      .Within(0, 1 << 24)
      .ShowDefault();
  command
      .AddOption("--step", flags->step,
                 "Of sweeps over N take every STEPth N; 0: what the experiment takes")
      .Within(0, 1 << 24)
      .ShowDefault();
  command.AddFlag("--large", flags->large,
                  "Also what takes minutes; each experiment's notes say what that is");
  command.AddOption("--simulated", flags->simulated,
                    "Keep simulated points, and runs of the testbed, in this folder, and take from "
                    "there what is known");
  command.AddOption("--redraw", flags->redraw,
                    "Draw this figure of `bench -o` again from the data that it carries, in its "
                    "place or to -o; measures nothing");
  return command;
}

}  // namespace tutti::cli
