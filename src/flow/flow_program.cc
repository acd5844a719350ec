#include "flow_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tutti/base/index.h"

namespace tutti {
namespace {

// Whole numbers below are doubles.
constexpr WideInteger kExactDouble = WideInteger{1} << 53;
// What the simplex method may leave; the exact rounds see the rest.
constexpr double kTolerance = 1e-9;
constexpr int32_t kMaxExactRounds = 30;

double MaxOf(const std::vector<WideInteger>& values) {
  WideInteger most = 1;
  for (const WideInteger value : values) most = std::max(most, value);
  return static_cast<double>(most);
}

Rational CommonDenominator(const std::vector<Rational>& values) {
  Rational common = 1;
  for (const Rational& value : values)
    if (const std::string left = (common * value).DenString(); left != "1")
      common *= *Rational::Parse(left);
  return common;
}

}  // namespace

ExactFlowProgram::ExactFlowProgram(const FlowNetwork& network, const DemandTable& demand,
                                   const NetworkGroup& group, const std::vector<SourceFlow>& near)
    : network_(network), demand_(demand), group_(group), program_(LinearProgram::Goal::kMinimize) {
  fault_ = MakeRows(near);
}

// Into each node the bundle that carries most of its flow; the nodes that no flow reaches, by any
// way that does.
ExactFlowProgram::Tree ExactFlowProgram::Plant(int32_t source, const SourceFlow& near) const {
  const size_t nodes = Index(network_.num_nodes);
  Tree tree;
  tree.source = source;
  tree.alike = static_cast<int32_t>(
      std::count(group_.representative.begin(), group_.representative.end(), source));
  tree.in.assign(nodes, -1);
  tree.depth.assign(nodes, -1);
  tree.demand.assign(nodes, 0);
  tree.row.assign(nodes, -1);
  tree.has_chord.assign(network_.num_bundles(), false);
  std::vector<double> most(nodes, 0);
  for (size_t k = 0; k < near.bundles.size(); ++k) {
    const size_t head = Index(network_.head[Index(near.bundles[k])]);
    if (near.flow[k] <= most[head]) continue;
    most[head] = near.flow[k];
    tree.in[head] = near.bundles[k];
  }
  tree.depth[Index(source)] = 0;
  tree.order.push_back(source);
  for (const int32_t node : near.order) {
    if (node == source) continue;
    tree.depth[Index(node)] = tree.depth[Index(network_.tail[Index(tree.in[Index(node)])])] + 1;
    tree.order.push_back(node);
  }
  for (size_t i = 0; i < tree.order.size(); ++i) {
    const size_t u = Index(tree.order[i]);
    for (int32_t k = network_.first_out[u]; k < network_.first_out[u + 1]; ++k) {
      const int32_t bundle = network_.out_bundles[Index(k)];
      const int32_t head = network_.head[Index(bundle)];
      if (tree.depth[Index(head)] >= 0) continue;
      tree.depth[Index(head)] = tree.depth[u] + 1;
      tree.in[Index(head)] = bundle;
      tree.order.push_back(head);
    }
  }
  for (size_t i = tree.order.size(); i-- > 1;) {
    const size_t v = Index(tree.order[i]);
    tree.demand[v] += demand_(source, tree.order[i]);
    tree.demand[Index(network_.tail[Index(tree.in[v])])] += tree.demand[v];
  }
  return tree;
}

Status ExactFlowProgram::MakeRows(const std::vector<SourceFlow>& near) {
  const size_t orbits = group_.orbit_size.size();
  if (orbits > static_cast<size_t>(LinearProgram::kMaxExactRows))
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("it needs a linear program of at least {} rows, of {} sources with "
                    "{} links each; {} rows are the most",
                    orbits, network_.num_ranks, network_.num_bundles(),
                    LinearProgram::kMaxExactRows));
  int64_t unit = 0;
  for (const LinkBundle& bundle : network_.bundles) unit = std::gcd(unit, bundle.bandwidth);
  unit = std::max<int64_t>(unit, 1);  // without links
  std::vector<WideInteger> room(orbits, 0), load(orbits, 0);
  for (size_t e = 0; e < network_.num_bundles(); ++e)
    room[Index(group_.bundle_orbit[e])] += network_.bundles[e].bandwidth / unit;
  for (int32_t rank = 0; rank < network_.num_ranks; ++rank) {
    if (group_.representative[Index(rank)] != rank) continue;
    trees_.push_back(Plant(rank, near[Index(rank)]));
    const Tree& tree = trees_.back();
    for (const int32_t node : tree.order)
      if (node != rank)
        load[Orbit(tree.in[Index(node)])] += WideInteger{tree.demand[Index(node)]} * tree.alike;
  }
  for (size_t o = 0; o < orbits; ++o)
    if (load[o] >= kExactDouble || room[o] >= kExactDouble)
      return MakeError(ErrorCode::kResourceExhausted,
                       "demands that one link may carry, and bandwidths in units of their greatest "
                       "common divisor, must add up to less than 2^53");
  // Numbers of about 1 for the library, by powers of two, which leave them what they are.
  demand_exponent_ = std::ilogb(MaxOf(load));
  const int room_exponent = std::ilogb(MaxOf(room));
  const int32_t strain =
      program_.AddColumn(0, LinearProgram::kNoLimit, static_cast<double>(orbits));
  for (size_t o = 0; o < orbits; ++o)
    program_.AddRow(-LinearProgram::kNoLimit,
                    -std::ldexp(static_cast<double>(load[o]), -demand_exponent_),
                    {{strain, -std::ldexp(static_cast<double>(room[o]), -room_exponent)}});
  for (Tree& tree : trees_)
    for (const int32_t bundle : near[Index(tree.source)].bundles) AddChord(tree, bundle);
  return {};
}

