#include "tutti/graph/max_flow.h"

#include <algorithm>

#include "tutti/base/check.h"
#include "tutti/base/index.h"

namespace tutti {
namespace {

constexpr int32_t kUnseen = -1;
constexpr int32_t kNoHalf = -1;

}  // namespace

template <class Capacity>
MaxFlow<Capacity>::MaxFlow(int32_t num_nodes, std::span<const Arc> arcs)
    : first_(Index(num_nodes) + 1, 0),
      half_(2 * arcs.size()),
      capacity_in_(2 * arcs.size(), 0),
      half_of_arc_(arcs.size()),
      supply_(Index(num_nodes), 0),
      used_(Index(num_nodes), 0),
      unlimited_(Index(num_nodes), false),
      level_(Index(num_nodes), kUnseen),
      cursor_(Index(num_nodes), 0) {
  for (const Arc& arc : arcs) {
    TUTTI_CHECK(0 <= arc.capacity && arc.capacity <= kLargest);
    ++first_[arc.tail.index() + 1];
    ++first_[arc.head.index() + 1];
  }
  for (size_t node = 0; node < Index(num_nodes); ++node) first_[node + 1] += first_[node];
  std::vector<int32_t> next(first_.begin(), first_.end() - 1);
  for (size_t a = 0; a < arcs.size(); ++a) {
    const int32_t at_tail = next[arcs[a].tail.index()]++;
    const int32_t at_head = next[arcs[a].head.index()]++;
    half_[Index(at_tail)] = {arcs[a].head.value, at_head};
    half_[Index(at_head)] = {arcs[a].tail.value, at_tail};
    capacity_in_[Index(at_head)] = arcs[a].capacity;
    half_of_arc_[a] = at_head;
  }
  residual_in_ = capacity_in_;
}

template <class Capacity>
void MaxFlow<Capacity>::SetCapacity(int32_t arc, Capacity capacity) {
  TUTTI_CHECK(0 <= capacity && capacity <= kLargest);
  Undo();
  const size_t half = Index(half_of_arc_[Index(arc)]);
  capacity_in_[half] = residual_in_[half] = capacity;
}

template <class Capacity>
void MaxFlow<Capacity>::SetSupply(NodeId node, Capacity supply) {
  TUTTI_CHECK(0 <= supply && supply <= kLargest);
  Undo();
  supply_[node.index()] = supply;
  unlimited_[node.index()] = false;
}

template <class Capacity>
void MaxFlow<Capacity>::SetUnlimitedSupply(NodeId node) {
  Undo();
  unlimited_[node.index()] = true;
}

template <class Capacity>
Capacity MaxFlow<Capacity>::Run(NodeId sink, Capacity limit) {
  TUTTI_CHECK(0 <= limit && limit <= kLargest);
  Undo();
  Capacity flow = 0;
  while (flow < limit && FindLevels(sink.value)) flow += Pull(sink.value, limit - flow);
  return flow;
}

template <class Capacity>
std::vector<bool> MaxFlow<Capacity>::SinkSide() const {
  std::vector<bool> side(level_.size());
  for (size_t node = 0; node < level_.size(); ++node) side[node] = level_[node] != kUnseen;
  return side;
}

template <class Capacity>
Capacity MaxFlow<Capacity>::Flow(int32_t arc) const {
  const size_t half = Index(half_of_arc_[Index(arc)]);
  return capacity_in_[half] - residual_in_[half];
}

template <class Capacity>
void MaxFlow<Capacity>::Undo() {
  for (int32_t half : touched_halves_) {
    const size_t mate = Index(half_[Index(half)].mate);
    residual_in_[Index(half)] = capacity_in_[Index(half)];
    residual_in_[mate] = capacity_in_[mate];
  }
  touched_halves_.clear();
  for (int32_t node : touched_nodes_) used_[Index(node)] = 0;
  touched_nodes_.clear();
  ForgetLevels();
}

template <class Capacity>
void MaxFlow<Capacity>::ForgetLevels() {
  for (int32_t node : seen_) level_[Index(node)] = kUnseen;
  seen_.clear();
}

template <class Capacity>
bool MaxFlow<Capacity>::HasSupply(int32_t node) const {
  return unlimited_[Index(node)] || used_[Index(node)] < supply_[Index(node)];
}

// Levels of everything from which the sink can be reached, up to the nearest unlimited supply.
template <class Capacity>
bool MaxFlow<Capacity>::FindLevels(int32_t sink) {
  ForgetLevels();
  bool found = false;
  int32_t last_level = num_nodes();
  const auto see = [&](int32_t node, int32_t level) {
    level_[Index(node)] = level;
    cursor_[Index(node)] = first_[Index(node)];
    seen_.push_back(node);
    found = found || HasSupply(node);
    if (unlimited_[Index(node)]) last_level = std::min(last_level, level);
  };
  see(sink, 0);
  for (size_t i = 0; i < seen_.size(); ++i) {
    const int32_t node = seen_[i];
    const int32_t level = level_[Index(node)];
    if (level >= last_level) break;
    for (int32_t h = first_[Index(node)]; h < first_[Index(node) + 1]; ++h) {
      const int32_t other = half_[Index(h)].other;
      if (residual_in_[Index(h)] > 0 && level_[Index(other)] == kUnseen) see(other, level + 1);
    }
  }
  return found;
}

// A blocking flow in the levels found. Depth first with its own stack: ways may be as long as n.
template <class Capacity>
Capacity MaxFlow<Capacity>::Pull(int32_t sink, Capacity need) {
  OpenFrame(sink, kNoHalf, need);
  for (;;) {
    Frame& top = stack_.back();
    int32_t& cursor = cursor_[Index(top.node)];
    const int32_t end = first_[Index(top.node) + 1];
    const int32_t next_level = level_[Index(top.node)] + 1;
    while (top.got < top.need && cursor < end &&
           (residual_in_[Index(cursor)] == 0 ||
            level_[Index(half_[Index(cursor)].other)] != next_level))
      ++cursor;
    if (top.got < top.need && cursor < end) {
      const Capacity ask = std::min(top.need - top.got, residual_in_[Index(cursor)]);
      OpenFrame(half_[Index(cursor)].other, cursor, ask);
      continue;
    }
    const Frame done = top;
    stack_.pop_back();
    if (stack_.empty()) return done.got;
    if (done.got > 0) Shift(done.half, done.got);
    stack_.back().got += done.got;
    // A node that gave less than asked has nothing left in this phase.
    if (done.got < done.need) ++cursor_[Index(stack_.back().node)];
  }
}

template <class Capacity>
void MaxFlow<Capacity>::OpenFrame(int32_t node, int32_t half, Capacity need) {
  Capacity own = need;
  if (!unlimited_[Index(node)]) {
    own = std::min(need, supply_[Index(node)] - used_[Index(node)]);
    if (own > 0) {
      if (used_[Index(node)] == 0) touched_nodes_.push_back(node);
      used_[Index(node)] += own;
    }
  }
  stack_.push_back({node, half, need, own});
}

template <class Capacity>
void MaxFlow<Capacity>::Shift(int32_t half, Capacity amount) {
  const int32_t mate = half_[Index(half)].mate;
  if (residual_in_[Index(half)] == capacity_in_[Index(half)]) touched_halves_.push_back(half);
  residual_in_[Index(half)] -= amount;
  residual_in_[Index(mate)] += amount;
}

template class MaxFlow<int64_t>;
template class MaxFlow<WideCapacity>;

}  // namespace tutti
