// tutti rules
#include "tutti/advise/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "best_ranges.h"
#include "common.h"
#include "files.h"
#include "sim_flags.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/progress.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"
#include "unwind.h"

namespace tutti::cli {
namespace {

struct RulesFlags {
  std::vector<std::string> topologies;
  std::string format, output, collectives, base, by = "simulation";
  std::optional<int32_t> nodes;
  SimFlags sim;
  uint64_t seed = 1;
};

// An algorithm may make another schedule of each; between them holds that of the smaller.
constexpr std::array<int64_t, 5> kMadeFor{1 << 10, 1 << 15, 1 << 20, 1 << 25, 1 << 30};
// Beyond so many transfers nothing is simulated at many sizes: the cost decides.
constexpr size_t kMaxTransfersToSimulate = 200'000;

// Where all ranks are called "box.gpu": the number of boxes. 0: not known.
int32_t NodesOf(const Topology& topology) {
  std::set<std::string> boxes;
  for (int32_t rank = 0; rank < topology.num_ranks(); ++rank) {
    const std::string& name = topology.node_name(NodeId{rank});
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || name.compare(dot, 4, ".gpu") != 0) return 0;
    boxes.insert(name.substr(0, dot));
  }
  return static_cast<int32_t>(boxes.size());
}

// The schedules of one collective on one network.
class Candidates {
 public:
  Candidates(const RulesFlags& flags, const std::string& expression, const Topology& topology,
             CollectiveKind kind)
      : flags_(flags), expression_(expression), topology_(topology) {
    collective_.name = std::string(Name(kind));
  }

  // False: the algorithm has none on this network, for the reason kept. The error ends all.
  Result<bool> Add(const Synthesizer& synthesizer) {
    for (const int64_t size : kMadeFor) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const Result<Made> made = Make(synthesizer, size);
      if (!made && made.error().code == ErrorCode::kCancelled) return tl::unexpected(made.error());
      if (!made) {
        if (size != kMadeFor.front()) return true;  // the schedule of smaller sizes stands
        reasons_ += fmt::format(", {}: {}", synthesizer.name, made.error().message);
        return false;
      }
      const bool known = !held_.empty() && held_.back().algorithm == synthesizer.name &&
                         held_.back().schedule == made->schedule;
      if (known) continue;
      transfers_ += made->schedule.transfers.size();
      held_.push_back({std::string(synthesizer.name), made->topology, made->schedule,
                       size == kMadeFor.front() ? 1 : size});
    }
    return true;
  }

  const std::string& reasons() const { return reasons_; }

  Result<std::vector<BestRange>> Best() const {
    if (flags_.by == "cost" || transfers_ > kMaxTransfersToSimulate) return BestByCost(held_);
    return BestBySimulation(held_, flags_.sim.Make());
  }

 private:
  struct Made {
    const Topology* topology;
    Schedule schedule;
  };

  Result<Made> Make(const Synthesizer& synthesizer, int64_t size) {
    const SynthOptions options = OptionsFor(synthesizer, {.seed = flags_.seed,
                                                          .size_bytes = size,
                                                          .element_bytes = 4,
                                                          .link_model = flags_.sim.links.model()});
    const Topology* on = &topology_;
    if (topology_.has_switches()) {
      Result<Unwound> unwound =
          Unwind(expression_, kTrySeveral, &synthesizer, collective_, options);
      if (!unwound) return tl::unexpected(unwound.error());
      on = &unwound_.emplace_back(std::move(unwound->topology));
    }
    const Result<Collective> collective = collective_.Make(*on, synthesizer.one_shard_all_reduce);
    if (!collective) return tl::unexpected(collective.error());
    Result<Schedule> schedule = RunSynthesizer(synthesizer, *on, *collective, options);
    if (!schedule) return tl::unexpected(schedule.error());
    const VerifyReport report = Verify(*on, schedule->collective, *schedule);
    if (report.cancelled) return tl::unexpected(CancelledError());
    if (!report.verified())
      return MakeError(ErrorCode::kInfeasible, report.violations.front().message);
    return Made{on, std::move(*schedule)};
  }

