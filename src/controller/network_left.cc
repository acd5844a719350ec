#include "network_left.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "tutti/synth/synthesizer.h"
#include "tutti/verify/verifier.h"

namespace tutti::controller {
namespace {

// A connection between two ranks of the communicator, and its route between their racks.
struct Way {
  int32_t from = 0, to = 0, route = 0;
  friend auto operator<=>(const Way&, const Way&) = default;
};

struct PartOnWay {
  Way way;
  ShardId shard;
  int32_t begin = 0, end = 0;
  TransferOp op = TransferOp::kCopy;
  int64_t leaves = 0;  // steps, or picoseconds
};

// A schedule through switches as parts that go from rank to rank.
class WayMaker {
 public:
  WayMaker(const ClusterConfig& config, const Topology& left, std::span<const LinkId> origin,
           std::span<const int32_t> ranks, const Schedule& schedule)
      : config_(config), left_(left), origin_(origin), ranks_(ranks), schedule_(schedule) {}

  // False: a part takes a way that is no route.
  bool Run() {
    // In one step all leave before any arrives; at one time all arrive before any leaves.
    const bool is_timed = schedule_.kind == ScheduleKind::kTimed;
    std::vector<std::tuple<int64_t, int, size_t, bool>> events;
    for (size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const Transfer& transfer = schedule_.transfers[i];
      const int64_t leaves = is_timed ? schedule_.start_ps[i] : transfer.step;
      const int64_t arrives =
          is_timed ? leaves + left_.alpha_ps(transfer.link) +
                         TransferPs(schedule_, transfer, left_.bandwidth(transfer.link))
                   : leaves;
      events.emplace_back(leaves, is_timed ? 1 : 0, i, true);
      events.emplace_back(arrives, is_timed ? 0 : 1, i, false);
    }
    std::sort(events.begin(), events.end());
    for (const auto& [time, phase, i, leaves] : events)
      if (leaves ? !Leave(i, time) : !Arrive(i)) return false;
    return true;
  }

  std::vector<PartOnWay> parts;

 private:
  // Where a unit that is in a switch, or under way, comes from, and over which links.
  struct Trail {
    NodeId from;
    int64_t left = 0;
    std::vector<LinkId> links;
  };

  // Copies of a unit in a switch, in the order in which they came. Each goes on once, so that links carry what the schedule says.
  struct Copies {
    std::deque<Trail> waiting;
    Trail last{NodeId{-1}, 0, {}};
  };
  Copies& CopiesIn(NodeId node, ShardId shard, int32_t unit) {
    return held_[{node.value, int64_t{shard.value} * schedule_.units_per_shard + unit}];
  }

  // Takes a copy that does not come from `to`.
  static Trail Take(Copies& copies, NodeId to) {
    const auto other = std::find_if(copies.waiting.begin(), copies.waiting.end(),
                                    [to](const Trail& trail) { return trail.from != to; });
    if (other != copies.waiting.end()) {
      copies.last = std::move(*other);
      copies.waiting.erase(other);
    }
    return copies.last;
  }

  bool Leave(size_t i, int64_t time) {
    const Transfer& transfer = schedule_.transfers[i];
    const NodeId tail = left_.tail(transfer.link), head = left_.head(transfer.link);
    std::vector<Trail>& carried = under_way_[i];
    for (int32_t unit = transfer.begin; unit < transfer.end; ++unit) {
      Trail trail = left_.is_rank(tail) ? Trail{tail, time, {}}
                                        : Take(CopiesIn(tail, transfer.shard, unit), head);
      if (trail.from.value < 0) return false;
      trail.links.push_back(transfer.link);
      carried.push_back(std::move(trail));
    }
    return true;
  }

