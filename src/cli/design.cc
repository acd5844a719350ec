// tutti design
#include "design.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "files.h"
#include "tutti/base/units.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/database.h"
#include "tutti/design/finder.h"
#include "tutti/design/workload.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/json.h"

namespace tutti::cli {
namespace {

// $XDG_CACHE_HOME/tutti/designs.sqlite or ~/.cache/tutti/designs.sqlite; empty without a home.
std::string DefaultDatabase() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::string(cache) + "/tutti/designs.sqlite";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache/tutti/designs.sqlite";
  return {};
}

// --- The database --------------------------------------------------------------------------------

std::string CoverageText(const DatabaseCoverage& coverage) {
  return fmt::format("all sizes up to {} for degree {}", coverage.max_ranks,
                     fmt::join(coverage.degrees, ", "));
}

// What --all-up-to asks for.
int MakeDatabase(const Program& program, const DesignFlags& flags, const std::string& path) {
  const DatabaseCoverage coverage{flags.degrees, 0};
  for (int32_t degree : coverage.degrees)
    if (Status status = CheckDesignSize(flags.all_up_to, degree); !status)
      return Report(status.error());
  const auto before = std::chrono::steady_clock::now();
  if (Status made =
          DesignDatabase::Make(path, {flags.degrees, static_cast<int32_t>(flags.all_up_to)});
      !made)
    return Report(made.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  const auto database = DesignDatabase::Open(path);
  if (!database) return Report(database.error());
  if (program.json) {
    Json out;
    out["database"] = path;
    out["degrees"] = (*database)->coverage().degrees;
    out["max_ranks"] = (*database)->coverage().max_ranks;
    out["synthesis_s"] = elapsed.count();
    out["peak_rss_bytes"] = PeakRssBytes();
    Print(out);
    return kDone;
  }
  fmt::print("{}: {}, made in {}\n", path, CoverageText((*database)->coverage()),
             Seconds(elapsed.count()));
  return kDone;
}

// The answer of a database; none where it does not cover the question. One that is damaged or stale
// is made anew, with a warning.
Result<std::optional<std::vector<Design>>> AskDatabase(const std::string& path, bool asked_for,
                                                       const DesignQuestion& question) {
  constexpr int32_t kUsualSizes = 2000;
  DatabaseCoverage coverage{{2, 4, 8, 16}, kUsualSizes};
  for (int attempt = 0;; ++attempt) {
    auto database = DesignDatabase::Open(path);
    std::string fault;
    if (database && (*database)->current()) {
      coverage = (*database)->coverage();
      auto answer = (*database)->Find(question.ranks, question.degree, question.bidirectional_only,
                                      question.collective);
      // Kept empty where nothing reaches the size; the search says why.
      if (answer && *answer && (*answer)->empty()) return std::nullopt;
      if (answer || answer.error().code != ErrorCode::kCorrupt) return answer;
      fault = answer.error().message;
    } else if (database) {
      if (!(*database)->coverage().degrees.empty()) coverage = (*database)->coverage();
      fault = fmt::format("{}: made by another version of tutti or from other bases", path);
    } else if (database.error().code == ErrorCode::kCorrupt) {
      fault = database.error().message;
    } else if (database.error().code == ErrorCode::kNotFound && !asked_for) {
      return std::nullopt;
    } else if (database.error().code == ErrorCode::kInvalidArgument && !asked_for) {
      fmt::print(stderr, "tutti: warning: {}\n", database.error().message);
      return std::nullopt;
    } else {
      return tl::unexpected(database.error());
    }
    if (attempt > 0) return MakeError(ErrorCode::kCorrupt, fault);
    fmt::print(stderr, "tutti: warning: {}; making it anew ({})\n", fault, CoverageText(coverage));
    if (Status made = DesignDatabase::Make(path, coverage); !made)
      return tl::unexpected(made.error());
  }
}

// --- The question --------------------------------------------------------------------------------

Result<CollectiveKind> KindOf(const std::string& name) {
  for (CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                              CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll})
    if (Name(kind) == name) return kind;
  return InvalidArgument(fmt::format(
      "unknown collective '{}'; accepted are all-reduce, all-gather, reduce-scatter, all-to-all",
      name));
}

// The links that every port gets: in the times and in the files.
Result<LinkSpec> LinkOf(const DesignFlags& flags) {
  LinkSpec link;
  if (!flags.alpha.empty()) {
    const Result<int64_t> alpha = ParseDurationPs(flags.alpha);
    if (!alpha) return tl::unexpected(alpha.error());
    link.alpha_ps = *alpha;
  }
  if (!flags.bandwidth.empty()) {
    const Result<int64_t> bandwidth = ParseBandwidth(flags.bandwidth);
    if (!bandwidth) return tl::unexpected(bandwidth.error());
    link.bandwidth = *bandwidth / flags.degree;
    if (link.bandwidth < 1)
      return InvalidArgument(
          fmt::format("--bandwidth {}: wanted at least 1 byte a second for each of the {} ports",
                      flags.bandwidth, flags.degree));
  }
  return link;
}

Result<DesignQuestion> QuestionOf(const DesignFlags& flags, CollectiveKind costed) {
  if (Status status = CheckDesignSize(flags.ranks, flags.degree); !status)
    return tl::unexpected(status.error());
  DesignQuestion question{.ranks = static_cast<int32_t>(flags.ranks),
                          .degree = static_cast<int32_t>(flags.degree),
                          .bidirectional_only = !flags.one_way,
                          .collective = costed,
                          .bases = {}};
  for (const std::string& path : flags.bases) {
    Result<Topology> base = ReadTopologyFile(path);
    if (!base) return tl::unexpected(base.error());
    question.bases.push_back({path, *std::move(base)});
  }
  return question;
}

// The frontier in three dimensions, of which the database keeps none.
Status AskByFlow(const DesignFlags& flags, const DesignQuestion& question, ShownDesigns& shown) {
  Result<FlowFrontier> frontier = FindFlowFrontier(question, flags.flow_gap);
  if (!frontier) return tl::unexpected(frontier.error());
  for (const DesignWithFlow& one : frontier->designs) {
    shown.designs.push_back(one.design);
    shown.flows.push_back({one.f_lower, one.f_upper});
  }
  shown.by_flow = *std::move(frontier);
  return {};
}

Status Ask(const DesignFlags& flags, const DesignQuestion& question, ShownDesigns& shown) {
  if (flags.by_flow) return AskByFlow(flags, question, shown);
  const std::string path = flags.database.empty() ? DefaultDatabase() : flags.database;
  if (!flags.no_database && flags.bases.empty() && !path.empty()) {
    Result<std::optional<std::vector<Design>>> stored =
        AskDatabase(path, !flags.database.empty(), question);
    if (!stored) return tl::unexpected(stored.error());
    if (*stored) {
      shown.designs = **std::move(stored);
      shown.from_database = true;
      return MeasureDiameters(shown.designs);
    }
  }
  Result<std::vector<Design>> designs = FindFrontier(question);
  if (!designs) {
    if (!flags.one_way && designs.error().code == ErrorCode::kInvalidArgument)
      return MakeError(designs.error().code,
                       designs.error().message + "; --one-way allows one-way fibres");
    return tl::unexpected(designs.error());
  }
  shown.designs = *std::move(designs);
  return {};
}

Status AddFlows(const DesignFlags& flags, ShownDesigns& shown) {
  for (const Design& design : shown.designs) {
    const Result<Topology> topology = NetworkWithLinks(design.recipe, shown.link);
    if (!topology) return tl::unexpected(topology.error());
    ConcurrentFlowOptions options;
    options.gap = flags.flow_gap;
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(*topology, options);
    if (!flow) return tl::unexpected(flow.error());
    spdlog::debug("{}: f {:.6g} in {} passes", design.recipe, flow->f_lower.ToDouble(),
                  flow->passes);
    shown.flows.push_back({flow->f_lower, flow->f_upper});
  }
  return {};
}

// The times of all designs, and the best of them.
Status AddTimes(const DesignFlags& flags, ShownDesigns& shown) {
  const Workload workload{shown.collective, shown.link, shown.sizes};
  for (size_t i = 0; i < shown.designs.size(); ++i) {
    const std::optional<Rational> flow =
        shown.flows.empty() ? std::nullopt : std::optional(shown.flows[i].lower);
    Result<Rational> seconds = ExpectedSeconds(shown.designs[i], workload, flow);
    if (!seconds) return tl::unexpected(seconds.error());
    shown.seconds.push_back(*std::move(seconds));
  }
  const auto least = std::min_element(shown.seconds.begin(), shown.seconds.end());
  shown.best = static_cast<size_t>(least - shown.seconds.begin());
  const DesignCost bound = BoundOf(shown, flags);
  const bool halves = shown.costed() == CollectiveKind::kAllReduce;
  Design ideal = shown.designs.front();
  ideal.tl = halves ? bound.tl / 2 : bound.tl;
  ideal.tb = halves ? bound.tb / Rational(2) : bound.tb;
  ideal.reduce_scatter = {ideal.tl, ideal.tb};
  Result<Rational> seconds = ExpectedSeconds(ideal, workload, MooreFlow(ideal.ranks, ideal.degree));
  if (!seconds) return tl::unexpected(seconds.error());
  shown.bound_seconds = *std::move(seconds);
  return {};
}

Status ChooseBest(const DesignFlags& flags, ShownDesigns& shown) {
  const std::vector<Design>& designs = shown.designs;
  if (!shown.sizes.empty())
    if (Status timed = AddTimes(flags, shown); !timed) return timed;
  if (flags.pick != 0) {
    if (flags.pick < 1 || flags.pick > static_cast<int64_t>(designs.size()))
      return InvalidArgument(
          fmt::format("--pick {}: the frontier has rows 1 to {}", flags.pick, designs.size()));
    shown.best = static_cast<size_t>(flags.pick - 1);
  }
  if (!shown.best && designs.size() == 1) shown.best = 0;
  if (!shown.best && (!flags.output.empty() || !flags.cables.empty()))
    return InvalidArgument(
        fmt::format("{} is of one design: say which with --size (and --alpha, --bandwidth) or "
                    "--pick 1..{}",
                    flags.output.empty() ? "--cables" : "-o", designs.size()));
  return {};
}

int Answered(const Program& program, const DesignFlags& flags) {
  ShownDesigns shown;
  const Result<CollectiveKind> kind = KindOf(flags.collective);
  if (!kind) return Report(kind.error());
  shown.collective = *kind;
  const Result<DesignQuestion> question = QuestionOf(flags, shown.costed());
  if (!question) return Report(question.error());
  const Result<LinkSpec> link = LinkOf(flags);
  if (!link) return Report(link.error());
  shown.link = *link;
  if (!flags.size.empty()) {
    Result<std::vector<Workload::Size>> sizes = ParseSizeDistribution(flags.size);
    if (!sizes) return Report(sizes.error());
    shown.sizes = *std::move(sizes);
  }
  const auto before = std::chrono::steady_clock::now();
  if (Status asked = Ask(flags, *question, shown); !asked) return Report(asked.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!flags.by_flow && (flags.flow || shown.collective == CollectiveKind::kAllToAll))
    if (Status added = AddFlows(flags, shown); !added) return Report(added.error());
  if (Status chosen = ChooseBest(flags, shown); !chosen) return Report(chosen.error());
  const Result<std::vector<WrittenFile>> written = WriteDesign(flags, shown);
  if (!written) return Report(written.error());
  if (const Status drawn = WriteDesignPage(flags, shown); !drawn) return Report(drawn.error());
  if (program.json)
    PrintDesignsJson(flags, shown, *written, elapsed.count());
  else
    PrintDesigns(flags, shown, *written);
  return kDone;
}

int RunDesign(const Program& program, const DesignFlags& flags, const Command& command) {
  if (!flags.output.empty())
    if (const Status kept = KeepInputs(flags.output + ".topo.json", flags.bases); !kept)
      return Report(kept.error());
  if (const Status kept = flags.html.Check(flags.bases, flags.cables); !kept)
    return Report(kept.error());
  if (flags.html.given() && flags.all_up_to != 0 && flags.ranks == 0)
    return Report({ErrorCode::kInvalidArgument, "--html shows designs: say -n and -d"});
  if (flags.all_up_to != 0) {
    const std::string path = flags.database.empty() ? DefaultDatabase() : flags.database;
    if (path.empty())
      return Report({ErrorCode::kInvalidArgument,
                     "there is no home folder for the database; say --database FILE"});
    const int code = MakeDatabase(program, flags, path);
    if (code != kDone || flags.ranks == 0) return code;
  } else if (!command.Has("--ranks") || !command.Has("--degree")) {
    return Report({ErrorCode::kInvalidArgument,
                   "wanted -n RANKS and -d DEGREE, or --all-up-to RANKS to make the database"});
  }
  return Answered(program, flags);
}

}  // namespace