  const RulesFlags& flags_;
  const std::string& expression_;
  const Topology& topology_;
  CollectiveFlags collective_;
  std::deque<Topology> unwound_;
  std::vector<HeldSchedule> held_;
  size_t transfers_ = 0;
  std::string reasons_;
};

// The rules of all networks, and what is said of them.
class Rules {
 public:
  Rules(const RulesFlags& flags, const RuleFormat& format) : flags_(flags), format_(format) {}

  Status Add(const std::string& expression, const Topology& topology, CollectiveKind kind) {
    Candidates candidates(flags_, expression, topology, kind);
    int32_t algorithms = 0;
    for (const LibraryAlgorithm* algorithm : format_.Of(kind)) {
      const auto ranks = static_cast<uint32_t>(topology.num_ranks());
      if (algorithm->power_of_two && !std::has_single_bit(ranks)) continue;
      const Result<bool> added = candidates.Add(**FindSynthesizer(algorithm->ours));
      if (!added) return tl::unexpected(added.error());
      algorithms += *added ? 1 : 0;
    }
    const std::string title =
        fmt::format("{}, {} ranks ({})", Name(kind), topology.num_ranks(), NameOf(topology));
    if (algorithms < 2) {
      none_ += fmt::format("{}{}: fewer than two of the library's algorithms exist here{}",
                           none_.empty() ? "" : "; ", title, candidates.reasons());
      return {};
    }
    const Result<std::vector<BestRange>> best = candidates.Best();
    if (!best) return tl::unexpected(best.error());
    CollectiveRules one{kind, topology.num_ranks(), flags_.nodes.value_or(NodesOf(topology)), {}};
    std::vector<BestRange> theirs = *best;
    for (BestRange& range : theirs) {
      const LibraryAlgorithm& algorithm = *format_.Find(kind, range.algorithm);
      one.sizes.push_back({range.from_bytes == 1 ? 0 : range.from_bytes, algorithm.ours});
      range.algorithm = algorithm.theirs;
    }
    Describe(one, *best, theirs, title);
    rules_.push_back(std::move(one));
    return {};
  }

  const std::vector<CollectiveRules>& rules() const { return rules_; }
  const Json& json() const { return json_; }
  std::string Text() const {
    return text_ + (none_.empty() ? "" : "left to the library: " + none_ + "\n");
  }
  const std::string& none() const { return none_; }

 private:
  void Describe(const CollectiveRules& one, const std::vector<BestRange>& ours,
                const std::vector<BestRange>& theirs, const std::string& title) {
    Json row;
    row["collective"] = Name(one.kind);
    row["ranks"] = one.ranks;
    row["nodes"] = one.nodes == 0 ? Json(nullptr) : Json(one.nodes);
    row["best_by_size"] = ToJson(ours);
    row["rules"] = ToJson(theirs);
    json_.push_back(row);
    text_ += fmt::format("{}: {}\n", title, cli::Text(theirs));
  }

  const RulesFlags& flags_;
  const RuleFormat& format_;
  std::vector<CollectiveRules> rules_;
  Json json_ = Json::array();
  std::string text_, none_;
};

// Those named, or all that the format has a choice for.
Result<std::vector<CollectiveKind>> CollectivesOf(const RulesFlags& flags,
                                                  const RuleFormat& format) {
  const std::vector<CollectiveKind> has = format.Collectives();
  if (flags.collectives.empty()) return has;
  std::vector<CollectiveKind> kinds;
  for (const std::string& name : SplitAtCommas(flags.collectives)) {
    const Result<CollectiveKind> kind = ParseCollectiveKind(name);
    if (!kind) return tl::unexpected(kind.error());
    if (std::find(has.begin(), has.end(), *kind) == has.end()) {
      std::string accepted;
      for (CollectiveKind one : has)
        accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", Name(one));
      return InvalidArgument(fmt::format("--to {} has no rules for {}; it has some for {}",
                                         format.name, name, accepted));
    }
    if (std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) kinds.push_back(*kind);
  }
  return kinds;
}

Status CheckInputsAreKept(const RulesFlags& flags) {
  std::vector<std::string> inputs{flags.base};
  for (const std::string& expression : flags.topologies)
    for (std::string& file : FilesOf(expression)) inputs.push_back(std::move(file));
  return KeepInputs(flags.output, inputs);
}