  bool Arrive(size_t i) {
    const Transfer& transfer = schedule_.transfers[i];
    const NodeId head = left_.head(transfer.link);
    const auto carried = under_way_.extract(i);
    for (int32_t unit = transfer.begin; unit < transfer.end; ++unit) {
      const Trail& trail = carried.mapped()[static_cast<size_t>(unit - transfer.begin)];
      if (!left_.is_rank(head)) {
        CopiesIn(head, transfer.shard, unit).waiting.push_back(trail);
        continue;
      }
      const std::optional<Way> way = WayOf(trail, head);
      if (!way) return false;
      if (!parts.empty() && parts.back().way == *way && parts.back().shard == transfer.shard &&
          parts.back().end == unit && parts.back().leaves == trail.left &&
          parts.back().op == transfer.op)
        ++parts.back().end;
      else
        parts.push_back({*way, transfer.shard, unit, unit + 1, transfer.op, trail.left});
    }
    return true;
  }

  std::optional<Way> WayOf(const Trail& trail, NodeId head) const {
    const int32_t from = ranks_[trail.from.index()], to = ranks_[head.index()];
    Way way{trail.from.value, head.value, 0};
    const ClusterView& view = config_.view;
    if (view.place(from).host == view.place(to).host) return way;
    const int32_t set = view.RouteSet(from, to);
    for (; way.route < view.NumRoutes(set); ++way.route) {
      const std::vector<LinkId> path = view.Path(from, to, way.route);
      if (path.size() == trail.links.size() &&
          std::equal(path.begin(), path.end(), trail.links.begin(),
                     [this](LinkId a, LinkId b) { return a == origin_[b.index()]; }))
        return way;
    }
    return std::nullopt;
  }

