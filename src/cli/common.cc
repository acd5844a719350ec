#include "common.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti::cli {

Program::Program() : app("Tutti: collective communication that knows its network", "tutti") {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("tutti ") + TUTTI_VERSION);
  app.fallthrough(false);
}

CLI::App* Program::AddCommand(CLI::App* parent, const std::string& name,
                              const std::string& description, const std::string& example) {
  CLI::App* command = parent->add_subcommand(name, description);
  command->footer("Example:\n  " + example);
  command->add_flag("--json", json, "Print one JSON object on stdout and nothing else");
  command->add_option("-j,--threads", threads, "Threads to use; 0 means as many as the machine has")
      ->check(CLI::Range(0, 1024));
  command->add_flag("-v,--verbose", verbose, "Log what is done and how long it takes, on stderr");
  return command;
}

int Report(const Error& error) {
  fmt::print(stderr, "tutti: error: {}\n", error.message);
  switch (error.code) {
    case ErrorCode::kInfeasible:
    case ErrorCode::kPeerFailed:
      return kAnswerIsNo;
    case ErrorCode::kCancelled:
      return 130;  // as a shell reports SIGINT
    default:
      return kBadInput;
  }
}

void Print(const Json& json) { fmt::print("{}\n", json.dump(2)); }

Json ToJson(const Rational& value) {
  Json out;
  const auto num = value.Num64(), den = value.Den64();
  out["num"] = num ? Json(*num) : Json(value.NumString());
  out["den"] = den ? Json(*den) : Json(value.DenString());
  out["value"] = value.ToDouble();
  return out;
}

std::string Table::ToString() const {
  std::vector<size_t> width;
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) {
      if (width.size() <= i) width.push_back(0);
      width[i] = std::max(width[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool left = i == 0 || (last_ == Last::kProse && i + 1 == width.size());
      line += i == 0 ? "" : "  ";
      line +=
          left ? fmt::format("{:<{}}", row[i], width[i]) : fmt::format("{:>{}}", row[i], width[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string Seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} us", seconds * 1e6);
}
std::string BytesPerSecond(double value) { return fmt::format("{:.3f} GB/s", value / 1e9); }
std::string Percent(double ratio) { return fmt::format("{:.1f} %", ratio * 100); }
std::string Exact(const Rational& value) {
  constexpr size_t kReadable = 16;  // characters of a fraction that says more than its decimals
  const std::string fraction = value.ToString();
  if (value.Den64() == 1) return fraction;
  if (fraction.size() > kReadable) return fmt::format("{:.6g}", value.ToDouble());
  return fmt::format("{} = {:.6g}", fraction, value.ToDouble());
}

int64_t PeakRssBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == text.size()) return parts;
    begin = comma + 1;
  }
}

Result<std::vector<int64_t>> ParseSizes(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const std::string& part : SplitAtCommas(text)) {
    const Result<int64_t> size = ParseSizeBytes(part);
    if (!size) return tl::unexpected(size.error());
    if (*size < 1) return InvalidArgument("size 0 is too small; at least 1 byte");
    sizes.push_back(*size);
  }
  return sizes;
}

// Numbers separated by commas, semicolons or blanks: CSV and the matrix files of nccl-tests alike.
Result<std::vector<int64_t>> ReadDemand(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  std::vector<int64_t> demand;
  size_t line = 1;
  for (size_t i = 0; i < text->size();) {
    const char c = (*text)[i];
    if (c == '\n') ++line;
    if (c == ',' || c == ';' || c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++i;
      continue;
    }
    const size_t end = std::min(text->find_first_of(",; \t\r\n", i), text->size());
    const Result<int64_t> bytes = ParseSizeBytes(text->substr(i, end - i));
    if (!bytes) return Within(fmt::format("{}:{}", path, line), bytes.error());
    demand.push_back(*bytes);
    i = end;
  }
  return demand;
}

