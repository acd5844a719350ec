#include "node_places.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>

namespace tutti {
namespace {

using Neighbours = std::vector<std::vector<int32_t>>;

Neighbours NeighboursOf(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& cables) {
  Neighbours near(static_cast<size_t>(nodes));
  for (const auto& [a, b] : cables) {
    near[static_cast<size_t>(a)].push_back(b);
    near[static_cast<size_t>(b)].push_back(a);
  }
  for (std::vector<int32_t>& list : near) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return near;
}

// Into the unit square, in the middle of the shorter side; proportions are kept.
void FitIntoSquare(NodePlaces& places) {
  const auto [left, right] = std::minmax_element(places.x.begin(), places.x.end());
  const auto [top, bottom] = std::minmax_element(places.y.begin(), places.y.end());
  const double x = (*left + *right) / 2, y = (*top + *bottom) / 2;
  const double span = std::max({*right - *left, *bottom - *top, 1e-9});
  for (double& value : places.x) value = 0.5 + (value - x) / span;
  for (double& value : places.y) value = 0.5 + (value - y) / span;
}

NodePlaces OnCircle(const std::vector<int32_t>& order) {
  NodePlaces places{NodePlaces::Kind::kCircle, std::vector<double>(order.size()),
                    std::vector<double>(order.size())};
  for (size_t i = 0; i < order.size(); ++i) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(order.size()) -
        std::numbers::pi / 2;
    places.x[static_cast<size_t>(order[i])] = 0.5 + 0.5 * std::cos(angle);
    places.y[static_cast<size_t>(order[i])] = 0.5 + 0.5 * std::sin(angle);
  }
  return places;
}

std::vector<int32_t> InOrder(int32_t nodes) {
  std::vector<int32_t> order(static_cast<size_t>(nodes));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  return order;
}

// Columns and rows take turns, the last side first: of three sides planes beside each other, each a
// little lower; of more, grids of grids.
NodePlaces OnGrid(const std::vector<int32_t>& sides, const DrawnGrid& grid, int32_t nodes) {
  NodePlaces places{NodePlaces::Kind::kGrid, {}, {}};
  constexpr double kGap = 0.6;  // between grids
  for (int32_t node = 0; node < nodes; ++node) {
    int32_t rest = grid.PlaceOf(node);
    double scale_x = 1, scale_y = 1, x = 0, y = 0;
    for (size_t i = 0; i < sides.size(); ++i) {
      const int32_t side = sides[sides.size() - 1 - i], at = rest % side;
      rest /= side;
      if (i % 2 == 0) {
        x += at * scale_x;
        if (i > 0) y += at * scale_y / 2;
        scale_x *= side + (i == 0 && sides.size() > 2 ? 1 : kGap);
      } else {
        y += at * scale_y;
        scale_y *= side + kGap;
      }
    }
    places.x.push_back(x);
    places.y.push_back(y);
  }
  FitIntoSquare(places);
  return places;
}

// The order around a ring; nothing where the network is none.
std::optional<std::vector<int32_t>> RingOrder(const Neighbours& near) {
  if (near.size() < 3) return std::nullopt;
  for (const std::vector<int32_t>& list : near)
    if (list.size() != 2) return std::nullopt;
  std::vector<int32_t> order{0};
  for (int32_t before = -1, at = 0; order.size() <= near.size();) {
    const std::vector<int32_t>& list = near[static_cast<size_t>(at)];
    const int32_t next = list[0] == before ? list[1] : list[0];
    if (next == 0) break;
    order.push_back(next);
    before = at;
    at = next;
  }
  if (order.size() != near.size()) return std::nullopt;
  return order;
}

// Hops from the ranks, by node; a node that nobody reaches counts as a rank.
std::vector<int32_t> HopsFromRanks(const Neighbours& near, int32_t ranks) {
  std::vector<int32_t> hops(near.size(), -1);
  std::vector<int32_t> front = InOrder(ranks);
  for (const int32_t rank : front) hops[static_cast<size_t>(rank)] = 0;
  for (int32_t far = 1; !front.empty(); ++far) {
    std::vector<int32_t> next;
    for (const int32_t node : front)
      for (const int32_t other : near[static_cast<size_t>(node)])
        if (hops[static_cast<size_t>(other)] < 0) {
          hops[static_cast<size_t>(other)] = far;
          next.push_back(other);
        }
    front = std::move(next);
  }
  for (int32_t& value : hops) value = std::max(value, 0);
  return hops;
}

void PlaceRow(const std::vector<int32_t>& row, std::vector<double>& x) {
  for (size_t i = 0; i < row.size(); ++i)
    x[static_cast<size_t>(row[i])] =
        (static_cast<double>(i) + 0.5) / static_cast<double>(row.size());
}

// By the mean place of the neighbours in another layer.
void SortRow(const Neighbours& near, const std::vector<int32_t>& hops, int32_t layer,
             std::vector<double>& x, std::vector<int32_t>& row) {
  std::vector<std::pair<double, int32_t>> keys;
  for (const int32_t node : row) {
    double sum = 0, count = 0;
    for (const int32_t other : near[static_cast<size_t>(node)])
      if (hops[static_cast<size_t>(other)] == layer) {
        sum += x[static_cast<size_t>(other)];
        ++count;
      }
    keys.emplace_back(count > 0 ? sum / count : x[static_cast<size_t>(node)], node);
  }
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < row.size(); ++i) row[i] = keys[i].second;
  PlaceRow(row, x);
}

