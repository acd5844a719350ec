// GroupFlow: routes what groups of sources need over the links that may serve them, within the
// capacities of the links; Dinic's algorithm on that bipartite network, exact for any number type.
//
// Model       Group g needs demand[g], split in any way over the links of g; link l carries at most
//             capacity[l]. With integers in, the amounts are integers.
// Complexity  O(edges * sqrt(links)) phases in theory, a handful in practice; the greedy start
//             often leaves nothing to do.
// Threads     One thread an object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace tutti {

// Group g may use links[first[g]] .. links[first[g + 1] - 1], ascending.
struct GroupLinks {
  int32_t num_links = 0;
  std::vector<int32_t> first{0};
  std::vector<int32_t> links;

  size_t num_groups() const { return first.size() - 1; }
};

template <class Num>
class GroupFlow {
 public:
  // `shape` must outlive this.
  explicit GroupFlow(const GroupLinks& shape) : shape_(shape) {
    const auto num_links = static_cast<size_t>(shape.num_links);
    first_edge_.assign(num_links + 1, 0);
    for (int32_t link : shape.links) ++first_edge_[static_cast<size_t>(link) + 1];
    std::partial_sum(first_edge_.begin(), first_edge_.end(), first_edge_.begin());
    edge_.resize(shape.links.size());
    group_.resize(shape.links.size());
    std::vector<size_t> next(first_edge_.begin(), first_edge_.end() - 1);
    for (size_t g = 0; g < shape.num_groups(); ++g)
      for (size_t e = Begin(g); e < End(g); ++e) {
        group_[e] = g;
        edge_[next[LinkOf(e)]++] = e;
      }
  }

  // True when all demand fits.
  bool Route(std::vector<Num> demand, std::vector<Num> capacity) {
    left_ = std::move(demand);
    room_ = std::move(capacity);
    amount_.assign(shape_.links.size(), Num(0));
    FillGreedily();
    while (Label()) {
      next_of_group_.resize(shape_.num_groups());
      for (size_t g = 0; g < shape_.num_groups(); ++g) next_of_group_[g] = Begin(g);
      next_of_link_.assign(first_edge_.begin(), first_edge_.end() - 1);
      for (size_t g = 0; g < shape_.num_groups(); ++g)
        while (left_[g] > zero_) {
          const Num pushed = Push(g, left_[g]);
          if (!(pushed > zero_)) break;
          left_[g] -= pushed;
        }
    }
    return std::none_of(left_.begin(), left_.end(), [this](const Num& n) { return n > zero_; });
  }

  // Over edge e of the shape.
  const std::vector<Num>& amounts() const { return amount_; }

  // After Route() said no: whether link l is in the set S of full links that proves it, because the
  // groups whose links all lie in S need more than S carries.
  bool IsBlocking(int32_t link) const { return link_level_[static_cast<size_t>(link)] >= 0; }

 private:
  size_t Begin(size_t group) const { return static_cast<size_t>(shape_.first[group]); }
  size_t End(size_t group) const { return static_cast<size_t>(shape_.first[group + 1]); }
  size_t LinkOf(size_t edge) const { return static_cast<size_t>(shape_.links[edge]); }

  // Groups with the fewest links first: they have the least choice.
  void FillGreedily() {
    std::vector<size_t> order(shape_.num_groups());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return End(a) - Begin(a) < End(b) - Begin(b); });
    for (size_t g : order)
      for (size_t e = Begin(g); e < End(g) && left_[g] > zero_; ++e) {
        const Num take = std::min(left_[g], room_[LinkOf(e)]);
        if (!(take > zero_)) continue;
        amount_[e] += take;
        left_[g] -= take;
        room_[LinkOf(e)] -= take;
      }
  }

  // Breadth-first levels from the groups that lack something; true when a link with room is
  // reached.
  bool Label() {
    group_level_.assign(shape_.num_groups(), -1);
    link_level_.assign(static_cast<size_t>(shape_.num_links), -1);
    std::vector<size_t> groups, next;
    for (size_t g = 0; g < shape_.num_groups(); ++g)
      if (left_[g] > zero_) {
        group_level_[g] = 0;
        groups.push_back(g);
      }
    bool found = false;
    for (int32_t level = 0; !groups.empty() && !found; level += 2) {
      next.clear();
      for (size_t g : groups)
        for (size_t e = Begin(g); e < End(g); ++e) {
          const size_t link = LinkOf(e);
          if (link_level_[link] >= 0) continue;
          link_level_[link] = level + 1;
          if (room_[link] > zero_) found = true;
          LabelGroupsOver(link, level + 2, next);
        }
      std::swap(groups, next);
    }
    return found;
  }

  // The unlabelled groups that send something over `link`.
  void LabelGroupsOver(size_t link, int32_t level, std::vector<size_t>& labelled) {
    for (size_t i = first_edge_[link]; i < first_edge_[link + 1]; ++i) {
      const size_t group = group_[edge_[i]];
      if (group_level_[group] >= 0 || !(amount_[edge_[i]] > zero_)) continue;
      group_level_[group] = level;
      labelled.push_back(group);
    }
  }

  // Sends up to `limit` from `group` along one way of ascending levels; what it sent.
  Num Push(size_t group, const Num& limit) {
    for (size_t& e = next_of_group_[group]; e < End(group); ++e) {
      const size_t link = LinkOf(e);
      if (link_level_[link] != group_level_[group] + 1) continue;
      if (room_[link] > zero_) {
        const Num sent = std::min(limit, room_[link]);
        room_[link] -= sent;
        amount_[e] += sent;
        return sent;
      }
      for (size_t& i = next_of_link_[link]; i < first_edge_[link + 1]; ++i) {
        const size_t back = edge_[i];
        const size_t other = group_[back];
        if (group_level_[other] != link_level_[link] + 1 || !(amount_[back] > zero_)) continue;
        const Num sent = Push(other, std::min(limit, amount_[back]));
        if (!(sent > zero_)) continue;
        amount_[back] -= sent;
        amount_[e] += sent;
        return sent;
      }
    }
    return Num(0);
  }

  const GroupLinks& shape_;
  const Num zero_{0};
  std::vector<size_t> first_edge_, edge_;  // the edges of each link
  std::vector<size_t> group_;              // the group of each edge
  std::vector<Num> left_, room_, amount_;
  std::vector<int32_t> group_level_, link_level_;
  std::vector<size_t> next_of_group_, next_of_link_;
};

}  // namespace tutti
