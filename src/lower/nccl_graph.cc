#include "tutti/lower/nccl_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "moves.h"

namespace tutti {
namespace {

using lower::Move;
using lower::Moves;

constexpr int32_t kNone = -1;
constexpr int64_t kMaxNcclChannels = 32;

// Of all ranks along a ring, or of one box's along a path.
using Order = std::vector<int32_t>;
// Ordered pairs between which one unit of a shard is sent.
using Hops = std::set<std::pair<int32_t, int32_t>>;

// Where one unit of a shard goes, and what of that are copies, which bring results.
struct Way {
  Hops all, copies;
};

// Of each unit of each shard that is sent at all.
std::vector<Way> WaysOf(const Schedule& schedule, const Moves& moves) {
  const auto units = static_cast<size_t>(schedule.units_per_shard);
  std::vector<Way> ways(static_cast<size_t>(schedule.collective.num_shards()) * units);
  for (const Move& move : moves.all) {
    const auto& [from, to] = moves.connections[static_cast<size_t>(move.connection)];
    for (int32_t unit = move.begin; unit < move.end; ++unit) {
      Way& way = ways[move.shard.index() * units + static_cast<size_t>(unit)];
      way.all.emplace(from.value, to.value);
      if (move.op == TransferOp::kCopy) way.copies.emplace(from.value, to.value);
    }
  }
  std::erase_if(ways, [](const Way& way) { return way.all.empty(); });
  return ways;
}

// The cycle of all ranks that the hops are part of, from rank 0 on; empty where there is none.
Order RingOf(const Hops& hops, int32_t ranks) {
  std::vector<int32_t> next(static_cast<size_t>(ranks), kNone), before = next;
  for (const auto& [from, to] : hops) {
    int32_t &out = next[static_cast<size_t>(from)], &in = before[static_cast<size_t>(to)];
    if (out != kNone || in != kNone) return {};
    out = to;
    in = from;
  }
  // A path is closed from its end to its start.
  const auto start = std::find(before.begin(), before.end(), kNone);
  const auto end = std::find(next.begin(), next.end(), kNone);
  if (end != next.end()) {
    if (std::find(std::next(end), next.end(), kNone) != next.end()) return {};
    *end = static_cast<int32_t>(start - before.begin());
  }
  Order order;
  for (int32_t at = 0; order.empty() || at != 0; at = next[static_cast<size_t>(at)]) {
    if (order.size() == static_cast<size_t>(ranks)) return {};
    order.push_back(at);
  }
  return order.size() == static_cast<size_t>(ranks) ? order : Order();
}

// The path of the ranks [first, first + count) that the hops among them are, in either direction;
// empty where they are none. It begins where the box is left, else at its smaller end.
Order PathOf(const Hops& hops, int32_t first, int32_t count) {
  const auto inside = [&](int32_t rank) { return first <= rank && rank < first + count; };
  std::vector<std::set<int32_t>> neighbours(static_cast<size_t>(count));
  std::set<int32_t> doors;
  for (const auto& [from, to] : hops) {
    if (inside(from) && inside(to)) {
      neighbours[static_cast<size_t>(from - first)].insert(to - first);
      neighbours[static_cast<size_t>(to - first)].insert(from - first);
    } else if (inside(from) || inside(to)) {
      doors.insert(inside(from) ? from - first : to - first);
    }
  }
  Order ends;
  for (int32_t rank = 0; rank < count; ++rank) {
    const size_t degree = neighbours[static_cast<size_t>(rank)].size();
    if (degree > 2 || (degree == 0 && count > 1)) return {};
    if (degree < 2) ends.push_back(rank);
  }
  if (ends.empty() || doors.size() > 1) return {};
  int32_t at = ends.front();
  if (!doors.empty()) {
    if (std::find(ends.begin(), ends.end(), *doors.begin()) == ends.end()) return {};
    at = *doors.begin();
  }
  Order order;
  for (int32_t last = kNone; at != kNone;) {
    order.push_back(at + first);
    int32_t next = kNone;
    for (const int32_t other : neighbours[static_cast<size_t>(at)])
      if (other != last) next = other;
    last = std::exchange(at, next);
  }
  return order.size() == static_cast<size_t>(count) ? order : Order();
}

// The part of a ring that lies in the box, from where it is entered on; empty where it is entered
// more than once.
Order InBox(const Order& ring, int32_t first, int32_t count) {
  const auto inside = [&](int32_t rank) { return first <= rank && rank < first + count; };
  if (static_cast<size_t>(count) == ring.size()) return ring;
  size_t entry = ring.size();
  for (size_t i = 0; i < ring.size(); ++i) {
    if (!inside(ring[i]) || inside(ring[(i + ring.size() - 1) % ring.size()])) continue;
    if (entry != ring.size()) return {};
    entry = i;
  }
  Order order;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    order.push_back(ring[(entry + i) % ring.size()]);
  return order;
}

// The ring of each way; empty where it is none. Ours is also the one whose reductions run against
// its copies, if the chunks together go all round: all but its direction is that of NCCL's.
std::vector<Order> RingsOf(const std::vector<Way>& ways, int32_t ranks) {
  std::vector<Order> rings;
  std::map<Order, Hops> copied;
  for (const Way& way : ways) {
    rings.push_back(RingOf(way.all, ranks));
    if (!rings.back().empty()) continue;
    rings.back() = RingOf(way.copies, ranks);
    if (!rings.back().empty()) copied[rings.back()].insert(way.copies.begin(), way.copies.end());
  }
  for (Order& ring : rings)
    if (const auto one = copied.find(ring);
        one != copied.end() && one->second.size() < static_cast<size_t>(ranks))
      ring.clear();
  return rings;
}

class GraphWriter {
 public:
  GraphWriter(const Topology& topology, const NcclGraphOptions& options)
      : topology_(topology), options_(options) {
    count_ = options.box_ranks == 0 ? topology.num_ranks() : options.box_ranks;
    first_ = options.box * count_;
  }

