#include "tutti/lower/nccl_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
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

// All ranks along a ring, or one box's along a path.
using Order = std::vector<int32_t>;
// Ordered pairs between which one unit of a shard is sent.
using Hops = std::set<std::pair<int32_t, int32_t>>;

// Where one unit of a shard goes: copies bring results, reductions bring them about.
struct Way {
  Hops all, copies, reductions;
};

// NCCL's patterns of trees: where in a box's path its child boxes hang. kSplit: on the second GPU;
// kFirst: on the first; kBalanced: the first child on the second GPU, the second on the first.
enum class TreePattern { kBalanced = 1, kSplit = 2, kFirst = 3 };
constexpr int kRingPattern = 4;

// A tree over boxes, each of which is a path of its GPUs from where the box is entered.
struct TreeOfBoxes {
  std::vector<Order> paths;     // of each box
  std::vector<int32_t> parent;  // of each box; kNone of the root's
  std::vector<int32_t> place;   // of each box but the root's: on which GPU of its parent's path
};

// For each unit of each shard that is sent at all.
std::vector<Way> WaysOf(const Schedule& schedule, const Moves& moves) {
  const auto units = static_cast<size_t>(schedule.units_per_shard);
  std::vector<Way> ways(static_cast<size_t>(schedule.collective.num_shards()) * units);
  for (const Move& move : moves.all) {
    const auto& [from, to] = moves.connections[static_cast<size_t>(move.connection)];
    for (int32_t unit = move.begin; unit < move.end; ++unit) {
      Way& way = ways[move.shard.index() * units + static_cast<size_t>(unit)];
      way.all.emplace(from.value, to.value);
      (move.op == TransferOp::kCopy ? way.copies : way.reductions).emplace(from.value, to.value);
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

tl::unexpected<Error> NoGraph(std::string_view what) {
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("{}; NCCL's graphs hold rings, and trees of paths within each box; --to mscclpp "
                  "and --to msccl-xml hold this schedule",
                  what));
}

// Of each rank, whom its reductions go to and its copies come from; kNone of the one root. Fails
// where the way is no tree of all ranks, the same for both.
Result<std::vector<int32_t>> ParentsOf(const Way& way, int32_t ranks) {
  std::vector<int32_t> parent(static_cast<size_t>(ranks), kNone);
  bool is_tree = true;
  for (const bool copies : {true, false})
    for (const auto& [from, to] : copies ? way.copies : way.reductions) {
      const int32_t child = copies ? to : from, above = copies ? from : to;
      int32_t& known = parent[static_cast<size_t>(child)];
      is_tree = is_tree && (known == kNone || known == above);
      known = above;
    }
  is_tree = is_tree && std::count(parent.begin(), parent.end(), kNone) == 1;
  for (int32_t rank = 0; is_tree && rank < ranks; ++rank) {
    int32_t steps = 0, at = rank;
    while (at != kNone && steps++ < ranks) at = parent[static_cast<size_t>(at)];
    is_tree = at == kNone;
  }
  if (!is_tree)
    return NoGraph(
        fmt::format("a chunk that rank {} sends goes neither round a ring of all ranks nor along a "
                    "tree of them",
                    way.all.begin()->first));
  return parent;
}

// The tree of boxes of `count` ranks each that a way is.
Result<TreeOfBoxes> TreeOf(const Way& way, int32_t ranks, int32_t count) {
  const Result<std::vector<int32_t>> parents = ParentsOf(way, ranks);
  if (!parents) return tl::unexpected(parents.error());
  const auto boxes = static_cast<size_t>(ranks / count);
  const auto box_of = [count](int32_t rank) { return static_cast<size_t>(rank / count); };
  TreeOfBoxes tree{std::vector<Order>(boxes), std::vector<int32_t>(boxes, kNone),
                   std::vector<int32_t>(boxes, 0)};
  // Of each rank those in its box that it gets something from or gives something to.
  std::vector<int32_t> next(static_cast<size_t>(ranks), kNone);
  std::vector<int32_t> entry(boxes, kNone);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const int32_t above = (*parents)[static_cast<size_t>(rank)];
    if (above != kNone && box_of(above) == box_of(rank)) {
      int32_t& below = next[static_cast<size_t>(above)];
      if (below != kNone)
        return NoGraph(
            fmt::format("rank {} has ranks {} and {} of its box below it", above, below, rank));
      below = rank;
      continue;
    }
    int32_t& entered = entry[box_of(rank)];
    if (entered != kNone)
      return NoGraph(
          fmt::format("a tree enters box {} at ranks {} and {}", box_of(rank), entered, rank));
    entered = rank;
    if (above != kNone) tree.parent[box_of(rank)] = static_cast<int32_t>(box_of(above));
  }
  for (size_t box = 0; box < boxes; ++box)
    for (int32_t at = entry[box]; at != kNone; at = next[static_cast<size_t>(at)])
      tree.paths[box].push_back(at);
  std::vector<int32_t> children(boxes, 0);
  for (size_t box = 0; box < boxes; ++box) {
    if (tree.parent[box] == kNone) continue;
    const auto above = static_cast<size_t>(tree.parent[box]);
    const int32_t door = (*parents)[static_cast<size_t>(entry[box])];
    const Order& path = tree.paths[above];
    tree.place[box] =
        static_cast<int32_t>(std::find(path.begin(), path.end(), door) - path.begin());
    if (tree.place[box] > 1)
      return NoGraph(
          fmt::format("box {} hangs on rank {}, which is number {} of the path in box "
                      "{}: other boxes hang on the first two",
                      box, door, tree.place[box] + 1, above));
    if (++children[above] > 2)
      return NoGraph(fmt::format("box {} has more than two boxes below it", above));
  }
  return tree;
}

// A tree that NCCL makes of boxes by itself: of each its parent, and whether it is the second child.
struct BoxJoins {
  std::vector<int32_t> parent;
  std::vector<bool> is_second;
};

// Leaves and inner nodes alternate: of a node its lowest bit says how high it stands.
BoxJoins BinaryTree(int32_t boxes) {
  BoxJoins joins{{kNone}, {false}};
  for (int32_t box = 1; box < boxes; ++box) {
    const int32_t bit = box & -box;
    int32_t above = (box ^ bit) | (bit << 1);
    if (above >= boxes) above = box ^ bit;
    joins.parent.push_back(above);
    joins.is_second.push_back(box > above);
  }
  return joins;
}

// The same with its boxes moved on by one where they are odd, else mirrored: leaves become inner
// nodes.
BoxJoins OtherTree(int32_t boxes) {
  const BoxJoins first = BinaryTree(boxes);
  const auto moved = [boxes](int32_t box) {
    return boxes % 2 == 1 ? (box + 1) % boxes : boxes - 1 - box;
  };
  BoxJoins joins{std::vector<int32_t>(static_cast<size_t>(boxes), kNone),
                 std::vector<bool>(static_cast<size_t>(boxes), false)};
  for (int32_t box = 1; box < boxes; ++box) {
    const auto to = static_cast<size_t>(moved(box));
    joins.parent[to] = moved(first.parent[static_cast<size_t>(box)]);
    joins.is_second[to] = first.is_second[static_cast<size_t>(box)];
  }
  return joins;
}

// Where NCCL hangs a child box.
int32_t PlaceOf(TreePattern pattern, bool is_second) {
  if (pattern == TreePattern::kBalanced) return is_second ? 0 : 1;
  return pattern == TreePattern::kSplit ? 1 : 0;
}

// Whether some tree of NCCL's could hang the boxes so: of two children of a box one is the second.
bool Fits(const TreeOfBoxes& tree, TreePattern pattern) {
  std::vector<int32_t> on_first(tree.paths.size(), 0), on_second = on_first;
  for (size_t box = 0; box < tree.paths.size(); ++box)
    if (tree.parent[box] != kNone)
      ++(tree.place[box] == 0 ? on_first : on_second)[static_cast<size_t>(tree.parent[box])];
  for (size_t box = 0; box < tree.paths.size(); ++box) {
    if (pattern != TreePattern::kFirst && tree.paths[box].size() == 1) return false;
    if (pattern == TreePattern::kFirst && on_second[box] > 0) return false;
    if (pattern == TreePattern::kSplit && on_first[box] > 0) return false;
    if (pattern == TreePattern::kBalanced && (on_first[box] > 1 || on_second[box] > 1))
      return false;
  }
  return true;
}

bool IsJoinedSo(const TreeOfBoxes& tree, TreePattern pattern, const BoxJoins& joins) {
  for (size_t box = 0; box < tree.paths.size(); ++box) {
    if (tree.parent[box] != joins.parent[box]) return false;
    if (tree.parent[box] != kNone && tree.place[box] != PlaceOf(pattern, joins.is_second[box]))
      return false;
  }
  return true;
}

// Whether the trees are the ones that NCCL makes of their paths: each of its two as often.
bool AreNcclsJoins(const std::vector<TreeOfBoxes>& trees, TreePattern pattern) {
  const auto boxes = static_cast<int32_t>(trees.front().paths.size());
  if (boxes == 1) return true;
  const std::array<BoxJoins, 2> both{BinaryTree(boxes), OtherTree(boxes)};
  std::map<std::vector<Order>, int64_t> surplus;  // of the first, by paths
  for (const TreeOfBoxes& tree : trees) {
    const bool is_first = IsJoinedSo(tree, pattern, both[0]);
    if (!is_first && !IsJoinedSo(tree, pattern, both[1])) return false;
    surplus[tree.paths] += is_first ? 1 : -1;
  }
  return std::all_of(surplus.begin(), surplus.end(),
                     [](const auto& entry) { return entry.second == 0; });
}

// The pattern that all trees fit, rather one with which NCCL makes the same.
std::optional<TreePattern> PatternOf(const std::vector<TreeOfBoxes>& trees) {
  std::optional<TreePattern> found;
  // Of one box any says the same; the last is NCCL's own there.
  for (const TreePattern pattern :
       {TreePattern::kFirst, TreePattern::kSplit, TreePattern::kBalanced}) {
    const bool fits = std::all_of(trees.begin(), trees.end(), [pattern](const TreeOfBoxes& tree) {
      return Fits(tree, pattern);
    });
    if (!fits) continue;
    if (!found || AreNcclsJoins(trees, pattern)) found = pattern;
  }
  return found;
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

  Result<NcclGraph> Write(const std::vector<Way>& ways) {
    const std::vector<Order> ring_of_way = RingsOf(ways, topology_.num_ranks());
    std::map<Order, int64_t> rings, paths;
    std::vector<TreeOfBoxes> trees;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (const Order& ring = ring_of_way[i]; !ring.empty()) {
        const Order inside = InBox(ring, first_, count_);
        if (inside.empty())
          return NoGraph(fmt::format("a ring enters box {} more than once", options_.box));
        ++rings[inside];
        const auto last = std::find(ring.begin(), ring.end(), inside.back());
        crossings_[inside].emplace(inside.back(),
                                   std::next(last) == ring.end() ? ring.front() : *std::next(last));
        continue;
      }
      Result<TreeOfBoxes> tree = TreeOf(ways[i], topology_.num_ranks(), count_);
      if (!tree) return tl::unexpected(tree.error());
      const Order& path = tree->paths[static_cast<size_t>(options_.box)];
      ++paths[path];
      for (const auto& hop : ways[i].all)
        if (IsInside(hop.first) != IsInside(hop.second)) crossings_[path].insert(hop);
      trees.push_back(*std::move(tree));
    }
    NcclGraph out{"<graphs version=\"1\">\n", ""};
    if (!rings.empty()) {
      const Result<std::string> graph = Graph(kRingPattern, rings);
      if (!graph) return tl::unexpected(graph.error());
      out.xml += *graph;
    }
    if (!paths.empty()) {
      const std::optional<TreePattern> pattern = PatternOf(trees);
      if (!pattern)
        return NoGraph(
            "boxes hang on the first GPU of a path in one tree and on the second in another, more "
            "than one pattern says");
      const Result<std::string> graph = Graph(static_cast<int>(*pattern), paths);
      if (!graph) return tl::unexpected(graph.error());
      out.xml += *graph;
      if (!AreNcclsJoins(trees, *pattern))
        out.note =
            "the paths in each box are the schedule's; which box hangs on which is not in the "
            "format: NCCL joins boxes by its own double binary tree, which is another";
    }
    out.xml += "</graphs>\n";
    return out;
  }

 private:
  bool IsWhole() const { return count_ == topology_.num_ranks(); }
  bool IsInside(int32_t rank) const { return first_ <= rank && rank < first_ + count_; }

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
    if (!inside) {
      const Hops& crossing = crossings_.at(order);
      return {crossing.begin(), crossing.end()};
    }
    std::vector<std::pair<int32_t, int32_t>> hops;
    for (size_t i = 0; i + 1 < order.size(); ++i) hops.emplace_back(order[i], order[i + 1]);
    if (is_ring && IsWhole() && order.size() > 1) hops.emplace_back(order.back(), order.front());
    return hops;
  }

  // Bandwidth of one channel, in thousandths of GB/s: the slowest hop by how many channels take it.
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

  // The GPU by whose NIC a channel goes on to other boxes: a ring leaves by its last, a tree goes
  // down by its first or second.
  static int32_t Exit(int pattern, const Order& order) {
    if (pattern == kRingPattern) return order.back();
    return pattern == static_cast<int>(TreePattern::kFirst) ? order[0] : order[1];
  }

  Result<std::string> Graph(int pattern, const std::map<Order, int64_t>& orders) const {
    const bool is_ring = pattern == kRingPattern;
    const Result<std::vector<Order>> channels = Channels(orders);
    if (!channels) return tl::unexpected(channels.error());
    const bool crosses =
        !IsWhole() &&
        std::any_of(channels->begin(), channels->end(), [this, pattern](const Order& order) {
          return NicOf(order.front()) != NicOf(Exit(pattern, order));
        });
    const int64_t intra = ChannelSpeed(is_ring, *channels, true);
    const int64_t inter = IsWhole() ? intra : ChannelSpeed(is_ring, *channels, false);
    std::string text = fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{}\" "
        "speedinter=\"{}\" latencyinter=\"0\" typeintra=\"{}\" typeinter=\"{}\" "
        "samechannels=\"{}\">\n",
        is_ring ? 0 : 1, pattern, crosses ? 1 : 0, channels->size(), Gigabytes(intra),
        Gigabytes(inter), options_.path_intra, options_.path_inter, orders.size() == 1 ? 1 : 0);
    for (const Order& order : *channels) text += Channel(pattern, order);
    return text + "  </graph>\n";
  }

  // Newer readers take devices as hexadecimal, older ones in C's notation.
  static std::string Device(int32_t number) {
    constexpr int32_t kDigits = 10;
    return number < kDigits ? fmt::format("{}", number) : fmt::format("{:#x}", number);
  }

  std::string Channel(int pattern, const Order& order) const {
    const auto nic = [this](int32_t rank) {
      return IsWhole() ? std::string()
                       : fmt::format("      <net dev=\"{}\"/>\n", Device(NicOf(rank)));
    };
    std::string text = "    <channel>\n" + nic(order.front());
    for (const int32_t rank : order)
      text += fmt::format("      <gpu dev=\"{}\" rank=\"{}\"/>\n", Device(rank - first_), rank);
    return text + nic(Exit(pattern, order)) + "    </channel>\n";
  }

  const Topology& topology_;
  const NcclGraphOptions& options_;
  int32_t count_ = 0, first_ = 0;    // of the box's ranks
  std::map<Order, Hops> crossings_;  // of a channel to and from other boxes
};

}  // namespace

Result<NcclGraph> ToNcclGraph(const Topology& topology, const Schedule& schedule,
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
