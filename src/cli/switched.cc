#include "switched.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "tutti/base/parallel.h"
#include "tutti/control/connection_routes.h"
#include "tutti/topo/expression.h"

namespace tutti::cli {
namespace {

constexpr size_t kMostSeeds = 1000;

std::optional<uint64_t> NumberOf(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// "7", "1,2,5" and "1-10".
Result<std::vector<uint64_t>> ParseSeeds(const std::string& text) {
  std::vector<uint64_t> seeds;
  for (const std::string& part : SplitAtCommas(text)) {
    const size_t dash = part.find('-');
    const std::optional<uint64_t> first = NumberOf(std::string_view(part).substr(0, dash));
    const std::optional<uint64_t> last =
        dash == std::string::npos ? first : NumberOf(std::string_view(part).substr(dash + 1));
    if (!first || !last || *last < *first)
      return InvalidArgument(
          fmt::format("--ecmp: '{}', wanted seeds such as 7 or 1,2,5 or 1-10", part));
    if (*last - *first >= kMostSeeds - seeds.size())
      return InvalidArgument(fmt::format("--ecmp: more than {} seeds", kMostSeeds));
    for (uint64_t i = 0; i <= *last - *first; ++i) seeds.push_back(*first + i);
  }
  return seeds;
}

// The links that a schedule sends over, in their order: its connections.
std::vector<LinkId> LinksUsed(const Topology& logical, const Schedule& schedule) {
  std::vector<bool> used(static_cast<size_t>(logical.num_links()));
  for (const Transfer& transfer : schedule.transfers) used[transfer.link.index()] = true;
  std::vector<LinkId> links;
  for (const LinkId link : logical.Links())
    if (used[link.index()]) links.push_back(link);
  return links;
}

std::vector<LinkPath> ByLink(const Topology& logical, const std::vector<LinkId>& links,
                             std::vector<LinkPath> paths) {
  std::vector<LinkPath> by_link(static_cast<size_t>(logical.num_links()));
  for (size_t i = 0; i < links.size(); ++i) by_link[links[i].index()] = std::move(paths[i]);
  return by_link;
}

// What the simulator would say, before paths are looked for.
Status CheckSchedule(const Topology& logical, const Topology& switched) {
  if (logical.has_switches())
    return InvalidArgument(fmt::format(
        "the schedule names its paths through the switches of {}; --ecmp and --routes are "
        "for schedules between ranks, made on a network of ranks such as ring({}) or "
        "unwound",
        NameOf(logical), logical.num_ranks()));
  if (logical.num_ranks() != switched.num_ranks())
    return InvalidArgument(fmt::format("the schedule is of {} ranks, {} has {}",
                                       logical.num_ranks(), NameOf(switched),
                                       switched.num_ranks()));
  return {};
}

}  // namespace

void SwitchedFlags::AddTo(Command command) {
  command.AddOption("--network", network,
                    "With --ecmp or --routes: the switches between the ranks of the schedule, an "
                    "expression or the path of a .json file");
  command.AddOption("--ecmp", seeds,
                    "Also time the schedule over --network, its connections on shortest paths by "
                    "hash, once for each of these seeds: 7, 1,2,5 or 1-10");
  command
      .AddOption("--routes", policy,
                 "Also time it with connections pinned: ffa, each to the path with the smallest "
                 "excess")
      .OneOf({"ffa"});
}

Result<std::optional<SwitchedNetwork>> SwitchedNetwork::Make(const SwitchedFlags& flags) {
  if (!flags.given() && !flags.network.empty())
    return InvalidArgument("--network goes with --ecmp or --routes");
  if (!flags.given()) return std::optional<SwitchedNetwork>();
  if (flags.network.empty())
    return InvalidArgument("--ecmp and --routes need --network, the switches between the ranks");
  Result<Topology> topology = ParseTopology(flags.network);
  if (!topology) return tl::unexpected(topology.error());
  if (!topology->has_switches())
    return InvalidArgument(fmt::format(
        "--ecmp and --routes: {} has no switches to choose paths through", NameOf(*topology)));
  SwitchedNetwork network(*std::move(topology));
  network.policy_ = flags.policy;
  if (flags.seeds.empty()) return std::optional(std::move(network));
  Result<std::vector<uint64_t>> seeds = ParseSeeds(flags.seeds);
  if (!seeds) return tl::unexpected(seeds.error());
  network.seeds_ = *std::move(seeds);
  return std::optional(std::move(network));
}

Result<SwitchedTimes> SwitchedNetwork::Simulate(const Topology& logical, const Schedule& schedule,
                                                int64_t size_bytes) const {
  if (Status status = CheckSchedule(logical, topology_); !status)
    return tl::unexpected(status.error());
  const std::vector<LinkId> links = LinksUsed(logical, schedule);
  std::vector<Connection> connections;
  for (const LinkId link : links) connections.push_back({logical.tail(link), logical.head(link)});
  const Result<ConnectionRoutes> routes = ConnectionRoutes::Make(topology_, connections);
  if (!routes) return tl::unexpected(routes.error());
  SwitchedTimes times;
  std::vector<Result<ConnectionSimReport>> reports(seeds_.size());
  ParallelFor(static_cast<int64_t>(seeds_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      reports[static_cast<size_t>(i)] = SimulateConnections(
          logical, schedule, topology_,
          ByLink(logical, links, routes->ByHash(seeds_[static_cast<size_t>(i)])), size_bytes);
  });
  for (const Result<ConnectionSimReport>& report : reports) {
    if (!report) return tl::unexpected(report.error());
    times.by_seed_s.push_back(report->time_s);
  }
  if (!reports.empty()) {
    times.ecmp = EstimateOf(times.by_seed_s);
    times.worst = static_cast<size_t>(
        std::max_element(times.by_seed_s.begin(), times.by_seed_s.end()) - times.by_seed_s.begin());
    times.ecmp_busbw = times.ecmp.mean > 0 ? static_cast<double>(size_bytes) / times.ecmp.mean *
                                                 schedule.collective.BusFactor().ToDouble()
                                           : 0;
  }
  if (policy_.empty()) return times;
  Result<std::vector<LinkPath>> paths = routes->Fair();
  if (!paths) return tl::unexpected(paths.error());
  Result<ConnectionSimReport> pinned = SimulateConnections(
      logical, schedule, topology_, ByLink(logical, links, *std::move(paths)), size_bytes);
  if (!pinned) return tl::unexpected(pinned.error());
  times.pinned = *std::move(pinned);
  return times;
}

void SwitchedNetwork::Describe(const SwitchedTimes& times, Json& out) const {
  if (!seeds_.empty())
    out["ecmp"] = {{"seeds", seeds_},
                   {"times_s", times.by_seed_s},
                   {"mean_s", times.ecmp.mean},
                   {"half_width_s", times.ecmp.half},
                   {"worst_s", times.by_seed_s[times.worst]},
                   {"worst_seed", seeds_[times.worst]},
                   {"busbw", times.ecmp_busbw}};
  if (times.pinned)
    out["pinned"] = {{"policy", policy_},
                     {"time_s", times.pinned->time_s},
                     {"busbw", times.pinned->busbw},
                     {"most_flows_on_a_link", times.pinned->max_on_a_link}};
}

std::vector<std::string> SwitchedNetwork::Columns() const {
  std::vector<std::string> columns;
  if (!seeds_.empty()) columns = {"ECMP mean", "95 %", "ECMP worst"};
  if (!policy_.empty()) columns.push_back(policy_);
  return columns;
}

std::vector<std::string> SwitchedNetwork::Cells(const SwitchedTimes& times) const {
  std::vector<std::string> cells;
  if (!seeds_.empty())
    cells = {Seconds(times.ecmp.mean), "+- " + Seconds(times.ecmp.half),
             Seconds(times.by_seed_s[times.worst])};
  if (times.pinned) cells.push_back(Seconds(times.pinned->time_s));
  return cells;
}

std::string SwitchedNetwork::Title() const {
  std::string how =
      fmt::format("over {}, flows share links fairly, steps with a barrier", NameOf(topology_));
  if (!seeds_.empty())
    how += fmt::format("; ECMP of {} seed{}", seeds_.size(), seeds_.size() == 1 ? "" : "s");
  return how;
}

}  // namespace tutti::cli
