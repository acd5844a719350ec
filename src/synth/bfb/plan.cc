#include "bfb/plan.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "tutti/base/parallel.h"
#include "tutti/base/units.h"
#include "tutti/synth/bfb.h"

namespace tutti {
namespace {

// Where the least common multiple is too large: every denominator up to 16 divides it.
constexpr int64_t kFallbackUnits = 720'720;
// How many multiples of the least conceivable number of units are tried on unequal links.
constexpr int64_t kMultiplesTried = 16;

std::optional<NodeId> OneSource(const Collective& collective) {
  if (collective.kind() == CollectiveKind::kBroadcast) return collective.root();
  return std::nullopt;
}

// Solves the problem of every receiver and step and keeps the worst of each step. merge(a, b) takes
// b into a and must commute: threads come in any order. Ends early, with what there is, once `stop`
// is set.
template <class Solution, class Solve, class Merge>
Result<std::vector<Solution>> WorstOfEachStep(const BfbModel& model, const char* task,
                                              const Solve& solve, const Merge& merge,
                                              const std::atomic<bool>& stop) {
  std::vector<Solution> worst;
  std::mutex mutex;
  const auto merge_at = [&merge](std::vector<Solution>& into, size_t step, const Solution& one) {
    if (step >= into.size()) into.resize(step + 1);
    merge(into[step], one);
  };
  const Status status = model.ForEachBlock(task, [&](ReceiverBlock& block) {
    SourceLayers layers(model.table);
    LoadProblem problem;
    StepMemo<Solution> memo;
    std::vector<Solution> of_block;
    for (std::optional<NodeId> u; !stop && (u = block.Next());)
      model.ForEachStep(*u, layers, problem, [&](int32_t step, const LoadProblem& one) {
        const auto s = static_cast<size_t>(step);
        merge_at(of_block, s,
                 memo.Get(step, one, [&](const LoadProblem& p) { return solve(s, p); }));
      });
    const std::lock_guard lock(mutex);
    for (size_t step = 0; step < of_block.size(); ++step) merge_at(worst, step, of_block[step]);
  });
  if (!status) return tl::unexpected(status.error());
  return worst;
}

int64_t LcmWithin(int64_t limit, int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const int64_t factor = b / std::gcd(a, b);
  return a > limit / factor ? 0 : a * factor;
}

Result<BfbPlan> PlanEqualLinks(const BfbModel& model, int32_t chunks) {
  const std::atomic<bool> never = false;
  const Result<std::vector<Load>> loads = WorstOfEachStep<Load>(
      model, "bfb: loads", [](size_t, const LoadProblem& problem) { return MinMaxLoad(problem); },
      [](Load& worst, const Load& one) { worst = std::max(worst, one); }, never);
  if (!loads) return tl::unexpected(loads.error());
  int64_t units = 1;
  for (const Load& load : *loads) units = LcmWithin(kBfbMaxUnits, units, load.den);
  if (units == 0) units = kFallbackUnits;
  if (chunks > 0) units = chunks;
  BfbPlan plan{static_cast<int32_t>(units), true, {}};
  for (const Load& load : *loads) {
    const int64_t most = (units * load.num + load.den - 1) / load.den;
    plan.exact = plan.exact && most * load.den == units * load.num;
    plan.step_time.emplace_back(most, units);
  }
  return plan;
}

// The least times of the steps in whole units; with `exact`, gives up (an empty vector) as soon as
// a receiver needs longer than the step takes there.
Result<std::vector<Rational>> TimesInUnits(const BfbModel& model, int64_t units,
                                           const std::vector<Rational>* exact) {
  std::atomic<bool> longer = false;
  const auto solve = [&](size_t step, const LoadProblem& problem) {
    const Rational least = SolveMinMaxTime(problem, model.costs).time;
    Rational time = MinMaxUnits(problem, model.costs, least, units).time;
    if (exact != nullptr && time > (*exact)[step]) longer = true;
    return time;
  };
  Result<std::vector<Rational>> times = WorstOfEachStep<Rational>(
      model, "bfb: whole units", solve,
      [](Rational& worst, const Rational& one) { worst = std::max(worst, one); }, longer);
  if (times && longer) times->clear();
  return times;
}

Result<BfbPlan> PlanUnequalLinks(const BfbModel& model, int32_t chunks) {
  const std::atomic<bool> never = false;
  const auto merge = [](MinMaxTime& worst, const MinMaxTime& one) {
    if (one.time > worst.time)
      worst = one;
    else if (one.time == worst.time)
      worst.tight_denominator =
          LcmWithin(kBfbMaxUnits, worst.tight_denominator, one.tight_denominator);
  };
  const Result<std::vector<MinMaxTime>> optima = WorstOfEachStep<MinMaxTime>(
      model, "bfb: loads",
      [&](size_t, const LoadProblem& problem) { return SolveMinMaxTime(problem, model.costs); },
      merge, never);
  if (!optima) return tl::unexpected(optima.error());
  std::vector<Rational> exact;
  // The links that are tight in the slowest receiver of a step carry exactly their loads, so the
  // number of units is a multiple of `least`; the first one that suffices is the smallest.
  int64_t least = 1;
  for (const MinMaxTime& optimum : *optima) {
    exact.push_back(optimum.time);
    least = LcmWithin(kBfbMaxUnits, least, optimum.tight_denominator);
  }
  if (chunks == 0 && least > 0)
    for (int64_t units = least; units <= std::min(kBfbMaxUnits, least * kMultiplesTried);
         units += least) {
      const Result<std::vector<Rational>> times = TimesInUnits(model, units, &exact);
      if (!times) return tl::unexpected(times.error());
      if (times->size() == exact.size())
        return BfbPlan{static_cast<int32_t>(units), true, std::move(exact)};
    }
  const int64_t fallback = least > 0 ? kBfbMaxUnits / least * least : kFallbackUnits;
  const int64_t units = chunks > 0 ? chunks : fallback;
  Result<std::vector<Rational>> times = TimesInUnits(model, units, nullptr);
  if (!times) return tl::unexpected(times.error());
  const bool same = *times == exact;
  return BfbPlan{static_cast<int32_t>(units), same, *std::move(times)};
}

}  // namespace

BfbModel::BfbModel(const Topology& topology, const Collective& collective, int64_t size_bytes)
    : table(topology, OneSource(collective)),
      num_receivers(topology.num_ranks()),
      shards_in_size(collective.weight_of_size()) {
  std::map<std::pair<int64_t, int64_t>, int32_t> classes;  // (alpha, bandwidth)
  for (LinkId link : topology.Links()) {
    equal_alphas = equal_alphas && topology.alpha_ps(link) == topology.alpha_ps(LinkId{0});
    const std::pair key(topology.alpha_ps(link), topology.bandwidth(link));
    class_of_link.push_back(
        classes.emplace(key, static_cast<int32_t>(classes.size())).first->second);
  }
  equal_links = classes.size() <= 1;
  costs.resize(classes.size());
  const Rational shard_bytes = equal_alphas ? Rational(1) : Rational(size_bytes) / shards_in_size;
  for (const auto& [key, index] : classes) {
    LinkCost& cost = costs[static_cast<size_t>(index)];
    if (!equal_alphas) cost.alpha = Rational(key.first, kPicosecondsPerSecond);
    cost.shard = shard_bytes / Rational(key.second);
  }
}

Status BfbModel::ForEachBlock(const char* task,
                              const std::function<void(ReceiverBlock&)>& visit_block) const {
  ProgressScope progress(task, num_receivers);
  ParallelFor(num_receivers, std::max(1, num_receivers / 64), [&](int64_t first, int64_t last) {
    ReceiverBlock block(first, last, progress);
    visit_block(block);
  });
  if (CancelRequested()) return tl::unexpected(CancelledError());
  return {};
}

Result<BfbPlan> MakeBfbPlan(const BfbModel& model, int32_t chunks) {
  return model.equal_links ? PlanEqualLinks(model, chunks) : PlanUnequalLinks(model, chunks);
}

std::vector<Piece> SolveInUnits(const BfbModel& model, const LoadProblem& problem,
                                int64_t units_per_shard) {
  if (model.equal_links)
    return Allocate(problem, MinMaxUnits(problem, MinMaxLoad(problem), units_per_shard).capacity,
                    units_per_shard);
  const Rational least = SolveMinMaxTime(problem, model.costs).time;
  return Allocate(problem, MinMaxUnits(problem, model.costs, least, units_per_shard).capacity,
                  units_per_shard);
}

}  // namespace tutti
