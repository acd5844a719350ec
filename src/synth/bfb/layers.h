// SourceLayers: for one receiver after the other, which sources' shards arrive in which step and
// over which of its in-links they may come.
//
// Model       Backwards from the receiver u, breadth first: the sources at distance t arrive in
//             step t (0-based: t - 1). Source v may come over in-link w -> u when d(v, w) = t - 1,
//             and those links are the union over v's next hops one step closer to u, so one search
//             yields distances and masks together; no matrix of distances is kept.
// Complexity  Load: O(n + m) words of masks. Memory O(n) a searcher.
// Threads     A searcher belongs to one thread; the table is shared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bfb/balance.h"
#include "tutti/base/ids.h"
#include "tutti/topo/topology.h"

namespace tutti {

// The tails of all in-links in one row per node, and what a broadcast's searcher needs.
struct InLinkTable {
  // With a root, that rank is the only source.
  InLinkTable(const Topology& topology, std::optional<NodeId> root);

  std::span<const int32_t> Tails(size_t node) const {
    return {tail.data() + first[node], tail.data() + first[node + 1]};
  }

  const Topology& topology;
  std::optional<NodeId> source;
  std::vector<int32_t> from_source;  // hops, when there is one source
  std::vector<size_t> first;
  std::vector<int32_t> tail;
};

class SourceLayers {
 public:
  // `table` must outlive this.
  explicit SourceLayers(const InLinkTable& table);

  void Load(NodeId receiver);
  // Steps 0 .. num_steps() - 1 may bring something to the receiver.
  int32_t num_steps() const { return static_cast<int32_t>(step_end_.size()); }
  // Groups of the sources of `step`; leaves problem.link_class alone. No groups when none arrives.
  void MakeProblem(int32_t step, LoadProblem& problem);
  // After MakeProblem: the shards of its sources, group by group. One source's shard is 0, all
  // sources' are numbered like them.
  std::span<const int32_t> GroupedShards();

 private:
  void LoadOneSource(size_t receiver);
  template <bool kOneWord>
  void Search(size_t receiver);
  void GroupByCounting(LoadProblem& problem);
  void GroupBySorting(LoadProblem& problem);
  uint64_t* MaskOf(size_t node) { return mask_.data() + node * num_words_; }
  std::span<const int32_t> SourcesOf(int32_t step) const;

  const InLinkTable& table_;
  int32_t num_links_ = 0;  // of the receiver
  size_t num_words_ = 0;
  std::vector<int32_t> distance_;
  std::vector<uint64_t> mask_;
  std::vector<int32_t> order_;    // sources, nearest first
  std::vector<size_t> step_end_;  // into order_
  std::vector<int32_t> histogram_, grouped_;
  std::span<const int32_t> current_;  // sources of the problem made last
  bool grouped_is_current_ = false;
};

}  // namespace tutti
