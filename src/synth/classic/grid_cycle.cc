// Hamiltonian cycles of grids in closed form.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "classic/rings.h"

namespace tutti::classic {
namespace {

using Order = std::vector<int32_t>;  // ranks, or positions in one factor

// Boustrophedon over all cells: consecutive cells are neighbours, last and first need not be.
Order Snake(const std::vector<int32_t>& dims) {
  Order order{0};
  for (int32_t length : dims) {
    Order longer;
    for (size_t i = 0; i < order.size(); ++i)
      for (int32_t k = 0; k < length; ++k)
        longer.push_back(order[i] * length + (i % 2 == 0 ? k : length - 1 - k));
    order = std::move(longer);
  }
  return order;
}

struct Cell {
  int32_t row, column;
};

// Lines of `rows` x `columns`, both >= 2: along each line but its first column, back up that one.
// rows is even.
std::vector<Cell> MeshCycle(int32_t rows, int32_t columns) {
  std::vector<Cell> cells;
  for (int32_t row = 0; row < rows; ++row)
    for (int32_t k = 1; k < columns; ++k) cells.push_back({row, row % 2 == 0 ? k : columns - k});
  for (int32_t row = rows - 1; row >= 0; --row) cells.push_back({row, 0});
  return cells;
}

// A product of two rings: each line is gone round all but one link, then one step to the next line.
// Going right `rights` times and left otherwise, the whole closes when the shifts add up to a
// multiple of the columns.
std::vector<Cell> TorusCycle(int32_t rows, int32_t columns, int32_t rights) {
  std::vector<Cell> cells;
  int32_t column = 0;
  for (int32_t row = 0; row < rows; ++row) {
    const int32_t way = row < rights ? 1 : columns - 1;
    for (int32_t k = 0; k < columns; ++k) {
      cells.push_back({row, column});
      if (k + 1 < columns) column = (column + way) % columns;
    }
  }
  return cells;
}

// How many lines go right so that TorusCycle closes; prefers all, whose complement is often a ring
// too.
std::optional<int32_t> RightsThatClose(int32_t rows, int32_t columns) {
  for (int32_t rights = rows; rights >= 0; --rights)
    if ((2 * rights - rows) % columns == 0) return rights;
  return std::nullopt;
}

// One dimension joined to an order of the cells of the others.
struct Joined {
  const std::vector<int32_t>& dims;
  size_t axis;

  int32_t RankOf(int32_t at, int32_t other) const {
    int32_t below = 1;
    for (size_t d = axis + 1; d < dims.size(); ++d) below *= dims[d];
    return (other / below * dims[axis] + at) * below + other % below;
  }
};

std::vector<int32_t> Without(const std::vector<int32_t>& dims, size_t axis) {
  std::vector<int32_t> rest = dims;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
  return rest;
}

Order MeshOrder(const std::vector<int32_t>& dims) {
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] % 2 != 0) continue;
    const Joined joined{dims, axis};
    const Order snake = Snake(Without(dims, axis));
    if (snake.size() < 2) return dims[axis] == 2 ? Order{0, 1} : Order{};
    Order order;
    for (const Cell& cell : MeshCycle(dims[axis], static_cast<int32_t>(snake.size())))
      order.push_back(joined.RankOf(cell.row, snake[static_cast<size_t>(cell.column)]));
    return order;
  }
  return {};
}

Order TorusOrder(const std::vector<int32_t>& dims) {
  if (dims.size() == 1) return Snake(dims);
  const Joined joined{dims, 0};
  const Order other = TorusOrder(Without(dims, 0));
  const auto rows = dims[0];
  const auto columns = static_cast<int32_t>(other.size());
  Order order;
  if (const auto rights = RightsThatClose(rows, columns)) {
    for (const Cell& cell : TorusCycle(rows, columns, *rights))
      order.push_back(joined.RankOf(cell.row, other[static_cast<size_t>(cell.column)]));
  } else if (const auto turned = RightsThatClose(columns, rows)) {
    for (const Cell& cell : TorusCycle(columns, rows, *turned))
      order.push_back(joined.RankOf(cell.column, other[static_cast<size_t>(cell.row)]));
  }
  return order;
}

std::vector<NodeId> ToNodes(const Order& order) {
  std::vector<NodeId> nodes;
  for (int32_t rank : order) nodes.push_back(NodeId{rank});
  return nodes;
}

}  // namespace

std::vector<NodeId> GridCycle(const GridShape& grid) {
  std::vector<int32_t> dims;
  for (int32_t length : grid.dims)
    if (length > 1) dims.push_back(length);
  if (dims.empty()) return {};
  return ToNodes(grid.wraps ? TorusOrder(dims) : MeshOrder(dims));
}

std::vector<NodeId> FallbackOrder(const Topology& topology) {
  std::vector<NodeId> order;
  if (topology.grid()) return ToNodes(Snake(topology.grid()->dims));
  for (NodeId rank : topology.Ranks()) order.push_back(rank);
  return order;
}

}  // namespace tutti::classic