Status RequireVerified(const VerifyReport& report, const std::string& algorithm,
                       const std::string& consequence) {
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (report.verified()) return {};
  for (const Violation& violation : report.violations)
    fmt::print(stderr, "{}: {}\n", Name(violation.kind), violation.message);
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("the schedule of '{}' is not correct ({} violations); {}", algorithm,
                               report.num_violations, consequence));
}

namespace {

constexpr int32_t kMostChunks = 1 << 30;

std::optional<int32_t> ParseCount(const std::string& text) {
  int32_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, count);
  if (fault != std::errc() || stop != end || count < 0 || count > kMostChunks) return std::nullopt;
  return count;
}

}  // namespace

void ChunksFlag::AddTo(CLI::App* command) {
  command
      ->add_option("--chunks", text_,
                   "Equal chunks a shard; 0: what the algorithm needs; auto: as many as are "
                   "predicted to be fastest for --size (ten)")
      ->check([](const std::string& text) {
        if (text == kAuto || ParseCount(text)) return std::string();
        return fmt::format("got '{}', wanted 0 .. {} or auto", text, kMostChunks);
      })
      ->type_name("INT|auto")
      ->capture_default_str();
}

int32_t ChunksFlag::count() const { return ParseCount(text_).value_or(0); }

void CollectiveFlags::AddTo(CLI::App* command) {
  command
      ->add_option("-c,--collective", name,
                   "all-gather, reduce-scatter, all-reduce, broadcast, reduce, gather, scatter, "
                   "all-to-all or all-to-allv")
      ->capture_default_str();
  command->add_option("--root", root, "Root rank of broadcast, reduce, gather and scatter")
      ->capture_default_str();
  command->add_option("--demand", demand_path,
                      "File with the square matrix of bytes for all-to-allv (CSV or blanks)");
}

Result<Collective> CollectiveFlags::Make(const Topology& topology,
                                         bool one_shard_all_reduce) const {
  const Result<CollectiveKind> kind = ParseCollectiveKind(name);
  if (!kind) return tl::unexpected(kind.error());
  Collective::Options options;
  options.root = root;
  if (one_shard_all_reduce && *kind == CollectiveKind::kAllReduce) options.all_reduce_shards = 1;
  if (!demand_path.empty()) {
    Result<std::vector<int64_t>> demand = ReadDemand(demand_path);
    if (!demand) return tl::unexpected(demand.error());
    options.demand = std::move(*demand);
  } else if (*kind == CollectiveKind::kAllToAllV) {
    return InvalidArgument("all-to-allv needs --demand FILE, a square matrix of bytes");
  }
  return Collective::Make(*kind, topology.num_ranks(), std::move(options));
}

int32_t DiameterOf(const Topology& topology) {
  constexpr int32_t kFewRanks = 2048;  // every rank searched faster than symmetry is found
  if (topology.num_ranks() <= kFewRanks) return Diameter(topology);
  // Alike nodes are equally far from the rest: one search a class.
  std::vector<NodeId> sources;
  for (NodeId node : FindNodeOrbits(topology).representatives)
    if (topology.is_rank(node)) sources.push_back(node);
  return CountHops(topology, sources).diameter;
}

std::optional<Rational> MooreFlowOf(const Topology& topology) {
  const std::optional<int32_t> degree = topology.regular_degree();
  if (!degree || topology.num_ranks() < 2 || topology.has_switches() || !topology.is_homogeneous())
    return std::nullopt;
  return MooreFlow(topology.num_ranks(), *degree);
}

void DescribeTopology(const Topology& topology, Json& out) {
  DescribeTopology(topology, DiameterOf(topology), out);
}

void DescribeTopology(const Topology& topology, std::optional<int32_t> diameter, Json& out) {
  out["topology"] = topology.name();
  out["nodes"] = topology.num_nodes();
  out["ranks"] = topology.num_ranks();
  out["links"] = topology.num_links();
  const auto degree = topology.regular_degree();
  out["degree"] = degree ? Json(*degree) : Json(nullptr);
  out["diameter"] = diameter ? Json(*diameter) : Json(nullptr);
}