template <class Visit>
void ExactFlowProgram::VisitCycle(const Tree& tree, int32_t bundle, const Visit& visit) const {
  int32_t more = network_.tail[Index(bundle)], less = network_.head[Index(bundle)];
  while (more != less) {
    const bool adds = tree.depth[Index(more)] > tree.depth[Index(less)];
    int32_t& node = adds ? more : less;
    visit(node, adds ? 1 : -1);
    node = network_.tail[Index(tree.in[Index(node)])];
  }
}

void ExactFlowProgram::AddChord(Tree& tree, int32_t bundle) {
  const int32_t head = network_.head[Index(bundle)], tail = network_.tail[Index(bundle)];
  if (tree.has_chord[Index(bundle)] || head == tree.source || tree.in[Index(head)] == bundle ||
      tree.depth[Index(tail)] < 0)
    return;
  const auto row_of = [&](int32_t e) { return static_cast<int32_t>(Orbit(e)); };
  const double alike = tree.alike;
  std::vector<LinearProgram::RowEntry> entries = {{row_of(bundle), alike}};
  VisitCycle(tree, bundle, [&](int32_t node, int sign) {
    entries.push_back({row_of(tree.in[Index(node)]), sign * alike});
    if (tree.row[Index(node)] >= 0)
      entries.push_back({tree.row[Index(node)], static_cast<double>(sign)});
  });
  tree.has_chord[Index(bundle)] = true;
  tree.chords.push_back({bundle, program_.AddColumn(0, LinearProgram::kNoLimit, 0, entries)});
}

void ExactFlowProgram::AddRow(Tree& tree, int32_t node) {
  std::vector<LinearProgram::Entry> entries;
  for (const Chord& chord : tree.chords)
    VisitCycle(tree, chord.bundle, [&](int32_t at, int sign) {
      if (at == node) entries.push_back({chord.column, static_cast<double>(sign)});
    });
  const double carried = static_cast<double>(tree.demand[Index(node)]);
  tree.row[Index(node)] =
      program_.AddRow(-std::ldexp(carried, -demand_exponent_), LinearProgram::kNoLimit, entries);
}

// By node, the bundle over which it would come nearest.
template <class Number>
bool ExactFlowProgram::AddColumnsThatPay(const std::vector<Number>& prices,
                                         const Number& tolerance) {
  bool any = false;
  for (Tree& tree : trees_) {
    const Number alike(tree.alike);
    const auto length = [&](int32_t bundle) {  // prices of rows with an upper bound are <= 0
      return Number(0) - alike * prices[Orbit(bundle)];
    };
    std::vector<Number> distance(tree.depth.size(), Number(0));
    for (const int32_t node : tree.order) {
      if (node == tree.source) continue;
      const size_t v = Index(node);
      distance[v] = distance[Index(network_.tail[Index(tree.in[v])])] + length(tree.in[v]);
      if (tree.row[v] >= 0) distance[v] -= prices[Index(tree.row[v])];
    }
    for (const int32_t node : tree.order) {
      if (node == tree.source) continue;
      const size_t v = Index(node);
      int32_t best = -1;
      Number least = distance[v] - tolerance * alike;
      for (int32_t e = network_.first_in[v]; e < network_.first_in[v + 1]; ++e) {
        const size_t tail = Index(network_.tail[Index(e)]);
        if (tree.depth[tail] < 0 || tree.has_chord[Index(e)]) continue;
        Number over = distance[tail] + length(e);
        if (over >= least) continue;
        least = std::move(over);
        best = e;
      }
      if (best < 0) continue;
      AddChord(tree, best);
      any = true;
    }
  }
  return any;
}

