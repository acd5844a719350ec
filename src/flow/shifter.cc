#include "shifter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "tutti/base/index.h"

namespace tutti {
namespace {

// Differences of length below this part are rounding.
constexpr double kShiftTolerance = 1e-11;
// Flows below this (in mean demands) are dropped; units are made from proportions later.
constexpr double kNothing = 1e-13;

}  // namespace

Shifter::Shifter(const FlowNetwork& network)
    : network_(network),
      longest_(Index(network.num_nodes)),
      shortest_(Index(network.num_nodes)),
      first_used_(Index(network.num_nodes)),
      end_used_(Index(network.num_nodes)),
      place_(Index(network.num_nodes)),
      long_slot_(Index(network.num_nodes)),
      short_slot_(Index(network.num_nodes)) {}

double Shifter::Visit(SourceFlow& flow, LinkLengths& lengths, double slack) {
  FindLongest(flow, lengths.length());
  if (flow.order.size() < longest_.size()) LabelUnusedNodes(flow, lengths.length());
  SortByPotential(flow.order);
  FindShortest(flow, lengths.length());
  double saved = 0;
  for (size_t i = flow.order.size(); i-- > 1;) {
    const size_t v = Index(flow.order[i]);
    if (long_slot_[v] >= 0 && long_slot_[v] != short_slot_[v] &&
        longest_[v] - shortest_[v] > slack * longest_[v])
      saved += ShiftInto(flow.order[i], lengths);
  }
  Store(flow);
  return saved;
}

void Shifter::FindLongest(const SourceFlow& flow, const std::vector<double>& length) {
  if (flow.order.size() < longest_.size()) {
    std::fill(longest_.begin(), longest_.end(), std::numeric_limits<double>::infinity());
    std::fill(end_used_.begin(), end_used_.end(), 0);
    std::fill(first_used_.begin(), first_used_.end(), 0);
  }
  size_t k = 0;
  longest_[Index(flow.order[0])] = 0;
  first_used_[Index(flow.order[0])] = end_used_[Index(flow.order[0])] = 0;
  for (size_t i = 1; i < flow.order.size(); ++i) {
    const size_t v = Index(flow.order[i]);
    const auto first = Index(network_.first_in[v]), end = Index(network_.first_in[v + 1]);
    double longest = 0;
    first_used_[v] = static_cast<int32_t>(k);
    for (; k < flow.bundles.size(); ++k) {
      const size_t e = Index(flow.bundles[k]);
      if (e < first || e >= end) break;
      longest = std::max(longest, longest_[Index(network_.tail[e])] + length[e]);
    }
    end_used_[v] = static_cast<int32_t>(k);
    longest_[v] = longest;
  }
}

// Nodes without flow get the potential by which they could be reached.
void Shifter::LabelUnusedNodes(SourceFlow& flow, const std::vector<double>& length) {
  std::vector<std::pair<double, int32_t>> heap;
  const auto relax = [&](size_t u) {
    for (int32_t i = network_.first_out[u]; i < network_.first_out[u + 1]; ++i) {
      const size_t e = Index(network_.out_bundles[Index(i)]), v = Index(network_.head[e]);
      const double potential = longest_[u] + length[e];
      if (end_used_[v] > 0 || v == Index(flow.order[0]) || potential >= longest_[v]) continue;
      longest_[v] = potential;
      heap.emplace_back(potential, static_cast<int32_t>(v));
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };
  for (size_t i = 0, reached = flow.order.size(); i < reached; ++i) relax(Index(flow.order[i]));
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto [potential, node] = heap.back();
    heap.pop_back();
    if (potential > longest_[Index(node)]) continue;
    flow.order.push_back(node);
    relax(Index(node));
  }
}

// Almost sorted already, but where lengths have changed a lot. Stable: of equals the one before
// stays before.
void Shifter::SortByPotential(std::vector<int32_t>& order) {
  const size_t few = order.size() / 4, many = 10 * order.size();
  if (SortByMoves(order, few)) return;
  SortRoughly(order);
  if (SortByMoves(order, many)) return;
  std::stable_sort(order.begin(), order.end(), [this](int32_t a, int32_t b) {
    return longest_[Index(a)] < longest_[Index(b)];
  });
}

// False once more than `most` moves were made.
bool Shifter::SortByMoves(std::vector<int32_t>& order, size_t most) {
  size_t moves = 0;
  double largest = longest_[Index(order[0])];
  for (size_t i = 1; i < order.size(); ++i) {
    const int32_t node = order[i];
    const double key = longest_[Index(node)];
    if (key >= largest) {
      largest = key;
      continue;
    }
    size_t j = i;
    for (; j > 0 && longest_[Index(order[j - 1])] > key; --j) order[j] = order[j - 1];
    order[j] = node;
    moves += i - j;
    if (moves > most) return false;
  }
  return true;
}

// By shelves of equal width between the least and the largest potential, about one a node.
void Shifter::SortRoughly(std::vector<int32_t>& order) {
  double largest = 0;
  for (int32_t node : order) largest = std::max(largest, longest_[Index(node)]);
  const double shelves_per_length = static_cast<double>(order.size()) / largest;
  first_on_shelf_.assign(order.size() + 2, 0);
  shelf_.resize(order.size());
  sorted_.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    shelf_[i] = static_cast<int32_t>(longest_[Index(order[i])] * shelves_per_length);
    ++first_on_shelf_[Index(shelf_[i]) + 1];
  }
  for (size_t shelf = 1; shelf < first_on_shelf_.size(); ++shelf)
    first_on_shelf_[shelf] += first_on_shelf_[shelf - 1];
  for (size_t i = 0; i < order.size(); ++i)
    sorted_[Index(first_on_shelf_[Index(shelf_[i])]++)] = order[i];
  order.swap(sorted_);
}

