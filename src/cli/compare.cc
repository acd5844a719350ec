// tutti compare
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "best_by_size.h"
#include "choice.h"
#include "common.h"
#include "routing.h"
#include "sim_flags.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/synth/auto.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"
#include "unwind.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string topology, algorithms, unwind, size = "1GiB";
  CollectiveFlags collective;
  RoutingFlags routing;
  SimFlags sim;
  ChunksFlag chunks;
  uint64_t seed = 1;
};

// A name and what it stands for; nothing: the best of all.
struct Entry {
  std::string name;
  const Synthesizer* synthesizer = nullptr;
};
struct Choice {
  std::vector<Entry> entries;
  std::vector<const Router*> routers;
};

// Those named, or all that make the collective and are quick.
Result<Choice> Chosen(const std::string& names, CollectiveKind kind) {
  Choice chosen;
  if (names.empty()) {
    for (const Synthesizer& synthesizer : Synthesizers())
      if (!synthesizer.on_request_only &&
          std::count(synthesizer.collectives.begin(), synthesizer.collectives.end(), kind) > 0)
        chosen.entries.push_back({std::string(synthesizer.name), &synthesizer});
    return chosen;
  }
  size_t begin = 0;
  for (;;) {
    const size_t comma = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, comma - begin);
    const Result<const Synthesizer*> found = FindAlgorithm(name);
    const Router* const router = FindRouter(name);
    if (!found && router == nullptr) return tl::unexpected(found.error());
    if (router != nullptr) chosen.routers.push_back(router);
    if (found) chosen.entries.push_back({std::move(name), *found});
    if (comma == names.size()) return chosen;
    begin = comma + 1;
  }
}

// The network asked for and what became of it where each algorithm has its own unwinding.
class Networks {
 public:
  explicit Networks(Topology whole, bool tries_unwindings)
      : whole_(std::move(whole)), tries_unwindings_(tries_unwindings && whole_.has_switches()) {}

  const Topology& whole() const { return whole_; }
  bool tries_unwindings() const { return tries_unwindings_; }
  // Stays where it is.
  const Topology& Keep(const Unwound& unwound) {
    return unwound_.try_emplace(unwound.degree, unwound.topology).first->second;
  }

 private:
  Topology whole_;
  bool tries_unwindings_;
  std::map<int32_t, Topology> unwound_;  // by degree
};

Result<Networks> MakeNetworks(const Flags& flags) {
  if (flags.unwind.empty() || flags.unwind == kTrySeveral)
    return ParseTopology(flags.topology).map([&](Topology topology) {
      return Networks(std::move(topology), !flags.unwind.empty());
    });
  return UnwindBy(flags.topology, flags.unwind).map([](Unwound unwound) {
    return Networks(std::move(unwound.topology), false);
  });
}

// Where networks are tried for algorithms, algorithms are not tried for networks.
Status CheckUnwindings(const Networks& networks, Choice& chosen) {
  if (!networks.tries_unwindings()) return {};
  for (const Entry& entry : chosen.entries)
    if (entry.synthesizer == nullptr)
      return InvalidArgument(
          "--unwind auto tries networks for one algorithm, and auto algorithms for one network: "
          "give --unwind a degree, or leave auto out");
  for (const Router* router : chosen.routers)
    if (!FindSynthesizer(router->name))
      return InvalidArgument(fmt::format(
          "--unwind auto is for schedules, and '{}' makes a routing: give --unwind a degree",
          router->name));
  chosen.routers.clear();
  return {};
}

struct Made {
  const Topology* topology;
  Schedule schedule;
  double synthesis_s;
  std::optional<Unwound> unwound;
};

// Of what only some algorithms have, those that have it get it.
SynthOptions OptionsFor(const Entry& entry, const Flags& flags, int64_t size) {
  const bool counts = entry.synthesizer == nullptr || entry.synthesizer->counts_chunks;
  return {.chunks = flags.chunks.count(),
          .seed = flags.seed,
          .size_bytes = size,
          .link_model = flags.sim.links.model(),
          .auto_chunks = flags.chunks.is_auto() && counts,
          .max_seconds = flags.routing.time_limit};
}

Result<Schedule> Synthesize(const Entry& entry, const Topology& topology,
                            const Collective& collective, const SynthOptions& options) {
  if (entry.synthesizer != nullptr)
    return RunSynthesizer(*entry.synthesizer, topology, collective, options);
  return ChooseSynthesizer(topology, collective, options).map([](AutoChoice choice) {
    return std::move(choice.schedule);
  });
}