  const ClusterConfig& config_;
  const Topology& left_;
  std::span<const LinkId> origin_;
  std::span<const int32_t> ranks_;
  const Schedule& schedule_;
  std::map<std::pair<int32_t, int64_t>, Copies> held_;
  std::map<size_t, std::vector<Trail>> under_way_;
};

constexpr int64_t kInsideHost = 100'000'000'000;

// Seconds a byte of the busiest link, and what each way has where all end together.
struct Fluid {
  Rational seconds_per_byte;
  std::map<Way, int64_t> bandwidth;
};

Fluid FluidOf(const ClusterConfig& config, std::span<const int64_t> bandwidth,
              std::span<const int32_t> ranks, const Schedule& schedule,
              const std::vector<PartOnWay>& parts) {
  const ClusterView& view = config.view;
  const auto path_of = [&](const Way& way) {
    return view.Path(ranks[static_cast<size_t>(way.from)], ranks[static_cast<size_t>(way.to)],
                     way.route);
  };
  const auto is_inside = [&](const Way& way) {
    return view.place(ranks[static_cast<size_t>(way.from)]).host ==
           view.place(ranks[static_cast<size_t>(way.to)]).host;
  };
  std::map<Way, int64_t> units;
  for (const PartOnWay& part : parts) units[part.way] += part.end - part.begin;
  std::map<int32_t, int64_t> load;  // units, by link
  for (const auto& [way, amount] : units)
    if (!is_inside(way))
      for (const LinkId link : path_of(way)) load[link.value] += amount;
  Fluid fluid;
  // A unit, of M bytes that are cut into so many.
  const int64_t all = int64_t{schedule.units_per_shard} * schedule.collective.num_shards();
  for (const auto& [link, amount] : load)
    fluid.seconds_per_byte =
        std::max(fluid.seconds_per_byte,
                 Rational(amount, all) / Rational(bandwidth[static_cast<size_t>(link)]));
  for (const auto& [way, amount] : units) {
    int64_t share = kInsideHost;
    if (!is_inside(way))
      for (const LinkId link : path_of(way))
        share =
            std::min(share, static_cast<int64_t>(static_cast<__int128>(bandwidth[link.index()]) *
                                                 amount / load[link.value]));
    fluid.bandwidth[way] = std::max<int64_t>(1, share);
  }
  return fluid;
}

// The parts as a schedule over links between ranks: `link_of` each way.
Schedule Direct(const Schedule& schedule, const std::vector<PartOnWay>& parts,
                const std::map<Way, LinkId>& link_of, const Topology& network) {
  std::vector<int64_t> times;
  for (const PartOnWay& part : parts) times.push_back(part.leaves);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  Schedule direct{.collective = schedule.collective,
                  .units_per_shard = schedule.units_per_shard,
                  .num_steps = static_cast<int32_t>(times.size()),
                  .topology_fingerprint = network.Fingerprint(),
                  .algorithm = schedule.algorithm,
                  .seed = schedule.seed};
  for (const PartOnWay& part : parts)
    direct.transfers.push_back(
        {part.shard, link_of.at(part.way), part.begin, part.end,
         static_cast<int32_t>(std::lower_bound(times.begin(), times.end(), part.leaves) -
                              times.begin()),
         part.op});
  SortBySteps(direct);
  return direct;
}

// Nodes that something can pass or start at: a switch that is not led to or leads nowhere is none of them.
std::vector<bool> NodesLeft(const Topology& whole, std::span<const int64_t> bandwidth,
                            std::span<const int32_t> ranks) {
  std::vector<bool> left(static_cast<size_t>(whole.num_nodes()));
  for (const int32_t rank : ranks) left[static_cast<size_t>(rank)] = true;
  for (int32_t i = whole.num_ranks(); i < whole.num_nodes(); ++i)
    left[static_cast<size_t>(i)] = true;
  for (bool any = true; any;) {
    any = false;
    std::vector<bool> is_entered(left.size()), is_left(left.size());
    for (const LinkId link : whole.Links()) {
      const size_t tail = whole.tail(link).index(), head = whole.head(link).index();
      if (bandwidth[link.index()] <= 0 || !left[tail] || !left[head]) continue;
      is_left[tail] = is_entered[head] = true;
    }
    for (auto i = static_cast<size_t>(whole.num_ranks()); i < left.size(); ++i)
      if (left[i] && !(is_entered[i] && is_left[i])) left[i] = false, any = true;
  }
  return left;
}

}  // namespace

Result<Topology> NetworkLeft(const ClusterConfig& config, std::span<const int64_t> bandwidth,
                             std::span<const int32_t> ranks, std::vector<LinkId>& origin) {
  const Topology& whole = config.topology;
  const auto number = static_cast<int32_t>(ranks.size());
  const std::vector<bool> left = NodesLeft(whole, bandwidth, ranks);
  std::vector<int32_t> node(left.size(), -1);
  for (size_t i = 0; i < ranks.size(); ++i)
    node[static_cast<size_t>(ranks[i])] = static_cast<int32_t>(i);
  int32_t next = number;
  for (auto i = static_cast<size_t>(whole.num_ranks()); i < left.size(); ++i)
    if (left[i]) node[i] = next++;
  Topology::Builder builder(number, next - number);
  builder.SetName("what is left");
  std::vector<std::tuple<int32_t, size_t, LinkId>> order;  // links sort by tail, then by call
  for (const LinkId link : whole.Links()) {
    const int32_t tail = node[whole.tail(link).index()], head = node[whole.head(link).index()];
    if (tail < 0 || head < 0 || bandwidth[link.index()] <= 0) continue;
    builder.AddLink(NodeId{tail}, NodeId{head},
                    {.bandwidth = bandwidth[link.index()], .alpha_ps = whole.alpha_ps(link)});
    order.emplace_back(tail, order.size(), link);
  }
  std::sort(order.begin(), order.end());
  origin.clear();
  for (const auto& [tail, call, link] : order) origin.push_back(link);
  return std::move(builder).Build();
}

Rational AllReduceOverRings(const ClusterConfig& config, std::span<const int64_t> bandwidth,
                            const JobStrategy& strategy) {
  const auto rings = static_cast<int64_t>(strategy.rings.size());
  if (rings == 0) return {};
  const auto ranks = static_cast<int64_t>(strategy.rings.front().size());
  // Every link of a ring carries all shards but one twice, of the ring's part.
  const Rational each = Rational(2 * (ranks - 1), ranks * rings);
  std::map<int32_t, Rational> load;
  for (size_t i = 0; i < strategy.flows.size(); ++i) {
    const RingFlow& flow = strategy.flows[i];
    const int32_t routes =
        config.view.NumRoutes(config.view.RouteSet(flow.from_port, flow.to_port));
    const int32_t first = strategy.routes[i] == kByEcmp ? 0 : strategy.routes[i];
    const int32_t end = strategy.routes[i] == kByEcmp ? routes : first + 1;
    for (int32_t route = first; route < end; ++route)
      for (const LinkId link : config.view.Path(flow.from_port, flow.to_port, route))
        load[link.value] = load[link.value] + each / Rational(end - first);
  }
  Rational most;
  for (const auto& [link, amount] : load) {
    const int64_t has = bandwidth[static_cast<size_t>(link)];
    most = std::max(
        most, has <= 0 ? Rational(std::numeric_limits<int64_t>::max()) : amount / Rational(has));
  }
  return most;
}

std::optional<StrategyForLeft> SynthesizeForLeft(const ClusterConfig& config,
                                                 std::span<const int64_t> bandwidth,
                                                 std::span<const int32_t> ranks,
                                                 std::string_view label) {
  constexpr int64_t kMostWorkNs = 2'000'000'000;
  // 32 were slower than rings on the testbed: their messages were of 4 kB.
  constexpr int32_t kChunks = 8;
  constexpr std::array kWanted = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                  CollectiveKind::kReduceScatter};
  const auto number = static_cast<int32_t>(ranks.size());
  std::vector<LinkId> origin;
  const Result<Topology> left = NetworkLeft(config, bandwidth, ranks, origin);
  const Result<const Synthesizer*> forest = FindSynthesizer("forest");
  if (number < 2 || !left || !forest) return std::nullopt;
  const SynthOptions options{.chunks = kChunks};
  struct Made {
    Schedule schedule;
    std::vector<PartOnWay> parts;
    Fluid fluid;
  };
  std::vector<Made> all;
  for (const CollectiveKind kind : kWanted) {
    const Result<Collective> collective = Collective::Make(kind, number);
    if (!collective || (*forest)->forecast(*left, *collective, options).work_ns > kMostWorkNs)
      return std::nullopt;
    Result<Schedule> schedule = RunSynthesizer(**forest, *left, *collective, options);
    if (!schedule) return std::nullopt;
    WayMaker maker(config, *left, origin, ranks, *schedule);
    if (!maker.Run()) return std::nullopt;
    Fluid fluid = FluidOf(config, bandwidth, ranks, *schedule, maker.parts);
    all.push_back({std::move(*schedule), std::move(maker.parts), std::move(fluid)});
  }
  // One set of links for all three, as the flow table names parallel ones by their order.
  std::map<Way, LinkId> link_of;
  for (const Made& made : all)
    for (const auto& [way, share] : made.fluid.bandwidth) link_of[way] = {};
  int32_t next = 0;
  StrategyForLeft result;
  const ClusterView& view = config.view;
  for (auto& [way, link] : link_of) {
    link = LinkId{next++};  // by sender, then by receiver and route
    const int32_t from = ranks[static_cast<size_t>(way.from)],
                  to = ranks[static_cast<size_t>(way.to)];
    if (view.place(from).host == view.place(to).host) continue;
    result.strategy.flows.push_back({.from = from, .to = to, .from_port = from, .to_port = to});
    result.strategy.routes.push_back(view.NumRoutes(view.RouteSet(from, to)) > 1 ? way.route
                                                                                 : kByEcmp);
  }
  std::vector<std::pair<Topology, Schedule>> files;
  for (const Made& made : all) {
    Topology::Builder builder(number);
    builder.SetName(std::string(label));
    for (const auto& [way, link] : link_of) {
      const auto share = made.fluid.bandwidth.find(way);
      builder.AddLink(NodeId{way.from}, NodeId{way.to},
                      {.bandwidth = share == made.fluid.bandwidth.end() ? 1 : share->second});
    }
    Result<Topology> network = std::move(builder).Build();
    if (!network) return std::nullopt;
    Schedule direct = Direct(made.schedule, made.parts, link_of, *network);
    if (!Verify(*network, direct.collective, direct).verified()) return std::nullopt;
    files.emplace_back(std::move(*network), std::move(direct));
  }
  result.all_reduce = all.front().fluid.seconds_per_byte;
  result.texts = TextsOf(config, label, ranks, result.strategy, files);
  return result;
}

}  // namespace tutti::controller