  Status Check() const {
    if (count_ < 1 || topology_.num_ranks() % count_ != 0)
      return InvalidArgument(fmt::format("{} ranks are not boxes of --box-ranks {}",
                                         topology_.num_ranks(), options_.box_ranks));
    if (options_.box < 0 || first_ >= topology_.num_ranks())
      return InvalidArgument(fmt::format("--box is {}; there are {} boxes, from 0 on", options_.box,
                                         topology_.num_ranks() / count_));
    return {};
  }

  Result<std::string> Write(const std::vector<Way>& ways) {
    const std::vector<Order> ring_of_way = RingsOf(ways, topology_.num_ranks());
    std::map<Order, int64_t> rings, paths;
    for (size_t i = 0; i < ways.size(); ++i) {
      const Hops& hops = ways[i].all;
      if (const Order& ring = ring_of_way[i]; !ring.empty()) {
        const Order inside = InBox(ring, first_, count_);
        if (inside.empty())
          return MakeError(ErrorCode::kInfeasible,
                           fmt::format("a ring enters box {} more than once", options_.box));
        ++rings[inside];
        successors_[inside] = ring;
      } else if (const Order path = PathOf(hops, first_, count_); !path.empty()) {
        ++paths[path];
      } else {
        return MakeError(ErrorCode::kInfeasible, WhyNot(hops));
      }
    }
    std::string text = "<graphs version=\"1\">\n";
    for (const bool is_ring : {true, false}) {
      const Result<std::string> graph = Graph(is_ring, is_ring ? rings : paths);
      if (!graph) return tl::unexpected(graph.error());
      text += *graph;
    }
    return text + "</graphs>\n";
  }

 private:
  bool IsWhole() const { return count_ == topology_.num_ranks(); }

  static std::string WhyNot(const Hops& hops) {
    std::map<int32_t, std::set<int32_t>> out;
    for (const auto& [from, to] : hops) out[from].insert(to);
    for (const auto& [from, targets] : out)
      if (targets.size() > 1)
        return fmt::format(
            "rank {} sends one chunk to {} ranks: neither a ring nor a path, and NCCL's graphs "
            "have no others",
            from, targets.size());
    return fmt::format(
        "a chunk that rank {} sends takes neither a ring through all ranks nor a path through all "
        "of the box, and NCCL's graphs have no others",
        hops.begin()->first);
  }

  // Bytes/s from one rank to another: of the links between them, or through switches what both can.
  int64_t Speed(int32_t from, int32_t to) const {
    int64_t direct = 0, out = 0, in = 0;
    for (const LinkId link : topology_.OutLinks(NodeId{from})) {
      out = std::max(out, topology_.bandwidth(link));
      if (topology_.head(link) == NodeId{to}) direct += topology_.bandwidth(link);
    }
    for (const LinkId link : topology_.Links())
      if (topology_.head(link) == NodeId{to}) in = std::max(in, topology_.bandwidth(link));
    return direct > 0 ? direct : std::min(out, in);
  }

  // The hops of a channel inside the box, or those between boxes.
  std::vector<std::pair<int32_t, int32_t>> HopsIn(bool is_ring, const Order& order,
                                                  bool inside) const {
    std::vector<std::pair<int32_t, int32_t>> hops;
    if (inside)
      for (size_t i = 0; i + 1 < order.size(); ++i) hops.emplace_back(order[i], order[i + 1]);
    if (!is_ring) return hops;
    const Order& ring = successors_.at(order);
    const auto at = std::find(ring.begin(), ring.end(), order.back());
    const int32_t next = std::next(at) == ring.end() ? ring.front() : *std::next(at);
    if (inside == IsWhole() && ring.size() > 1) hops.emplace_back(order.back(), next);
    return hops;
  }