// Into each node, over its tree bundle, in demands over `scale`.
template <class Number>
std::vector<Number> ExactFlowProgram::TreeFlow(const Tree& tree, const std::vector<Number>& columns,
                                               const Number& scale) const {
  std::vector<Number> flow;
  for (const int64_t carried : tree.demand) flow.push_back(static_cast<Number>(carried) * scale);
  for (const auto& [bundle, column] : tree.chords) {
    const Number& moved = columns[Index(column)];
    if (moved == Number(0)) continue;
    VisitCycle(tree, bundle, [&](int32_t node, int sign) {
      if (sign > 0)
        flow[Index(node)] += moved;
      else
        flow[Index(node)] -= moved;
    });
  }
  return flow;
}

template <class Number>
bool ExactFlowProgram::AddRowsThatBreak(const std::vector<Number>& columns, const Number& scale,
                                        const Number& tolerance) {
  bool any = false;
  for (Tree& tree : trees_) {
    const std::vector<Number> flow = TreeFlow(tree, columns, scale);
    for (const int32_t node : tree.order) {
      if (node == tree.source || tree.row[Index(node)] >= 0) continue;
      if (flow[Index(node)] >= Number(0) - tolerance) continue;
      AddRow(tree, node);
      any = true;
    }
  }
  return any;
}

// In doubles, until nothing pays or breaks that they show.
Status ExactFlowProgram::Settle(const Deadline& deadline) {
  const double scale = std::ldexp(1.0, -demand_exponent_);
  for (;;) {
    if (deadline.HasPassed())
      return MakeError(ErrorCode::kResourceExhausted,
                       fmt::format("the time limit was reached at a linear program of {} rows and "
                                   "{} columns, which may still grow",
                                   program_.num_rows(), program_.num_columns()));
    const Result<LpSolution> solution = program_.Solve(LinearProgram::Check::kAsFound);
    if (!solution) return tl::unexpected(solution.error());
    if (AddRowsThatBreak(solution->columns, scale, kTolerance)) continue;
    if (!AddColumnsThatPay(solution->row_prices, kTolerance)) return {};
  }
}

Result<bool> ExactFlowProgram::Extend(const ExactLpSolution& solution) {
  const Rational scale = Rational(1) / Rational::FromDouble(std::ldexp(1.0, demand_exponent_));
  const bool broken = AddRowsThatBreak(solution.columns, scale, Rational(0));
  std::vector<Rational> prices = solution.row_prices;
  const Rational common = CommonDenominator(prices);
  for (Rational& price : prices) price *= common;
  return AddColumnsThatPay(prices, Rational(0)) || broken;
}

Result<ExactFlow> ExactFlowProgram::Solve(const Deadline& deadline) {
  if (!fault_) return tl::unexpected(fault_.error());
  for (int32_t round = 0; round < kMaxExactRounds; ++round) {
    if (const Status settled = Settle(deadline); !settled) return tl::unexpected(settled.error());
    const Result<ExactLpSolution> solution = program_.SolveExactly();
    if (!solution) return tl::unexpected(solution.error());
    const Result<bool> more = Extend(*solution);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return FlowOf(*solution);
  }
  return MakeError(ErrorCode::kResourceExhausted,
                   fmt::format("a linear program of {} rows and {} columns still grew after {} "
                               "exact solutions",
                               program_.num_rows(), program_.num_columns(), kMaxExactRounds));
}

ExactFlow ExactFlowProgram::FlowOf(const ExactLpSolution& solution) const {
  ExactFlow exact;
  // Columns in demands, then in whole units.
  const Rational unit = Rational::FromDouble(std::ldexp(1.0, demand_exponent_));
  std::vector<Rational> columns = solution.columns;
  columns[0] = 0;  // the strain
  for (Rational& column : columns)
    if (!column.is_zero()) column *= unit;
  exact.units_per_demand = CommonDenominator(columns);
  for (Rational& column : columns)
    if (!column.is_zero()) column *= exact.units_per_demand;
  for (const Tree& tree : trees_) {
    ExactSourceFlow flow{tree.source, tree.alike, std::vector<Rational>(network_.num_bundles())};
    const std::vector<Rational> into = TreeFlow(tree, columns, exact.units_per_demand);
    for (const int32_t node : tree.order)
      if (node != tree.source) flow.units[Index(tree.in[Index(node)])] = into[Index(node)];
    for (const auto& [bundle, column] : tree.chords)
      flow.units[Index(bundle)] = columns[Index(column)];
    exact.flows.push_back(std::move(flow));
  }
  const auto orbits = static_cast<std::ptrdiff_t>(group_.orbit_size.size());
  exact.lengths.assign(solution.row_prices.begin(), solution.row_prices.begin() + orbits);
  const Rational common = CommonDenominator(exact.lengths);
  for (Rational& length : exact.lengths) length = Rational(0) - length * common;
  return exact;
}

}  // namespace tutti
