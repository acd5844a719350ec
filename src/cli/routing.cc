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
#include "tutti/sched/routing_store.h"
#include "tutti/synth/concurrent_flow.h"
#include "tutti/synth/layers.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/layers.h"
#include "tutti/verify/routing.h"

namespace tutti::cli {
namespace {

// Of the limit that is shown beside a router which knows none itself.
constexpr double kLimitGap = 1e-3;
// Unless said otherwise: enough for 99.9 % of the rate on every network of [alltoall-mcf].
constexpr int32_t kFewLayers = 4;

// What is asked for, checked.
struct Task {
  RouterOptions options;
  Collective collective;
  int64_t least_bandwidth = 0;
  const Layering* layering = nullptr;  // none: no layers
  int32_t most_layers = kFewLayers;
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
        "routers choose the ways of all-to-all and all-to-allv, not of {}; say -c all-to-all",
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
    if (flags.layers) task.most_layers = *flags.layers > 0 ? *flags.layers : kMostLayers;
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
  task.options.max_units = flags.max_chunks;
  task.options.max_paths = flags.max_paths;
  task.least_bandwidth = topology.min_bandwidth();
  return task;
}

// A limit of f, where the router gave none: of the flow that any routing is.
Result<std::optional<Rational>> LimitOf(const Topology& topology, const RoutingFlags& flags,
                                        const Task& task, const Deadline& deadline) {
  if (flags.no_bound) return std::optional<Rational>();
  ConcurrentFlowOptions options;
  options.gap = flags.gap >= 0 ? flags.gap : kLimitGap;
  options.max_seconds = deadline.Left();
  options.demand = task.options.demand;
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
  if (!flow) return tl::unexpected(flow.error());
  return std::optional(flow->f_upper);
}

struct Made {
  Routed routed;
  double synthesis_s = 0;
  RoutingReport report;
  Rational f;
  std::optional<Rational> f_upper;
  int32_t layers_of_router = 0;  // that its own paths take; more than are left: it was rerouted