  // Of one channel, in thousandths of GB/s: the slowest hop by how many channels take it.
  int64_t ChannelSpeed(bool is_ring, const std::vector<Order>& channels, bool inside) const {
    std::map<std::pair<int32_t, int32_t>, int64_t> taken;
    for (const Order& order : channels)
      for (const auto& hop : HopsIn(is_ring, order, inside)) ++taken[hop];
    constexpr int64_t kBytesOfThousandth = 1'000'000;
    int64_t least = 0;
    for (const auto& [hop, times] : taken) {
      const int64_t speed = Speed(hop.first, hop.second) / times / kBytesOfThousandth;
      least = least == 0 ? speed : std::min(least, speed);
    }
    return std::max<int64_t>(least, 1);
  }

  static std::string Gigabytes(int64_t thousandths) {
    constexpr int64_t kThousand = 1000;
    return fmt::format("{}.{:03}", thousandths / kThousand, thousandths % kThousand);
  }

  int32_t NicOf(int32_t rank) const {
    const int32_t nics = options_.nics == 0 ? count_ : options_.nics;
    return static_cast<int32_t>(int64_t{rank - first_} * nics / count_);
  }

  // `orders` is not empty.
  Result<std::vector<Order>> Channels(const std::map<Order, int64_t>& orders) const {
    int64_t divisor = orders.begin()->second, total = 0;
    for (const auto& [order, count] : orders) {
      divisor = std::gcd(divisor, count);
      total += count;
    }
    if (total / divisor > kMaxNcclChannels)
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("the schedule takes {} channels, NCCL at most {}",
                                   total / divisor, kMaxNcclChannels));
    std::vector<Order> channels;
    for (const auto& [order, count] : orders)
      channels.insert(channels.end(), static_cast<size_t>(count / divisor), order);
    return channels;
  }

  Result<std::string> Graph(bool is_ring, const std::map<Order, int64_t>& orders) const {
    if (orders.empty()) return std::string();
    const Result<std::vector<Order>> channels = Channels(orders);
    if (!channels) return tl::unexpected(channels.error());
    const bool crosses =
        !IsWhole() && is_ring &&
        std::any_of(channels->begin(), channels->end(), [this](const Order& order) {
          return NicOf(order.front()) != NicOf(order.back());
        });
    const int64_t intra = ChannelSpeed(is_ring, *channels, true);
    const int64_t inter = IsWhole() || !is_ring ? intra : ChannelSpeed(is_ring, *channels, false);
    std::string text = fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{}\" "
        "speedinter=\"{}\" latencyinter=\"0\" typeintra=\"{}\" typeinter=\"{}\" "
        "samechannels=\"{}\">\n",
        is_ring ? 0 : 1, is_ring ? 4 : 1, crosses ? 1 : 0, channels->size(), Gigabytes(intra),
        Gigabytes(inter), options_.path_intra, options_.path_inter, orders.size() == 1 ? 1 : 0);
    for (const Order& order : *channels) text += Channel(order);
    return text + "  </graph>\n";
  }

  std::string Channel(const Order& order) const {
    const auto nic = [this](int32_t rank) {
      return IsWhole() ? std::string() : fmt::format("      <net dev=\"{}\"/>\n", NicOf(rank));
    };
    std::string text = "    <channel>\n" + nic(order.front());
    for (const int32_t rank : order)
      text += fmt::format("      <gpu dev=\"{}\" rank=\"{}\"/>\n", rank - first_, rank);
    return text + nic(order.back()) + "    </channel>\n";
  }

  const Topology& topology_;
  const NcclGraphOptions& options_;
  int32_t count_ = 0, first_ = 0;      // of the box's ranks
  std::map<Order, Order> successors_;  // the whole ring of its part in the box
};

}  // namespace

Result<std::string> ToNcclGraph(const Topology& topology, const Schedule& schedule,
                                const NcclGraphOptions& options) {
  GraphWriter writer(topology, options);
  if (const Status fits = writer.Check(); !fits) return tl::unexpected(fits.error());
  constexpr int64_t kMaxHops = int64_t{1} << 26;
  if (int64_t{schedule.collective.num_shards()} * schedule.units_per_shard >
      kMaxHops / std::max(1, topology.num_ranks()))
    return MakeError(ErrorCode::kInfeasible, "the schedule has too many chunks for a graph");
  const Result<Moves> moves = lower::MovesOf(topology, schedule);
  if (!moves) return tl::unexpected(moves.error());
  const std::vector<Way> ways = WaysOf(schedule, *moves);
  if (ways.empty())
    return MakeError(ErrorCode::kInfeasible, "the schedule sends nothing: there is no graph of it");
  return writer.Write(ways);
}

}  // namespace tutti
