#include "routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/deadline.h"
#include "tutti/base/units.h"
#include "tutti/coll/collective.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/route/layers.h"
#include "tutti/sched/routing_chunks.h"
#include "tutti/store/routing_store.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/group_network.h"
#include "tutti/verify/layers.h"
#include "tutti/verify/routing.h"

namespace tutti::cli {
namespace {

// Unless said otherwise: enough for 99.9 % of the rate on every network of [alltoall-mcf].
constexpr int32_t kFewLayers = 4;

// What is asked for, checked.
struct Task {
  RouterOptions options;
  Collective collective;
  std::optional<int64_t> max_chunks = 0;  // as RoutingFlags::MaxChunks
  const Layering* layering = nullptr;     // none: no layers
  int32_t max_layers = kFewLayers;
  bool more_if_needed = true;  // layers, where so few have no place for some pair
};

Result<std::pair<PathSet, int32_t>> ParsePathSet(const std::string& text) {
  if (text == "disjoint") return std::pair(PathSet::kDisjoint, 0);
  if (text == "shortest") return std::pair(PathSet::kShortest, 0);
  constexpr std::string_view kBounded = "bounded:";
  int32_t extra = -1;
  if (text.starts_with(kBounded)) {
    const char* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data() + kBounded.size(), end, extra);
    if (fault != std::errc() || at != end) extra = -1;
  }
  if (extra < 0)
    return InvalidArgument(fmt::format(
        "--paths {}: accepted are disjoint, shortest and bounded:K, at most K hops more than the "
        "shortest",
        text));
  return std::pair(PathSet::kBounded, extra);
}

Result<Task> MakeTask(const Topology& topology, const CollectiveFlags& collective,
                      const RoutingFlags& flags, uint64_t seed) {
  Result<Collective> wanted = collective.Make(topology, false);
  if (!wanted) return tl::unexpected(wanted.error());
  if (wanted->kind() != CollectiveKind::kAllToAll && wanted->kind() != CollectiveKind::kAllToAllV)
    return InvalidArgument(fmt::format(
        "routers choose the paths of all-to-all and all-to-allv, not of {}; say -c all-to-all",
        Name(wanted->kind())));
  const auto paths = ParsePathSet(flags.paths);
  if (!paths) return tl::unexpected(paths.error());
  Task task{{}, *std::move(wanted)};
  if (!flags.layering.empty() || flags.layers.value_or(0) > 0) {
    const Result<const Layering*> layering =
        flags.layering.empty() ? Layerings().data() : FindLayering(flags.layering);
    if (!layering) return tl::unexpected(layering.error());
    task.layering = *layering;
    task.more_if_needed = !flags.layers.has_value();
    if (flags.layers) task.max_layers = *flags.layers > 0 ? *flags.layers : kMaxRoutingLayers;
  }
  task.options.seed = seed;
  if (!collective.demand_path.empty()) {
    Result<std::vector<int64_t>> demand = ReadDemand(collective.demand_path);
    if (!demand) return tl::unexpected(demand.error());
    task.options.demand = *std::move(demand);
  }
  if (flags.gap >= 0) task.options.gap = flags.gap;
  task.options.max_seconds = flags.time_limit;
  task.options.paths = paths->first;
  task.options.extra_hops = paths->second;
  task.max_chunks = flags.MaxChunks();
  task.options.max_paths = flags.max_paths;
  return task;
}

// A limit of f, where the router gave none.
Result<std::optional<Rational>> LimitOf(const Topology& topology, const RoutingFlags& flags,
                                        const Task& task, const Deadline& deadline) {
  if (flags.no_bound) return std::optional<Rational>();
  return LimitOfRate(topology, task.collective, flags.gap >= 0 ? flags.gap : kLimitGap,
                     deadline.Left())
      .map([](Rational limit) { return std::optional(std::move(limit)); });
}

struct MadeRouting {
  Routed routed;
  double synthesis_s = 0;
  RoutingReport report;
  Rational f;
  Rational f_unlimited;  // of the router's paths, before limits on chunks, paths and layers
  std::optional<Rational> f_upper;
  int32_t layers_of_router = 0;  // that its own paths take; more than are left: it was rerouted

