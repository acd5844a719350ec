#include "acyclic.h"

#include <algorithm>
#include <cstddef>

namespace tutti {
namespace {

// Depth-first search over bundles with flow: cancels the first cycle met, or leaves the nodes in
// the order in which they were left, heads before tails.
class CycleSearch {
 public:
  CycleSearch(const FlowNetwork& network, std::vector<int64_t>& units)
      : network_(network), units_(units) {}

  bool CancelOne() {
    const auto nodes = static_cast<size_t>(network_.num_nodes);
    state_.assign(nodes, State::kNew);
    cursor_.assign(network_.first_out.begin(), network_.first_out.end() - 1);
    left_.clear();
    for (int32_t root = 0; root < network_.num_nodes; ++root)
      if (state_[static_cast<size_t>(root)] == State::kNew && CancelFrom(root)) return true;
    return false;
  }
  const std::vector<int32_t>& left() const { return left_; }

 private:
  enum class State : uint8_t { kNew, kOpen, kLeft };

  bool CancelFrom(int32_t root) {
    path_.clear();
    state_[static_cast<size_t>(root)] = State::kOpen;
    int32_t at = root;
    for (;;) {
      const auto v = static_cast<size_t>(at);
      if (cursor_[v] == network_.first_out[v + 1]) {
        state_[v] = State::kLeft;
        left_.push_back(at);
        if (path_.empty()) return false;
        at = network_.tail[path_.back()];
        path_.pop_back();
        continue;
      }
      const auto e = static_cast<size_t>(network_.out_bundles[static_cast<size_t>(cursor_[v]++)]);
      if (units_[e] == 0) continue;
      const auto head = static_cast<size_t>(network_.head[e]);
      if (state_[head] == State::kLeft) continue;
      path_.push_back(e);
      if (state_[head] == State::kOpen) {
        Cancel(network_.head[e]);
        return true;
      }
      state_[head] = State::kOpen;
      at = network_.head[e];
    }
  }

  // The end of path_, from `node` on, is a cycle.
  void Cancel(int32_t node) {
    size_t begin = path_.size() - 1;
    while (network_.tail[path_[begin]] != node) --begin;
    int64_t least = units_[path_[begin]];
    for (size_t i = begin; i < path_.size(); ++i) least = std::min(least, units_[path_[i]]);
    for (size_t i = begin; i < path_.size(); ++i) units_[path_[i]] -= least;
  }

  const FlowNetwork& network_;
  std::vector<int64_t>& units_;
  std::vector<State> state_;
  std::vector<int32_t> cursor_, left_;
  std::vector<size_t> path_;  // bundles
};

}  // namespace

std::vector<BundleFlow> WithoutCycles(const FlowNetwork& network, std::vector<int64_t> units) {
  CycleSearch search(network, units);
  while (search.CancelOne()) {
  }
  std::vector<BundleFlow> flow;
  const std::vector<int32_t>& left = search.left();
  for (size_t i = left.size(); i-- > 0;) {
    const auto v = static_cast<size_t>(left[i]);
    for (auto e = static_cast<size_t>(network.first_in[v]);
         e < static_cast<size_t>(network.first_in[v + 1]); ++e)
      if (units[e] > 0) flow.push_back({static_cast<int32_t>(e), units[e]});
  }
  return flow;
}

}  // namespace tutti
