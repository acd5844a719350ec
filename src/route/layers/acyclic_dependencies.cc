#include "layers/acyclic_dependencies.h"

#include <algorithm>
#include <numeric>

namespace tutti {

AcyclicDependencies::AcyclicDependencies(const Digraph& graph)
    : graph_(graph),
      dependency_of_(graph),
      present_(dependency_of_.size()),
      closes_cycle_(dependency_of_.size()),
      position_(static_cast<size_t>(graph.num_links())),
      visited_(static_cast<size_t>(graph.num_links())) {
  std::iota(position_.begin(), position_.end(), 0);
}

bool AcyclicDependencies::Admit(std::span<const std::span<const LinkId>> paths) {
  added_.clear();
  for (const std::span<const LinkId> path : paths)
    for (size_t i = 1; i < path.size(); ++i) {
      const size_t dependency = dependency_of_(path[i - 1], path[i]);
      if (present_[dependency]) continue;
      if (!closes_cycle_[dependency] && Insert(path[i - 1], path[i])) {
        present_[dependency] = true;
        added_.push_back(dependency);
        continue;
      }
      // Without what these paths brought it would be refused forever.
      if (added_.empty()) closes_cycle_[dependency] = true;
      for (const size_t undone : added_) present_[undone] = false;
      return false;
    }
  return true;
}

// Makes the order one in which `after` stands behind `before`, unless dependencies forbid it.
bool AcyclicDependencies::Insert(LinkId before, LinkId after) {
  if (position(before) < position(after)) return true;
  forward_.clear();
  backward_.clear();
  const bool acyclic = FindForward(after, before);
  if (acyclic) FindBackward(before, position(after));
  for (const LinkId link : forward_) visited_[link.index()] = false;
  for (const LinkId link : backward_) visited_[link.index()] = false;
  if (acyclic) MoveBehind();
  return acyclic;
}

// Collects what depends on `from` and does not stand behind `stop_at`; false: `stop_at` does.
bool AcyclicDependencies::FindForward(LinkId from, LinkId stop_at) {
  stack_.assign(1, from);
  visited_[from.index()] = true;
  forward_.push_back(from);
  while (!stack_.empty()) {
    const LinkId link = stack_.back();
    stack_.pop_back();
    for (const LinkId next : graph_.OutLinks(graph_.head(link))) {
      if (!present_[dependency_of_(link, next)] || visited_[next.index()]) continue;
      if (next == stop_at) return false;
      if (position(next) > position(stop_at)) continue;
      visited_[next.index()] = true;
      forward_.push_back(next);
      stack_.push_back(next);
    }
  }
  return true;
}

// Collects what `from` depends on and stands at `lowest` or behind it.
void AcyclicDependencies::FindBackward(LinkId from, int32_t lowest) {
  stack_.assign(1, from);
  visited_[from.index()] = true;
  backward_.push_back(from);
  while (!stack_.empty()) {
    const LinkId link = stack_.back();
    stack_.pop_back();
    for (const LinkId previous : graph_.InLinks(graph_.tail(link))) {
      if (!present_[dependency_of_(previous, link)] || visited_[previous.index()] ||
          position(previous) < lowest)
        continue;
      visited_[previous.index()] = true;
      backward_.push_back(previous);
      stack_.push_back(previous);
    }
  }
}

// Shares the positions of both sets out anew: first all of `backward_`, then all of `forward_`.
void AcyclicDependencies::MoveBehind() {
  const auto by_position = [&](LinkId a, LinkId b) { return position(a) < position(b); };
  std::sort(backward_.begin(), backward_.end(), by_position);
  std::sort(forward_.begin(), forward_.end(), by_position);
  std::vector<int32_t> positions;
  for (const LinkId link : backward_) positions.push_back(position(link));
  for (const LinkId link : forward_) positions.push_back(position(link));
  std::sort(positions.begin(), positions.end());
  size_t next = 0;
  for (const LinkId link : backward_) position_[link.index()] = positions[next++];
  for (const LinkId link : forward_) position_[link.index()] = positions[next++];
}

}  // namespace tutti
