// distreg(name): the distance-regular graphs of degree 4 in [direct-connect] Table 8, each made
// from its definition and none from a stored list of links.
//
// Model   Graphs of subsets (Johnson, odd, doubled odd), of finite geometries (points and lines,
//         joined where a point lies on a line) and line graphs of such. Ranks are numbered in the
//         order of the definition: subsets by their bits; points before lines, points
//         lexicographically by coordinates, lines by their two smallest points; links of a graph by
//         their smaller, then larger end.
// Reference  Brouwer, Cohen, Neumaier, "Distance-Regular Graphs"; the split Cayley hexagon H(q) by
//         Tits's equations, as in Van Maldeghem, "Generalized Polygons", 2.4.13.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "families/family.h"
#include "families/finite_field.h"
#include "tutti/base/check.h"
#include "tutti/graph/distance.h"

namespace tutti::topo {
namespace {

// --- Graphs without directions ------------------------------------------------------------------

struct Graph {
  int32_t size = 0;
  std::vector<std::pair<int32_t, int32_t>> joined = {};  // smaller end first, ascending
};

// are_joined(a, b) is asked for a < b.
template <class AreJoined>
Graph GraphOf(int32_t size, const AreJoined& are_joined) {
  Graph graph{.size = size};
  for (int32_t a = 0; a < size; ++a)
    for (int32_t b = a + 1; b < size; ++b)
      if (are_joined(a, b)) graph.joined.emplace_back(a, b);
  return graph;
}

// The pairs at this distance in `graph`.
Graph DistanceGraph(const Graph& graph, int32_t distance) {
  std::vector<Digraph::Arc> arcs;
  for (const auto& pair : graph.joined) {
    arcs.emplace_back(NodeId{pair.first}, NodeId{pair.second});
    arcs.emplace_back(NodeId{pair.second}, NodeId{pair.first});
  }
  const Digraph digraph(graph.size, arcs);
  std::vector<std::vector<int32_t>> hops;
  for (NodeId node : digraph.Nodes()) hops.push_back(DistancesFrom(digraph, node));
  return GraphOf(graph.size, [&](int32_t a, int32_t b) {
    return hops[static_cast<size_t>(a)][static_cast<size_t>(b)] == distance;
  });
}

// The undirected line graph, which is not the line digraph that line(G) is.
Graph LineGraph(const Graph& graph) {
  const auto& ends = graph.joined;
  return GraphOf(static_cast<int32_t>(ends.size()), [&ends](int32_t a, int32_t b) {
    const auto& one = ends[static_cast<size_t>(a)];
    const auto& other = ends[static_cast<size_t>(b)];
    return one.first == other.first || one.first == other.second || one.second == other.first ||
           one.second == other.second;
  });
}

// --- Subsets ------------------------------------------------------------------------------------

// The subsets of `size` elements of {0, .., of - 1}, as bits, ascending.
std::vector<uint32_t> Subsets(int32_t of, int32_t size) {
  std::vector<uint32_t> subsets;
  for (uint32_t bits = 0; bits < uint32_t{1} << of; ++bits)
    if (std::popcount(bits) == size) subsets.push_back(bits);
  return subsets;
}

// Subsets joined where they have exactly `common` elements in common.
Graph SubsetGraph(const std::vector<uint32_t>& subsets, int32_t common) {
  return GraphOf(static_cast<int32_t>(subsets.size()), [&](int32_t a, int32_t b) {
    return std::popcount(subsets[static_cast<size_t>(a)] & subsets[static_cast<size_t>(b)]) ==
           common;
  });
}

// --- Geometries ---------------------------------------------------------------------------------

struct Geometry {
  int32_t num_points = 0;
  std::vector<std::vector<int32_t>> lines = {};  // the points of each, ascending
};

// The lines of the projective space through each pair of `points` that are_collinear(x, y) names.
// Such a line lies within `points`, and any two points of it name it.
template <class AreCollinear>
Geometry GeometryOf(const FiniteField& field, const std::vector<Coordinates>& points,
                    const AreCollinear& are_collinear) {
  std::map<Coordinates, int32_t> number;
  for (const Coordinates& point : points)
    number.emplace(point, static_cast<int32_t>(number.size()));
  Geometry geometry{
      .num_points = static_cast<int32_t>(points.size()),
  };
  for (size_t a = 0; a < points.size(); ++a)
    for (size_t b = a + 1; b < points.size(); ++b) {
      if (!are_collinear(points[a], points[b])) continue;
      std::vector<int32_t> line{static_cast<int32_t>(a)};
      for (int32_t scale = 0; scale < field.size(); ++scale) {
        Coordinates sum = points[b];
        for (size_t i = 0; i < sum.size(); ++i)
          sum[i] = field.Add(sum[i], field.Multiply(scale, points[a][i]));
        const auto found = number.find(Normalized(field, std::move(sum)));
        TUTTI_CHECK(found != number.end());
        line.push_back(found->second);
      }
      std::sort(line.begin(), line.end());
      const bool is_first_pair =
          line[0] == static_cast<int32_t>(a) && line[1] == static_cast<int32_t>(b);
      if (is_first_pair) geometry.lines.push_back(std::move(line));
    }
  return geometry;
}

Graph IncidenceGraph(const Geometry& geometry) {
  Graph graph{.size = geometry.num_points + static_cast<int32_t>(geometry.lines.size())};
  for (size_t line = 0; line < geometry.lines.size(); ++line)
    for (int32_t point : geometry.lines[line])
      graph.joined.emplace_back(point, geometry.num_points + static_cast<int32_t>(line));
  std::sort(graph.joined.begin(), graph.joined.end());
  return graph;
}

// PG(2,q): the points and lines of the projective plane.
Geometry ProjectivePlane(int32_t q) {
  const FiniteField field(q);
  return GeometryOf(field, ProjectivePoints(field, 3),
                    [](const Coordinates&, const Coordinates&) { return true; });
}

// x_i y_j - x_j y_i: a Grassmann coordinate of the line through x and y.
int32_t Minor(const FiniteField& field, const Coordinates& x, const Coordinates& y, size_t i,
              size_t j) {
  return field.Subtract(field.Multiply(x[i], y[j]), field.Multiply(x[j], y[i]));
}

// The generalized quadrangle W(q), a GQ(q,q): all points of PG(3,q) and the lines on which the
// symplectic form x0 y1 - x1 y0 + x2 y3 - x3 y2 vanishes.
Geometry SymplecticQuadrangle(int32_t q) {
  const FiniteField field(q);
  return GeometryOf(field, ProjectivePoints(field, 4),
                    [&field](const Coordinates& x, const Coordinates& y) {
                      return field.Add(Minor(field, x, y, 0, 1), Minor(field, x, y, 2, 3)) == 0;
                    });
}

// The split Cayley hexagon H(q), a GH(q,q): all points of the quadric
// x0 x4 + x1 x5 + x2 x6 = x3^2 in PG(6,q) and those of its lines whose Grassmann coordinates
// satisfy p12 = p34, p54 = p32, p20 = p35, p65 = p30, p01 = p36, p46 = p31.
Geometry SplitCayleyHexagon(int32_t q) {
  const FiniteField field(q);
  // x0 y4 + x1 y5 + x2 y6 - x3 y3, which at x = y is the quadratic form.
  const auto half = [&field](const Coordinates& x, const Coordinates& y) {
    int32_t sum = 0;
    for (size_t i = 0; i < 3; ++i) sum = field.Add(sum, field.Multiply(x[i], y[i + 4]));
    return field.Subtract(sum, field.Multiply(x[3], y[3]));
  };
  std::vector<Coordinates> points;
  for (Coordinates& point : ProjectivePoints(field, 7))
    if (half(point, point) == 0) points.push_back(std::move(point));
  constexpr std::array<std::array<size_t, 4>, 6> kEquations{
      {{1, 2, 3, 4}, {5, 4, 3, 2}, {2, 0, 3, 5}, {6, 5, 3, 0}, {0, 1, 3, 6}, {4, 6, 3, 1}}};
  return GeometryOf(field, points, [&](const Coordinates& x, const Coordinates& y) {
    // Two points of the quadric are on a line of it where the polar form vanishes.
    if (field.Add(half(x, y), half(y, x)) != 0) return false;
    return std::all_of(kEquations.begin(), kEquations.end(), [&](const auto& equation) {
      return Minor(field, x, y, equation[0], equation[1]) ==
             Minor(field, x, y, equation[2], equation[3]);
    });
  });
}

// --- The graphs of Table 8 ----------------------------------------------------------------------

Graph Octahedron() { return SubsetGraph(Subsets(4, 2), 1); }

// Elements of GF(9), joined where they differ by a square other than 0. -1 is a square, so that the
// order of the two does not matter.
Graph Paley9() {
  const FiniteField field(9);
  std::vector<char> is_square(9, 0);
  for (int32_t root = 1; root < 9; ++root)
    is_square[static_cast<size_t>(field.Multiply(root, root))] = 1;
  return GraphOf(9, [&](int32_t a, int32_t b) {
    return is_square[static_cast<size_t>(field.Subtract(b, a))] != 0;
  });
}

Graph K55Minus() {
  return GraphOf(10, [](int32_t a, int32_t b) { return a < 5 && b >= 5 && b - 5 != a; });
}

Graph Heawood() { return IncidenceGraph(ProjectivePlane(2)); }
Graph Heawood3() { return DistanceGraph(Heawood(), 3); }
Graph LinePetersen() { return LineGraph(SubsetGraph(Subsets(5, 2), 0)); }

Graph Cube4() {
  return GraphOf(16, [](int32_t a, int32_t b) {
    return std::popcount(static_cast<uint32_t>(a) ^ static_cast<uint32_t>(b)) == 1;
  });
}

Graph LineHeawood() { return LineGraph(Heawood()); }
Graph Pg23() { return IncidenceGraph(ProjectivePlane(3)); }

// The affine plane over GF(4): 16 points (x, y) and the 16 lines y = m x + c. The parallel class
// left out is that of the lines x = c.
Graph Ag24Minus() {
  constexpr int32_t kOrder = 4, kPoints = 16;
  const FiniteField field(kOrder);
  return GraphOf(2 * kPoints, [&field](int32_t a, int32_t b) {
    if (a >= kPoints || b < kPoints) return false;
    const int32_t x = a / kOrder, y = a % kOrder;
    const int32_t slope = (b - kPoints) / kOrder, at_zero = b % kOrder;
    return y == field.Add(field.Multiply(slope, x), at_zero);
  });
}

Graph Odd4() { return SubsetGraph(Subsets(7, 3), 0); }
Graph LineTutte8() { return LineGraph(IncidenceGraph(SymplecticQuadrangle(2))); }

// Subsets of 3 and of 4 out of 7, joined where one contains the other.
Graph DoubledOdd4() {
  std::vector<uint32_t> subsets = Subsets(7, 3);
  const std::vector<uint32_t> larger = Subsets(7, 4);
  subsets.insert(subsets.end(), larger.begin(), larger.end());
  return GraphOf(static_cast<int32_t>(subsets.size()), [&subsets](int32_t a, int32_t b) {
    const uint32_t smaller = subsets[static_cast<size_t>(a)];
    return (smaller & subsets[static_cast<size_t>(b)]) == smaller;
  });
}

Graph Gq33() { return IncidenceGraph(SymplecticQuadrangle(3)); }
Graph LineTutte12() { return LineGraph(IncidenceGraph(SplitCayleyHexagon(2))); }
Graph Gh33() { return IncidenceGraph(SplitCayleyHexagon(3)); }

constexpr int64_t kDegree = 4;

struct Definition {
  FamilyMember member;
  int64_t ranks;  // known beforehand, so that the size is checked before anything is made
  Graph (*make)();
};

// In the order of Table 8.
const std::vector<Definition>& Definitions() {
  // clang-format off
  static const std::vector<Definition> definitions{
      {{"octahedron", "6 ranks: Johnson graph J(4,2), pairs out of 4 that share one"}, 6, Octahedron},
      {{"paley9", "9 ranks: elements of GF(9) whose difference is a square; H(2,3)"}, 9, Paley9},
      {{"k55minus", "10 ranks: K(5,5) minus a perfect matching"}, 10, K55Minus},
      {{"heawood3", "14 ranks: distance-3 graph of the Heawood graph"}, 14, Heawood3},
      {{"line_petersen", "15 ranks: line graph of the Petersen graph"}, 15, LinePetersen},
      {{"cube4", "16 ranks: 4-cube, H(4,2)"}, 16, Cube4},
      {{"line_heawood", "21 ranks: line graph of the Heawood graph"}, 21, LineHeawood},
      {{"pg23", "26 ranks: points and lines of the projective plane PG(2,3)"}, 26, Pg23},
      {{"ag24minus", "32 ranks: points and lines of the affine plane AG(2,4) minus a parallel class"}, 32, Ag24Minus},
      {{"odd4", "35 ranks: odd graph O4, disjoint triples out of 7"}, 35, Odd4},
      {{"line_tutte8", "45 ranks: line graph of Tutte's 8-cage, the flags of GQ(2,2)"}, 45, LineTutte8},
      {{"doubled_odd4", "70 ranks: doubled odd graph D(O4), triples and quadruples out of 7"}, 70, DoubledOdd4},
      {{"gq33", "80 ranks: points and lines of the generalized quadrangle GQ(3,3)"}, 80, Gq33},
      {{"line_tutte12", "189 ranks: line graph of Tutte's 12-cage, the flags of GH(2,2)"}, 189, LineTutte12},
      {{"gh33", "728 ranks: points and lines of the generalized hexagon GH(3,3)"}, 728, Gh33},
  };
  // clang-format on
  return definitions;
}

}  // namespace

std::span<const FamilyMember> DistregMembers() {
  static const std::vector<FamilyMember> members = [] {
    std::vector<FamilyMember> all;
    for (const Definition& definition : Definitions()) all.push_back(definition.member);
    return all;
  }();
  return members;
}

Result<Draft> BuildDistreg(const FamilyCall& call) {
  const Definition& definition = Definitions()[call.member];
  Result<Draft> draft = call.Start(definition.ranks, 0, kDegree * definition.ranks, 1);
  if (!draft) return draft;
  const Graph graph = definition.make();
  TUTTI_CHECK(graph.size == definition.ranks);
  for (const auto& pair : graph.joined)
    draft->AddCable(pair.first, pair.second, call.links.Link(0));
  return draft;
}

}  // namespace tutti::topo