// Nothing where the format has none.
Result<std::string> ReadBase(const RulesFlags& flags, const RuleFormat& format) {
  if (flags.base.empty() == format.needs_base)
    return InvalidArgument(format.needs_base
                               ? fmt::format("--to {} needs --base, the library's own file, to put "
                                             "rules into",
                                             format.name)
                               : fmt::format("--to {} takes no --base", format.name));
  if (flags.base.empty()) return std::string();
  return ReadFile(flags.base);
}

int MakeRules(const Program& program, const RulesFlags& flags) {
  const RuleFormat& format = *FindRuleFormat(flags.format);
  const Result<std::vector<CollectiveKind>> kinds = CollectivesOf(flags, format);
  if (!kinds) return Report(kinds.error());
  if (const Status kept = CheckInputsAreKept(flags); !kept) return Report(kept.error());
  const Result<std::string> base = ReadBase(flags, format);
  if (!base) return Report(base.error());
  std::deque<Topology> topologies;
  for (const std::string& expression : flags.topologies) {
    Result<Topology> topology = ParseTopology(expression);
    if (!topology) return Report(topology.error());
    topologies.push_back(std::move(*topology));
  }
  Rules rules(flags, format);
  ProgressScope progress("rules", static_cast<int64_t>(topologies.size() * kinds->size()));
  for (size_t i = 0; i < topologies.size(); ++i)
    for (const CollectiveKind kind : *kinds) {
      if (const Status added = rules.Add(flags.topologies[i], topologies[i], kind); !added)
        return Report(added.error());
      progress.Add(1);
    }
  if (rules.rules().empty())
    return Report({ErrorCode::kInfeasible, "no rule to write: " + rules.none()});
  const Result<std::string> text = WriteRules(format, rules.rules(), *base);
  if (!text) return Report(text.error());
  if (const Status written = WriteFileAtomically(flags.output, *text); !written)
    return Report(written.error());
  Json out{{"format", flags.format}, {"output", flags.output}, {"bytes", text->size()}};
  out["rows"] = rules.json();
  if (program.json)
    Print(out);
  else if (flags.output != "/dev/stdout")
    fmt::print("{}{} written to {} ({} bytes)\n", rules.Text(), flags.format, flags.output,
               text->size());
  return kDone;
}

std::string HelpOfRuleFormats() {
  std::string help;
  for (const RuleFormat& format : RuleFormats())
    help += fmt::format("{}{} ({})", help.empty() ? "" : ", ", format.name, format.description);
  return help;
}

}  // namespace

void AddRules(Program& program) {
  auto flags = std::make_shared<RulesFlags>();
  Command command = program.AddCommand(
      program.line.root(), "rules",
      "Write which of its algorithms a library should take at which size: NCCL, Open MPI, MPICH",
      "tutti rules 'dgx_h100(1)' 'dgx_h100(2)' --to nccl-tuner -o nccl.txt");
  command
      .AddOption("topologies", flags->topologies,
                 "Expressions or paths of .json files, one a communicator")
      .Required();
  std::vector<std::string> names;
  for (const RuleFormat& format : RuleFormats()) names.emplace_back(format.name);
  command.AddOption("--to", flags->format, HelpOfRuleFormats()).Required().OneOf(names);
  command.AddOption("-o,--output", flags->output, "File to write").Required();
  command.AddOption("-c,--collectives", flags->collectives,
                    "Collectives, separated by commas; default: all that the format has a choice "
                    "for");
  command.AddOption("--base", flags->base,
                    "The library's own file, which rules are put into (mpich: its "
                    "maint/tuning/coll/mpir/generic.json of the version that will read it)");
  command.AddOption("--by", flags->by, "What says which algorithm is faster")
      .ShowDefault()
      .OneOf({"simulation", "cost"});
  command
      .AddOption("--nodes", flags->nodes,
                 "Nodes that the ranks are on; 0: any. Default: the boxes of ranks named box.gpu, "
                 "else any")
      .Within(0, 1 << 20);
  command.AddOption("--seed", flags->seed, "Seed of algorithms that draw").ShowDefault();
  flags->sim.AddTo(command);
  command.Runs([&program, flags] { return MakeRules(program, *flags); });
}

}  // namespace tutti::cli
