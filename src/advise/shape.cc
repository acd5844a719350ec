#include "tutti/advise/shape.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

namespace tutti {
namespace {

// --- Boxes ---------------------------------------------------------------------------------------

Boxes Grouped(const std::vector<std::string>& key_of_rank, Boxes::FoundBy found_by) {
  Boxes boxes{.found_by = found_by};
  std::map<std::string, int32_t> number;
  for (const std::string& key : key_of_rank) {
    const auto [box, is_new] = number.try_emplace(key, static_cast<int32_t>(number.size()));
    if (is_new) {
      boxes.names.push_back(key);
      boxes.sizes.push_back(0);
    }
    const int32_t place = boxes.sizes[static_cast<size_t>(box->second)]++;
    boxes.box_of.push_back(box->second);
    boxes.place.push_back(place);
  }
  if (boxes.sizes.size() < 2 || boxes.sizes.size() == key_of_rank.size()) return {};
  return boxes;
}

Boxes ByNames(const Topology& topology) {
  std::vector<std::string> keys;
  for (NodeId rank : topology.Ranks()) {
    const std::string& name = topology.node_name(rank);
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || dot == 0) return {};
    keys.push_back(name.substr(0, dot));
  }
  return Grouped(keys, Boxes::FoundBy::kNames);
}

// Ranks that links of more than `bandwidth` join, whatever is between.
Boxes JoinedAbove(const Topology& topology, int64_t bandwidth) {
  std::vector<int32_t> group(static_cast<size_t>(topology.num_nodes()));
  std::iota(group.begin(), group.end(), 0);
  const auto find = [&group](int32_t node) {
    while (group[static_cast<size_t>(node)] != node) {
      int32_t& parent = group[static_cast<size_t>(node)];
      parent = group[static_cast<size_t>(parent)];
      node = parent;
    }
    return node;
  };
  for (LinkId link : topology.Links()) {
    if (topology.bandwidth(link) <= bandwidth) continue;
    const int32_t a = find(topology.tail(link).value), b = find(topology.head(link).value);
    group[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  std::vector<std::string> keys;
  for (NodeId rank : topology.Ranks()) keys.push_back(topology.node_name(NodeId{find(rank.value)}));
  return Grouped(keys, Boxes::FoundBy::kBandwidth);
}

// --- Trees ---------------------------------------------------------------------------------------

struct Branch {
  int32_t tail, head;
  friend auto operator<=>(const Branch&, const Branch&) = default;
};

// Transfers of one part of a shard that none of them cuts, in the order of the schedule.
struct Chunk {
  std::vector<Branch> copies, sums;
};

uint64_t HashOf(const std::vector<Branch>& branches) {
  uint64_t hash = 1469598103934665603U;
  for (const Branch& branch : branches)
    for (const int32_t value : {branch.tail, branch.head}) {
      hash ^= static_cast<uint64_t>(value) + 1;
      hash *= 1099511628211U;
      hash ^= hash >> 29U;
    }
  return hash;
}

// Each rank has one branch to its parent, and all lead to one root.
struct Tree {
  NodeId root{0};
  std::vector<int32_t> parent;  // by rank; -1: the root, or not in the tree
  std::vector<int32_t> depth;   // by rank; -1: not in the tree
  std::vector<int32_t> children;
};

class TreeBuilder {
 public:
  explicit TreeBuilder(int32_t num_ranks) : size_(static_cast<size_t>(num_ranks)) {}

  // `branches` lead from parents to children.
  std::optional<Tree> Build(const std::vector<Branch>& branches) const {
    Tree tree{.parent = std::vector<int32_t>(size_, -1),
              .depth = std::vector<int32_t>(size_, -1),
              .children = std::vector<int32_t>(size_, 0)};
    std::vector<bool> is_in(size_, false);
    for (const Branch& branch : branches) {
      int32_t& parent = tree.parent[static_cast<size_t>(branch.head)];
      if (parent >= 0) return std::nullopt;
      parent = branch.tail;
      ++tree.children[static_cast<size_t>(branch.tail)];
      is_in[static_cast<size_t>(branch.tail)] = is_in[static_cast<size_t>(branch.head)] = true;
    }
    int32_t roots = 0;
    for (size_t rank = 0; rank < size_; ++rank) {
      if (!is_in[rank] || tree.parent[rank] >= 0) continue;
      tree.root = NodeId{static_cast<int32_t>(rank)};
      tree.depth[rank] = 0;
      ++roots;
    }
    if (roots != 1) return std::nullopt;
    for (size_t rank = 0; rank < size_; ++rank)
      if (is_in[rank] && !SetDepth(tree, rank)) return std::nullopt;
    return tree;
  }

 private:
  // False: the way up runs in a circle.
  bool SetDepth(Tree& tree, size_t rank) const {
    std::vector<size_t> way;
    while (tree.depth[rank] < 0) {
      way.push_back(rank);
      if (way.size() > size_) return false;
      rank = static_cast<size_t>(tree.parent[rank]);
    }
    for (int32_t depth = tree.depth[rank]; !way.empty(); way.pop_back())
      tree.depth[way.back()] = ++depth;
    return true;
  }

  size_t size_;
};

// All trees of one direction.
class TreesOf {
 public:
  TreesOf(int32_t num_ranks, const Boxes& boxes, bool reduces)
      : builder_(num_ranks), boxes_(boxes), reduces_(reduces) {}

  void Add(std::vector<Branch> branches) {
    if (branches.empty()) return;
    if (reduces_)
      for (Branch& branch : branches) std::swap(branch.tail, branch.head);
    std::sort(branches.begin(), branches.end());
    const uint64_t hash = HashOf(branches);
    if (seen_.contains(hash)) return;
    const std::optional<Tree> tree = builder_.Build(branches);
    if (!tree) {
      ++shape_.not_trees;
      return;
    }
    seen_.insert(hash);
    AddTree(*tree);
    if (boxes_.some()) AddCrossings(branches, *tree);
  }

  TreesShape Finish(BoxTraffic& between) {
    shape_.roots = static_cast<int32_t>(roots_.size());
    const auto orders = static_cast<int64_t>(orders_.size());
    if (shape_.trees > 0 && !some_is_no_chain_ && shape_.not_trees == 0 &&
        orders * shape_.roots == shape_.trees && shape_.max_height > 1)
      shape_.rings = static_cast<int32_t>(orders);
    if (shape_.trees == 0 || !boxes_.some()) return shape_;
    between.min_crossings = between.max_crossings == 0
                                ? min_crossings_
                                : std::min(between.min_crossings, min_crossings_);
    between.max_crossings = std::max(between.max_crossings, max_crossings_);
    const auto usual =
        std::max_element(ways_.begin(), ways_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (between.usual_way.empty() && usual != ways_.end()) between.usual_way = usual->first;
    return shape_;
  }

 private:
  void AddTree(const Tree& tree) {
    const int32_t height = *std::max_element(tree.depth.begin(), tree.depth.end());
    const int32_t most = *std::max_element(tree.children.begin(), tree.children.end());
    shape_.min_height = shape_.trees == 0 ? height : std::min(shape_.min_height, height);
    shape_.max_height = std::max(shape_.max_height, height);
    shape_.max_children = std::max(shape_.max_children, most);
    ++shape_.trees;
    roots_.insert(tree.root.value);
    AddOrder(tree, most == 1 && static_cast<size_t>(height) + 1 == tree.depth.size());
  }

  void AddOrder(const Tree& tree, bool is_chain_of_all) {
    some_is_no_chain_ = some_is_no_chain_ || !is_chain_of_all;
    if (some_is_no_chain_) return;
    std::vector<int32_t> order(tree.depth.size());
    for (size_t rank = 0; rank < order.size(); ++rank)
      order[static_cast<size_t>(tree.depth[rank])] = static_cast<int32_t>(rank);
    std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
    orders_.insert(std::move(order));
  }

  void AddCrossings(const std::vector<Branch>& branches, const Tree& tree) {
    int32_t crossings = 0;
    for (const Branch& branch : branches)
      crossings += boxes_.SameBox(NodeId{branch.tail}, NodeId{branch.head}) ? 0 : 1;
    min_crossings_ = shape_.trees == 1 ? crossings : std::min(min_crossings_, crossings);
    max_crossings_ = std::max(max_crossings_, crossings);
    for (size_t leaf = 0; leaf < tree.depth.size(); ++leaf)
      if (tree.depth[leaf] > 0 && tree.children[leaf] == 0) ++ways_[WayTo(tree, leaf)];
  }

  // In the order in which data goes: from the root, or to it.
  std::string WayTo(const Tree& tree, size_t leaf) const {
    std::vector<const char*> way;
    for (size_t at = leaf; tree.parent[at] >= 0; at = static_cast<size_t>(tree.parent[at])) {
      const NodeId here{static_cast<int32_t>(at)}, parent{tree.parent[at]};
      const char* const where = boxes_.SameBox(here, parent) ? "inside" : "across";
      if (way.empty() || way.back() != where) way.push_back(where);
    }
    if (!reduces_) std::reverse(way.begin(), way.end());
    constexpr size_t kMostNamed = 5;
    std::string text;
    for (size_t i = 0; i < std::min(way.size(), kMostNamed); ++i)
      text += (i == 0 ? "" : ", ") + std::string(way[i]);
    return way.size() > kMostNamed ? text + ", .." : text;
  }

  TreeBuilder builder_;
  const Boxes& boxes_;
  bool reduces_;
  TreesShape shape_;
  std::unordered_set<uint64_t> seen_;
  std::set<int32_t> roots_;
  std::set<std::vector<int32_t>> orders_;  // of ranks, rank 0 first
  bool some_is_no_chain_ = false;
  int32_t min_crossings_ = 0, max_crossings_ = 0;
  std::map<std::string, int64_t> ways_;
};

// --- Chunks --------------------------------------------------------------------------------------

// Branches between ranks out of transfers over links. What a switch sends on is what came to it
// first and has not gone on yet, or else what went on last: it sends copies to several.
class Branches {
 public:
  explicit Branches(const Topology& topology) : topology_(topology) {}

  void Add(const Transfer& transfer, Chunk& chunk) {
    const NodeId tail = topology_.tail(transfer.link), head = topology_.head(transfer.link);
    int32_t from = tail.value;
    if (!topology_.is_rank(tail)) {
      Waiting& waiting = at_switch_[tail.value];
      if (!waiting.sources.empty()) {
        waiting.last = waiting.sources.front();
        waiting.sources.pop_front();
      }
      if (waiting.last < 0) return;  // it has nothing: for the verifier to say
      from = waiting.last;
    }
    if (!topology_.is_rank(head))
      at_switch_[head.value].sources.push_back(from);
    else if (from != head.value)
      (transfer.op == TransferOp::kCopy ? chunk.copies : chunk.sums).push_back({from, head.value});
  }
  void Clear() { at_switch_.clear(); }

 private:
  struct Waiting {
    std::deque<int32_t> sources;
    int32_t last = -1;
  };
  const Topology& topology_;
  std::map<int32_t, Waiting> at_switch_;
};

class Reader {
 public:
  Reader(const Topology& topology, const Schedule& schedule, const Boxes& boxes)
      : topology_(topology),
        schedule_(schedule),
        boxes_(boxes),
        spread_(topology.num_ranks(), boxes, false),
        reduced_(topology.num_ranks(), boxes, true) {}

  ScheduleShape Read() {
    std::vector<std::vector<size_t>> of_shard(
        static_cast<size_t>(schedule_.collective.num_shards()));
    for (size_t i = 0; i < schedule_.transfers.size(); ++i)
      of_shard[schedule_.transfers[i].shard.index()].push_back(i);
    for (size_t shard = 0; shard < of_shard.size(); ++shard)
      if (!of_shard[shard].empty()) ReadShard(shard, of_shard[shard]);
    ScheduleShape shape;
    shape.between = between_;
    shape.reduced = reduced_.Finish(shape.between);
    const std::string up = std::exchange(shape.between.usual_way, "");
    shape.spread = spread_.Finish(shape.between);
    const std::string down = std::exchange(shape.between.usual_way, "");
    if (!up.empty()) shape.between.usual_way = "to reduce " + up;
    if (!down.empty())
      shape.between.usual_way += (up.empty() ? "to spread " : "; to spread ") + down;
    return shape;
  }

 private:
  void ReadShard(size_t shard, const std::vector<size_t>& transfers) {
    std::vector<int32_t> cuts;
    for (size_t i : transfers) {
      cuts.push_back(schedule_.transfers[i].begin);
      cuts.push_back(schedule_.transfers[i].end);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<std::vector<size_t>> of_part(cuts.size());
    for (size_t i : transfers) {
      const Transfer& transfer = schedule_.transfers[i];
      auto part = std::lower_bound(cuts.begin(), cuts.end(), transfer.begin) - cuts.begin();
      for (; cuts[static_cast<size_t>(part)] < transfer.end; ++part)
        of_part[static_cast<size_t>(part)].push_back(i);
    }
    const Rational unit =
        Rational(schedule_.collective.weight(ShardId{static_cast<int32_t>(shard)})) /
        (Rational(schedule_.collective.weight_of_size()) * Rational(schedule_.units_per_shard));
    Units units;
    for (size_t part = 0; part + 1 < cuts.size(); ++part)
      ReadChunk(of_part[part], cuts[part + 1] - cuts[part], units);
    between_.inside += unit * Rational(units.inside);
    between_.across += unit * Rational(units.across);
    between_.on_rail += unit * Rational(units.on_rail);
  }

  struct Units {
    int64_t inside = 0, across = 0, on_rail = 0;
  };

  void ReadChunk(const std::vector<size_t>& transfers, int32_t units, Units& sent) {
    Chunk chunk;
    Branches branches(topology_);
    for (size_t i : transfers) branches.Add(schedule_.transfers[i], chunk);
    for (const std::vector<Branch>* all : {&chunk.copies, &chunk.sums})
      for (const Branch& branch : *all) Count(branch, units, sent);
    spread_.Add(std::move(chunk.copies));
    reduced_.Add(std::move(chunk.sums));
  }

  void Count(const Branch& branch, int32_t units, Units& sent) const {
    if (!boxes_.some()) return;
    const NodeId tail{branch.tail}, head{branch.head};
    const bool same = boxes_.SameBox(tail, head);
    (same ? sent.inside : sent.across) += units;
    if (!same && boxes_.place[tail.index()] == boxes_.place[head.index()]) sent.on_rail += units;
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const Boxes& boxes_;
  TreesOf spread_, reduced_;
  BoxTraffic between_;
};

}  // namespace

Boxes FindBoxes(const Topology& topology) {
  if (Boxes named = ByNames(topology); named.some()) return named;
  std::set<int64_t> bandwidths;
  for (LinkId link : topology.Links()) bandwidths.insert(topology.bandwidth(link));
  for (const int64_t bandwidth : bandwidths)
    if (Boxes joined = JoinedAbove(topology, bandwidth); joined.some()) return joined;
  return {};
}

ScheduleShape ShapeOf(const Topology& topology, const Schedule& schedule, const Boxes& boxes) {
  return Reader(topology, schedule, boxes).Read();
}

}  // namespace tutti
