// Commands on routing files: verify, cost, sim.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "routing.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/store/routing_store.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/layers.h"
#include "tutti/verify/routing.h"

namespace tutti::cli {
namespace {

std::string_view CollectiveName(const Routing& routing) {
  return routing.demand.empty() || !routing.groups.empty() ? "all-to-all" : "all-to-allv";
}

// What all three say of a routing.
void DescribeRouting(const RoutingFile& file, const RoutingReport& report, Json& out) {
  const Routing& routing = file.routing;
  DescribeTopology(file.topology, out);
  out["collective"] = CollectiveName(routing);
  if (!routing.groups.empty())
    if (const Result<Collective> collective = CollectiveOf(routing))
      DescribeGroups(*collective, out);
  out["algorithm"] = routing.algorithm;
  out["seed"] = routing.seed;
  out["paths"] = report.paths;
  out["longest_path"] = report.longest_path;
  out["chunks"] = routing.units_per_demand;
  if (routing.num_layers > 0) out["layers"] = routing.num_layers;
  if (report.verified()) out["f"] = ToJson(report.rate);
}

// A routing that is right, with what is known of every size.
struct KnownRouting {
  RoutingFile file;
  RoutingReport report;
  Collective collective;
  Rational f_upper;

  double TimeOf(int64_t size) const {
    return SecondsAt(file.topology, file.routing, collective, report.rate, size);
  }
  double BoundOf(int64_t size) const {
    return SecondsAt(file.topology, file.routing, collective, f_upper, size);
  }
  std::string Title() const {
    return fmt::format("{}{} on {} by {}", CollectiveName(file.routing), GroupsText(collective),
                       NameOf(file.topology), file.routing.algorithm);
  }
};

Result<KnownRouting> ReadKnown(const std::string& path) {
  Result<RoutingFile> file = ReadRoutingFile(path);
  if (!file) return tl::unexpected(file.error());
  RoutingReport report = CheckRouting(file->topology, file->routing);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{}: the routing is not correct ({} violations): {}", path,
                                 report.num_violations, report.violations.front().message));
  Result<Collective> collective = CollectiveOf(file->routing);
  if (!collective) return Within(path, collective.error());
  Result<Rational> limit = LimitOfRate(file->topology, *collective, kLimitGap, 0);
  if (!limit) return tl::unexpected(limit.error());
  return KnownRouting{*std::move(file), std::move(report), *std::move(collective),
                      *std::move(limit)};
}

// The busiest links first: bytes over bandwidth.
std::vector<LinkId> BusiestLinks(const Topology& topology, const FlowSimReport& report,
                                 int32_t most) {
  std::vector<LinkId> links;
  for (const LinkId link : topology.Links()) links.push_back(link);
  const auto busy = [&](LinkId link) {
    return report.link_bytes[link.index()] / static_cast<double>(topology.bandwidth(link));
  };
  std::stable_sort(links.begin(), links.end(),
                   [&](LinkId a, LinkId b) { return busy(a) > busy(b); });
  links.resize(std::min(links.size(), static_cast<size_t>(most)));
  return links;
}

struct FlowTables {
  Table sizes{{"size", "time", "bound", "efficiency", "algbw", "busbw", "mean link use", "events"}};
  Table busiest{{"link", "busy", "of the time", "bytes"}};
};

// One size: adds it to the tables and gives its keys.
Json DescribeFlows(const KnownRouting& known, const FlowSimReport& report, int64_t size,
                   int32_t links, FlowTables& tables) {
  const Topology& topology = known.file.topology;
  const double bound_s = known.BoundOf(size);
  double busy_s = 0;
  for (const LinkId link : topology.Links())
    busy_s += report.link_bytes[link.index()] / static_cast<double>(topology.bandwidth(link));
  const double use = busy_s / (report.time_s * topology.num_links());
  tables.sizes.AddRow({FormatSize(size), Seconds(report.time_s), Seconds(bound_s),
                       Percent(bound_s / report.time_s), BytesPerSecond(report.algbw),
                       BytesPerSecond(report.busbw), Percent(use), std::to_string(report.events)});
  Json row{{"size_bytes", size},      {"time_s", report.time_s},
           {"bound_s", bound_s},      {"efficiency", bound_s / report.time_s},
           {"algbw", report.algbw},   {"busbw", report.busbw},
           {"events", report.events}, {"mean_link_utilisation", use}};
  for (const LinkId link : BusiestLinks(topology, report, links)) {
    const std::string name = fmt::format("{} -> {}", topology.node_name(topology.tail(link)),
                                         topology.node_name(topology.head(link)));
    const double bytes = report.link_bytes[link.index()];
    const double seconds = bytes / static_cast<double>(topology.bandwidth(link));
    row["busiest_links"].push_back({{"link", link.value},
                                    {"name", name},
                                    {"busy_s", seconds},
                                    {"utilisation", seconds / report.time_s},
                                    {"bytes", bytes}});
    tables.busiest.AddRow(
        {name, Seconds(seconds), Percent(seconds / report.time_s), fmt::format("{:.0f}", bytes)});
  }
  return row;
}