  double gap() const { return ((*f_upper - f) / *f_upper).ToDouble(); }
  Rational loss() const { return (f_unlimited - f) / f_unlimited; }
};

// Layers for the routing, and other paths where its own take more than are allowed.
Status PutInLayers(const Topology& topology, const Task& task, MadeRouting& made) {
  Routing& routing = made.routed.routing;
  if (const Status assigned = AssignLayers(*task.layering, topology, kMaxRoutingLayers, routing);
      !assigned)
    return assigned;
  made.layers_of_router = routing.num_layers;
  if (routing.num_layers <= task.max_layers) return {};
  Result<Routing> within =
      RouteWithinLayers(topology, routing, task.max_layers, task.options.gap.value_or(kLimitGap),
                        task.options.max_paths);
  if (!within && within.error().code == ErrorCode::kInfeasible && task.more_if_needed) return {};
  if (!within) return tl::unexpected(within.error());
  routing = *std::move(within);
  return {};
}

Result<MadeRouting> Make(const Router& router, const Topology& topology, const Task& task,
                         bool verify) {
  const auto before = std::chrono::steady_clock::now();
  Result<Routed> routed = task.collective.has_groups()
                              ? RunRouterOfGroups(router, topology, task.collective, task.options)
                              : RunRouter(router, topology, task.options);
  if (!routed) return tl::unexpected(routed.error());
  MadeRouting made{*std::move(routed), 0, {}, {}, {}, {}};
  made.f_unlimited = RoutingRate(topology, made.routed.routing) / (Rational(1) - made.routed.loss);
  if (task.layering != nullptr)
    if (const Status layered = PutInLayers(topology, task, made); !layered)
      return tl::unexpected(layered.error());
  // Last: layers may choose other paths and weights.
  if (Routing& routing = made.routed.routing; task.max_chunks)
    routing = *task.max_chunks > 0 ? LimitUnits(topology, routing, *task.max_chunks)
                                   : LimitUnitsByLoss(topology, routing);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  made.synthesis_s = elapsed.count();
  // What a router proves of an unwinding is no limit of the network that it stands for.
  (topology.original() == nullptr ? made.f_upper : made.routed.paths_upper) = made.routed.f_upper;
  if (!verify) {
    made.f = RoutingRate(topology, made.routed.routing);
    return made;
  }
  made.report = CheckRouting(topology, made.routed.routing);
  if (made.report.cancelled) return tl::unexpected(CancelledError());
  if (!made.report.verified())
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("the routing of '{}' is not correct ({} violations): {}", router.name,
                    made.report.num_violations, made.report.violations.front().message));
  if (task.layering != nullptr)
    if (const Status free = CheckLayers(topology, made.routed.routing); !free)
      return tl::unexpected(free.error());
  made.f = made.report.rate;
  return made;
}

bool HitLimit(const Task& task, const MadeRouting& made) {
  return task.options.max_seconds > 0 && made.synthesis_s >= task.options.max_seconds;
}

