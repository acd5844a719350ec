// tutti design
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/coll/bounds.h"
#include "tutti/design/database.h"
#include "tutti/design/finder.h"
#include "tutti/design/workload.h"
#include "tutti/sched/store.h"
#include "tutti/synth/concurrent_flow.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

struct Flags {
  int64_t ranks = 0, degree = 0;
  bool bidirectional = false, flow = false, no_database = false;
  std::string collective = "all-reduce", alpha, bandwidth, size, database, output;
  std::vector<std::string> bases;
  int64_t all_up_to = 0;
  std::vector<int32_t> degrees{2, 4, 8, 16};
  double flow_gap = 1e-3;
  int64_t pick = 0;
};

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
int MakeDatabase(const Program& program, const Flags& flags, const std::string& path) {
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
      auto answer = (*database)->Find(question.ranks, question.degree, question.bidirectional_only);
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

struct Answer {
  std::vector<Design> designs;
  bool from_database = false;
};

Result<DesignQuestion> QuestionOf(const Flags& flags) {
  if (Status status = CheckDesignSize(flags.ranks, flags.degree); !status)
    return tl::unexpected(status.error());
  DesignQuestion question{.ranks = static_cast<int32_t>(flags.ranks),
                          .degree = static_cast<int32_t>(flags.degree),
                          .bidirectional_only = flags.bidirectional,
                          .bases = {}};
  for (const std::string& path : flags.bases) {
    Result<Topology> base = ReadTopologyFile(path);
    if (!base) return tl::unexpected(base.error());
    question.bases.push_back({path, *std::move(base)});
  }
  return question;
}

Result<Answer> Ask(const Flags& flags, const DesignQuestion& question) {
  const std::string path = flags.database.empty() ? DefaultDatabase() : flags.database;
  if (!flags.no_database && flags.bases.empty() && !path.empty()) {
    Result<std::optional<std::vector<Design>>> stored =
        AskDatabase(path, !flags.database.empty(), question);
    if (!stored) return tl::unexpected(stored.error());
    if (*stored) {
      Answer answer{**std::move(stored), true};
      if (Status status = MeasureDiameters(answer.designs); !status)
        return tl::unexpected(status.error());
      return answer;
    }
  }
  Result<std::vector<Design>> designs = FindFrontier(question);
  if (!designs) return tl::unexpected(designs.error());
  return Answer{*std::move(designs), false};
}

struct Flow {
  Rational lower, upper;
};
Result<std::vector<Flow>> FlowsOf(const std::vector<Design>& designs, double gap) {
  std::vector<Flow> flows;
  for (const Design& design : designs) {
    const Result<Topology> topology = ParseTopology(design.recipe);
    if (!topology) return tl::unexpected(topology.error());
    ConcurrentFlowOptions options;
    options.gap = gap;
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(*topology, options);
    if (!flow) return tl::unexpected(flow.error());
    spdlog::debug("{}: f {:.6g} in {} passes", design.recipe, flow->f_lower.ToDouble(),
                  flow->passes);
    flows.push_back({flow->f_lower, flow->f_upper});
  }
  return flows;
}

Result<CollectiveKind> KindOf(const std::string& name) {
  for (CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                              CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll})
    if (Name(kind) == name) return kind;
  return InvalidArgument(fmt::format(
      "unknown collective '{}'; accepted are all-reduce, all-gather, reduce-scatter, all-to-all",
      name));
}

// nullopt without --size.
Result<std::optional<Workload>> WorkloadOf(const Flags& flags) {
  const Result<CollectiveKind> kind = KindOf(flags.collective);
  if (!kind) return tl::unexpected(kind.error());
  Workload workload;
  workload.collective = *kind;
  if (!flags.alpha.empty()) {
    const Result<int64_t> alpha = ParseDurationPs(flags.alpha);
    if (!alpha) return tl::unexpected(alpha.error());
    workload.alpha_s = static_cast<double>(*alpha) / static_cast<double>(kPicosecondsPerSecond);
  }
  if (!flags.bandwidth.empty()) {
    const Result<int64_t> bandwidth = ParseBandwidth(flags.bandwidth);
    if (!bandwidth) return tl::unexpected(bandwidth.error());
    if (*bandwidth < 1) return InvalidArgument("bandwidth 0: wanted at least 1 byte a second");
    workload.bandwidth = static_cast<double>(*bandwidth);
  }
  if (flags.size.empty()) return std::nullopt;
  Result<std::vector<Workload::Size>> sizes = ParseSizeDistribution(flags.size);
  if (!sizes) return tl::unexpected(sizes.error());
  workload.sizes = *std::move(sizes);
  return workload;
}

// Everything that is shown.
struct Shown {
  Answer answer;
  std::vector<Flow> flows;  // none, or one a design
  std::optional<Workload> workload;
  std::vector<double> seconds;  // with a workload, one a design
  double bound_seconds = 0;
  std::optional<size_t> best;  // index of the chosen design
};