// Into `out` itself where there is one size, else as one of its rows.
void AddSize(const Json& row, size_t num_sizes, Json& out) {
  if (num_sizes == 1)
    out.update(row);
  else
    out["rows"].push_back(row);
}

}  // namespace

Result<RoutingVerdict> JudgeRouting(const std::string& path, const std::string& topology,
                                    int32_t most) {
  const Result<RoutingFile> file = ReadRoutingFile(path);
  if (!file) return tl::unexpected(file.error());
  if (!topology.empty()) {
    const Result<Topology> other = ParseTopology(topology);
    if (!other) return tl::unexpected(other.error());
    if (other->Fingerprint() != file->topology.Fingerprint())
      return InvalidArgument(fmt::format("{}: the routing was made for '{}', which is not '{}'",
                                         path, NameOf(file->topology), NameOf(*other)));
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
  DescribeRouting(*file, report, verdict.out);
  verdict.subject =
      fmt::format("{}: routing of {} on {} by {}, {} paths{}", path, CollectiveName(routing),
                  NameOf(file->topology), routing.algorithm, report.paths,
                  report.verified() ? fmt::format(", f = {}", Exact(report.rate)) : "");
  return verdict;
}

int CostOfRoutingFile(const Program& program, const std::string& path,
                      const std::vector<int64_t>& sizes) {
  const Result<KnownRouting> known = ReadKnown(path);
  if (!known) return Report(known.error());
  Json out;
  DescribeRouting(known->file, known->report, out);
  out["f_upper"] = ToJson(known->f_upper);
  std::string text = fmt::format("{}\n  f            {}   (at most {})\n", known->Title(),
                                 Exact(known->report.rate), Exact(known->f_upper));
  for (const int64_t size : sizes) {
    const double time_s = known->TimeOf(size), bound_s = known->BoundOf(size);
    const double algbw = static_cast<double>(size) / time_s;
    const double busbw = algbw * known->collective.BusFactor().ToDouble();
    AddSize({{"size_bytes", size},
             {"time_s", time_s},
             {"bound_s", bound_s},
             {"efficiency", bound_s / time_s},
             {"algbw", algbw},
             {"busbw", busbw}},
            sizes.size(), out);
    text += fmt::format(
        "  time         {} for {}   (bound {}: any routing; without alpha)\n"
        "  efficiency   {}\n"
        "  algbw        {}   busbw {}\n",
        Seconds(time_s), FormatSize(size), Seconds(bound_s), Percent(bound_s / time_s),
        BytesPerSecond(algbw), BytesPerSecond(busbw));
  }
  if (program.json)
    Print(out);
  else
    fmt::print("{}", text);
  return kDone;
}

int SimulateRoutingFile(const Program& program, const std::string& path,
                        const std::vector<int64_t>& sizes, ForwardingPlace forwarding,
                        int32_t links) {
  const Result<KnownRouting> known = ReadKnown(path);
  if (!known) return Report(known.error());
  Json out;
  DescribeRouting(known->file, known->report, out);
  const std::string_view place = forwarding == ForwardingPlace::kNic ? "nic" : "host";
  out["forwarding"] = place;
  FlowTables tables;
  for (const int64_t size : sizes) {
    const Result<FlowSimReport> report =
        SimulateRouting(known->file.topology, known->file.routing, {size, forwarding});
    if (!report) return Report(report.error());
    AddSize(DescribeFlows(*known, *report, size, links, tables), sizes.size(), out);
  }
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{}, all chunks at once, shared max-min fair, forwarded by the {}\n\n{}",
             known->Title(), place, tables.sizes.ToString());
  if (sizes.size() == 1 && links > 0) fmt::print("\n{}", tables.busiest.ToString());
  return kDone;
}

}  // namespace tutti::cli
