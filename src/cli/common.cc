#include "common.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "diameter.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/coll/demand.h"
#include "tutti/runtime/executor.h"
#include "tutti/sched/group_text.h"
#include "tutti/sim/simulator.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti::cli {

Program::Program()
    : line("tutti", "Tutti: collective communication that knows its network",
           std::string("tutti ") + TUTTI_VERSION) {}

Command Program::AddCommand(Command parent, const std::string& name, const std::string& description,
                            const std::string& example) {
  Command command = parent.AddCommand(name, description);
  command.SetFooter("Example:\n  " + example);
  command.AddFlag("--json", json, "Print one JSON object on stdout and nothing else");
  command.AddOption("--color", color, "Colours: auto (on a terminal), always or never")
      .OneOf({"auto", "always", "never"})
      .ShowDefault();
  command.AddOption("-j,--threads", threads, "Threads to use; 0 means as many as the machine has")
      .Within(0, 1024);
  command.AddFlag("-v,--verbose", verbose, "Log what is done and how long it takes, on stderr");
  return command;
}

namespace {

// Escape sequences of terminals.
constexpr const char *kBold = "\x1b[1m", *kBest = "\x1b[1;32m", *kRed = "\x1b[1;31m",
                     *kPlain = "\x1b[0m", *kClearLine = "\r\x1b[K";

std::string color_when = "auto";
std::atomic<bool> printed_error{false};
std::atomic<bool> interruption_is_left_to_others{false};

bool IsColored(int fd) {
  if (color_when != "auto") return color_when == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(fd) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::string_view(term) != "dumb");
}

// Bytes of files and their names that are no UTF-8 become U+FFFD.
std::string AsUtf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

void SetColor(const std::string& when) { color_when = when; }

bool PrintedError() { return printed_error; }

void PrintError(const std::string& message) {
  printed_error = true;
  // On a terminal the progress may stand on this line, and "^C" behind it.
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "{}", CancelRequested() ? "\n" : kClearLine);
  const bool colored = IsColored(STDERR_FILENO);
  fmt::print(stderr, "{}tutti: error:{} {}\n", colored ? kRed : "", colored ? kPlain : "",
             AsUtf8(message));
}

void PrintInterrupted() {
  if (!interruption_is_left_to_others) PrintError(CancelledError().message);
}

void LeaveInterruptionToOthers() { interruption_is_left_to_others = true; }

bool InterruptionIsLeftToOthers() { return interruption_is_left_to_others; }

int Report(const Error& error) {
  if (error.code == ErrorCode::kCancelled)
    PrintInterrupted();  // where it was is nobody's fault
  else
    PrintError(error.message);
  switch (error.code) {
    case ErrorCode::kInfeasible:
    case ErrorCode::kPeerFailed:
      return kAnswerIsNo;
    case ErrorCode::kCancelled:
      return kInterrupted;
    default:
      return kBadInput;
  }
}

void Print(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

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
  const bool colored = IsColored(STDOUT_FILENO);
  for (size_t r = 0; r < rows_.size(); ++r) {
    const std::vector<std::string>& row = rows_[r];
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool left = i == 0 || (last_ == Last::kProse && i + 1 == width.size());
      line += i == 0 ? "" : "  ";
      line +=
          left ? fmt::format("{:<{}}", row[i], width[i]) : fmt::format("{:>{}}", row[i], width[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    const char* tone = r == 0 ? kBold : best_.contains(r) ? kBest : nullptr;
    text += colored && tone != nullptr ? fmt::format("{}{}{}\n", tone, line, kPlain) : line + "\n";
  }
  return text;
}

std::string Seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} us", seconds * 1e6);
}
// One rank sends nothing in no time: neither is a number.
std::string BytesPerSecond(double value) {
  return std::isfinite(value) && value > 0 ? fmt::format("{:.3f} GB/s", value / 1e9) : "-";
}
std::string Percent(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.1f} %", ratio * 100) : "-";
}
std::string Count(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t end = digits.size(); end > first + 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}
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

Result<std::vector<int64_t>> ReadDemand(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  return ParseDemandText(*text, path);
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

constexpr int32_t kMaxTriedChunks = 1 << 30;

std::optional<int32_t> ParseCount(const std::string& text) {
  int32_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, count);
  if (fault != std::errc() || stop != end || count < 0 || count > kMaxTriedChunks)
    return std::nullopt;
  return count;
}

}  // namespace