void Shifter::FindShortest(const SourceFlow& flow, const std::vector<double>& length) {
  slots_.clear();
  first_slot_.assign(1, 0);
  for (size_t i = 0; i < flow.order.size(); ++i) {
    const size_t v = Index(flow.order[i]);
    place_[v] = static_cast<int32_t>(i);
    long_slot_[v] = short_slot_[v] = -1;
    if (i == 0) {
      shortest_[v] = 0;
      first_slot_.push_back(0);
      continue;
    }
    double longest = -1, shortest = std::numeric_limits<double>::infinity();
    for (int32_t k = first_used_[v]; k < end_used_[v]; ++k) {
      const int32_t e = flow.bundles[Index(k)];
      const size_t u = Index(network_.tail[Index(e)]);
      const auto slot = static_cast<int32_t>(slots_.size());
      slots_.push_back({e, static_cast<int32_t>(u), flow.flow[Index(k)]});
      const double by_longest = longest_[u] + length[Index(e)];
      if (by_longest > longest) longest = by_longest, long_slot_[v] = slot;
      const double by_shortest = shortest_[u] + length[Index(e)];
      if (by_shortest < shortest) shortest = by_shortest, short_slot_[v] = slot;
    }
    // Used ones are no shorter now than the best of them.
    const double potential =
        first_used_[v] == end_used_[v]
            ? std::nextafter(longest_[v], std::numeric_limits<double>::infinity())
            : longest_[v];
    int32_t fresh = -1;
    for (int32_t e = network_.first_in[v]; e < network_.first_in[v + 1]; ++e) {
      const size_t u = Index(network_.tail[Index(e)]);
      const double by_shortest = shortest_[u] + length[Index(e)];
      if (by_shortest < shortest && longest_[u] + length[Index(e)] < potential)
        shortest = by_shortest, fresh = e;
    }
    if (fresh >= 0) {
      short_slot_[v] = static_cast<int32_t>(slots_.size());
      slots_.push_back({fresh, network_.tail[Index(fresh)], 0.0});
    }
    shortest_[v] = shortest;
    first_slot_.push_back(static_cast<int32_t>(slots_.size()));
  }
}

