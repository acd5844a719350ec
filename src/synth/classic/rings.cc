#include "classic/rings.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "classic/cycle_cover.h"
#include "classic/link_index.h"
#include "tutti/base/random.h"

namespace tutti::classic {
namespace {

// Nodes a backtracking search may visit: enough for every small network, and a few tries on large.
int64_t SearchBudget(int32_t num_ranks) { return 4000 + int64_t{8} * num_ranks; }

// Searches in vain, each with other random choices, after which the rings found are all.
constexpr int32_t kMaxFailures = 8;

// Times the whole is tried with other random choices, where that is cheap.
int32_t Tries(int32_t num_ranks) { return num_ranks <= 32 ? 60 : num_ranks <= 128 ? 12 : 1; }

class RingFinder {
 public:
  RingFinder(const Topology& topology, const LinkIndex& index, uint64_t seed)
      : topology_(topology),
        index_(index),
        random_(seed),
        used_(static_cast<size_t>(topology.num_links()), false) {}

  // Closed forms first, where asked for; then searches until one fails.
  std::vector<Ring> Find(int32_t most, bool closed_forms) {
    std::vector<Ring> rings;
    const auto add = [&](const std::vector<NodeId>& order) {
      for (bool again = true; again && static_cast<int32_t>(rings.size()) < most;) {
        again = Take(order, rings);
        if (static_cast<int32_t>(rings.size()) < most)
          again = Take({order.rbegin(), order.rend()}, rings) || again;
      }
    };
    if (closed_forms) ForEachClosedForm(add);
    for (int32_t failures = 0;
         failures < kMaxFailures && static_cast<int32_t>(rings.size()) < most;) {
      const std::vector<NodeId> order = Search();
      if (order.empty())
        ++failures;
      else
        add(order);
    }
    return rings;
  }

 private:
  LinkId FreeLink(NodeId tail, NodeId head) const {
    for (LinkId link : index_.Between(tail, head))
      if (!used_[link.index()]) return link;
    return LinkId{-1};
  }

  // Follows `order` over links that are free and takes them; false when some are missing.
  bool Take(const std::vector<NodeId>& order, std::vector<Ring>& rings) {
    if (order.size() != static_cast<size_t>(topology_.num_ranks())) return false;
    Ring ring{order, {}};
    for (size_t i = 0; i < order.size(); ++i) {
      const LinkId link = FreeLink(order[i], order[(i + 1) % order.size()]);
      if (link.value < 0) return false;
      ring.links.push_back(link);
    }
    for (LinkId link : ring.links) used_[link.index()] = true;
    rings.push_back(std::move(ring));
    return true;
  }

  template <class Add>
  void ForEachClosedForm(const Add& add) const {
    const int32_t n = topology_.num_ranks();
    if (topology_.grid()) add(GridCycle(*topology_.grid()));
    if ((n & (n - 1)) == 0) add(Order([](int32_t i) { return i ^ (i >> 1); }));
    for (int32_t stride = 1; stride <= n / 2; ++stride) {
      if (std::gcd(stride, n) != 1) continue;
      if (index_.Between(NodeId{0}, NodeId{stride}).empty()) continue;
      add(Order([stride, n](int32_t i) { return static_cast<int32_t>(int64_t{i} * stride % n); }));
    }
  }

  template <class RankAt>
  std::vector<NodeId> Order(const RankAt& rank_at) const {
    std::vector<NodeId> order;
    for (int32_t i = 0; i < topology_.num_ranks(); ++i) order.push_back(NodeId{rank_at(i)});
    return order;
  }

  std::vector<NodeId> Search() {
    std::vector<NodeId> order = Backtrack();
    if (order.empty()) order = JoinCycleCover(topology_, index_, used_, random_);
    return order;
  }

  // Free links from `tail` to ranks not yet visited, the best to try first at the back: those whose
  // heads have the fewest paths on (Warnsdorff's rule), ties at random.
  std::vector<NodeId> Choices(NodeId tail, const std::vector<bool>& visited) {
    struct Choice {
      int32_t ways;
      uint64_t tie;
      NodeId head;
    };
    std::vector<Choice> choices;
    NodeId last{-1};
    for (LinkId link : index_.From(tail)) {
      const NodeId head = topology_.head(link);
      if (used_[link.index()] || head == last || !topology_.is_rank(head) || visited[head.index()])
        continue;
      last = head;
      int32_t ways = 0;
      for (LinkId onward : topology_.OutLinks(head)) {
        const NodeId next = topology_.head(onward);
        ways += !used_[onward.index()] && topology_.is_rank(next) && !visited[next.index()];
      }
      choices.push_back({ways, random_.Next(), head});
    }
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::pair(a.ways, a.tie) > std::pair(b.ways, b.tie);
    });
    std::vector<NodeId> heads;
    for (const Choice& choice : choices) heads.push_back(choice.head);
    return heads;
  }

  // Depth-first search for a ring from rank 0; empty when there is none or the budget is spent.
  std::vector<NodeId> Backtrack() {
    const auto n = static_cast<size_t>(topology_.num_ranks());
    int64_t budget = SearchBudget(topology_.num_ranks());
    std::vector<bool> visited(static_cast<size_t>(topology_.num_nodes()), false);
    std::vector<NodeId> path{NodeId{0}};
    visited[0] = true;
    std::vector<std::vector<NodeId>> choices{Choices(path.back(), visited)};
    while (!path.empty()) {
      if (path.size() == n && FreeLink(path.back(), path.front()).value >= 0) return path;
      if (choices.back().empty()) {
        visited[path.back().index()] = false;
        path.pop_back();
        choices.pop_back();
        continue;
      }
      if (--budget < 0) return {};
      path.push_back(choices.back().back());
      choices.back().pop_back();
      visited[path.back().index()] = true;
      choices.push_back(Choices(path.back(), visited));
    }
    return {};
  }

  const Topology& topology_;
  const LinkIndex& index_;
  Random random_;
  std::vector<bool> used_;
};

// No more rings than the ports of the narrowest rank between ranks.
int32_t MostRings(const Topology& topology) {
  int32_t most = topology.num_links();
  for (NodeId rank : topology.Ranks()) {
    int32_t in = 0, out = 0;
    for (LinkId link : topology.InLinks(rank)) in += topology.is_rank(topology.tail(link));
    for (LinkId link : topology.OutLinks(rank)) out += topology.is_rank(topology.head(link));
    most = std::min({most, in, out});
  }
  return most;
}

}  // namespace

std::vector<Ring> FindRings(const Topology& topology, int32_t most, uint64_t seed) {
  most = std::min(most, MostRings(topology));
  std::vector<Ring> best;
  if (topology.num_ranks() < 2) return best;
  const LinkIndex index(topology.graph());
  for (int32_t attempt = 0; attempt < Tries(topology.num_ranks()); ++attempt) {
    if (static_cast<int32_t>(best.size()) == most) break;
    RingFinder finder(topology, index, seed + static_cast<uint64_t>(attempt));
    std::vector<Ring> rings = finder.Find(most, attempt == 0);
    if (rings.size() > best.size()) best = std::move(rings);
  }
  return best;
}

}  // namespace tutti::classic
