// tutti synth
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>

#include "common.h"
#include "symmetric.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/sched/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string topology, algorithm, size = "1GiB", output;
  CollectiveFlags collective;
  int32_t chunks = 0, tries = 0;
  uint64_t seed = 1;
  bool no_verify = false, symmetric = false;
};

int Synthesize(const Program& program, const Flags& flags) {
  const Result<Topology> topology = ParseTopology(flags.topology);
  if (!topology) return Report(topology.error());
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(flags.algorithm);
  if (!synthesizer) return Report(synthesizer.error());
  const Result<Collective> collective =
      flags.collective.Make(*topology, (*synthesizer)->one_shard_all_reduce);
  if (!collective) return Report(collective.error());
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  const int64_t size = sizes->front();

  // A million ranks: their translations tell from one of them what all do.
  if (flags.symmetric ||
      (MayBeSymmetric(flags.algorithm, *collective) && IsTooLargeInFull(*collective))) {
    const SymmetricJob job{
        flags.algorithm,
        flags.output,
        {.chunks = flags.chunks, .seed = flags.seed, .size_bytes = size, .tries = flags.tries},
        !flags.no_verify,
        flags.symmetric};
    if (const auto code = SynthesizeSymmetric(program, *topology, *collective, job)) return *code;
  }

  const auto before = std::chrono::steady_clock::now();
  const Result<Schedule> schedule = RunSynthesizer(
      **synthesizer, *topology, *collective,
      {.chunks = flags.chunks, .seed = flags.seed, .size_bytes = size, .tries = flags.tries});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!schedule) return Report(schedule.error());
  spdlog::debug("made {} transfers in {}", schedule->transfers.size(), Seconds(elapsed.count()));

  if (!flags.no_verify) {
    const VerifyReport report = Verify(*topology, *collective, *schedule);
    if (report.cancelled) return Report(CancelledError());
    if (!report.verified()) {
      for (const Violation& violation : report.violations)
        fmt::print(stderr, "{}: {}\n", Name(violation.kind), violation.message);
      return Report({ErrorCode::kInfeasible,
                     fmt::format("the schedule of '{}' is not correct ({} violations); nothing was "
                                 "written",
                                 flags.algorithm, report.num_violations)});
    }
  }
  spdlog::debug("verified; computing cost and bounds");
  const Result<Evaluation> evaluation = Evaluate(*topology, *schedule, size);
  if (!evaluation) return Report(evaluation.error());
  if (!flags.output.empty())
    if (const Status written = WriteScheduleFile(flags.output, *topology, *schedule); !written)
      return Report(written.error());

  if (program.json) {
    Json out;
    DescribeTopology(*topology, out);
    DescribeSchedule(*schedule, out);
    DescribeEvaluation(*schedule, *evaluation, size, out);
    out["synthesis_s"] = elapsed.count();
    out["peak_rss_bytes"] = PeakRssBytes();
    out["verified"] = flags.no_verify ? Json(nullptr) : Json(true);
    Print(out);
    return kDone;
  }
  fmt::print("{} on {} by {}: {} transfers, {} chunk{} a shard, made in {}, {}\n",
             Name(collective->kind()), topology->name(), flags.algorithm,
             schedule->transfers.size(), schedule->units_per_shard,
             schedule->units_per_shard == 1 ? "" : "s", Seconds(elapsed.count()),
             flags.no_verify ? "not verified" : "verified");
  fmt::print("{}", EvaluationText(*schedule, *evaluation, size));
  if (!flags.output.empty()) fmt::print("written to {}\n", flags.output);
  return kDone;
}

}  // namespace

void AddSynth(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "synth", "Make a schedule, prove it correct and print its cost",
      "tutti synth 'torus(4,4)' -c all-reduce -a bfb -o torus.sched");
  command->add_option("topology", flags->topology, "Expression or path of a .json file")
      ->required();
  flags->collective.AddTo(command);
  std::string names;
  for (const Synthesizer& synthesizer : Synthesizers())
    names += (names.empty() ? "" : ", ") + std::string(synthesizer.name);
  command->add_option("-a,--algorithm", flags->algorithm, "Algorithm: " + names)->required();
  command
      ->add_option("--chunks", flags->chunks,
                   "Equal chunks a shard; 0 means what the algorithm needs")
      ->check(CLI::Range(0, 1 << 30));
  command->add_option("--size", flags->size, "Size M that the printed time is for")
      ->capture_default_str();
  command->add_option("--tries", flags->tries,
                      "Variants of which the best is kept, where an algorithm has some; 0: its "
                      "default");
  command->add_option("--seed", flags->seed, "Seed of algorithms that draw")->capture_default_str();
  command->add_option("-o,--output", flags->output,
                      "Write the schedule: .json for people, anything else binary");
  command->add_flag("--no-verify", flags->no_verify, "Skip the proof");
  command->add_flag("--symmetric", flags->symmetric,
                    "Make and store one rank's schedule and the network's translations, which "
                    "stand for all; bfb only, chosen by itself where the whole does not fit");
  command->callback([&program, flags] {
    program.action = [&program, flags] { return Synthesize(program, *flags); };
  });
}

}  // namespace tutti::cli