void DescribeSchedule(const Schedule& schedule, Json& out) {
  out["collective"] = Name(schedule.collective.kind());
  out["algorithm"] = schedule.algorithm;
  out["seed"] = schedule.seed;
  out["chunks"] = schedule.units_per_shard;
  if (schedule.kind == ScheduleKind::kStep) out["steps"] = schedule.num_steps;
  out["transfers"] = schedule.transfers.size();
}

Result<Evaluation> Evaluate(const Topology& topology, const Schedule& schedule,
                            int64_t size_bytes) {
  Result<Bounds> bounds = ComputeBounds(topology, schedule.collective);
  if (!bounds) return tl::unexpected(bounds.error());
  Evaluation out;
  out.bounds = std::move(*bounds);
  if (schedule.kind == ScheduleKind::kStep) {
    out.cost = AnalyticCost(topology, schedule);
    out.bound_s = out.bounds.Seconds(size_bytes, true);
  } else {
    out.bound_s = out.bounds.Seconds(size_bytes, false);
  }
  out.time_s = PredictedSeconds(topology, schedule, size_bytes).ToDouble();
  out.efficiency = out.time_s > 0 ? out.bound_s / out.time_s : 1;
  return out;
}

void DescribeLimits(const Bounds& bounds, int64_t size_bytes, Json& out) {
  const auto seconds = [size_bytes](const Rational& per_byte) {
    return (per_byte * Rational(size_bytes)).ToDouble();
  };
  if (bounds.ideal_seconds_per_byte) out["ideal_s"] = seconds(*bounds.ideal_seconds_per_byte);
  if (bounds.rsag_seconds_per_byte) out["rsag_s"] = seconds(*bounds.rsag_seconds_per_byte);
}

void DescribeEvaluation(const Schedule& schedule, const Evaluation& evaluation, int64_t size_bytes,
                        Json& out) {
  if (schedule.kind == ScheduleKind::kStep) {
    out["tl"] = evaluation.cost.tl;
    out["tl_bound"] = evaluation.bounds.steps;
    out["tb"] = ToJson(evaluation.cost.tb);
    out["tb_bound"] = ToJson(evaluation.bounds.tb);
    out["alpha_s"] = evaluation.cost.alpha_s.ToDouble();
  }
  if (evaluation.bounds.f_upper) out["f_upper"] = ToJson(*evaluation.bounds.f_upper);
  out["size_bytes"] = size_bytes;
  out["time_s"] = evaluation.time_s;
  out["bound_s"] = evaluation.bound_s;
  DescribeLimits(evaluation.bounds, size_bytes, out);
  out["efficiency"] = evaluation.efficiency;
  const double algbw = static_cast<double>(size_bytes) / evaluation.time_s;
  out["algbw"] = algbw;
  out["busbw"] = algbw * schedule.collective.BusFactor().ToDouble();
}

std::string EvaluationText(const Schedule& schedule, const Evaluation& evaluation,
                           int64_t size_bytes) {
  std::string text;
  if (schedule.kind == ScheduleKind::kStep)
    text += fmt::format(
        "  steps        {}   (bound {})\n"
        "  TB           {} M/B   (bound {})\n",
        evaluation.cost.tl, evaluation.bounds.steps, Exact(evaluation.cost.tb),
        Exact(evaluation.bounds.tb));
  const double algbw = static_cast<double>(size_bytes) / evaluation.time_s;
  text += fmt::format(
      "  time         {} for {}   (bound {}: {})\n"
      "  efficiency   {}\n"
      "  algbw        {}   busbw {}\n",
      Seconds(evaluation.time_s), FormatSize(size_bytes), Seconds(evaluation.bound_s),
      evaluation.bounds.bandwidth_reason, Percent(evaluation.efficiency), BytesPerSecond(algbw),
      BytesPerSecond(algbw * schedule.collective.BusFactor().ToDouble()));
  return text;
}

}  // namespace tutti::cli
