#include "forest/branching_trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::forest {
namespace {

constexpr double kEver = std::numeric_limits<double>::infinity();
constexpr double kSteepest = 600;  // so that no price is that

class Grower {
 public:
  Grower(const Topology& topology, const std::vector<LinkId>& twins, int32_t count)
      : topology_(topology), twins_(twins), load_(static_cast<size_t>(topology.num_links()), 0) {
    for (LinkId link : topology.Links())
      fastest_ = std::max(fastest_, static_cast<double>(topology.bandwidth(link)));
    // All of the trees on the fastest link then cost e^kSteep times none.
    constexpr double kSteep = 40;
    steepness_ = kSteep / count;
  }

  RoutedTree Grow(NodeId first) {
    in_.assign(static_cast<size_t>(topology_.num_nodes()), false);
    RoutedTree tree{.root = first, .branches = {}};
    in_[first.index()] = true;
    for (int32_t lacking = topology_.num_ranks() - 1; lacking > 0; --lacking) {
      std::vector<LinkId> way = CheapestWay();
      // Cut where it could branch: at ranks, of which only its end is new, and at switches that add.
      RoutedBranch branch{.tail = topology_.tail(way.front()), .head = {}, .links = {}};
      for (const LinkId link : way) {
        Load(link);
        branch.links.push_back(link);
        branch.head = topology_.head(link);
        if (!topology_.reduces(branch.head)) continue;
        in_[branch.head.index()] = true;
        tree.branches.push_back(branch);
        branch = {.tail = branch.head, .head = {}, .links = {}};
      }
      TUTTI_CHECK(branch.links.empty());
    }
    return tree;
  }

  // The same tree seen from the node that has the others nearest.
  RoutedTree FromItsMiddle(const RoutedTree& tree) const {
    struct End {
      NodeId node;
      size_t branch;
    };
    std::vector<std::vector<End>> ends(in_.size());
    for (size_t i = 0; i < tree.branches.size(); ++i) {
      ends[tree.branches[i].tail.index()].push_back({tree.branches[i].head, i});
      ends[tree.branches[i].head.index()].push_back({tree.branches[i].tail, i});
    }
    RoutedTree best;
    size_t least = std::numeric_limits<size_t>::max();
    for (NodeId root : topology_.Nodes()) {
      // A switch with one branch gets the sum from who has it already.
      if (ends[root.index()].empty() || (!topology_.is_rank(root) && ends[root.index()].size() < 2))
        continue;
      RoutedTree turned{.root = root, .branches = {}};
      std::vector<std::pair<NodeId, size_t>> level{{root, tree.branches.size()}};
      size_t height = 0;
      for (; !level.empty(); ++height) {
        std::vector<std::pair<NodeId, size_t>> next;
        for (const auto& [node, from] : level)
          for (const End& end : ends[node.index()]) {
            if (end.branch == from) continue;
            next.emplace_back(end.node, end.branch);
            RoutedBranch branch = tree.branches[end.branch];
            if (branch.tail != node) {
              std::swap(branch.tail, branch.head);
              std::reverse(branch.links.begin(), branch.links.end());
              for (LinkId& link : branch.links) link = twins_[link.index()];
            }
            turned.branches.push_back(std::move(branch));
          }
        level = std::move(next);
      }
      if (height >= least) continue;
      least = height;
      best = std::move(turned);
    }
    return best;
  }

 private:
  void Load(LinkId link) {
    for (const LinkId one : {link, twins_[link.index()]})
      load_[one.index()] += fastest_ / static_cast<double>(topology_.bandwidth(one));
  }

  // A link and its twin, of one tree more.
  double PriceOf(LinkId link) const {
    double price = 0;
    for (const LinkId one : {link, twins_[link.index()]})
      price += fastest_ / static_cast<double>(topology_.bandwidth(one)) *
               std::exp(std::min(kSteepest, steepness_ * load_[one.index()]));
    return price;
  }

  // From any node of the tree that may branch to the nearest rank that is in none.
  std::vector<LinkId> CheapestWay() const {
    std::vector<double> price(in_.size(), kEver);
    std::vector<LinkId> by(in_.size(), LinkId{-1});
    using Entry = std::pair<double, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    for (NodeId node : topology_.Nodes())
      if (in_[node.index()]) {
        price[node.index()] = 0;
        open.emplace(0, node.value);
      }
    while (!open.empty()) {
      const auto [reached, at] = open.top();
      open.pop();
      const NodeId node{at};
      if (reached > price[node.index()]) continue;
      if (topology_.is_rank(node) && !in_[node.index()]) {
        std::vector<LinkId> way;
        for (NodeId back = node; by[back.index()].value >= 0;
             back = topology_.tail(by[back.index()]))
          way.push_back(by[back.index()]);
        std::reverse(way.begin(), way.end());
        return way;
      }
      for (LinkId link : topology_.OutLinks(node)) {
        const NodeId head = topology_.head(link);
        const double total = reached + PriceOf(link);
        if (in_[head.index()] || total >= price[head.index()]) continue;
        price[head.index()] = total;
        by[head.index()] = link;
        open.emplace(total, head.value);
      }
    }
    TUTTI_CHECK(false);  // every rank reaches every rank
  }

  const Topology& topology_;
  const std::vector<LinkId>& twins_;
  double fastest_ = 0, steepness_ = 0;
  std::vector<double> load_;  // trees, in those that the fastest link carries in the same time
  std::vector<bool> in_;      // the tree that grows
};

}  // namespace

std::vector<RoutedTree> BranchingTrees(const Topology& topology, const std::vector<LinkId>& twins,
                                       int32_t count) {
  Grower grower(topology, twins, count);
  std::vector<RoutedTree> trees;
  for (int32_t i = 0; i < count; ++i) {
    const NodeId first{i % topology.num_ranks()};
    trees.push_back(grower.FromItsMiddle(grower.Grow(first)));
  }
  std::stable_sort(trees.begin(), trees.end(),
                   [](const RoutedTree& a, const RoutedTree& b) { return a.root < b.root; });
  for (size_t i = 0; i < trees.size(); ++i) {
    trees[i].first = static_cast<int64_t>(i);
    trees[i].copies = 1;
  }
  return trees;
}

}  // namespace tutti::forest