Status ChooseBest(const Flags& flags, Shown& shown) {
  const std::vector<Design>& designs = shown.answer.designs;
  if (shown.workload) {
    for (size_t i = 0; i < designs.size(); ++i) {
      const std::optional<double> flow =
          shown.flows.empty() ? std::nullopt : std::optional(shown.flows[i].lower.ToDouble());
      const Result<double> seconds = ExpectedSeconds(designs[i], *shown.workload, flow);
      if (!seconds) return tl::unexpected(seconds.error());
      shown.seconds.push_back(*seconds);
    }
    const auto least = std::min_element(shown.seconds.begin(), shown.seconds.end());
    shown.best = static_cast<size_t>(least - shown.seconds.begin());
    Design ideal = designs.front();
    ideal.tl = MooreBoundSteps(ideal.ranks, ideal.degree);
    ideal.tb = BestTb(ideal.ranks);
    const Result<double> bound =
        ExpectedSeconds(ideal, *shown.workload, MooreFlow(ideal.ranks, ideal.degree).ToDouble());
    if (!bound) return tl::unexpected(bound.error());
    shown.bound_seconds = *bound;
  }
  if (flags.pick != 0) {
    if (flags.pick < 1 || flags.pick > static_cast<int64_t>(designs.size()))
      return InvalidArgument(
          fmt::format("--pick {}: the frontier has rows 1 to {}", flags.pick, designs.size()));
    shown.best = static_cast<size_t>(flags.pick - 1);
  }
  if (!shown.best && designs.size() == 1) shown.best = 0;
  if (!shown.best && !flags.output.empty())
    return InvalidArgument(
        fmt::format("-o writes one design: say which with --size (and --alpha, --bandwidth) or "
                    "--pick 1..{}",
                    designs.size()));
  return {};
}

// --- Files ---------------------------------------------------------------------------------------

// The recipe with the links that were asked for on it.
std::string WithLinks(const Design& design, const Flags& flags) {
  std::string links;
  if (!flags.bandwidth.empty())
    links +=
        fmt::format(",bw={}", FormatBandwidth(std::max<int64_t>(
                                  1, ParseBandwidth(flags.bandwidth).value_or(1) / design.degree)));
  if (!flags.alpha.empty()) links += ",alpha=" + flags.alpha;
  if (links.empty() || design.recipe.back() != ')') return design.recipe;
  return design.recipe.substr(0, design.recipe.size() - 1) + links + ")";
}

struct Written {
  std::string path;
  std::string what;
};

// PREFIX.topo.json and a verified schedule of each collective.
Result<std::vector<Written>> WriteDesign(const Flags& flags, const Design& design) {
  const Result<Topology> topology = ParseTopology(WithLinks(design, flags));
  if (!topology) return tl::unexpected(topology.error());
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(design.algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  std::vector<Written> written{{flags.output + ".topo.json", "network"}};
  if (Status status = WriteTopologyFile(written[0].path, *topology); !status)
    return tl::unexpected(status.error());
  for (CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
    const Result<Collective> collective = Collective::Make(kind, topology->num_ranks());
    if (!collective) return tl::unexpected(collective.error());
    const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, {});
    if (!schedule) return tl::unexpected(schedule.error());
    const VerifyReport report = Verify(*topology, *collective, *schedule);
    if (report.cancelled) return tl::unexpected(CancelledError());
    if (!report.verified())
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("the {} schedule is not correct: {}", Name(kind),
                                   report.violations.front().message));
    const Result<StepCost> cost = AnalyticCost(*topology, *schedule);
    if (!cost) return tl::unexpected(cost.error());
    written.push_back(
        {fmt::format("{}.{}.sched", flags.output, Name(kind)),
         fmt::format("{}, verified: TL {}, TB {}", Name(kind), cost->tl, Exact(cost->tb))});
    if (Status status = WriteScheduleFile(written.back().path, *topology, *schedule); !status)
      return tl::unexpected(status.error());
  }
  return written;
}

// --- Output --------------------------------------------------------------------------------------

std::string MarksOf(const Design& design) {
  std::string marks;
  if (design.moore_optimal) marks += "Moore ";
  if (design.bandwidth_optimal) marks += "bandwidth ";
  if (!marks.empty()) marks.pop_back();
  return marks.empty() ? "-" : marks;
}

std::string Fixed(const Rational& value) { return fmt::format("{:.4f}", value.ToDouble()); }