  double gap() const { return ((*f_upper - f) / *f_upper).ToDouble(); }
};

// Layers for the routing, and other paths where its own take more than are allowed.
Status PutInLayers(const Topology& topology, const Task& task, Made& made) {
  Routing& routing = made.routed.routing;
  if (const Status assigned = AssignLayers(*task.layering, topology, kMostLayers, routing);
      !assigned)
    return assigned;
  made.layers_of_router = routing.num_layers;
  if (routing.num_layers <= task.most_layers) return {};
  Result<Routing> within =
      RouteWithinLayers(topology, routing, task.most_layers, task.options.gap.value_or(kLimitGap));
  if (!within && within.error().code == ErrorCode::kInfeasible && task.more_if_needed) return {};
  if (!within) return tl::unexpected(within.error());
  routing = *std::move(within);
  return {};
}

Result<Made> Make(const Router& router, const Topology& topology, const Task& task, bool verify) {
  const auto before = std::chrono::steady_clock::now();
  Result<Routed> routed = RunRouter(router, topology, task.options);
  if (!routed) return tl::unexpected(routed.error());
  Made made{*std::move(routed), 0, {}, {}, {}};
  if (task.layering != nullptr)
    if (const Status layered = PutInLayers(topology, task, made); !layered)
      return tl::unexpected(layered.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  made.synthesis_s = elapsed.count();
  made.f_upper = made.routed.f_upper;
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

bool HitLimit(const Task& task, const Made& made) {
  return task.options.max_seconds > 0 && made.synthesis_s >= task.options.max_seconds;
}

// Seconds for size M when every pair sends at rate f: what the busiest link needs.
double SecondsAt(const Topology& topology, const Task& task, const Routing& routing,
                 const Rational& f, int64_t size) {
  // Of M, between two ranks.
  const Rational mean = routing.demand.empty()
                            ? Rational(1, topology.num_ranks())
                            : MeanDemand(routing) / Rational(task.collective.weight_of_size());
  return (mean * Rational(size) / (f * Rational(task.least_bandwidth))).ToDouble();
}

void Describe(const Topology& topology, const Task& task, const Made& made, int64_t size,
              Json& out) {
  const Routing& routing = made.routed.routing;
  const double time_s = SecondsAt(topology, task, routing, made.f, size);
  out["algorithm"] = routing.algorithm;
  out["seed"] = routing.seed;
  out["f"] = ToJson(made.f);
  out["f_bytes_per_s"] = made.f.ToDouble() * static_cast<double>(task.least_bandwidth);
  if (made.f_upper) {
    out["f_upper"] = ToJson(*made.f_upper);
    out["gap"] = made.gap();
    out["bound_s"] = SecondsAt(topology, task, routing, *made.f_upper, size);
    out["efficiency"] = (made.f / *made.f_upper).ToDouble();
  }
  if (made.routed.paths_upper) out["f_upper_of_paths"] = ToJson(*made.routed.paths_upper);
  if (task.options.max_units > 0 || task.options.max_paths > 0)
    out["loss"] = ToJson(made.routed.loss);
  out["size_bytes"] = size;
  out["time_s"] = time_s;
  const double algbw = static_cast<double>(size) / time_s;
  out["algbw"] = algbw;
  out["busbw"] = algbw * (topology.num_ranks() - 1) / topology.num_ranks();
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

void PrintText(const Topology& topology, const Task& task, const Made& made,
               const RoutingJob& job) {
  const Routing& routing = made.routed.routing;
  const int64_t ranks = topology.num_ranks();
  fmt::print("{} on {} by {}: {} paths ({:.3g} a pair), made in {}, {}\n",
             Name(task.collective.kind()), topology.name(), routing.algorithm, routing.num_paths(),
             static_cast<double>(routing.num_paths()) / static_cast<double>(ranks * (ranks - 1)),
             Seconds(made.synthesis_s), job.verify ? "verified" : "not verified");
  fmt::print("  f            {} reached: {} between each pair at once\n", Exact(made.f),
             BytesPerSecond(made.f.ToDouble() * static_cast<double>(task.least_bandwidth)));
  if (made.f_upper) {
    fmt::print("  f at most    {} for any routing\n", Exact(*made.f_upper));
    fmt::print("  gap          {:.2g}{}\n", made.gap(),
               HitLimit(task, made) ? " (the time limit was hit)" : "");
  }
  if (made.routed.paths_upper)
    fmt::print("  f at most    {} over the paths to choose from\n",
               Exact(*made.routed.paths_upper));
  if (task.options.max_units > 0 || task.options.max_paths > 0)
    fmt::print("  loss         {} of the rate, for fewer chunks or paths\n",
               Percent(made.routed.loss.ToDouble()));
  fmt::print("  time         {} for {}{}\n",
             Seconds(SecondsAt(topology, task, routing, made.f, job.size_bytes)),
             FormatSize(job.size_bytes),
             made.f_upper
                 ? fmt::format(", at least {}", Seconds(SecondsAt(topology, task, routing,
                                                                  *made.f_upper, job.size_bytes)))
                 : "");
  if (job.verify) fmt::print("  longest path {} hops\n", made.report.longest_path);
  fmt::print("  chunks       {} of equal size between two ranks\n", routing.units_per_demand);
  if (task.layering == nullptr) return;
  fmt::print("  layers       {} free of deadlock by {}{}\n", routing.num_layers,
             task.layering->name,
             made.layers_of_router > routing.num_layers
                 ? fmt::format("; the router's own paths take {} and were chosen anew",
                               made.layers_of_router)
                 : "");
}

}  // namespace

void RoutingFlags::AddTo(CLI::App* command) {
  command
      ->add_option("--gap", gap,
                   "Routers that approximate stop at this part below the best possible rate")
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--time-limit", time_limit,
                   "Seconds after which a router gives the best routing it has, and an algorithm "
                   "that searches (taccl-like) its best schedule; 0: no limit, or its default")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option(
          "--paths", paths,
          "Paths that pmcf chooses among: disjoint, shortest, or bounded:K, at most K hops "
          "more than the shortest")
      ->capture_default_str();
  command
      ->add_option("--max-chunks", max_chunks,
                   "Equal chunks that a pair's data may be cut into; 0: of routers as many as the "
                   "weights need, of tsmcf and mcf 16")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--max-paths", max_paths, "Routers: paths a pair at most; 0: no limit")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  std::string layerings;
  for (const Layering& one : Layerings())
    layerings += (layerings.empty() ? "" : ", ") + std::string(one.name);
  command->add_option("--layering", layering,
                      "Routers: give each path a layer (virtual channel) so that nothing "
                      "deadlocks: " +
                          layerings);
  command
      ->add_option("--layers", layers,
                   "Routers: layers at most, paths chosen for them where the router's own take "
                   "more; 0: as many as those take; default with --layering: 4")
      ->check(CLI::Range(0, kMostLayers));
  command->add_flag("--no-bound", no_bound,
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
  Result<Made> made = Make(*FindRouter(job.algorithm), topology, *task, job.verify);
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
    Result<Made> made = Make(*router, topology, *task, true);
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
          {std::string(router->name), FormatSize(size), fmt::format("{:.6g}", made->f.ToDouble()),
           bounded ? Percent((made->f / *made->f_upper).ToDouble()) : "-",
           Seconds(SecondsAt(topology, *task, made->routed.routing, made->f, size)),
           bounded ? Seconds(SecondsAt(topology, *task, made->routed.routing, *made->f_upper, size))
                   : "-",
           std::to_string(made->routed.routing.num_paths()),
           std::to_string(made->report.longest_path),
           std::to_string(made->routed.routing.units_per_demand), Seconds(made->synthesis_s)});
    }
  }
  return some ? table.ToString() : std::string();
}

Result<RoutingVerdict> JudgeRouting(const std::string& path, const std::string& topology,
                                    int32_t most) {
  const Result<RoutingFile> file = ReadRoutingFile(path);
  if (!file) return tl::unexpected(file.error());
  if (!topology.empty()) {
    const Result<Topology> other = ParseTopology(topology);
    if (!other) return tl::unexpected(other.error());
    if (other->Fingerprint() != file->topology.Fingerprint())
      return InvalidArgument(fmt::format("{}: the routing was made for '{}', which is not '{}'",
                                         path, file->topology.name(), other->name()));
  }
  const Routing& routing = file->routing;
  const RoutingReport report = CheckRouting(file->topology, routing, {.max_violations = most});
  if (report.cancelled) return tl::unexpected(CancelledError());
  RoutingVerdict verdict;
  verdict.violations = report.num_violations;
  for (const RoutingViolation& violation : report.violations)
    verdict.shown.emplace_back(Name(violation.kind), violation.message);
  if (report.verified() && routing.num_layers > 0)
    if (const Status free = CheckLayers(file->topology, routing); !free) {
      verdict.violations = 1;
      verdict.shown.emplace_back("layers", free.error().message);
    }
  DescribeTopology(file->topology, verdict.out);
  verdict.out["collective"] = routing.demand.empty() ? "all-to-all" : "all-to-allv";
  verdict.out["algorithm"] = routing.algorithm;
  verdict.out["seed"] = routing.seed;
  verdict.out["paths"] = report.paths;
  verdict.out["longest_path"] = report.longest_path;
  verdict.out["chunks"] = routing.units_per_demand;
  if (routing.num_layers > 0) verdict.out["layers"] = routing.num_layers;
  if (report.verified()) verdict.out["f"] = ToJson(report.rate);
  verdict.subject =
      fmt::format("{}: routing of {} on {} by {}, {} paths{}", path,
                  routing.demand.empty() ? "all-to-all" : "all-to-allv", file->topology.name(),
                  routing.algorithm, report.paths,
                  report.verified() ? fmt::format(", f = {}", Exact(report.rate)) : "");
  return verdict;
}

}  // namespace tutti::cli