void Describe(const Topology& topology, const Task& task, const MadeRouting& made, int64_t size,
              Json& out) {
  const Routing& routing = made.routed.routing;
  const double time_s = SecondsAt(topology, routing, task.collective, made.f, size);
  out["algorithm"] = routing.algorithm;
  out["seed"] = routing.seed;
  out["f"] = ToJson(made.f);
  out["f_bytes_per_s"] = made.f.ToDouble() * static_cast<double>(topology.min_bandwidth());
  if (made.f_upper) {
    out["f_upper"] = ToJson(*made.f_upper);
    out["gap"] = made.gap();
    out["bound_s"] = SecondsAt(topology, routing, task.collective, *made.f_upper, size);
    out["efficiency"] = (made.f / *made.f_upper).ToDouble();
  }
  if (made.routed.paths_upper) out["f_upper_of_paths"] = ToJson(*made.routed.paths_upper);
  out["f_unlimited"] = ToJson(made.f_unlimited);
  out["loss"] = ToJson(made.loss());
  out["size_bytes"] = size;
  out["time_s"] = time_s;
  const double algbw = static_cast<double>(size) / time_s;
  out["algbw"] = algbw;
  out["busbw"] = algbw * task.collective.BusFactor().ToDouble();
  out["paths"] = routing.num_paths();
  out["longest_path"] = made.report.longest_path;
  out["chunks"] = routing.units_per_demand;
  if (task.layering != nullptr) {
    out["layers"] = routing.num_layers;
    out["layers_of_router"] = made.layers_of_router;
    out["layering"] = task.layering->name;
  }
  out["synthesis_s"] = made.synthesis_s;
  if (task.options.max_seconds > 0) out["time_limit_hit"] = HitLimit(task, made);
}

void PrintText(const Topology& topology, const Task& task, const MadeRouting& made,
               const RoutingJob& job) {
  const Routing& routing = made.routed.routing;
  fmt::print(
      "{}{} on {} by {}: {} paths ({:.3g} a pair), made in {}, {}\n", Name(task.collective.kind()),
      GroupsText(task.collective), NameOf(topology), routing.algorithm, routing.num_paths(),
      static_cast<double>(routing.num_paths()) / static_cast<double>(task.collective.num_pairs()),
      Seconds(made.synthesis_s), job.verify ? "verified" : "not verified");
  fmt::print("  f            {} reached: {} between each pair at once\n", Exact(made.f),
             BytesPerSecond(made.f.ToDouble() * static_cast<double>(topology.min_bandwidth())));
  if (made.f_upper) {
    fmt::print("  f at most    {} for any routing\n", Exact(*made.f_upper));
    fmt::print("  gap          {:.2g}{}\n", made.gap(),
               HitLimit(task, made) ? " (the time limit was hit)" : "");
  }
  if (made.routed.paths_upper)
    fmt::print("  f at most    {} over the paths to choose from\n",
               Exact(*made.routed.paths_upper));
  if (made.f != made.f_unlimited)
    fmt::print("  loss         {:.3g} % of f = {} without limits on chunks, paths and layers\n",
               100 * made.loss().ToDouble(), Exact(made.f_unlimited));
  fmt::print("  time         {} for {}{}\n",
             Seconds(SecondsAt(topology, routing, task.collective, made.f, job.size_bytes)),
             ReadableSize(job.size_bytes),
             made.f_upper ? fmt::format(", at least {}",
                                        Seconds(SecondsAt(topology, routing, task.collective,
                                                          *made.f_upper, job.size_bytes)))
                          : "");
  if (job.verify) fmt::print("  longest path {} hops\n", made.report.longest_path);
  fmt::print("  chunks       {} of equal size between two ranks\n",
             Count(routing.units_per_demand));
  if (task.layering == nullptr) return;
  fmt::print("  layers       {} free of deadlock by {}{}\n", routing.num_layers,
             task.layering->name,
             made.layers_of_router > routing.num_layers
                 ? fmt::format("; the router's own paths take {} and were chosen anew",
                               made.layers_of_router)
                 : "");
}

}  // namespace

namespace {

constexpr std::string_view kAuto = "auto", kNone = "none";

std::optional<int64_t> ParseCount(const std::string& text) {
  int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, count);
  if (fault != std::errc() || stop != end || count < 0) return std::nullopt;
  return count;
}

}  // namespace

std::optional<int64_t> RoutingFlags::MaxChunks() const {
  if (max_chunks == kNone) return std::nullopt;
  return ParseCount(max_chunks).value_or(0);
}