void PrintText(const Flags& flags, const Shown& shown, const std::vector<Written>& written) {
  const std::vector<Design>& designs = shown.answer.designs;
  const int32_t ranks = designs[0].ranks, degree = designs[0].degree;
  const Rational best_tb = BestTb(ranks);
  std::vector<std::string> header{"recipe", "#", "TL", "TB", "TB/TB*", "diameter", "links", "by"};
  if (!shown.flows.empty()) header.insert(header.end(), {"f", "f <="});
  if (shown.workload) header.push_back("time");
  header.push_back("optimal in");
  Table table(header, Table::Last::kProse);
  for (size_t i = 0; i < designs.size(); ++i) {
    const Design& design = designs[i];
    std::vector<std::string> row{design.recipe,
                                 fmt::to_string(i + 1),
                                 fmt::to_string(design.tl),
                                 Fixed(design.tb),
                                 Fixed(design.tb / best_tb),
                                 fmt::to_string(design.diameter),
                                 design.bidirectional ? "both ways" : "one way",
                                 design.algorithm};
    if (!shown.flows.empty()) {
      row.push_back(fmt::format("{:.4g}", shown.flows[i].lower.ToDouble()));
      row.push_back(fmt::format("{:.4g}", shown.flows[i].upper.ToDouble()));
    }
    if (shown.workload) row.push_back(Seconds(shown.seconds[i]));
    row.push_back(MarksOf(design));
    table.AddRow(std::move(row));
  }
  const int32_t moore = MooreBoundSteps(ranks, degree);
  std::vector<std::string> bound{
      "bound", "", fmt::to_string(moore), Fixed(best_tb), Fixed(Rational(1)), fmt::to_string(moore),
      "",      ""};
  if (!shown.flows.empty())
    bound.insert(bound.end(), {"", fmt::format("{:.4g}", MooreFlow(ranks, degree).ToDouble())});
  if (shown.workload) bound.push_back(Seconds(shown.bound_seconds));
  bound.push_back("");
  table.AddRow(std::move(bound));
  fmt::print("{}{} ranks, {} ports each: {} of the all-gather\n{}",
             flags.bidirectional ? "bidirectional networks of " : "", ranks, degree,
             "TL steps, TB in M/B", table.ToString());
  if (shown.best) {
    const Design& best = designs[*shown.best];
    fmt::print("\n{} {}{}\n", flags.pick != 0 ? "picked" : "best", best.recipe,
               shown.workload
                   ? fmt::format(" for {}: {}, {} of what the bound would allow", flags.collective,
                                 Seconds(shown.seconds[*shown.best]),
                                 Percent(shown.bound_seconds / shown.seconds[*shown.best]))
                   : "");
    for (const std::string& reason : best.reasons) fmt::print("  {}\n", reason);
  }
  for (const Written& file : written) fmt::print("written to {}: {}\n", file.path, file.what);
}

Json ToJson(const Design& design) {
  Json out;
  out["recipe"] = design.recipe;
  out["algorithm"] = design.algorithm;
  out["ranks"] = design.ranks;
  out["degree"] = design.degree;
  out["diameter"] = design.diameter;
  out["tl"] = design.tl;
  out["tl_bound"] = MooreBoundSteps(design.ranks, design.degree);
  out["tb"] = cli::ToJson(design.tb);
  out["tb_bound"] = cli::ToJson(BestTb(design.ranks));
  out["bidirectional"] = design.bidirectional;
  out["reverse_symmetric"] = design.reverse_symmetric;
  out["moore_optimal"] = design.moore_optimal;
  out["bandwidth_optimal"] = design.bandwidth_optimal;
  out["reasons"] = design.reasons;
  return out;
}

void PrintJson(const Flags& flags, const Shown& shown, const std::vector<Written>& written,
               double seconds) {
  const std::vector<Design>& designs = shown.answer.designs;
  const int32_t ranks = designs[0].ranks, degree = designs[0].degree;
  Json out;
  out["ranks"] = ranks;
  out["degree"] = degree;
  out["bidirectional"] = flags.bidirectional;
  out["tl_bound"] = MooreBoundSteps(ranks, degree);
  out["tb_bound"] = cli::ToJson(BestTb(ranks));
  out["from_database"] = shown.answer.from_database;
  out["frontier"] = Json::array();
  for (size_t i = 0; i < designs.size(); ++i) {
    Json row = ToJson(designs[i]);
    if (!shown.flows.empty()) {
      const Flow& flow = shown.flows[i];
      row["f"] = cli::ToJson(flow.lower);
      row["f_upper"] = cli::ToJson(flow.upper);
      row["gap"] = ((flow.upper - flow.lower) / flow.upper).ToDouble();
    }
    if (shown.workload) row["time_s"] = shown.seconds[i];
    out["frontier"].push_back(std::move(row));
  }
  if (!shown.flows.empty()) out["f_bound"] = cli::ToJson(MooreFlow(ranks, degree));
  if (shown.workload) {
    out["collective"] = flags.collective;
    out["alpha_s"] = shown.workload->alpha_s;
    out["bandwidth"] = shown.workload->bandwidth;
    out["bound_s"] = shown.bound_seconds;
  }
  out["best"] = shown.best ? Json(*shown.best) : Json(nullptr);
  if (!written.empty()) {
    out["files"] = Json::array();
    for (const Written& file : written) out["files"].push_back(file.path);
  }
  out["synthesis_s"] = seconds;
  out["peak_rss_bytes"] = PeakRssBytes();
  Print(out);
}

