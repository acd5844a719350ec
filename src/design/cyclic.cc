#include "cyclic.h"

#include <algorithm>
#include <bit>
#include <map>

#include "tutti/base/check.h"
#include "tutti/graph/max_flow.h"

namespace tutti::design {

CyclicMeasure::CyclicMeasure(int32_t ranks)
    : ranks_(ranks),
      reached_(static_cast<size_t>(ranks) / 64 + 1),
      layer_(reached_.size()),
      twice_(2 * reached_.size() + 2),
      next_(reached_.size()) {}

// twice = layer and, n bits on, layer again: any n bits of it are the layer, turned.
void CyclicMeasure::WriteTwice() {
  std::fill(twice_.begin(), twice_.end(), 0);
  std::copy(layer_.begin(), layer_.end(), twice_.begin());
  const auto words = static_cast<size_t>(ranks_) / 64;
  const auto bits = static_cast<unsigned>(ranks_ % 64);
  for (size_t i = 0; i < layer_.size(); ++i) {
    twice_[i + words] |= layer_[i] << bits;
    twice_[i + words + 1] |= (layer_[i] >> 1) >> (63 - bits);
  }
}

// next |= layer turned by `offset` modulo n; bits from n on may be set.
void CyclicMeasure::OrTurned(int32_t offset) {
  const int32_t from = ranks_ - offset;
  const uint64_t* const words = twice_.data() + from / 64;
  const auto bits = static_cast<unsigned>(from % 64);
  for (size_t i = 0; i < next_.size(); ++i)
    next_[i] |= words[i] >> bits | (words[i + 1] << 1) << (63 - bits);
}

std::optional<CyclicReach> CyclicMeasure::Measure(const std::vector<int32_t>& offsets) {
  std::fill(reached_.begin(), reached_.end(), 0);
  reached_[0] = 1;
  layer_ = reached_;
  CyclicReach reach;
  for (int32_t left = ranks_ - 1; left > 0;) {
    WriteTwice();
    std::fill(next_.begin(), next_.end(), 0);
    for (int32_t offset : offsets) OrTurned(offset);
    next_.back() &= (uint64_t{1} << (ranks_ % 64)) - 1;
    int32_t added = 0;
    for (size_t i = 0; i < layer_.size(); ++i) {
      layer_[i] = next_[i] & ~reached_[i];
      reached_[i] |= layer_[i];
      added += std::popcount(layer_[i]);
    }
    if (added == 0) return std::nullopt;
    left -= added;
    ++reach.diameter;
    reach.total_hops += int64_t{added} * reach.diameter;
  }
  return reach;
}

namespace {

// Sources by the set of in-links that may bring them, all of one step: can each link carry
// sources / links of them?
bool IsBalanced(const std::map<uint64_t, int32_t>& groups, int32_t sources, int32_t links) {
  // In units of 1 / links of a source. Nodes: links, groups, sink.
  const int32_t sink = links + static_cast<int32_t>(groups.size());
  std::vector<MaxFlow<int64_t>::Arc> arcs;
  for (int32_t link = 0; link < links; ++link)
    arcs.push_back({NodeId{link}, NodeId{sink}, sources});
  int32_t node = links;
  for (const auto& [mask, count] : groups) {
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
      arcs.push_back({NodeId{node}, NodeId{std::countr_zero(rest)}, int64_t{count} * links});
    ++node;
  }
  MaxFlow<int64_t> flow(sink + 1, arcs);
  node = links;
  for (const auto& [mask, count] : groups) flow.SetSupply(NodeId{node++}, int64_t{count} * links);
  const int64_t all = int64_t{sources} * links;
  return flow.Run(NodeId{sink}, all) == all;
}

}  // namespace

bool IsCyclicBalanced(int32_t ranks, const std::vector<int32_t>& offsets) {
  TUTTI_CHECK(!offsets.empty() && offsets.size() <= 64);
  const auto links = static_cast<int32_t>(offsets.size());
  // [x] Hops over x, and the offsets that a shortest way to x may end with.
  std::vector<int32_t> hops(static_cast<size_t>(ranks), -1);
  std::vector<uint64_t> masks(static_cast<size_t>(ranks), 0);
  hops[0] = 0;
  std::vector<int32_t> layer{0}, next;
  for (int32_t step = 1; !layer.empty(); ++step) {
    next.clear();
    for (int32_t from : layer)
      for (int32_t link = 0; link < links; ++link) {
        const int32_t to = (from + offsets[static_cast<size_t>(link)]) % ranks;
        int32_t& to_hops = hops[static_cast<size_t>(to)];
        if (to_hops < 0) {
          to_hops = step;
          next.push_back(to);
        }
        if (to_hops == step) masks[static_cast<size_t>(to)] |= uint64_t{1} << link;
      }
    std::map<uint64_t, int32_t> groups;
    for (int32_t to : next) ++groups[masks[static_cast<size_t>(to)]];
    if (!IsBalanced(groups, static_cast<int32_t>(next.size()), links)) return false;
    layer.swap(next);
  }
  return true;
}

}  // namespace tutti::design