void ChunksFlag::AddTo(Command command) {
  command
      .AddOption("--chunks", text_,
                 "Equal chunks per shard; 0: what the algorithm needs; auto: as many as are "
                 "predicted to be fastest for --size (ten)")
      .Check([](const std::string& text) {
        if (text == kAuto || ParseCount(text)) return std::string();
        return fmt::format("got '{}', wanted 0 .. {} or auto", text, kMaxTriedChunks);
      })
      .TypeName("INT|auto")
      .ShowDefault();
}

int32_t ChunksFlag::count() const { return ParseCount(text_).value_or(0); }

void ElementFlag::AddTo(Command command) {
  command
      .AddOption("--type", type_,
                 "What buffers hold, as nccl-tests names it: no chunk is smaller than an element")
      .ShowDefault();
}

Status ElementFlag::Check() const {
  const Result<DataType> type = ParseDataType(type_);
  if (!type) return tl::unexpected(type.error());
  return {};
}

int32_t ElementFlag::bytes() const {
  const Result<DataType> type = ParseDataType(type_);
  return type ? SizeOf(*type) : 0;
}

Status CheckChunksExist(const Collective& collective, const ChunksFlag& chunks,
                        const std::vector<int64_t>& sizes, const ElementFlag& element) {
  const int64_t size = *std::min_element(sizes.begin(), sizes.end());
  const int64_t most = MostChunks(collective, size, element.bytes());
  if (chunks.count() <= most) return {};
  return InvalidArgument(fmt::format(
      "--chunks {}: chunks of a shard of {} would be less than an element of {} byte{}; "
      "at most {}",
      chunks.count(), FormatSize(size), element.bytes(), element.bytes() == 1 ? "" : "s", most));
}

void CollectiveFlags::AddTo(Command command) {
  command
      .AddOption("-c,--collective", name,
                 "all-gather, reduce-scatter, all-reduce, broadcast, reduce, gather, scatter, "
                 "all-to-all or all-to-allv; also written allgather, all_gather or AllGather")
      .Transform([](const std::string& text) {
        const Result<CollectiveKind> kind = ParseCollectiveKind(text);
        return kind ? std::string(Name(*kind)) : text;  // Make() refuses it
      })
      .ShowDefault();
  command.AddOption("--root", root, "Root rank of broadcast, reduce, gather and scatter")
      .Within(0, 1 << 24)
      .ShowDefault();
  command.AddOption("--demand", demand_path,
                    "File with the square matrix of bytes for all-to-allv (CSV or blanks)");
  command.AddOption("--group", group,
                    "The collective among these ranks only, such as 0-7,12; --root is a position "
                    "in it");
  command.AddOption("--groups", groups,
                    "Within each of several groups at once: lists separated by semicolons, "
                    "every=S, blocks=K, axis=D of a torus or mesh, or a file with a group a line");
  command
      .AddOption("--others", others,
                 "What ranks in no group do: forward what passes, or idle: take no part")
      .OneOf({"forward", "idle"})
      .ShowDefault();
  command.AddOption("--placement", placement,
                    "Where the job's ranks lie on the network's: a file with a network rank a "
                    "line, near: each close to the one before, or best: where the schedule takes "
                    "the least time of those tried; groups are of the job's ranks");
}