int Answered(const Program& program, const Flags& flags) {
  const Result<DesignQuestion> question = QuestionOf(flags);
  if (!question) return Report(question.error());
  Shown shown;
  Result<std::optional<Workload>> workload = WorkloadOf(flags);
  if (!workload) return Report(workload.error());
  shown.workload = *std::move(workload);
  const auto before = std::chrono::steady_clock::now();
  Result<Answer> answer = Ask(flags, *question);
  if (!answer) return Report(answer.error());
  shown.answer = *std::move(answer);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (flags.flow || flags.collective == Name(CollectiveKind::kAllToAll)) {
    Result<std::vector<Flow>> flows = FlowsOf(shown.answer.designs, flags.flow_gap);
    if (!flows) return Report(flows.error());
    shown.flows = *std::move(flows);
  }
  if (Status chosen = ChooseBest(flags, shown); !chosen) return Report(chosen.error());
  std::vector<Written> written;
  if (!flags.output.empty()) {
    Result<std::vector<Written>> files = WriteDesign(flags, shown.answer.designs[*shown.best]);
    if (!files) return Report(files.error());
    written = *std::move(files);
  }
  if (program.json)
    PrintJson(flags, shown, written, elapsed.count());
  else
    PrintText(flags, shown, written);
  return kDone;
}

int RunDesign(const Program& program, const Flags& flags, const CLI::App& command) {
  if (flags.all_up_to != 0) {
    const std::string path = flags.database.empty() ? DefaultDatabase() : flags.database;
    if (path.empty())
      return Report({ErrorCode::kInvalidArgument,
                     "there is no home folder for the database; say --database FILE"});
    const int code = MakeDatabase(program, flags, path);
    if (code != kDone || flags.ranks == 0) return code;
  } else if (command.count("--ranks") == 0 || command.count("--degree") == 0) {
    return Report({ErrorCode::kInvalidArgument,
                   "wanted -n RANKS and -d DEGREE, or --all-up-to RANKS to make the database"});
  }
  return Answered(program, flags);
}

}  // namespace

void AddDesign(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "design", "Which networks of N ranks with d ports are worth wiring, and why",
      "tutti design -n 48 -d 4 --size 1MiB --alpha 10us --bandwidth 100Gbit/s -o cluster");
  command->add_option("-n,--ranks", flags->ranks, "Number of ranks N");
  command->add_option("-d,--degree", flags->degree, "Ports of each rank, in and out");
  command->add_flag("--bidirectional", flags->bidirectional,
                    "Only networks whose links all have their reverse");
  command->add_option("--size", flags->size,
                      "Pick the best for this size M, or for a distribution: 1MiB:0.7,100MiB:0.3");
  command
      ->add_option(
          "-c,--collective", flags->collective,
          "What --size is of: all-reduce, all-gather, reduce-scatter, all-to-all (this one "
          "computes flow values)")
      ->capture_default_str();
  command->add_option("--alpha", flags->alpha, "What a message waits on a link; default 10us");
  command->add_option("--bandwidth", flags->bandwidth,
                      "B, what all ports of a rank carry together; default 100Gbit/s");
  command->add_flag("--flow", flags->flow, "Also compute all-to-all flow values");
  command
      ->add_option("--flow-gap", flags->flow_gap,
                   "How far the limits of a flow value may lie apart")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  command->add_option("--pick", flags->pick, "Pick this row instead of the best");
  command->add_option("--base", flags->bases,
                      "Also expand this network of yours (.topo.json); may be given several times");
  command->add_option("-o,--output", flags->output,
                      "Write the picked design: PREFIX.topo.json and its verified schedules "
                      "PREFIX.all-gather.sched, .reduce-scatter.sched, .all-reduce.sched");
  command->add_option("--all-up-to", flags->all_up_to,
                      "Search all sizes up to this one and keep the answers in the database");
  command->add_option("--degrees", flags->degrees, "Degrees of --all-up-to")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--database", flags->database,
                      "Where answers are kept; default $XDG_CACHE_HOME/tutti/designs.sqlite, if it "
                      "is there");
  command->add_flag("--no-database", flags->no_database, "Search, whatever the database holds");
  command->callback([&program, flags, command] {
    program.action = [&program, flags, command] { return RunDesign(program, *flags, *command); };
  });
}

}  // namespace tutti::cli