NodePlaces InLayers(const Neighbours& near, int32_t ranks) {
  constexpr int kSweeps = 4;
  const std::vector<int32_t> hops = HopsFromRanks(near, ranks);
  const auto layers = static_cast<size_t>(*std::max_element(hops.begin(), hops.end())) + 1;
  std::vector<std::vector<int32_t>> rows(layers);
  for (size_t node = 0; node < hops.size(); ++node)
    rows[static_cast<size_t>(hops[node])].push_back(static_cast<int32_t>(node));
  NodePlaces places{NodePlaces::Kind::kLayers, std::vector<double>(near.size()), {}};
  for (const std::vector<int32_t>& row : rows) PlaceRow(row, places.x);
  for (int sweep = 0; sweep < kSweeps && layers > 1; ++sweep) {
    for (size_t i = 1; i < layers; ++i)
      SortRow(near, hops, static_cast<int32_t>(i) - 1, places.x, rows[i]);
    SortRow(near, hops, 1, places.x, rows[0]);
  }
  for (const int32_t far : hops)
    places.y.push_back(layers > 1 ? 1 - static_cast<double>(far) / static_cast<double>(layers - 1)
                                  : 0.5);
  return places;
}

// --- Boxes of ranks behind a switch of their own, joined by rails ------------------------------------

struct Box {
  int32_t node = 0;            // its switch
  std::vector<int32_t> ranks;  // numbered one after the other
};

// Every rank in one box, by the smallest switches; fewer where that cannot be.
std::vector<Box> BoxesOf(const Neighbours& near, int32_t ranks) {
  std::vector<Box> candidates, boxes;
  for (size_t node = static_cast<size_t>(ranks); node < near.size(); ++node) {
    Box box{static_cast<int32_t>(node), {}};
    for (const int32_t other : near[node])
      if (other < ranks) box.ranks.push_back(other);
    const auto count = static_cast<int32_t>(box.ranks.size());
    if (count >= 2 && box.ranks.back() - box.ranks.front() + 1 == count)
      candidates.push_back(std::move(box));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Box& a, const Box& b) { return a.ranks.size() < b.ranks.size(); });
  std::vector<bool> taken(static_cast<size_t>(ranks));
  for (Box& box : candidates) {
    const auto is_taken = [&taken](int32_t rank) { return taken[static_cast<size_t>(rank)]; };
    if (std::any_of(box.ranks.begin(), box.ranks.end(), is_taken)) continue;
    for (const int32_t rank : box.ranks) taken[static_cast<size_t>(rank)] = true;
    boxes.push_back(std::move(box));
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return a.ranks[0] < b.ranks[0]; });
  if (std::count(taken.begin(), taken.end(), false) > 0) boxes.clear();
  return boxes;
}