double Shifter::ShiftInto(int32_t node, LinkLengths& lengths) {
  const std::vector<double>& length = lengths.length();
  // Back along both paths to where they part.
  double difference = 0, whole = 0;
  size_t a = Index(node), b = a;
  const auto walk_long = [&] {
    const Slot& slot = slots_[Index(long_slot_[a])];
    const double part = length[Index(slot.bundle)];
    difference += part;
    whole += part;
    a = Index(slot.tail);
  };
  const auto walk_short = [&] {
    const Slot& slot = slots_[Index(short_slot_[b])];
    difference -= length[Index(slot.bundle)];
    b = Index(slot.tail);
  };
  walk_long();
  walk_short();
  while (a != b) {
    if (place_[a] > place_[b]) {
      walk_long();
    } else {
      walk_short();
    }
  }
  if (difference <= kShiftTolerance * whole) return 0;
  // `most` bounds the step: no flow below 0, no length far from where its slope is known.
  double slope = 0, most = std::numeric_limits<double>::infinity();
  for (size_t v = Index(node); v != a;) {
    const Slot& slot = slots_[Index(long_slot_[v])];
    slope += lengths.SlopeDown(Index(slot.bundle));
    most = std::min({most, slot.flow, lengths.Room(Index(slot.bundle))});
    v = Index(slot.tail);
  }
  if (most <= 0) return 0;
  for (size_t v = Index(node); v != b;) {
    const Slot& slot = slots_[Index(short_slot_[v])];
    slope += lengths.SlopeUp(Index(slot.bundle));
    most = std::min(most, lengths.Room(Index(slot.bundle)));
    v = Index(slot.tail);
  }
  if (lengths.num_orbits() < network_.num_bundles()) slope = SlopeOverOrbits(node, a, lengths);
  const double shift = slope > 0 ? std::min(difference / slope, most) : most;
  for (size_t v = Index(node); v != a;) {
    Slot& slot = slots_[Index(long_slot_[v])];
    slot.flow = slot.flow - shift < kNothing ? 0 : slot.flow - shift;
    lengths.Shift(Index(slot.bundle), -shift);
    v = Index(slot.tail);
  }
  for (size_t v = Index(node); v != b;) {
    Slot& slot = slots_[Index(short_slot_[v])];
    slot.flow += shift;
    lengths.Shift(Index(slot.bundle), shift);
    v = Index(slot.tail);
  }
  return shift * difference;
}

// Bundles of one orbit change their lengths together, on both paths and several times on one.
double Shifter::SlopeOverOrbits(int32_t node, size_t meeting, const LinkLengths& lengths) {
  orbits_.clear();
  if (net_.size() < lengths.num_orbits()) net_.assign(lengths.num_orbits(), 0);
  const auto walk = [&](const std::vector<int32_t>& last_slot, int32_t sign) {
    for (size_t v = Index(node); v != meeting;) {
      const Slot& slot = slots_[Index(last_slot[v])];
      orbits_.push_back(Index(slot.bundle));
      net_[lengths.Orbit(Index(slot.bundle))] += sign;
      v = Index(slot.tail);
    }
  };
  walk(long_slot_, -1);
  walk(short_slot_, 1);
  double slope = 0;
  for (size_t e : orbits_) {
    int32_t& net = net_[lengths.Orbit(e)];
    slope += (net < 0 ? lengths.SlopeDown(e) : lengths.SlopeUp(e)) * net * net;
    net = 0;
  }
  return slope;
}

void Shifter::Store(SourceFlow& flow) {
  flow.bundles.clear();
  flow.flow.clear();
  size_t kept = 1;
  for (size_t i = 1; i < flow.order.size(); ++i) {
    const size_t before = flow.bundles.size();
    for (size_t k = Index(first_slot_[i]); k < Index(first_slot_[i + 1]); ++k) {
      const Slot& slot = slots_[k];
      if (slot.flow <= 0) continue;
      size_t at = flow.bundles.size();
      flow.bundles.push_back(slot.bundle);
      flow.flow.push_back(slot.flow);
      // What is new stands last among its in-bundles; they are to ascend.
      for (; at > before && flow.bundles[at - 1] > flow.bundles[at]; --at) {
        std::swap(flow.bundles[at - 1], flow.bundles[at]);
        std::swap(flow.flow[at - 1], flow.flow[at]);
      }
    }
    if (flow.bundles.size() > before) flow.order[kept++] = flow.order[i];
  }
  flow.order.resize(kept);
}

}  // namespace tutti
