#include "drawn_grid.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tutti {
namespace {

constexpr int64_t kMaxPositions = 1 << 22;

bool Take(std::string_view word, std::string_view& text) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// "4,4,bw=25GB/s), ..": the numbers in front.
std::vector<int32_t> LeadingNumbers(std::string_view text) {
  std::vector<int32_t> numbers;
  int64_t product = 1;
  while (!text.empty()) {
    int32_t side = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
    const auto used = static_cast<size_t>(end - text.data());
    if (error != std::errc() || side < 1 || used == text.size()) break;
    product *= side;
    if (product > kMaxPositions) return {};
    numbers.push_back(side);
    text.remove_prefix(used);
    if (!Take(",", text)) break;
  }
  return numbers;
}

std::optional<GridShape> ShapeInName(std::string_view name) {
  if (!Take("without(", name)) return std::nullopt;
  while (Take("without(", name)) {
  }
  const bool wraps = Take("torus(", name);
  if (!wraps && !Take("mesh(", name)) return std::nullopt;
  GridShape shape{LeadingNumbers(name), wraps};
  if (shape.dims.empty()) return std::nullopt;
  return shape;
}

// Names as numbers, ascending and below `positions`.
std::optional<std::vector<int32_t>> NamesAsNumbers(const Topology& topology, int64_t positions) {
  std::vector<int32_t> at;
  for (const NodeId node : topology.Nodes()) {
    const std::string& name = topology.node_name(node);
    int32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number < 0 ||
        number >= positions || (!at.empty() && number <= at.back()))
      return std::nullopt;
    at.push_back(number);
  }
  return at;
}

}  // namespace

bool AreNeighbours(const GridShape& grid, int32_t a, int32_t b) {
  int32_t apart = 0;
  for (size_t i = grid.dims.size(); i-- > 0;) {
    const int32_t side = grid.dims[i], gap = std::abs(a % side - b % side);
    if (gap != 0 && gap != 1 && !(grid.wraps && gap == side - 1)) return false;
    apart += gap == 0 ? 0 : 1;
    a /= side;
    b /= side;
  }
  return apart == 1;
}

std::optional<DrawnGrid> DrawnGridOf(const Topology& topology) {
  if (topology.grid()) return DrawnGrid{*topology.grid(), {}};
  if (topology.has_switches()) return std::nullopt;
  const std::optional<GridShape> shape = ShapeInName(topology.name());
  if (!shape) return std::nullopt;
  int64_t positions = 1;
  for (const int32_t side : shape->dims) positions *= side;
  std::optional<std::vector<int32_t>> at = NamesAsNumbers(topology, positions);
  if (!at) return std::nullopt;
  for (const LinkId link : topology.Links())
    if (!AreNeighbours(*shape, (*at)[topology.tail(link).index()],
                       (*at)[topology.head(link).index()]))
      return std::nullopt;
  return DrawnGrid{*shape, *std::move(at)};
}

}  // namespace tutti
