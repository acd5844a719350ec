// tutti synth
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "choice.h"
#include "common.h"
#include "files.h"
#include "html.h"
#include "routing.h"
#include "sim_flags.h"
#include "symmetric.h"
#include "tutti/base/cancel.h"
#include "tutti/base/memory.h"
#include "tutti/base/units.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/store/store.h"
#include "tutti/synth/auto.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/synth/ten.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/stream.h"
#include "tutti/verify/verifier.h"
#include "unwind.h"

namespace tutti::cli {
namespace {

struct SynthFlags {
  std::string topology, algorithm, size = "1GiB", output, policy, unwind, wait = "auto";
  CollectiveFlags collective;
  RoutingFlags routing;
  ChunksFlag chunks;
  ElementFlag element;
  LinkModelFlag links;
  int32_t tries = 0, steps = 0, trees = 0;
  HtmlFlag html;
  uint64_t seed = 1;
  bool no_verify = false, symmetric = false, stream = false, cost_only = false,
       no_final_pass = false, multicast = false;
};

// The network as it was asked for; with --unwind, what became of it.
struct Network {
  Topology topology;
  std::optional<Unwound> unwound;
  double elapsed_s = 0;  // to find it
};

// A schedule too large for memory, or only its cost.
struct Streamed {
  Schedule outline;  // one transfer a step, which costs what the whole costs
  int64_t num_transfers = 0;
  double elapsed_s = 0;
  bool verified = false;
};

Status VerifyWritten(const std::string& path, const std::string& algorithm) {
  const Result<std::unique_ptr<ScheduleReader>> reader = ScheduleReader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  const Result<VerifyReport> report = VerifyStream(**reader, {}, AvailableMemoryBytes());
  if (!report) return tl::unexpected(report.error());
  return RequireVerified(*report, algorithm, "the file is removed");
}

Result<Streamed> Stream(const SynthFlags& flags, const Topology& topology,
                        const Collective& collective, const SynthOptions& options) {
  if (flags.output.empty() && !flags.cost_only)
    return InvalidArgument(
        "a streamed schedule is written to a file as it is made: -o FILE, or "
        "--cost-only");
  if (flags.output.ends_with(".json"))
    return InvalidArgument(flags.output + ": JSON files do not stream; use another ending");
  OpenSchedule open;
  if (!flags.cost_only)
    open = [&](const Schedule& header, int64_t num_transfers) {
      return ScheduleWriter::Open(flags.output, topology, header,
                                  static_cast<uint64_t>(num_transfers));
    };
  const auto before = std::chrono::steady_clock::now();
  Result<TenStreamed> made = StreamTen(topology, collective, options, open, AvailableMemoryBytes());
  if (!made) return tl::unexpected(made.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  Streamed streamed{std::move(made->header), made->num_transfers, elapsed.count(), false};
  if (!flags.cost_only && !flags.no_verify) {
    spdlog::debug("written in {}; verifying the file", Seconds(streamed.elapsed_s));
    if (const Status proven = VerifyWritten(flags.output, flags.algorithm); !proven) {
      std::remove(flags.output.c_str());
      return tl::unexpected(proven.error());
    }
    streamed.verified = true;
  }
  // All links are equal and carry at most one chunk a step.
  for (int32_t step = 0; step < streamed.outline.num_steps; ++step)
    streamed.outline.transfers.push_back({ShardId{0}, LinkId{0}, 0, 1, step, TransferOp::kCopy});
  return streamed;
}

int SynthesizeStreamed(const Program& program, const SynthFlags& flags, const Network& network,
                       const Collective& collective, const SynthOptions& options) {
  const Topology& topology = network.topology;
  const Result<Streamed> streamed = Stream(flags, topology, collective, options);
  if (!streamed) return Report(streamed.error());
  const Schedule& outline = streamed->outline;
  const Result<Bounds> bounds = BoundsOf(topology, outline.collective);
  if (!bounds) return Report(bounds.error());
  const Evaluation evaluation = Evaluate(topology, outline, options.size_bytes, *bounds);
  if (program.json) {
    Json out;
    DescribeTopology(topology, out);
    DescribeSchedule(outline, out);
    out["transfers"] = streamed->num_transfers;
    DescribeEvaluation(outline, evaluation, options.size_bytes, out);
    out["synthesis_s"] = streamed->elapsed_s;
    out["peak_rss_bytes"] = PeakRssBytes();
    if (network.unwound) DescribeUnwound(*network.unwound, out);
    out["streamed"] = true;
    out["verified"] = streamed->verified ? Json(true) : Json(nullptr);
    Print(out);
    return kDone;
  }
  fmt::print("{} on {} by {}: {} transfers, {} chunk{} a shard, {} in {}, {}\n",
             Name(collective.kind()), NameOf(topology), flags.algorithm,
             Count(static_cast<int64_t>(streamed->num_transfers)), Count(outline.units_per_shard),
             outline.units_per_shard == 1 ? "" : "s",
             flags.cost_only ? "counted" : "made and written", Seconds(streamed->elapsed_s),
             streamed->verified ? "verified" : "not verified");
  fmt::print("{}", EvaluationText(outline, evaluation, options.size_bytes));
  if (!flags.cost_only) fmt::print("written to {}\n", flags.output);
  return kDone;
}

// By which of both ways a schedule is made. Says so where memory decides it.
Result<bool> Streams(const SynthFlags& flags, const Topology& topology,
                     const Collective& collective, const SynthOptions& options) {
  const bool asked = flags.stream || flags.cost_only;
  if (flags.algorithm != "ten") {
    if (!asked) return false;
    return InvalidArgument(fmt::format(
        "--stream and --cost-only are of the algorithm ten, not of {}", flags.algorithm));
  }
  const Status streams = CheckTenStreams(topology, collective, options);
  if (asked && !streams) return tl::unexpected(streams.error());
  if (asked || !streams) return asked;
  const TenMemory needed = TenMemoryOf(topology, collective, options);
  const int64_t available = AvailableMemoryBytes();
  // Half of the memory there is: the rest of the machine has work too. What does not fit either way
  // is refused by the maker.
  if (needed.in_memory_bytes <= available / 2 || needed.streamed_bytes > available) return false;
  fmt::print(stderr, "the schedule in memory would need {} of {}: it is streamed to the file\n",
             MemoryText(needed.in_memory_bytes), MemoryText(available));
  return true;
}

// Where a name is a router's and a synthesizer's, the file asked for decides.
bool MakesRouting(const SynthFlags& flags) {
  if (FindRouter(flags.algorithm) == nullptr) return false;
  return flags.output.ends_with(".routes") || flags.output.ends_with(".routes.json") ||
         !FindSynthesizer(flags.algorithm);
}

// By the one that is named, or by the best of all, which `choice` then tells of.
Result<Schedule> Make(const Synthesizer* synthesizer, const Topology& topology,
                      const Collective& collective, const SynthOptions& options,
                      std::optional<Unwound>& unwound, std::optional<AutoChoice>& choice) {
  if (synthesizer != nullptr) return RunSynthesizer(*synthesizer, topology, collective, options);
  Result<AutoChoice> chosen = unwound ? ChooseOn(*unwound, collective, options)
                                      : ChooseSynthesizer(topology, collective, options);
  if (!chosen) return tl::unexpected(chosen.error());
  if (options.notes != nullptr) *options.notes = chosen->notes;
  Schedule schedule = std::move(chosen->schedule);
  choice = *std::move(chosen);
  return schedule;
}

int MakeRouting(const Program& program, const SynthFlags& flags) {
  if (!flags.policy.empty() || !flags.unwind.empty() || flags.wait != "auto" ||
      flags.chunks.is_auto() || flags.no_final_pass || flags.multicast || flags.html.given())
    return Report(
        {ErrorCode::kInvalidArgument,
         fmt::format("--policy, --wait, --no-final-pass, --multicast, --unwind, --html and "
                     "--chunks auto are for schedules; '{}' makes a routing",
                     flags.algorithm)});
  const Result<Topology> topology = ParseTopology(flags.topology);
  if (!topology) return Report(topology.error());
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  return SynthesizeRouting(
      program, *topology, flags.collective, flags.routing,
      {flags.algorithm, flags.output, flags.seed, sizes->front(), !flags.no_verify});
}

// `synthesizer`: none for the best of all, which unwinds switches by itself.
Result<Network> MakeNetwork(const SynthFlags& flags, const Synthesizer* synthesizer,
                            const SynthOptions& options) {
  std::string_view how = flags.unwind;
  if (how.empty()) {
    Result<Topology> topology = ParseTopology(flags.topology);
    if (!topology) return tl::unexpected(topology.error());
    if (synthesizer != nullptr || !TriesUnwindings(*topology, flags.collective))
      return Network{std::move(*topology), std::nullopt};
    how = kTrySeveral;
  }
  const auto before = std::chrono::steady_clock::now();
  Result<Unwound> unwound = Unwind(flags.topology, how, synthesizer, flags.collective, options);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!unwound) return tl::unexpected(unwound.error());
  Topology topology = unwound->topology;
  return Network{std::move(topology), std::move(*unwound), elapsed.count()};
}

SynthOptions OptionsOf(const SynthFlags& flags, int64_t size, SynthNotes& notes) {
  return {.chunks = flags.chunks.count(),
          .seed = flags.seed,
          .size_bytes = size,
          .element_bytes = flags.element.bytes(),
          .link_model = flags.links.model(),
          .tries = flags.tries,
          .auto_chunks = flags.chunks.is_auto(),
          .policy = flags.policy,
          .waiting = flags.wait == "always"  ? Waiting::kAlways
                     : flags.wait == "never" ? Waiting::kNever
                                             : Waiting::kAuto,
          .final_pass = !flags.no_final_pass,
          .steps = flags.steps,
          .max_chunks = flags.routing.MaxChunksOfSchedule(),
          .max_seconds = flags.routing.time_limit,
          .trees = flags.trees,
          .multicast = flags.multicast,
          .notes = &notes};
}

// A proven schedule, and what is printed of it.
struct ProvenSchedule {
  Schedule schedule;
  double elapsed_s = 0;
  std::optional<AutoChoice> choice;
  Evaluation evaluation;
  // Over the flow that the steps were made from, which may prove more than the bound in its time.
  std::optional<Rational> tb_loss;
};

Result<ProvenSchedule> MakeProven(const SynthFlags& flags, const Synthesizer* synthesizer,
                                  Network& network, const Collective& collective,
                                  const SynthOptions& options) {
  const Topology& topology = network.topology;
  const auto before = std::chrono::steady_clock::now();
  std::optional<AutoChoice> choice;
  Result<Schedule> schedule =
      Make(synthesizer, topology, collective, options, network.unwound, choice);
  const std::chrono::duration<double> made = std::chrono::steady_clock::now() - before;
  const double elapsed_s = network.elapsed_s + made.count();
  if (!schedule) return tl::unexpected(schedule.error());
  spdlog::debug("made {} transfers in {}", schedule->transfers.size(), Seconds(elapsed_s));
  if (!flags.no_verify) {
    const VerifyReport report = Verify(topology, schedule->collective, *schedule);
    if (const Status proven = RequireVerified(report, schedule->algorithm, "nothing was written");
        !proven)
      return tl::unexpected(proven.error());
  }
  spdlog::debug("verified; computing cost and bounds");
  const Result<Bounds> bounds = BoundsOf(topology, schedule->collective);
  if (!bounds) return tl::unexpected(bounds.error());
  Evaluation evaluation = Evaluate(topology, *schedule, options.size_bytes, *bounds);
  std::optional<Rational> tb_loss;
  if (options.notes->tb_limit && schedule->kind == ScheduleKind::kStep)
    tb_loss = evaluation.cost.tb - std::max(*options.notes->tb_limit, bounds->tb);
  return ProvenSchedule{*std::move(schedule), elapsed_s, std::move(choice), std::move(evaluation),
                        std::move(tb_loss)};
}

void PrintJson(const SynthFlags& flags, const Network& network, const SynthOptions& options,
               const ProvenSchedule& made) {
  const SynthNotes& notes = *options.notes;
  Json out;
  DescribeTopology(network.topology, out);
  DescribeSchedule(made.schedule, out);
  DescribeEvaluation(made.schedule, made.evaluation, options.size_bytes, out);
  if (network.unwound) DescribeUnwound(*network.unwound, out);
  if (made.choice) DescribeChoice(*made.choice, out);
  DescribePlacement(flags.collective, out);
  if (notes.gap) out["gap"] = *notes.gap;
  if (notes.chunk_loss > 0) out["chunk_loss"] = notes.chunk_loss;
  if (!notes.remark.empty()) out["remark"] = notes.remark;
  for (const StepPoint& point : notes.frontier)
    out["frontier"].push_back(
        {{"tl", point.tl}, {"tb", ToJson(point.tb)}, {"tb_limit", ToJson(point.tb_limit)}});
  if (made.tb_loss) out["tb_loss"] = ToJson(*made.tb_loss);
  out["synthesis_s"] = made.elapsed_s;
  out["peak_rss_bytes"] = PeakRssBytes();
  out["verified"] = flags.no_verify ? Json(nullptr) : Json(true);
  Print(out);
}

// The schedule on the clock of its prediction: steps with barriers.
Status WritePage(const SynthFlags& flags, const Topology& topology, const ProvenSchedule& made,
                 int64_t size) {
  if (!flags.html.given()) return {};
  PageData data("synth");
  PageSchedule facts{.label = made.schedule.algorithm,
                     .size_bytes = size,
                     .bounds = &made.evaluation.bounds,
                     .options = {.link_model = flags.links.model()}};
  if (!flags.no_verify) facts.verified = true;
  if (const Status added = AddToPage(data, topology, made.schedule, std::move(facts)); !added)
    return added;
  return flags.html.Write(data);
}

void PrintText(const SynthFlags& flags, const Network& network, const SynthOptions& options,
               const ProvenSchedule& made) {
  const Schedule& schedule = made.schedule;
  fmt::print("{}{} on {} by {}: {} transfers, {} chunk{} a shard, made in {}, {}\n",
             Name(schedule.collective.kind()), GroupsText(schedule.collective),
             NameOf(network.topology), schedule.algorithm,
             Count(static_cast<int64_t>(schedule.transfers.size())),
             Count(schedule.units_per_shard), schedule.units_per_shard == 1 ? "" : "s",
             Seconds(made.elapsed_s), flags.no_verify ? "not verified" : "verified");
  fmt::print("{}", EvaluationText(schedule, made.evaluation, options.size_bytes));
  if (made.tb_loss)
    fmt::print("  loss         {} M/B: all that steps and whole chunks cost over 1/f\n",
               Exact(*made.tb_loss));
  if (!options.notes->remark.empty()) fmt::print("  {}\n", options.notes->remark);
  for (const StepPoint& point : options.notes->frontier)
    fmt::print("  TL {:<3} all-gather: least TB {}, {}\n", point.tl, point.tb.ToString(),
               point.tb == point.tb_limit
                   ? "proven"
                   : fmt::format("proven to {:.6g}", point.tb_limit.ToDouble()));
  if (made.choice) fmt::print("{}", ChoiceText(*made.choice));
  fmt::print("{}", PlacementText(flags.collective));
  if (!flags.output.empty()) fmt::print("written to {}\n", flags.output);
  fmt::print("{}", flags.html.Text());
}

// A million ranks: their translations tell from one of them what all do. Nothing where it is made
// in full.
std::optional<int> SynthesizeInSymmetry(const Program& program, const SynthFlags& flags,
                                        const Synthesizer* synthesizer, const Topology& topology,
                                        const Collective& collective, const SynthOptions& options) {
  const std::string algorithm = synthesizer != nullptr ? flags.algorithm : kSymmetricAlgorithm;
  if (!flags.symmetric && !(MayBeSymmetric(algorithm, collective) && IsTooLargeInFull(collective)))
    return std::nullopt;
  if (const Status shown = flags.html.Refuse("this one is made by symmetry"); !shown)
    return Report(shown.error());
  return SynthesizeSymmetric(program, topology, collective,
                             {.algorithm = algorithm,
                              .output = flags.output,
                              .options = options,
                              .verify = !flags.no_verify,
                              .asked_for = flags.symmetric,
                              .by_choice = synthesizer == nullptr});
}

int Synthesize(const Program& program, SynthFlags flags) {
  std::vector<std::string> inputs = FilesOf(flags.topology);
  for (std::string& input : flags.collective.Inputs()) inputs.push_back(std::move(input));
  if (const Status kept = KeepInputs(flags.output, inputs); !kept) return Report(kept.error());
  if (const Status kept = flags.html.Check(inputs, flags.output); !kept)
    return Report(kept.error());
  if (MakesRouting(flags)) return MakeRouting(program, flags);
  const Result<const Synthesizer*> found = FindAlgorithm(flags.algorithm);
  if (!found) return Report(found.error());
  const Synthesizer* synthesizer = *found;
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  if (const Status known = flags.element.Check(); !known) return Report(known.error());
  SynthNotes notes;
  const SynthOptions options = OptionsOf(flags, sizes->front(), notes);
  if (synthesizer != nullptr)
    if (const Status has = CheckSynthOptions(*synthesizer, options); !has)
      return Report(has.error());
  Result<Network> network = MakeNetwork(flags, synthesizer, options);
  if (!network) return Report(network.error());
  const Topology& topology = network->topology;
  if (const Status looked = flags.collective.FindBest(topology, synthesizer, options); !looked)
    return Report(looked.error());
  const Result<Collective> collective =
      flags.collective.Make(topology, synthesizer != nullptr && synthesizer->one_shard_all_reduce);
  if (!collective) return Report(collective.error());
  if (const Status exist = CheckChunksExist(*collective, flags.chunks, *sizes, flags.element);
      !exist)
    return Report(exist.error());
  if (network->unwound && !program.json) fmt::print("{}\n", UnwoundText(*network->unwound));
  if (const auto code =
          SynthesizeInSymmetry(program, flags, synthesizer, topology, *collective, options))
    return *code;
  const Result<bool> streams = Streams(flags, topology, *collective, options);
  if (!streams) return Report(streams.error());
  if (*streams)
    if (const Status shown = flags.html.Refuse("this one is streamed"); !shown)
      return Report(shown.error());
  if (*streams) return SynthesizeStreamed(program, flags, *network, *collective, options);

  const Result<ProvenSchedule> made =
      MakeProven(flags, synthesizer, *network, *collective, options);
  if (!made) return Report(made.error());
  if (!flags.output.empty())
    if (const Status written = WriteScheduleFile(flags.output, topology, made->schedule); !written)
      return Report(written.error());
  if (const Status written = WritePage(flags, topology, *made, sizes->front()); !written)
    return Report(written.error());
  if (program.json)
    PrintJson(flags, *network, options, *made);
  else
    PrintText(flags, *network, options, *made);
  return kDone;
}

}  // namespace

void AddSynth(Program& program) {
  auto flags = std::make_shared<SynthFlags>();
  Command command = program.AddCommand(
      program.line.root(), "synth", "Make a schedule, prove it correct and print its cost",
      "tutti synth 'torus(4,4)' -c all-reduce -a bfb -o torus.sched");
  command.SetFooter(
      command.footer() +
      "\nWhat each algorithm is, and which to take: docs/guide/choose-an-algorithm.md");
  command.AddOption("topology", flags->topology, "Expression or path of a .json file").Required();
  flags->collective.AddTo(command);
  std::string names;
  for (const Synthesizer& synthesizer : Synthesizers())
    names += (names.empty() ? "" : ", ") + std::string(synthesizer.name);
  command
      .AddOption("-a,--algorithm", flags->algorithm,
                 "auto (the best predicted for --size), or one of " + names +
                     "; for routings of all-to-all: " + RouterNames())
      .Required();
  flags->chunks.AddTo(command);
  flags->element.AddTo(command);
  flags->links.AddTo(command);
  command
      .AddOption("--steps", flags->steps,
                 "Steps of a time-stepped all-to-all (tsmcf, mcf) or of an all-gather (step-lp); "
                 "0: what takes the least time")
      .Within(0, 1 << 20);
  command.AddOption("--size", flags->size, "Size M that the printed time is for").ShowDefault();
  command
      .AddOption("--tries", flags->tries,
                 "Variants of which the best is kept, where an algorithm has some; 0: its "
                 "default")
      .Within(0, 1 << 20);
  command
      .AddOption(
          "--trees", flags->trees,
          "Spanning trees a root at most (forest), the optimum's number or fewer; 0: what is "
          "fastest at --size")
      .Within(0, 1 << 20);
  std::string policies;
  for (const TenPolicy& policy : TenPolicies())
    policies +=
        fmt::format("{}{} ({})", policies.empty() ? "" : ", ", policy.name, policy.description);
  command.AddOption(
      "--policy", flags->policy,
      "Which chunk a link takes first (ten): " + policies + "; default: several are tried");
  command
      .AddOption("--wait", flags->wait,
                 "Whether slow links leave to faster ones what those are about to bring (ten); "
                 "never is the paper's rule")
      .OneOf({"auto", "always", "never"})
      .ShowDefault();
  command.AddFlag("--multicast", flags->multicast,
                  "ten: switches copy what goes to several ports; all-gather and broadcast only");
  command.AddFlag("--no-final-pass", flags->no_final_pass,
                  "Leave out what improves a schedule once it is matched (ten)");
  command.AddOption("--unwind", flags->unwind,
                    "Replace every switch by links from each rank to the so many after it: a "
                    "degree, or auto, which tries several and keeps the fastest");
  command.AddOption("--seed", flags->seed, "Seed of algorithms that draw").ShowDefault();
  command.AddOption("-o,--output", flags->output,
                    "Write the schedule or routing: .json for people, anything else binary "
                    "(schedules .sched, routings .routes)");
  flags->html.AddTo(command);
  flags->routing.AddTo(command);
  command.AddFlag("--no-verify", flags->no_verify, "Skip the proof");
  command.AddFlag("--stream", flags->stream,
                  "Write the schedule while it is made and prove the file, in little memory "
                  "(ten; by itself where memory is short)");
  command.AddFlag("--cost-only", flags->cost_only,
                  "Count the steps of a schedule that is not kept (ten)");
  command.AddFlag("--symmetric", flags->symmetric,
                  "Make and store one rank's schedule and the network's translations, which "
                  "stand for all; bfb only, chosen by itself where the whole does not fit");
  command.Runs([&program, flags] { return Synthesize(program, *flags); });
}

}  // namespace tutti::cli
