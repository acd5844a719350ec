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
      next_(reached_.size() + 1) {}

// next |= layer turned by `offset` modulo n; bits from n on may be set.
void CyclicMeasure::OrShifted(int32_t offset) {
  const auto up = [this](int32_t bits) {
    const auto words = static_cast<size_t>(bits) / 64;
    const auto rest = static_cast<unsigned>(bits % 64);
    for (size_t i = 0; i + words < layer_.size(); ++i) {
      next_[i + words] |= layer_[i] << rest;
      if (rest != 0) next_[i + words + 1] |= layer_[i] >> (64 - rest);
    }
  };
  const auto down = [this](int32_t bits) {
    const auto words = static_cast<size_t>(bits) / 64;
    const auto rest = static_cast<unsigned>(bits % 64);
    for (size_t i = words; i < layer_.size(); ++i) {
      next_[i - words] |= layer_[i] >> rest;
      if (rest != 0 && i > words) next_[i - words - 1] |= layer_[i] << (64 - rest);
    }
  };
  up(offset);
  down(ranks_ - offset);
}

std::optional<CyclicReach> CyclicMeasure::Measure(const std::vector<int32_t>& offsets) {
  std::fill(reached_.begin(), reached_.end(), 0);
  reached_[0] = 1;
  layer_ = reached_;
  CyclicReach reach;
  for (int32_t left = ranks_ - 1; left > 0;) {
    std::fill(next_.begin(), next_.end(), 0);
    for (int32_t offset : offsets) OrShifted(offset);
    next_[static_cast<size_t>(ranks_) / 64] &= (uint64_t{1} << (ranks_ % 64)) - 1;
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
