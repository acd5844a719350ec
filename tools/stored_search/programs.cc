#include "programs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "tutti/base/check.h"
#include "tutti/base/index.h"
#include "tutti/lp/linear_program.h"

namespace tutti::stored_search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPriceTolerance = 1e-7;

}  // namespace

TreePricer::TreePricer(const SmallDigraph& graph, int steps) : graph_(&graph), steps_(steps) {
  const int n = graph.num_nodes();
  const size_t sets = size_t{1} << n;
  next_.assign(sets, 0);
  covered_.assign(Index(steps), std::vector<uint16_t>(sets, 0));
  for (size_t set = 1; set < sets; ++set) {
    const int v = std::countr_zero(set);
    const size_t rest = set & (set - 1);
    next_[set] = static_cast<uint16_t>(next_[rest] | graph.out_mask(v));
    for (int hops = 0; hops < steps; ++hops) {
      uint32_t ball = 0;
      for (int u = 0; u < n; ++u)
        if (graph.Distance(v, u) <= hops) ball |= 1U << u;
      covered_[Index(hops)][set] = static_cast<uint16_t>(covered_[Index(hops)][rest] | ball);
    }
  }
  best_.assign(Index(steps + 1), std::vector<Entry>(sets));
  sets_.resize(Index(steps + 1));
}

Tree TreePricer::Cheapest(int root, const std::vector<double>& cost, double* total) {
  const int n = graph_->num_nodes(), links = graph_->num_links();
  const uint32_t everyone = (1U << n) - 1U;
  for (int t = 0; t <= steps_; ++t) {
    for (uint32_t set : sets_[Index(t)]) best_[Index(t)][set] = {};
    sets_[Index(t)].clear();
  }
  best_[0][1U << root].cost = 0;
  sets_[0].push_back(1U << root);
  std::array<double, kMaxNodes> price{};
  std::vector<double> sum;
  std::vector<uint32_t> subset;
  for (int t = 1; t <= steps_; ++t) {
    const double* now = cost.data() + Index(t - 1) * Index(links);
    const std::vector<uint16_t>& in_time = covered_[Index(steps_ - t)];
    for (uint32_t set : sets_[Index(t - 1)]) {
      const uint32_t may = next_[set] & ~set;
      if (t == steps_ && (set | may) != everyone) continue;
      // What costs nothing is taken at once: more holders never make the rest dearer.
      uint32_t free = 0;
      for (uint32_t left = may; left != 0; left &= left - 1) {
        const int v = std::countr_zero(left);
        double least = kInfinity;
        for (int link : graph_->InLinks(v))
          if ((set >> graph_->tail(link) & 1) != 0) least = std::min(least, now[link]);
        price[Index(v)] = least;
        if (least == 0 || t == steps_) free |= 1U << v;
      }
      double base = best_[Index(t - 1)][set].cost;
      for (uint32_t left = free; left != 0; left &= left - 1)
        base += price[Index(std::countr_zero(left))];
      // Every subset of the rest, each from one with a node less.
      std::array<uint32_t, kMaxNodes> bit{};
      int bits = 0;
      for (uint32_t left = may & ~free; left != 0; left &= left - 1)
        bit[Index(bits++)] = left & -left;
      const size_t subsets = size_t{1} << bits;
      sum.resize(subsets);
      subset.resize(subsets);
      sum[0] = base;
      subset[0] = set | free;
      for (size_t i = 0; i < subsets; ++i) {
        if (i > 0) {
          const uint32_t added = bit[Index(std::countr_zero(i))];
          sum[i] = sum[i & (i - 1)] + price[Index(std::countr_zero(added))];
          subset[i] = subset[i & (i - 1)] | added;
        }
        const uint32_t after = subset[i];
        if (in_time[after] != everyone) continue;
        Entry& entry = best_[Index(t)][after];
        if (entry.cost == kInfinity) sets_[Index(t)].push_back(after);
        if (sum[i] < entry.cost) entry = {sum[i], set};
      }
    }
  }
  Tree tree{root, std::vector<int8_t>(Index(n), 0), std::vector<int8_t>(Index(n), -1)};
  *total = best_[Index(steps_)][everyone].cost;
  TUTTI_CHECK(*total < kInfinity);
  uint32_t set = everyone;
  for (int t = steps_; t > 0; --t) {
    const uint32_t before = best_[Index(t)][set].from;
    for (uint32_t added = set & ~before; added != 0; added &= added - 1) {
      const int v = std::countr_zero(added);
      int chosen = -1;
      for (int link : graph_->InLinks(v))
        if ((before >> graph_->tail(link) & 1) != 0 &&
            (chosen < 0 ||
             cost[Index((t - 1) * links + link)] < cost[Index((t - 1) * links + chosen)]))
          chosen = link;
      tree.step[Index(v)] = static_cast<int8_t>(t);
      tree.link[Index(v)] = static_cast<int8_t>(chosen);
    }
    set = before;
  }
  return tree;
}

