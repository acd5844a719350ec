// What the paper claims of whole families, checked on all of them by exact cost:
//   circulant(n,a,b) is bandwidth-optimal for all a < b < n/2 with gcd(n,a,b) = 1 (conjecture 1,
//   proved for degree 4), here for n <= 300; genkautz(d,n), d in {2, 4, 8, 16}, n <= 2000: TB at
//   most twice the optimum (figure 18) and at most one step more than the Moore bound (theorem 21).
// Prints the extremes and ends with 1 where a claim fails. Arguments: the largest n of each family.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <utility>

#include "tutti/bounds/bounds.h"
#include "tutti/synth/bfb.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

BfbCost CostOf(const Topology& topology) {
  return *ComputeBfbCost(topology,
                         *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks()), {});
}

// TB over (N - 1) / N.
Rational TbOverOptimum(const BfbCost& cost, int32_t num_ranks) {
  return *cost.tb / Rational(num_ranks - 1, num_ranks);
}

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The pairs that circulant(n,a,b) becomes when its ranks are multiplied by the units of Z_n: all of
// them are one network, renamed.
std::set<std::pair<int32_t, int32_t>> SamePairs(int32_t n, int32_t a, int32_t b) {
  std::set<std::pair<int32_t, int32_t>> same;
  for (int32_t unit = 1; unit < n; ++unit) {
    if (std::gcd(unit, n) != 1) continue;
    const int32_t ua = std::min(unit * a % n, n - unit * a % n);
    const int32_t ub = std::min(unit * b % n, n - unit * b % n);
    same.emplace(std::min(ua, ub), std::max(ua, ub));
  }
  return same;
}

bool SweepCirculants(int32_t largest) {
  const Stopwatch watch;
  size_t networks = 0, solved = 0, optimal = 0;
  for (int32_t n = 5; n <= largest; ++n) {
    std::set<std::pair<int32_t, int32_t>> known;
    for (int32_t b = 2; 2 * b < n; ++b)
      for (int32_t a = 1; a < b; ++a) {
        if (std::gcd(n, std::gcd(a, b)) != 1 || known.contains({a, b})) continue;
        const auto same = SamePairs(n, a, b);
        known.insert(same.begin(), same.end());
        const Topology topology = *ParseTopology(fmt::format("circulant({},{},{})", n, a, b));
        ++solved;
        networks += same.size();
        if (TbOverOptimum(CostOf(topology), n) == Rational(1))
          optimal += same.size();
        else
          fmt::print("not bandwidth-optimal: {}\n", topology.name());
      }
  }
  fmt::print(
      "circulants of degree 4, n <= {}: {} of {} bandwidth-optimal ({} up to renaming), "
      "{:.1f} s\n",
      largest, optimal, networks, solved, watch.Seconds());
  std::fflush(stdout);
  return optimal == networks;
}

bool SweepGeneralizedKautz(int32_t degree, int32_t largest) {
  const Stopwatch watch;
  Rational worst;
  int32_t worst_n = 0, max_extra_steps = 0, inexact = 0;
  int64_t largest_units = 0;
  for (int32_t n = degree + 1; n <= largest; ++n) {
    const BfbCost cost = CostOf(*ParseTopology(fmt::format("genkautz({},{})", degree, n)));
    if (const Rational ratio = TbOverOptimum(cost, n); ratio > worst) {
      worst = ratio;
      worst_n = n;
    }
    max_extra_steps = std::max(max_extra_steps, cost.tl - MooreBoundSteps(n, degree));
    largest_units = std::max<int64_t>(largest_units, cost.units_per_shard);
    inexact += cost.exact ? 0 : 1;
  }
  fmt::print(
      "genkautz({0},n), n <= {1}: TB / TB* at most {2:.4f} (n = {3}), steps at most Moore bound + "
      "{4}, at most {5} units a shard, {6} inexact, {7:.1f} s\n",
      degree, largest, worst.ToDouble(), worst_n, max_extra_steps, largest_units, inexact,
      watch.Seconds());
  std::fflush(stdout);
  return worst <= Rational(2) && max_extra_steps <= 1;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  const int largest_circulant = argc > 1 ? std::atoi(argv[1]) : 300;
  const int largest_kautz = argc > 2 ? std::atoi(argv[2]) : 2000;
  bool holds = tutti::SweepCirculants(largest_circulant);
  for (const int degree : {2, 4, 8, 16})
    holds = tutti::SweepGeneralizedKautz(degree, largest_kautz) && holds;
  return holds ? 0 : 1;
}