void AddDesign(Program& program) {
  auto flags = std::make_shared<DesignFlags>();
  Command command = program.AddCommand(
      program.line.root(), "design",
      "Which networks of N ranks with d ports are worth wiring, and why",
      "tutti design -n 48 -d 4 --size 1MiB --alpha 10us --bandwidth 100Gbit/s -o cluster");
  command.AddOption("-n,--ranks", flags->ranks, "Number of ranks N");
  command.AddOption("-d,--degree", flags->degree,
                    "Ports of each rank: two-way cables, or with --one-way fibres out and in");
  command.AddFlag("--one-way", flags->one_way,
                  "Ports whose transmit and receive fibres may go to different places; without "
                  "it every link has its reverse, as a two-way cable does");
  command.AddOption("--size", flags->size,
                    "Price the rows and pick the best for this size M, or for a distribution: "
                    "1MiB:0.7,100MiB:0.3");
  command
      .AddOption(
          "-c,--collective", flags->collective,
          "What the rows are compared by, --size is of and -o writes: all-reduce, all-gather, "
          "reduce-scatter, all-to-all (this one computes flow values)")
      .ShowDefault();
  command.AddOption("--alpha", flags->alpha,
                    "What a message waits on a link, in times and files; default 500ns");
  command.AddOption("--bandwidth", flags->bandwidth,
                    "B, what all ports of a rank carry together each way, in times and files; "
                    "default 50GB/s a port");
  command.AddFlag("--flow", flags->flow, "Also compute all-to-all flow values");
  command.AddFlag("--by-flow", flags->by_flow,
                  "Compare by all-to-all, too: the frontier in three dimensions, TL, TB and f");
  command
      .AddOption("--flow-gap", flags->flow_gap, "How far the limits of a flow value may lie apart")
      .WithinReal(1e-6, 1)
      .ShowDefault();
  command.AddOption("--pick", flags->pick, "Pick this row instead of the best");
  command.AddOption("--base", flags->bases,
                    "Only networks built from this one of yours (.topo.json), alone or together "
                    "with known ones; may be given several times");
  command.AddOption("-o,--output", flags->output,
                    "Write the picked design: PREFIX.topo.json and what -c asks for, verified: "
                    "PREFIX.COLLECTIVE.sched, or PREFIX.all-to-all.routes");
  command.AddOption("--cables", flags->cables,
                    "Write the cabling list of the picked design (CSV): a cable, or with "
                    "--one-way a fibre, a line, with rank and port at both ends");
  flags->html.AddTo(command);
  command
      .AddOption("--all-up-to", flags->all_up_to,
                 "Search all sizes up to this one and keep the answers in the database")
      .Within(1, 1 << 24);
  command.AddOption("--degrees", flags->degrees, "Degrees of --all-up-to")
      .SeparatedBy(',')
      .Within(1, 1 << 24)
      .ShowDefault();
  command.AddOption("--database", flags->database,
                    "Where answers are kept; default $XDG_CACHE_HOME/tutti/designs.sqlite, if it "
                    "is there. A file that is not such a database is refused and left alone");
  command.AddFlag("--no-database", flags->no_database, "Search, whatever the database holds");
  command.Runs([&program, flags, command] { return RunDesign(program, *flags, command); });
}

}  // namespace tutti::cli
