#include "refinement.h"

#include <algorithm>
#include <numeric>

namespace tutti::graph {

uint64_t MixBits(uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

Refinement::Refinement(const Digraph& graph, const GraphColors& colors, int32_t half)
    : graph_(graph), half_(half) {
  const auto n = static_cast<size_t>(graph.num_nodes());
  for (LinkId link : graph.Links())
    weight_.push_back(MixBits(colors.links.empty() ? 0 : colors.links[link.index()]));
  for (NodeId node : graph.Nodes()) elements_.push_back(node);
  position_.resize(n);
  cell_of_.assign(n, 0);
  size_.assign(n, 0);
  is_queued_.assign(n, 0);
  key_.assign(n, 0);
  is_touched_.assign(n, 0);
  touched_.resize(n);
  if (n == 0) return;
  if (!colors.nodes.empty())
    std::sort(elements_.begin(), elements_.end(), [&colors](NodeId a, NodeId b) {
      return colors.nodes[a.index()] < colors.nodes[b.index()];
    });
  for (size_t i = 0; i < n; ++i) position_[elements_[i].index()] = static_cast<int32_t>(i);
  const auto color_at = [&](size_t i) {
    return colors.nodes.empty() ? 0 : colors.nodes[elements_[i].index()];
  };
  for (size_t begin = 0; begin < n;) {
    size_t end = begin;
    while (end < n && color_at(end) == color_at(begin)) ++end;
    size_[begin] = static_cast<int32_t>(end - begin);
    for (size_t i = begin; i < end; ++i)
      cell_of_[elements_[i].index()] = static_cast<int32_t>(begin);
    trace_ = MixBits(trace_ ^ color_at(begin) ^ (end << 32));
    Enqueue(static_cast<int32_t>(begin));
    begin = end;
  }
}

void Refinement::Enqueue(int32_t cell) {
  if (is_queued_[static_cast<size_t>(cell)]) return;
  is_queued_[static_cast<size_t>(cell)] = 1;
  queue_.push_back(cell);
}

bool Refinement::Refine(int64_t max_work) {
  const int64_t start = work_;
  bool balanced = true;
  if (half_ > 0 && splits_.empty())
    for (int32_t cell = 0; cell < graph_.num_nodes() && balanced;
         cell += size_[static_cast<size_t>(cell)])
      balanced = IsBalanced(cell, cell + size_[static_cast<size_t>(cell)]);
  // queue_ grows while it is walked.
  size_t next = 0;
  for (; balanced && next < queue_.size() && work_ - start < max_work; ++next) {
    const int32_t cell = queue_[next];
    is_queued_[static_cast<size_t>(cell)] = 0;
    balanced = SplitBy(cell, true) && SplitBy(cell, false);
  }
  for (; next < queue_.size(); ++next) is_queued_[static_cast<size_t>(queue_[next])] = 0;
  queue_.clear();
  return balanced;
}

// Splits every cell by how its nodes are linked to `cell`: by links into it, or by links out of it.
bool Refinement::SplitBy(int32_t cell, bool by_heads) {
  const auto touch = [this](NodeId node, LinkId link) {
    ++work_;
    key_[node.index()] += weight_[link.index()];
    if (is_touched_[node.index()]) return;
    is_touched_[node.index()] = 1;
    std::vector<NodeId>& nodes = touched_[static_cast<size_t>(cell_of(node))];
    if (nodes.empty()) touched_cells_.push_back(cell_of(node));
    nodes.push_back(node);
  };
  for (NodeId node : NodesOf(cell)) {
    if (by_heads)
      for (LinkId link : graph_.InLinks(node)) touch(graph_.tail(link), link);
    else
      for (LinkId link : graph_.OutLinks(node)) touch(graph_.head(link), link);
  }
  std::sort(touched_cells_.begin(), touched_cells_.end());
  bool balanced = true;
  for (int32_t touched : touched_cells_) {
    balanced = balanced && SplitTouched(touched);
    std::vector<NodeId>& nodes = touched_[static_cast<size_t>(touched)];
    for (NodeId node : nodes) {
      key_[node.index()] = 0;
      is_touched_[node.index()] = 0;
    }
    nodes.clear();
  }
  touched_cells_.clear();
  return balanced;
}

bool Refinement::IsBalanced(int32_t begin, int32_t end) const {
  if (half_ == 0) return true;
  const auto first = std::count_if(elements_.begin() + begin, elements_.begin() + end,
                                   [this](NodeId node) { return node.value < half_; });
  return 2 * first == end - begin;
}

void Refinement::MoveTo(int32_t position, NodeId node) {
  const int32_t old = position_[node.index()];
  const NodeId other = elements_[static_cast<size_t>(position)];
  std::swap(elements_[static_cast<size_t>(old)], elements_[static_cast<size_t>(position)]);
  position_[node.index()] = position;
  position_[other.index()] = old;
}

void Refinement::AddCell(int32_t parent, int32_t begin, int32_t size) {
  size_[static_cast<size_t>(begin)] = size;
  for (int32_t i = begin; i < begin + size; ++i)
    cell_of_[elements_[static_cast<size_t>(i)].index()] = begin;
  splits_.push_back({parent, begin});
}

// Untouched nodes stay in front; the touched ones follow, by key.
bool Refinement::SplitTouched(int32_t cell) {
  std::vector<NodeId>& nodes = touched_[static_cast<size_t>(cell)];
  const int32_t end = cell + size_[static_cast<size_t>(cell)];
  const auto count = static_cast<int32_t>(nodes.size());
  std::sort(nodes.begin(), nodes.end(), [this](NodeId a, NodeId b) {
    return std::pair(key_[a.index()], a) < std::pair(key_[b.index()], b);
  });
  const auto key = [&](int32_t i) { return key_[nodes[static_cast<size_t>(i)].index()]; };
  trace_ = MixBits(trace_ ^ static_cast<uint64_t>(cell) ^ (static_cast<uint64_t>(count) << 32));
  const bool whole = count == end - cell;
  if (whole && key(0) == key(count - 1)) {
    trace_ = MixBits(trace_ ^ key(0));
    return true;
  }
  for (int32_t i = count; i-- > 0;) MoveTo(end - count + i, nodes[static_cast<size_t>(i)]);

  const bool was_queued = is_queued_[static_cast<size_t>(cell)] != 0;
  const size_t first_split = splits_.size();
  int32_t previous = cell;
  if (!whole) size_[static_cast<size_t>(cell)] -= count;
  for (int32_t i = 0; i < count;) {
    int32_t next = i;
    while (next < count && key(next) == key(i)) ++next;
    const int32_t begin = end - count + i;
    if (!IsBalanced(begin, begin + next - i)) {
      // Keep R1: the rest of the cell becomes one cell that Undo() gives back.
      if (begin == cell)
        size_[static_cast<size_t>(cell)] = end - cell;
      else
        AddCell(previous, begin, end - begin);
      return false;
    }
    trace_ = MixBits(trace_ ^ key(i) ^ (static_cast<uint64_t>(begin) << 32));
    if (begin == cell)
      size_[static_cast<size_t>(cell)] = next - i;
    else
      AddCell(previous, begin, next - i);
    previous = begin;
    i = next;
  }
  // All parts are splitters but the largest one, whose effect the others determine.
  int32_t largest = cell;
  for (size_t s = first_split; s < splits_.size(); ++s)
    if (size_[static_cast<size_t>(splits_[s].child)] > size_[static_cast<size_t>(largest)])
      largest = splits_[s].child;
  if (was_queued || largest != cell) Enqueue(cell);
  for (size_t s = first_split; s < splits_.size(); ++s)
    if (was_queued || splits_[s].child != largest) Enqueue(splits_[s].child);
  return true;
}

void Refinement::Individualize(std::span<const NodeId> nodes) {
  const int32_t cell = cell_of(nodes.front());
  const auto count = static_cast<int32_t>(nodes.size());
  const int32_t end = cell + size_[static_cast<size_t>(cell)];
  for (int32_t i = 0; i < count; ++i) MoveTo(end - 1 - i, nodes[static_cast<size_t>(i)]);
  size_[static_cast<size_t>(cell)] -= count;
  AddCell(cell, end - count, count);
  Enqueue(end - count);
}

void Refinement::Undo(size_t mark) {
  for (; splits_.size() > mark; splits_.pop_back()) {
    const auto [parent, child] = splits_.back();
    const int32_t size = size_[static_cast<size_t>(child)];
    for (int32_t i = child; i < child + size; ++i)
      cell_of_[elements_[static_cast<size_t>(i)].index()] = parent;
    size_[static_cast<size_t>(parent)] += size;
    size_[static_cast<size_t>(child)] = 0;
  }
}

int32_t Refinement::SmallestCellAbove(int32_t least) const {
  int32_t best = -1;
  for (int32_t cell = 0; cell < graph_.num_nodes(); cell += size_[static_cast<size_t>(cell)]) {
    const int32_t size = size_[static_cast<size_t>(cell)];
    if (size > least && (best < 0 || size < size_[static_cast<size_t>(best)])) best = cell;
  }
  return best;
}

}  // namespace tutti::graph