Result<Made> MakeOn(const Topology& topology, const Entry& entry, const Flags& flags,
                    const SynthOptions& options) {
  const Result<Collective> collective = flags.collective.Make(
      topology, entry.synthesizer != nullptr && entry.synthesizer->one_shard_all_reduce);
  if (!collective) return tl::unexpected(collective.error());
  const auto before = std::chrono::steady_clock::now();
  Result<Schedule> schedule = Synthesize(entry, topology, *collective, options);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(topology, schedule->collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the schedule of '{}' is not correct: {}", entry.name,
                                 report.violations.front().message));
  return Made{&topology, std::move(*schedule), elapsed.count(), std::nullopt};
}

Result<Made> Make(const Entry& entry, Networks& networks, const Flags& flags, int64_t size) {
  const SynthOptions options = OptionsFor(entry, flags, size);
  if (!networks.tries_unwindings()) return MakeOn(networks.whole(), entry, flags, options);
  Result<Unwound> best =
      Unwind(flags.topology, flags.unwind, *entry.synthesizer, flags.collective, options);
  if (!best) return tl::unexpected(best.error());
  Result<Made> made = MakeOn(networks.Keep(*best), entry, flags, options);
  if (made) made->unwound = *std::move(best);
  return made;
}

// The schedules that stand for each algorithm at all sizes (best_by_size.h).
class Held {
 public:
  // Beyond so many transfers a schedule is made for the sizes asked for only; all together, they
  // are not simulated at many sizes. Both keep that below a few seconds.
  static constexpr size_t kMostToMakeAgain = 50'000, kMostToSimulate = 200'000;

  // False where it is one of those already held.
  bool Add(const std::string& algorithm, const Made& made) {
    for (const HeldSchedule& held : schedules_)
      if (held.algorithm == algorithm && held.schedule == made.schedule) return false;
    transfers_ += made.schedule.transfers.size();
    schedules_.push_back({algorithm, made.topology, made.schedule});
    return true;
  }

  // What the algorithm makes of other sizes, on the network that it was on last. Most make one
  // schedule of all of them.
  Status AddOtherSizes(const Entry& entry, const Flags& flags) {
    if (entry.synthesizer == nullptr || schedules_.empty() ||
        schedules_.back().algorithm != entry.name ||
        schedules_.back().schedule.transfers.size() > kMostToMakeAgain)
      return {};
    const Topology* const topology = schedules_.back().topology;
    bool differs = false;
    for (int64_t size : kOtherSizes) {
      if (size == kOtherSizes.back() && !differs) break;
      const Result<Made> made = MakeOn(*topology, entry, flags, OptionsFor(entry, flags, size));
      if (!made && made.error().code == ErrorCode::kCancelled) return tl::unexpected(made.error());
      if (!made) return {};
      differs = Add(entry.name, *made) || differs;
    }
    return {};
  }

  Result<std::string> Describe(const SimOptions& options, Json& out) const {
    if (schedules_.empty()) return std::string();
    const Result<std::vector<BestRange>> by_cost = BestByCost(schedules_);
    if (!by_cost) return tl::unexpected(by_cost.error());
    out["best_by_size_analytic"] = ToJson(*by_cost);
    out["best_by_size"] = nullptr;
    if (transfers_ > kMostToSimulate)
      return fmt::format("best, analytic: {}\nbest, simulated: too many transfers for all sizes\n",
                         Text(*by_cost));
    const Result<std::vector<BestRange>> simulated = BestBySimulation(schedules_, options);
    if (!simulated) return tl::unexpected(simulated.error());
    out["best_by_size"] = ToJson(*simulated);
    const std::string one = Text(*by_cost), other = Text(*simulated);
    if (one == other) return fmt::format("best: {}\n", one);
    return fmt::format("best, analytic: {}\nbest, simulated: {}\n", one, other);
  }

 private:
  // Where the two ends are made alike, so is what lies between.
  static constexpr std::array<int64_t, 3> kOtherSizes{1 << 10, 1 << 30, 1 << 20};

  std::vector<HeldSchedule> schedules_;
  size_t transfers_ = 0;
};