int32_t RoutingFlags::MaxChunksOfSchedule() const {
  constexpr int64_t kMost = 1 << 20;
  return static_cast<int32_t>(std::min(MaxChunks().value_or(kMost), kMost));
}

Result<Rational> LimitOfRate(const Topology& topology, const Collective& collective, double gap,
                             double max_seconds) {
  if (const Topology* const original = topology.original())
    return LimitOfRate(*original, collective, gap, max_seconds).map([&](const Rational& rate) {
      return rate * Rational(original->min_bandwidth(), topology.min_bandwidth());
    });
  if (collective.has_groups()) {
    const Result<GroupNetwork> group = MakeGroupNetwork(
        topology, collective.JoinedRanks(), [&](NodeId node) { return collective.IsIdle(node); });
    if (!group) return tl::unexpected(group.error());
    const Rational unit = collective.RateOverJoined() *
                          Rational(group->network.min_bandwidth(), topology.min_bandwidth());
    return LimitOfRate(group->network, collective.Joined(), gap, max_seconds)
        .map([&](const Rational& rate) { return rate * unit; });
  }
  ConcurrentFlowOptions options;
  options.gap = gap;
  options.max_seconds = max_seconds;
  options.demand = collective.demand();
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
  if (!flow) return tl::unexpected(flow.error());
  const std::optional<Rational> of_hosts = HostRate(topology, collective.demand());
  return of_hosts ? std::min(*of_hosts, flow->f_upper) : flow->f_upper;
}

double SecondsAt(const Topology& topology, const Routing& routing, const Collective& collective,
                 const Rational& f, int64_t size) {
  // Part of M between two ranks.
  const Rational mean = MeanDemand(routing) / Rational(collective.weight_of_size());
  return (mean * Rational(size) / (f * Rational(topology.min_bandwidth()))).ToDouble();
}

void RoutingFlags::AddTo(Command command) {
  constexpr int32_t kMaxCount = 1 << 30;
  command
      .AddOption("--gap", gap,
                 "Routers that approximate stop at this part below the best possible rate")
      .WithinReal(0, 1);
  command
      .AddOption("--time-limit", time_limit,
                 "Seconds after which a router gives the best routing it has, and an algorithm "
                 "that searches (taccl-like) its best schedule; 0: no limit, or its default")
      .ShowDefault()
      .WithinReal(0, 1e9);
  command
      .AddOption("--paths", paths,
                 "Paths that pmcf chooses among: disjoint, shortest, or bounded:K, at most K hops "
                 "more than the shortest")
      .ShowDefault();
  command
      .AddOption("--max-chunks", max_chunks,
                 "Equal chunks that a pair's data may be cut into; auto: of routers the fewest "
                 "from 64 to 1024 that lose less than 1 % of the rate, of tsmcf and mcf 16; "
                 "none: as many as the weights need")
      .ShowDefault()
      .TypeName("INT|auto|none")
      .Check([](const std::string& text) {
        if (text == kAuto || text == kNone || ParseCount(text)) return std::string();
        return fmt::format("got '{}', wanted a number, auto or none", text);
      });
  command.AddOption("--max-paths", max_paths, "Routers: paths per pair at most; 0: no limit")
      .ShowDefault()
      .WithinReal(0, kMaxCount);
  std::string layerings;
  for (const Layering& one : Layerings())
    layerings += (layerings.empty() ? "" : ", ") + std::string(one.name);
  command.AddOption("--layering", layering,
                    "Routers: give each path a layer (virtual channel) so that nothing "
                    "deadlocks: " +
                        layerings);
  command
      .AddOption("--layers", layers,
                 "Routers: layers at most, paths chosen for them where the router's own take "
                 "more; 0: as many as those take; default with --layering: 4")
      .Within(0, kMaxRoutingLayers);
  command.AddFlag("--no-bound", no_bound,
                  "Routers: skip the limit of f that is computed for those that give none");
}