namespace {

// Text that is no list and no structure is a file.
bool IsGroupText(const std::string& text) {
  return text.find_first_not_of(" \t0123456789,;-/") == std::string::npos ||
         text.find('=') != std::string::npos;
}

// Where each rank of the job lies; nothing without --placement.
Result<std::optional<std::vector<NodeId>>> PlacedBy(const CollectiveFlags& flags,
                                                    const Topology& topology) {
  constexpr int64_t kMessage = 1 << 20;
  if (flags.placement.empty()) return std::nullopt;
  if (flags.placement == "near") return NearestOrder(topology, kMessage);
  if (flags.best) return flags.best->ranks;
  const Result<std::string> text = ReadFile(flags.placement);
  if (!text) return tl::unexpected(text.error());
  Result<std::vector<NodeId>> ranks = ParsePlacement(*text, topology);
  if (!ranks) return Within(flags.placement, ranks.error());
  return *std::move(ranks);
}

// Groups of the job's ranks.
Result<RankGroups> GroupsOf(const CollectiveFlags& flags, const Topology& topology,
                            int32_t job_ranks) {
  RankGroups groups;
  if (!flags.groups.empty()) {
    const bool is_text = IsGroupText(flags.groups);
    const Result<std::string> text = is_text ? flags.groups : ReadFile(flags.groups);
    if (!text) return tl::unexpected(text.error());
    Result<RankGroups> read = ParseGroups(*text, topology, job_ranks);
    if (!read) return Within(is_text ? "--groups" : flags.groups, read.error());
    groups = *std::move(read);
  } else if (!flags.group.empty()) {
    Result<std::vector<NodeId>> ranks = ParseRankList(flags.group, job_ranks);
    if (!ranks) return Within("--group", ranks.error());
    groups.push_back(*std::move(ranks));
  } else {
    for (const NodeId rank : IdRange<NodeId>(0, job_ranks)) {
      if (groups.empty()) groups.emplace_back();
      groups[0].push_back(rank);
    }
  }
  return groups;
}

// The ranks of the job that are in a group, ascending.
std::vector<NodeId> UsedIn(const RankGroups& groups) {
  std::vector<NodeId> used;
  for (const std::vector<NodeId>& group : groups)
    used.insert(used.end(), group.begin(), group.end());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

// An order of all ranks with those of `used` first.
std::vector<NodeId> UsedFirst(const std::vector<NodeId>& order, const std::vector<NodeId>& used) {
  std::vector<NodeId> ranks;
  for (const NodeId rank : used) ranks.push_back(order[rank.index()]);
  for (size_t i = 0; i < order.size(); ++i)
    if (!std::binary_search(used.begin(), used.end(), NodeId{static_cast<int32_t>(i)}))
      ranks.push_back(order[i]);
  return ranks;
}

}  // namespace

Status CollectiveFlags::FindBest(const Topology& topology, const Synthesizer* synthesizer,
                                 const SynthOptions& options) {
  constexpr int64_t kTransfers = 20'000'000;  // of all schedules that are tried: some seconds
  constexpr int64_t kMessage = 1 << 20;
  if (!wants_best()) return {};
  if (synthesizer == nullptr || synthesizer->groups == GroupUse::kNone)
    synthesizer = *FindSynthesizer("direct");
  const SynthOptions usable = OptionsFor(*synthesizer, options);
  Result<RankGroups> listed_groups = GroupsOf(*this, topology, topology.num_ranks());
  if (!listed_groups) return tl::unexpected(listed_groups.error());
  const std::vector<NodeId> used = UsedIn(*listed_groups);
  // The ranks of the job, from the order in which the used ones stand first.
  const auto job_order = [&used](std::span<const NodeId> ranks) {
    std::vector<NodeId> order(ranks.size());
    size_t of_used = 0, of_rest = used.size();
    for (size_t rank = 0; rank < order.size(); ++rank)
      order[rank] = of_used < used.size() && used[of_used].index() == rank ? ranks[of_used++]
                                                                           : ranks[of_rest++];
    return order;
  };
  int64_t transfers = 0;
  const auto seconds_of = [&](std::span<const NodeId> ranks) -> Result<Rational> {
    const std::vector<NodeId> placed = job_order(ranks);
    const Result<Collective> collective =
        MakeAt(&placed, topology, synthesizer->one_shard_all_reduce);
    if (!collective) return tl::unexpected(collective.error());
    const Result<Schedule> schedule = RunSynthesizer(*synthesizer, topology, *collective, usable);
    if (!schedule) return tl::unexpected(schedule.error());
    transfers = static_cast<int64_t>(schedule->transfers.size());
    return PredictedSeconds(topology, *schedule, usable.size_bytes);
  };
  std::vector<NodeId> listed;
  for (const NodeId rank : IdRange<NodeId>(0, topology.num_ranks())) listed.push_back(rank);
  const std::vector<std::vector<NodeId>> starts = {
      UsedFirst(listed, used), UsedFirst(NearestOrder(topology, kMessage), used)};
  PlacementSearch search{.seed = options.seed};
  // How much work one is; the search itself says what is wrong where none can be made.
  for (const std::vector<NodeId>& start : starts)
    if (transfers == 0) (void)seconds_of(start);
  search.max_tries =
      std::clamp<int64_t>(kTransfers / std::max<int64_t>(transfers, 1), 8, search.max_tries);
  Result<FoundPlacement> found =
      FindPlacement(starts, static_cast<int32_t>(used.size()), seconds_of, search);
  if (!found) return tl::unexpected(found.error());
  found->ranks = job_order(found->ranks);
  best = *std::move(found);
  return {};
}

std::string PlacementText(const CollectiveFlags& flags) {
  if (!flags.best) return "";
  const FoundPlacement& best = *flags.best;
  std::vector<int32_t> ranks;
  for (const NodeId rank : best.ranks) ranks.push_back(rank.value);
  return fmt::format("  placement    {} as listed, {}, {}: job ranks lie on {}\n",
                     best.first_seconds ? Seconds(best.first_seconds->ToDouble()) : "impossible",
                     Seconds(best.seconds.ToDouble()),
                     best.is_least ? "the least of all placements"
                                   : fmt::format("the least of {} tried", Count(best.tries)),
                     fmt::join(ranks, ","));
}

void DescribePlacement(const CollectiveFlags& flags, Json& out) {
  if (!flags.best) return;
  const FoundPlacement& best = *flags.best;
  Json ranks = Json::array();
  for (const NodeId rank : best.ranks) ranks.push_back(rank.value);
  out["placement"] = {
      {"ranks", std::move(ranks)},
      {"time_s", best.seconds.ToDouble()},
      {"listed_s", best.first_seconds ? Json(best.first_seconds->ToDouble()) : Json(nullptr)},
      {"tries", best.tries},
      {"is_least", best.is_least}};
}

std::vector<std::string> CollectiveFlags::Inputs() const {
  std::vector<std::string> paths{demand_path};
  if (!groups.empty() && !IsGroupText(groups)) paths.push_back(groups);
  if (!placement.empty() && placement != "near" && placement != "best") paths.push_back(placement);
  return paths;
}

void DescribeGroups(const Collective& collective, Json& out) {
  if (!collective.has_groups()) return;
  Json groups = Json::array();
  for (const Collective::Group& group : collective.groups()) {
    Json members = Json::array();
    for (const NodeId rank : group.members) members.push_back(rank.value);
    groups.push_back(std::move(members));
  }
  out["groups"] = std::move(groups);
  out["others"] = collective.others() == Others::kIdle ? "idle" : "forward";
}

std::string GroupsText(const Collective& collective) {
  if (!collective.has_groups()) return "";
  const auto groups = collective.groups();
  if (groups.size() == 1) return fmt::format(" of {} ranks", groups[0].size());
  const bool equal = std::all_of(groups.begin(), groups.end(), [&](const Collective::Group& group) {
    return group.size() == groups[0].size();
  });
  return fmt::format(" in {} groups of {}{} ranks", groups.size(), equal ? "" : "up to ",
                     collective.largest_group());
}

Result<Collective> CollectiveFlags::Make(const Topology& topology,
                                         bool one_shard_all_reduce) const {
  CollectiveFlags found = *this;
  if (Status looked = found.FindBest(topology, nullptr, {}); !looked)
    return tl::unexpected(looked.error());
  const Result<std::optional<std::vector<NodeId>>> placed = PlacedBy(found, topology);
  if (!placed) return tl::unexpected(placed.error());
  return MakeAt(*placed ? &**placed : nullptr, topology, one_shard_all_reduce);
}

Result<Collective> CollectiveFlags::MakeAt(const std::vector<NodeId>* placed,
                                           const Topology& topology,
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
  if (!group.empty() && !groups.empty())
    return InvalidArgument("--group names one group and --groups several: give one of them");
  if (others == "idle" && !has_groups())
    return InvalidArgument("--others idle needs --group, --groups or --placement");
  if (has_groups()) {
    const int32_t job_ranks =
        placed != nullptr ? static_cast<int32_t>(placed->size()) : topology.num_ranks();
    Result<RankGroups> members = GroupsOf(*this, topology, job_ranks);
    if (!members) return tl::unexpected(members.error());
    if (placed != nullptr)
      for (std::vector<NodeId>& ranks : *members)
        for (NodeId& rank : ranks) rank = (*placed)[rank.index()];
    options.groups = *std::move(members);
    if (others == "idle") options.others = Others::kIdle;
  }
  return Collective::Make(*kind, topology.num_ranks(), std::move(options));
}

FarthestRange DiameterRangeOf(const Topology& topology) {
  constexpr int32_t kFewRanks = 2048;  // every rank searched faster than symmetry is found
  constexpr int64_t kMaxVisits = 2'000'000'000;  // seconds
  if (topology.num_ranks() <= kFewRanks) {
    const int32_t diameter = Diameter(topology);
    return {diameter, diameter};
  }
  // Alike nodes are equally far from the rest: one search a class.
  std::vector<NodeId> sources;
  for (NodeId node : FindNodeOrbits(topology).representatives)
    if (topology.is_rank(node)) sources.push_back(node);
  return LimitDiameter(topology, sources, kMaxVisits);
}

std::optional<Rational> MooreFlowOf(const Topology& topology) {
  const std::optional<int32_t> degree = topology.regular_degree();
  if (!degree || topology.num_ranks() < 2 || topology.has_switches() || !topology.is_homogeneous())
    return std::nullopt;
  return MooreFlow(topology.num_ranks(), *degree);
}

void DescribeTopology(const Topology& topology, Json& out) {
  DescribeTopologyWith(topology, DiameterRangeOf(topology), out);
}

void DescribeTopologyWith(const Topology& topology, const FarthestRange& diameter, Json& out) {
  const bool exact = diameter.least == diameter.most;
  DescribeTopology(topology,
                   exact ? std::optional(static_cast<int32_t>(diameter.least)) : std::nullopt, out);
  if (!exact) out["diameter_range"] = {diameter.least, diameter.most};
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
  DescribeGroups(schedule.collective, out);
  out["algorithm"] = schedule.algorithm;
  out["seed"] = schedule.seed;
  out["chunks"] = schedule.units_per_shard;
  if (schedule.kind == ScheduleKind::kStep) out["steps"] = schedule.num_steps;
  out["transfers"] = schedule.transfers.size();
}

std::string NameOf(const Topology& topology) {
  return topology.name().empty() ? "an unnamed network" : topology.name();
}

double Efficiency(double bound_s, double time_s) { return time_s > 0 ? bound_s / time_s : 1; }

namespace {

// A timed schedule is a plan for one size; of another its transfers keep their order on the clock
// of that size.
double SecondsOf(const Topology& topology, const Schedule& schedule, int64_t size_bytes) {
  // A plan on the clock of another size; where it cannot be simulated it is stretched.
  if (schedule.kind == ScheduleKind::kTimed && schedule.size_bytes != size_bytes)
    if (const Result<SimReport> report = Simulate(
            topology, schedule, {.size_bytes = size_bytes, .link_model = schedule.link_model}))
      return report->time_s;
  return PredictedSeconds(topology, schedule, size_bytes).ToDouble();
}

}  // namespace

Evaluation Evaluate(const Topology& topology, const Schedule& schedule, int64_t size_bytes,
                    const Bounds& bounds) {
  Evaluation out;
  out.bounds = bounds;
  out.bound_s = bounds.Seconds(size_bytes);
  if (schedule.kind == ScheduleKind::kStep) {
    out.cost = AnalyticCost(topology, schedule);
    out.step_bound_s = bounds.StepLimit(size_bytes).ToDouble();
  }
  out.time_s = SecondsOf(topology, schedule, size_bytes);
  out.efficiency = Efficiency(out.bound_s, out.time_s);
  return out;
}

void DescribeLimits(const Bounds& bounds, int64_t size_bytes, Json& out) {
  const auto seconds = [size_bytes](const Rational& per_byte) {
    return (per_byte * Rational(size_bytes)).ToDouble();
  };
  if (bounds.ideal_seconds_per_byte) out["ideal_s"] = seconds(*bounds.ideal_seconds_per_byte);
  if (bounds.rsag_seconds_per_byte) out["rsag_s"] = seconds(*bounds.rsag_seconds_per_byte);
}

namespace {

double Bandwidth(int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

// Where barriers cost more than the bound of all schedules says.
std::string StepBoundText(const Schedule& schedule, const Evaluation& evaluation) {
  if (schedule.kind != ScheduleKind::kStep || evaluation.step_bound_s <= evaluation.bound_s)
    return "";
  return fmt::format("   ({} of the {} that steps with barriers take at least)",
                     Percent(Efficiency(evaluation.step_bound_s, evaluation.time_s)),
                     Seconds(evaluation.step_bound_s));
}

}  // namespace

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
  if (schedule.kind == ScheduleKind::kStep) out["step_bound_s"] = evaluation.step_bound_s;
  DescribeLimits(evaluation.bounds, size_bytes, out);
  out["efficiency"] = evaluation.efficiency;
  const double algbw = Bandwidth(size_bytes, evaluation.time_s);
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
  const double algbw = Bandwidth(size_bytes, evaluation.time_s);
  text += fmt::format(
      "  time         {} for {}   (bound {}: {})\n"
      "  efficiency   {}{}\n"
      "  algbw        {}   busbw {}\n",
      Seconds(evaluation.time_s), ReadableSize(size_bytes), Seconds(evaluation.bound_s),
      evaluation.bounds.bandwidth_reason, Percent(evaluation.efficiency),
      StepBoundText(schedule, evaluation), BytesPerSecond(algbw),
      BytesPerSecond(algbw * schedule.collective.BusFactor().ToDouble()));
  return text;
}

}  // namespace tutti::cli