int Compare(const Program& program, const Flags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  Result<Networks> networks = MakeNetworks(flags);
  if (!networks) return Report(networks.error());
  const Topology* const topology = &networks->whole();
  // Faults of the collective itself are bad input, not a row of the table.
  const Result<Collective> wanted = flags.collective.Make(*topology, false);
  if (!wanted) return Report(wanted.error());
  Result<Choice> chosen = Chosen(flags.algorithms, wanted->kind());
  if (!chosen) return Report(chosen.error());
  if (const Status fits = CheckUnwindings(*networks, *chosen); !fits) return Report(fits.error());
  SimOptions options = flags.sim.Make();

  Json out;
  DescribeTopology(*topology, out);
  out["collective"] = flags.collective.name;
  out["rows"] = Json::array();
  std::vector<std::string> header = {"algorithm", "size",  "steps",      "TB (M/B)", "analytic",
                                     "simulated", "bound", "efficiency", "busbw",    "synthesis"};
  if (networks->tries_unwindings()) header.emplace_back("degree");
  Table table(header);
  std::string reasons;
  bool some = false;
  Held held;
  for (const Entry& entry : chosen->entries) {
    for (int64_t size : *sizes) {
      if (CancelRequested()) return Report(CancelledError());
      const Result<Made> made = Make(entry, *networks, flags, size);
      Json row;
      row["algorithm"] = entry.name;
      row["size_bytes"] = size;
      if (!made) {
        if (made.error().code == ErrorCode::kCancelled) return Report(made.error());
        row["error"] = made.error().message;
        out["rows"].push_back(row);
        reasons += fmt::format("  {}: {}\n", entry.name, made.error().message);
        break;  // the other sizes fail alike
      }
      const Result<Evaluation> evaluation = Evaluate(*made->topology, made->schedule, size);
      if (!evaluation) return Report(evaluation.error());
      options.size_bytes = size;
      const Result<SimReport> sim = Simulate(*made->topology, made->schedule, options);
      if (!sim) return Report(sim.error());
      const bool step = made->schedule.kind == ScheduleKind::kStep;
      const double bound =
          evaluation->bounds.Seconds(size, step && options.step_mode == StepMode::kBarrier);
      some = true;
      DescribeSchedule(made->schedule, row);
      std::string shown = entry.name;
      if (entry.synthesizer == nullptr) {
        row["algorithm"] = entry.name;
        row["chosen"] = made->schedule.algorithm;
        shown += ": " + made->schedule.algorithm;
      } else {
        held.Add(entry.name, *made);
      }
      DescribeEvaluation(made->schedule, *evaluation, size, row);
      if (made->unwound) DescribeUnwound(*made->unwound, row);
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
      std::vector<std::string> cells = {
          shown,
          FormatSize(size),
          step ? std::to_string(evaluation->cost.tl) : "-",
          step ? fmt::format("{:.4f}", evaluation->cost.tb.ToDouble()) : "-",
          Seconds(evaluation->time_s),
          Seconds(sim->time_s),
          Seconds(bound),
          Percent(bound / sim->time_s),
          BytesPerSecond(sim->busbw),
          Seconds(made->synthesis_s)};
      if (made->unwound) cells.push_back(std::to_string(made->unwound->degree));
      table.AddRow(std::move(cells));
    }
    if (const Status added = held.AddOtherSizes(entry, flags); !added) return Report(added.error());
  }
  const Result<std::string> best = held.Describe(options, out);
  if (!best) return Report(best.error());
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
    fmt::print("{}, every schedule verified; simulated with links {}, steps {}\n\n{}\n",
               networks->tries_unwindings() ? ", its switches unwound for each" : "",
               flags.sim.links.name, flags.sim.mode, table.ToString());
  else
    fmt::print(": no algorithm makes a schedule\n\n");
  if (!best->empty()) fmt::print("{}\n", *best);
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
                      "Algorithms and routers, separated by commas, auto for the best predicted; "
                      "default: all algorithms but taccl-like");
  flags->routing.AddTo(command);
  command->add_option("--size", flags->size, "Sizes M, separated by commas")->capture_default_str();
  flags->chunks.AddTo(command);
  command->add_option("--unwind", flags->unwind,
                      "Replace every switch by links from each rank to the so many after it: a "
                      "degree, or auto, which keeps the fastest for each algorithm and size");
  command->add_option("--seed", flags->seed, "Seed of algorithms that draw")->capture_default_str();
  flags->sim.AddTo(command);
  command->callback([&program, flags] {
    program.action = [&program, flags] { return Compare(program, *flags); };
  });
}

}  // namespace tutti::cli