std::string RouterNames() {
  std::string names;
  for (const Router& router : Routers())
    names += (names.empty() ? "" : ", ") + std::string(router.name);
  return names;
}

int SynthesizeRouting(const Program& program, const Topology& topology,
                      const CollectiveFlags& collective, const RoutingFlags& flags,
                      const RoutingJob& job) {
  const Deadline deadline(flags.time_limit);
  const Result<Task> task = MakeTask(topology, collective, flags, job.seed);
  if (!task) return Report(task.error());
  Result<MadeRouting> made = Make(*FindRouter(job.algorithm), topology, *task, job.verify);
  if (!made) return Report(made.error());
  if (!made->f_upper) {
    Result<std::optional<Rational>> limit = LimitOf(topology, flags, *task, deadline);
    if (!limit) return Report(limit.error());
    made->f_upper = *std::move(limit);
  }
  if (!job.output.empty())
    if (const Status written = WriteRoutingFile(job.output, topology, made->routed.routing);
        !written)
      return Report(written.error());
  if (program.json) {
    Json out;
    DescribeTopology(topology, out);
    out["collective"] = Name(task->collective.kind());
    DescribeGroups(task->collective, out);
    Describe(topology, *task, *made, job.size_bytes, out);
    out["peak_rss_bytes"] = PeakRssBytes();
    out["verified"] = job.verify ? Json(true) : Json(nullptr);
    Print(out);
    return kDone;
  }
  PrintText(topology, *task, *made, job);
  if (!job.output.empty()) fmt::print("written to {}\n", job.output);
  return kDone;
}

Result<std::string> CompareRouters(const Topology& topology, const CollectiveFlags& collective,
                                   const RoutingFlags& flags,
                                   const std::vector<const Router*>& routers, uint64_t seed,
                                   const std::vector<int64_t>& sizes, Json& out,
                                   std::string& reasons) {
  const Result<Task> task = MakeTask(topology, collective, flags, seed);
  if (!task) return tl::unexpected(task.error());
  Table table({"router", "size", "f", "of f at most", "time", "bound", "paths", "longest", "chunks",
               "synthesis"});
  const Result<std::optional<Rational>> limit =
      LimitOf(topology, flags, *task, Deadline(flags.time_limit));
  if (!limit) return tl::unexpected(limit.error());
  bool some = false;
  for (const Router* router : routers) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    Result<MadeRouting> made = Make(*router, topology, *task, true);
    if (!made) {
      if (made.error().code == ErrorCode::kCancelled) return tl::unexpected(made.error());
      out["rows"].push_back({{"algorithm", router->name}, {"error", made.error().message}});
      reasons += fmt::format("  {}: {}\n", router->name, made.error().message);
      continue;
    }
    some = true;
    if (*limit && (!made->f_upper || **limit < *made->f_upper)) made->f_upper = *limit;
    for (const int64_t size : sizes) {
      Json row;
      Describe(topology, *task, *made, size, row);
      row["verified"] = true;
      out["rows"].push_back(row);
      const bool bounded = made->f_upper.has_value();
      table.AddRow(
          {std::string(router->name), ReadableSize(size), fmt::format("{:.6g}", made->f.ToDouble()),
           bounded ? Percent((made->f / *made->f_upper).ToDouble()) : "-",
           Seconds(SecondsAt(topology, made->routed.routing, task->collective, made->f, size)),
           bounded ? Seconds(SecondsAt(topology, made->routed.routing, task->collective,
                                       *made->f_upper, size))
                   : "-",
           std::to_string(made->routed.routing.num_paths()),
           std::to_string(made->report.longest_path),
           std::to_string(made->routed.routing.units_per_demand), Seconds(made->synthesis_s)});
    }
  }
  return some ? table.ToString() : std::string();
}

}  // namespace tutti::cli