namespace {

// The least z_1 + z_2 + ... such that some mix of trees loads no link with more than
// sum_k z_k profiles[k][t] in step t + 1; or a limit of it above stop_above.
double Solve(const SmallDigraph& graph, const std::vector<std::vector<double>>& profiles,
             double stop_above) {
  const int n = graph.num_nodes(), links = graph.num_links();
  const int steps = static_cast<int>(profiles.front().size());
  TreePricer pricer(graph, steps);
  LinearProgram lp(LinearProgram::Goal::kMinimize);
  // Rows: the load of each link and step; each root's shard is spread once.
  for (int slot = 0; slot < steps * links; ++slot) lp.AddRow(-LinearProgram::kNoLimit, 0, {});
  for (int root = 0; root < n; ++root) lp.AddRow(1, 1, {});
  for (const std::vector<double>& profile : profiles) {
    std::vector<LinearProgram::RowEntry> entries;
    for (int slot = 0; slot < steps * links; ++slot)
      entries.push_back({slot, -profile[Index(slot / links)]});
    lp.AddColumn(0, LinearProgram::kNoLimit, 1, entries);
  }
  const auto add = [&](const Tree& tree) {
    std::vector<LinearProgram::RowEntry> entries{{steps * links + tree.root, 1}};
    for (int v = 0; v < n; ++v)
      if (v != tree.root)
        entries.push_back({(tree.step[Index(v)] - 1) * links + tree.link[Index(v)], 1});
    lp.AddColumn(0, LinearProgram::kNoLimit, 0, entries);
  };
  std::vector<double> cost(Index(steps * links), 1.0 / links);
  double total = 0, proven = 0;
  for (int root = 0; root < n; ++root) add(pricer.Cheapest(root, cost, &total));
  while (true) {
    const Result<LpSolution> solution = lp.Solve(LinearProgram::Check::kAsFound);
    TUTTI_CHECK(solution.has_value());
    // Costs prove a limit, whatever they are, once no profile costs more than 1 a unit of z.
    for (int slot = 0; slot < steps * links; ++slot)
      cost[Index(slot)] = std::max(0.0, -solution->row_prices[Index(slot)]);
    double scale = 0;
    for (const std::vector<double>& profile : profiles) {
      double sum = 0;
      for (int slot = 0; slot < steps * links; ++slot)
        sum += cost[Index(slot)] * profile[Index(slot / links)];
      scale = std::max(scale, sum);
    }
    double limit = 0;
    bool added = false;
    for (int root = 0; root < n; ++root) {
      const Tree tree = pricer.Cheapest(root, cost, &total);
      limit += total / scale;
      if (total < solution->row_prices[Index(steps * links + root)] - kPriceTolerance) {
        add(tree);
        added = true;
      }
    }
    proven = std::max(proven, limit);
    if (proven > stop_above + kLoadTolerance || !added ||
        solution->objective < proven + kPriceTolerance)
      return proven;
  }
}

}  // namespace

double LeastLoad(const SmallDigraph& graph, int steps, double stop_above) {
  TUTTI_CHECK(steps >= graph.diameter());
  std::vector<std::vector<double>> profiles(Index(steps), std::vector<double>(Index(steps), 0.0));
  for (int t = 0; t < steps; ++t) profiles[Index(t)][Index(t)] = 1;
  return Solve(graph, profiles, stop_above);
}

bool CanKeepTo(const SmallDigraph& graph, const std::vector<double>& step_loads) {
  return Solve(graph, {step_loads}, 1) <= 1 + kLoadTolerance;
}

}  // namespace tutti::stored_search
