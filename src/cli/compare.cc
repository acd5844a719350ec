// tutti compare
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "common.h"
#include "routing.h"
#include "sim_flags.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string topology, algorithms, size = "1GiB";
  CollectiveFlags collective;
  RoutingFlags routing;
  SimFlags sim;
  int32_t chunks = 0;
  uint64_t seed = 1;
};

struct Choice {
  std::vector<const Synthesizer*> synthesizers;
  std::vector<const Router*> routers;
};

// Those named, or all that make the collective and are quick.
Result<Choice> Chosen(const std::string& names, CollectiveKind kind) {
  Choice chosen;
  if (names.empty()) {
    for (const Synthesizer& synthesizer : Synthesizers())
      if (!synthesizer.on_request_only &&
          std::count(synthesizer.collectives.begin(), synthesizer.collectives.end(), kind) > 0)
        chosen.synthesizers.push_back(&synthesizer);
    return chosen;
  }
  size_t begin = 0;
  for (;;) {
    const size_t comma = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, comma - begin);
    const Result<const Synthesizer*> found = FindSynthesizer(name);
    const Router* const router = FindRouter(name);
    if (!found && router == nullptr)
      return MakeError(found.error().code,
                       found.error().message + "; for all-to-all also " + RouterNames());
    if (found) chosen.synthesizers.push_back(*found);
    if (router != nullptr) chosen.routers.push_back(router);
    if (comma == names.size()) return chosen;
    begin = comma + 1;
  }
}

struct Made {
  Schedule schedule;
  double synthesis_s;
};

Result<Made> Make(const Synthesizer& synthesizer, const Topology& topology, const Flags& flags,
                  int64_t size) {
  const Result<Collective> collective =
      flags.collective.Make(topology, synthesizer.one_shard_all_reduce);
  if (!collective) return tl::unexpected(collective.error());
  const auto before = std::chrono::steady_clock::now();
  Result<Schedule> schedule =
      RunSynthesizer(synthesizer, topology, *collective,
                     {.chunks = flags.chunks, .seed = flags.seed, .size_bytes = size});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(topology, *collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the schedule of '{}' is not correct: {}", synthesizer.name,
                                 report.violations.front().message));
  return Made{std::move(*schedule), elapsed.count()};
}

int Compare(const Program& program, const Flags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  const Result<Topology> topology = ParseTopology(flags.topology);
  if (!topology) return Report(topology.error());
  // Faults of the collective itself are bad input, not a row of the table.
  const Result<Collective> wanted = flags.collective.Make(*topology, false);
  if (!wanted) return Report(wanted.error());
  const Result<Choice> chosen = Chosen(flags.algorithms, wanted->kind());
  if (!chosen) return Report(chosen.error());
  SimOptions options = flags.sim.Make();

  Json out;
  DescribeTopology(*topology, out);
  out["collective"] = flags.collective.name;
  out["rows"] = Json::array();
  Table table({"algorithm", "size", "steps", "TB (M/B)", "analytic", "simulated", "bound",
               "efficiency", "busbw", "synthesis"});
  std::string reasons;
  bool some = false;
  for (const Synthesizer* synthesizer : chosen->synthesizers) {
    for (int64_t size : *sizes) {
      if (CancelRequested()) return Report(CancelledError());
      const std::string name(synthesizer->name);
      const Result<Made> made = Make(*synthesizer, *topology, flags, size);
      Json row;
      row["algorithm"] = name;
      row["size_bytes"] = size;
      if (!made) {
        if (made.error().code == ErrorCode::kCancelled) return Report(made.error());
        row["error"] = made.error().message;
        out["rows"].push_back(row);
        reasons += fmt::format("  {}: {}\n", name, made.error().message);
        break;  // the other sizes fail alike
      }
      const Result<Evaluation> evaluation = Evaluate(*topology, made->schedule, size);
      if (!evaluation) return Report(evaluation.error());
      options.size_bytes = size;
      const Result<SimReport> sim = Simulate(*topology, made->schedule, options);
      if (!sim) return Report(sim.error());
      const bool step = made->schedule.kind == ScheduleKind::kStep;
      const double bound =
          evaluation->bounds.Seconds(size, step && options.step_mode == StepMode::kBarrier);
      some = true;
      DescribeSchedule(made->schedule, row);
      DescribeEvaluation(made->schedule, *evaluation, size, row);
      row["analytic_s"] = evaluation->time_s;
      row["analytic_bound_s"] = evaluation->bound_s;
      row["time_s"] = sim->time_s;
      row["bound_s"] = bound;
      row["efficiency"] = bound / sim->time_s;
      row["algbw"] = sim->algbw;
      row["busbw"] = sim->busbw;
      row["synthesis_s"] = made->synthesis_s;
      row["verified"] = true;
      out["rows"].push_back(row);
      table.AddRow({name, FormatSize(size), step ? std::to_string(evaluation->cost.tl) : "-",
                    step ? fmt::format("{:.4f}", evaluation->cost.tb.ToDouble()) : "-",
                    Seconds(evaluation->time_s), Seconds(sim->time_s), Seconds(bound),
                    Percent(bound / sim->time_s), BytesPerSecond(sim->busbw),
                    Seconds(made->synthesis_s)});
    }
  }
  std::string routings;
  if (!chosen->routers.empty()) {
    const Result<std::string> text =
        CompareRouters(*topology, flags.collective, flags.routing, chosen->routers, flags.seed,
                       *sizes, out, reasons);
    if (!text) return Report(text.error());
    routings = *text;
  }
  out["peak_rss_bytes"] = PeakRssBytes();
  if (program.json) {
    Print(out);
    return some || !routings.empty() ? kDone : kAnswerIsNo;
  }
  fmt::print("{} on {} ({} ranks)", flags.collective.name, topology->name(), topology->num_ranks());
  if (some)
    fmt::print(", every schedule verified; simulated with links {}, steps {}\n\n{}\n",
               flags.sim.link_model, flags.sim.mode, table.ToString());
  else
    fmt::print(": no algorithm makes a schedule\n\n");
  if (!routings.empty())
    fmt::print("routings, every one verified; times are those of the busiest link\n\n{}\n",
               routings);
  if (!reasons.empty()) fmt::print("not in the table:\n{}", reasons);
  return some || !routings.empty() ? kDone : kAnswerIsNo;
}

}  // namespace

void AddCompare(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "compare",
      "One table of many algorithms: analytic, simulated, efficiency against the bound",
      "tutti compare dgx1 -c all-reduce -a ring,dbt,bfb --size 1MiB,1GiB");
  command->add_option("topology", flags->topology, "Expression or path of a .json file")
      ->required();
  flags->collective.AddTo(command);
  command->add_option("-a,--algorithms", flags->algorithms,
                      "Algorithms and routers, separated by commas; default: all algorithms but "
                      "taccl-like");
  flags->routing.AddTo(command);
  command->add_option("--size", flags->size, "Sizes M, separated by commas")->capture_default_str();
  command->add_option("--chunks", flags->chunks, "Equal chunks a shard; 0 means what each needs")
      ->check(CLI::Range(0, 1 << 30));
  command->add_option("--seed", flags->seed, "Seed of algorithms that draw")->capture_default_str();
  flags->sim.AddTo(command);
  command->callback([&program, flags] {
    program.action = [&program, flags] { return Compare(program, *flags); };
  });
}

}  // namespace tutti::cli
