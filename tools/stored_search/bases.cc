#include "bases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "programs.h"
#include "tutti/base/index.h"
#include "tutti/coll/collective.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/synth/bfb.h"
#include "tutti/topo/operators.h"

namespace tutti::stored_search {
namespace {

// So many ways to rewire are judged at most: the flow values cost a second each.
constexpr size_t kMaxCycles = 120;

struct FlowLimits {
  double lower = 0, upper = 0;
};

Result<FlowLimits> FlowOf(const SmallDigraph& graph, int factors, int lines) {
  Result<Topology> topology = CartesianPower(graph.ToTopology(), factors);
  for (int i = 0; i < lines && topology; ++i) topology = LineDigraph(*topology);
  if (!topology) return tl::unexpected(topology.error());
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(*topology);
  if (!flow) return tl::unexpected(flow.error());
  if (Status status = CheckConcurrentFlow(*topology, *flow); !status)
    return tl::unexpected(status.error());
  return FlowLimits{flow->f_lower.ToDouble(), flow->f_upper.ToDouble()};
}

// Whether some value within the limits is printed so.
bool Prints(const FlowLimits& limits, double figure) {
  const double half_a_digit = std::pow(10, std::floor(std::log10(figure)) - 2) / 2;
  return limits.upper >= figure - half_a_digit && limits.lower <= figure + half_a_digit;
}

Result<bool> HasFigures(const SmallDigraph& graph, const std::vector<FlowFigure>& figures,
                        std::string* said) {
  said->clear();
  for (const FlowFigure& figure : figures) {
    const Result<FlowLimits> limits = FlowOf(graph, figure.factors, figure.lines);
    if (!limits) return tl::unexpected(limits.error());
    *said += fmt::format("; f of line^{}(power(.,{})) {:.5e} to {:.5e}, paper {:.2e}", figure.lines,
                         figure.factors, limits->lower, limits->upper, figure.value);
    if (!Prints(*limits, figure.value)) return false;
  }
  return true;
}

double BestLoad(const SmallDigraph& graph) {
  return static_cast<double>(graph.num_nodes() - 1) / graph.degree();
}

// A bandwidth-optimal all-gather in so many steps, and a reduce-scatter: both ways round.
bool IsOptimalIn(const SmallDigraph& graph, int steps) {
  if (graph.diameter() > steps) return false;
  for (const SmallDigraph& way : {graph, graph.Transposed()})
    if (LeastLoad(way, steps, BestLoad(way)) > BestLoad(way) + kLoadTolerance) return false;
  return true;
}

Result<bool> HasOptimalBfb(const SmallDigraph& graph) {
  const Result<Collective> all_gather =
      Collective::Make(CollectiveKind::kAllGather, graph.num_nodes());
  if (!all_gather) return tl::unexpected(all_gather.error());
  const Result<BfbCost> cost = ComputeBfbCost(graph.ToTopology(), *all_gather, {});
  if (!cost) return tl::unexpected(cost.error());
  return cost->tb == Rational(graph.num_nodes() - 1, graph.num_nodes());
}

std::string Links(const SmallDigraph& graph) {
  std::string text;
  for (int link = 0; link < graph.num_links(); ++link)
    text += fmt::format("{}{}",
                        link % graph.degree() != 0 ? " "
                        : link == 0                ? ""
                                                   : " | ",
                        graph.head(link));
  return text;
}

}  // namespace

Result<SmallDigraph> FindDiamond() {
  constexpr int kNodes = 8, kSteps = 3;
  const std::vector<FlowFigure> figures{{2, 0, 1.87e-2}, {2, 1, 3.62e-3}, {2, 2, 7.34e-4}};
  // Node 0 sends to 1 and 2: every graph has such a numbering.
  std::vector<uint32_t> heads(kNodes, 0);
  std::vector<int> in_degree(kNodes, 0);
  std::set<SmallDigraph::Code> seen, left;
  int64_t numbered = 0;
  const auto extend = [&](const auto& self, int node) -> void {
    if (node == kNodes) {
      ++numbered;
      const std::optional<SmallDigraph> graph = SmallDigraph::Make(heads);
      if (!graph || graph->diameter() != kSteps || seen.contains(graph->OneCode())) return;
      const std::vector<SmallDigraph::Code> codes = graph->AllCodes();
      seen.insert(codes.begin(), codes.end());
      left.insert(codes.front());
      return;
    }
    for (int a = 0; a < kNodes; ++a)
      for (int b = a + 1; b < kNodes; ++b) {
        if (a == node || b == node || in_degree[Index(a)] == 2 || in_degree[Index(b)] == 2)
          continue;
        if (node == 0 && (a != 1 || b != 2)) continue;
        heads[Index(node)] = 1U << a | 1U << b;
        ++in_degree[Index(a)];
        ++in_degree[Index(b)];
        self(self, node + 1);
        --in_degree[Index(a)];
        --in_degree[Index(b)];
      }
  };
  extend(extend, 0);
  fmt::print("diamond: {} numbered graphs, {} of diameter {} up to isomorphism\n", numbered,
             left.size(), kSteps);
  int gathers = 0, optimal = 0, without_bfb = 0, one_way = 0;
  std::optional<SmallDigraph> chosen;
  for (const SmallDigraph::Code& code : left) {
    const SmallDigraph graph = *SmallDigraph::Make(code);
    if (LeastLoad(graph, kSteps, BestLoad(graph)) > BestLoad(graph) + kLoadTolerance) continue;
    ++gathers;
    if (!IsOptimalIn(graph, kSteps)) continue;
    ++optimal;
    const Result<bool> bfb = HasOptimalBfb(graph);
    if (!bfb) return tl::unexpected(bfb.error());
    if (*bfb) continue;
    ++without_bfb;
    if (graph.IsIsomorphicTo(graph.Transposed())) continue;
    ++one_way;
    std::string said;
    const Result<bool> has = HasFigures(graph, figures, &said);
    if (!has) return tl::unexpected(has.error());
    if (!*has) continue;
    fmt::print(
        "  has all figures: {}{}{}\n", Links(graph), said,
        chosen && chosen->IsIsomorphicTo(graph.Transposed()) ? "; the first one's transpose" : "");
    if (!chosen) chosen = graph;
  }
  fmt::print(
      "  {} have a bandwidth-optimal all-gather in {} steps, {} a reduce-scatter, too; {} of them "
      "by no breadth-first schedule, {} of those not reverse-symmetric\n",
      gathers, kSteps, optimal, without_bfb, one_way);
  if (!chosen) return MakeError(ErrorCode::kNotFound, "no graph has the diamond's figures");
  return *chosen;
}

namespace {

// What each renaming of the digits does to the nodes.
std::vector<std::vector<int>> RenamingsOfDigits(int degree, int digits, int nodes) {
  std::vector<std::vector<int>> renamings;
  std::vector<int> digit(Index(degree));
  std::iota(digit.begin(), digit.end(), 0);
  do {
    std::vector<int> image(Index(nodes), 0);
    for (int v = 0; v < nodes; ++v)
      for (int i = 0, rest = v, place = 1; i < digits; ++i, rest /= degree, place *= degree)
        image[Index(v)] += digit[Index(rest % degree)] * place;
    renamings.push_back(image);
  } while (std::next_permutation(digit.begin(), digit.end()));
  return renamings;
}

using Rewire = std::function<std::optional<SmallDigraph>(const std::vector<int>&)>;

// The first graph by one of the cycles that has the figures; without any to have, the best one. Graphs whose limits
// overlap count as equal.
Result<SmallDigraph> ChooseRewired(const std::string& name,
                                   const std::vector<std::vector<int>>& cycles,
                                   const Rewire& rewire, int steps, bool reverse_symmetric,
                                   const std::vector<FlowFigure>& figures) {
  std::optional<SmallDigraph> chosen;
  FlowLimits flow_of_chosen;
  const size_t tried = std::min<size_t>(cycles.size(), kMaxCycles);
  int left = 0;
  for (size_t i = 0; i < tried; ++i) {
    const std::optional<SmallDigraph> graph = rewire(cycles[i]);
    if (!graph || graph->diameter() > steps) continue;
    if (graph->IsIsomorphicTo(graph->Transposed()) != reverse_symmetric) continue;
    std::string said;
    const Result<bool> has = HasFigures(*graph, figures, &said);
    if (!has) return tl::unexpected(has.error());
    if (!*has || !IsOptimalIn(*graph, steps) || IsOptimalIn(*graph, steps - 1)) continue;
    const Result<FlowLimits> flow = FlowOf(*graph, 1, 0);
    if (!flow) return tl::unexpected(flow.error());
    fmt::print("  {}: cycle {}, diameter {}, f {:.5f} to {:.5f}{}\n", i, fmt::join(cycles[i], " "),
               graph->diameter(), flow->lower, flow->upper, said);
    ++left;
    if (!chosen || (figures.empty() && (graph->diameter() < chosen->diameter() ||
                                        (graph->diameter() == chosen->diameter() &&
                                         flow->lower > flow_of_chosen.upper)))) {
      chosen = graph;
      flow_of_chosen = *flow;
    }
  }
  if (!chosen)
    return MakeError(ErrorCode::kNotFound, fmt::format("no rewiring of {} has the figures", name));
  fmt::print("  {} of the first {} have all figures; taken: {}\n", left, tried, Links(*chosen));
  return *chosen;
}

}  // namespace

Result<SmallDigraph> FindRewired(int degree, int digits, int steps, bool reverse_symmetric,
                                 const std::vector<FlowFigure>& figures) {
  int nodes = 1;
  for (int i = 0; i < digits; ++i) nodes *= degree;
  std::vector<uint32_t> heads(Index(nodes), 0);
  for (int v = 0; v < nodes; ++v)
    for (int a = 0; a < degree; ++a) heads[Index(v)] |= 1U << (degree * v + a) % nodes;
  // partner[v]: v on a self-loop, the other node on a 2-cycle, -1 elsewhere.
  std::vector<int> partner(Index(nodes), -1);
  for (int v = 0; v < nodes; ++v)
    for (int u = 0; u < nodes; ++u)
      if ((heads[Index(v)] >> u & 1) != 0 && (heads[Index(u)] >> v & 1) != 0) partner[Index(v)] = u;
  int freed = 0;
  for (int v = 0; v < nodes; ++v)
    if (partner[Index(v)] >= 0) {
      heads[Index(v)] &= ~(1U << partner[Index(v)]);
      ++freed;
    }
  // Renaming digits takes cycles to cycles: only the least of those that it makes alike counts.
  const std::vector<std::vector<int>> renamings = RenamingsOfDigits(degree, digits, nodes);
  std::vector<std::vector<int>> cycles;
  std::vector<int> cycle{0};
  std::vector<bool> used(Index(nodes), false);
  int64_t all = 0;
  const auto is_new = [&](int tail, int head) { return (heads[Index(tail)] >> head & 1) == 0; };
  const auto is_least = [&] {
    for (const std::vector<int>& image : renamings) {
      size_t start = 0;
      while (image[Index(cycle[start])] != 0) ++start;
      for (size_t i = 0; i < cycle.size(); ++i) {
        const int renamed = image[Index(cycle[(start + i) % cycle.size()])];
        if (renamed < cycle[i]) return false;
        if (renamed > cycle[i]) break;
      }
    }
    return true;
  };
  const auto extend = [&](const auto& self) -> void {
    if (static_cast<int>(cycle.size()) == freed) {
      if (!is_new(cycle.back(), cycle.front())) return;
      ++all;
      if (is_least()) cycles.push_back(cycle);
      return;
    }
    for (int v = 1; v < nodes; ++v) {
      if (partner[Index(v)] < 0 || used[Index(v)] || !is_new(cycle.back(), v)) continue;
      const int other = partner[Index(v)];
      const size_t length = cycle.size();
      cycle.push_back(v);
      if (other != v) cycle.push_back(other);
      used[Index(v)] = used[Index(other)] = true;
      self(self);
      used[Index(v)] = used[Index(other)] = false;
      cycle.resize(length);
    }
  };
  extend(extend);
  const auto rewire = [&](const std::vector<int>& by) {
    std::vector<uint32_t> rewired = heads;
    for (size_t k = 0; k < by.size(); ++k) rewired[Index(by[k])] |= 1U << by[(k + 1) % by.size()];
    return SmallDigraph::Make(rewired);
  };
  int64_t near = 0;
  for (const std::vector<int>& one : cycles) {
    const std::optional<SmallDigraph> graph = rewire(one);
    near += graph && graph->diameter() <= steps ? 1 : 0;
  }
  fmt::print(
      "debruijn_mod({},{}): {} cycles, {} up to the names of digits, {} of these of diameter "
      "{} at most\n",
      degree, digits, all, cycles.size(), near, steps);

  return ChooseRewired(fmt::format("debruijn({},{})", degree, digits), cycles, rewire, steps,
                       reverse_symmetric, figures);
}

}  // namespace tutti::stored_search