// Ranks in a row by box, the switch of each below, the other switches above as in InLayers(), of
// which at least one must join ranks.
std::optional<NodePlaces> InBoxes(const Neighbours& near, int32_t ranks) {
  const std::vector<Box> boxes = BoxesOf(near, ranks);
  std::vector<bool> owned(near.size());
  for (const Box& box : boxes) owned[static_cast<size_t>(box.node)] = true;
  bool has_rails = false;
  for (size_t node = static_cast<size_t>(ranks); node < near.size(); ++node)
    has_rails = has_rails || (!owned[node] && !near[node].empty() && near[node].front() < ranks);
  if (boxes.size() < 2 || !has_rails) return std::nullopt;
  NodePlaces places = InLayers(near, ranks);
  std::map<double, std::vector<size_t>> rows;  // of rails, by height
  for (size_t node = static_cast<size_t>(ranks); node < near.size(); ++node)
    if (!owned[node]) rows[places.y[node]].push_back(node);
  constexpr double kRailsTo = 0.45, kRanksAt = 0.72;
  double row_y = 0;
  for (auto& [y, row] : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      places.x[row[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(row.size());
      places.y[row[i]] = row_y;
    }
    row_y += kRailsTo / static_cast<double>(rows.size());
  }
  const double width = ranks + static_cast<double>(boxes.size()) - 1;  // a gap between boxes
  double left = 0;
  for (const Box& box : boxes) {
    for (size_t i = 0; i < box.ranks.size(); ++i) {
      places.x[static_cast<size_t>(box.ranks[i])] = (left + static_cast<double>(i) + 0.5) / width;
      places.y[static_cast<size_t>(box.ranks[i])] = kRanksAt;
    }
    const auto count = static_cast<double>(box.ranks.size());
    places.x[static_cast<size_t>(box.node)] = (left + count / 2) / width;
    places.y[static_cast<size_t>(box.node)] = 1;
    left += count + 1;
  }
  return places;
}

// One round of forces; `reach`: how far a node moves at most, `apart`: a cable's natural length.
void Push(const std::vector<std::pair<int32_t, int32_t>>& cables, double apart, double reach,
          NodePlaces& places) {
  const size_t nodes = places.x.size();
  std::vector<double> dx(nodes), dy(nodes);
  const auto act = [&](size_t a, size_t b, double strength) {
    const double x = (places.x[a] - places.x[b]) * strength;
    const double y = (places.y[a] - places.y[b]) * strength;
    dx[a] += x;
    dy[a] += y;
    dx[b] -= x;
    dy[b] -= y;
  };
  const auto square = [&](size_t a, size_t b) {
    const double x = places.x[a] - places.x[b], y = places.y[a] - places.y[b];
    return x * x + y * y + 1e-9;
  };
  for (size_t a = 0; a < nodes; ++a)
    for (size_t b = a + 1; b < nodes; ++b) act(a, b, apart * apart / square(a, b));
  for (const auto& [tail, head] : cables) {
    const auto a = static_cast<size_t>(tail), b = static_cast<size_t>(head);
    act(a, b, -std::sqrt(square(a, b)) / apart);
  }
  for (size_t node = 0; node < nodes; ++node) {
    const double length = std::sqrt(dx[node] * dx[node] + dy[node] * dy[node]) + 1e-12;
    const double part = std::min(length, reach) / length;
    places.x[node] += dx[node] * part;
    places.y[node] += dy[node] * part;
  }
}

NodePlaces ByForces(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& cables) {
  constexpr double kWork = 2e8, kMaxRounds = 400, kMinRounds = 30;
  constexpr double kGolden = 0.6180339887498949, kPlastic = 0.7548776662466927;
  NodePlaces places;
  for (int32_t node = 0; node < nodes; ++node) {  // spread evenly, with no structure of its own
    const double x = node * kGolden, y = node * kPlastic;
    places.x.push_back(x - std::floor(x));
    places.y.push_back(y - std::floor(y));
  }
  const double count = nodes;
  const int rounds =
      static_cast<int>(std::max(kMinRounds, std::min(kMaxRounds, kWork / (count * count))));
  const double apart = 1 / std::sqrt(count);
  for (int round = 0; round < rounds; ++round)
    Push(cables, apart, 0.12 * (1 - static_cast<double>(round) / rounds) + 0.001, places);
  FitIntoSquare(places);
  return places;
}

}  // namespace

NodePlaces PlaceNodes(int32_t nodes, int32_t ranks, const std::optional<DrawnGrid>& grid,
                      const std::vector<std::pair<int32_t, int32_t>>& cables) {
  constexpr size_t kMaxDense = 16;
  if (nodes == 1) return {NodePlaces::Kind::kGrid, {0.5}, {0.5}};
  if (grid) {
    std::vector<int32_t> sides = grid->shape.dims;
    std::erase(sides, 1);
    int64_t product = 1;
    for (const int32_t side : sides) product *= side;
    const bool whole = product == nodes;
    if (whole && sides.size() == 1 && grid->shape.wraps) return OnCircle(InOrder(nodes));
    if (whole || !grid->at.empty()) return OnGrid(sides, *grid, nodes);
  }
  const Neighbours near = NeighboursOf(nodes, cables);
  if (ranks < nodes) {
    if (std::optional<NodePlaces> boxes = InBoxes(near, ranks)) return *std::move(boxes);
    return InLayers(near, ranks);
  }
  if (const auto order = RingOrder(near)) return OnCircle(*order);
  size_t pairs = 0;
  for (const std::vector<int32_t>& list : near) pairs += list.size();
  if (near.size() <= kMaxDense && 5 * pairs >= 2 * near.size() * (near.size() - 1))
    return OnCircle(InOrder(nodes));
  return ByForces(nodes, cables);
}

}  // namespace tutti
