#include "bfb/plan.h"

#include <fmt/format.h>

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

// How many multiples of the least conceivable number of units are tried on unequal links.
constexpr int64_t kMultiplesTried = 16;
// For equal links every number of units up to here is looked at, which counts loads only; of unequal
// ones, where each costs a balance of every receiver, so many between the most and half of it.
constexpr int64_t kUnitsLookedAt = 1 << 16;
constexpr int64_t kFewUnits = 8, kPartsOfMost = 8;
// Where no limit but kBfbMaxUnits holds: every denominator up to 16 divides it.
constexpr int64_t kManyDivisors = 720'720;

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

// What a load comes to in whole units.
int64_t InUnits(const Load& load, int64_t units) {
  return (units * load.num + load.den - 1) / load.den;
}

int64_t SumInUnits(const std::vector<Load>& loads, int64_t units) {
  int64_t sum = 0;
  for (const Load& load : loads) sum += InUnits(load, units);
  return sum;
}

// The fewest of those up to `most` with which the steps together take the least time.
int64_t BestUnits(const std::vector<Load>& loads, int64_t most) {
  __extension__ using Wide = __int128;
  int64_t best = most >= kManyDivisors ? kManyDivisors : most;
  Wide best_sum = SumInUnits(loads, best);
  for (int64_t units = std::min(most, kUnitsLookedAt); units >= 1; --units) {
    const Wide sum = SumInUnits(loads, units);
    if (sum * best > best_sum * units) continue;
    best = units;
    best_sum = sum;
  }
  return best;
}

Result<BfbPlan> PlanEqualLinks(const BfbModel& model, const BfbUnits& wanted) {
  const std::atomic<bool> never = false;
  const Result<std::vector<Load>> loads = WorstOfEachStep<Load>(
      model, "bfb: loads", [](size_t, const LoadProblem& problem) { return MinMaxLoad(problem); },
      [](Load& worst, const Load& one) { worst = std::max(worst, one); }, never);
  if (!loads) return tl::unexpected(loads.error());
  int64_t units = 1;
  for (const Load& load : *loads) units = LcmWithin(wanted.most, units, load.den);
  if (wanted.wanted > 0) units = wanted.wanted;
  if (units == 0) units = BestUnits(*loads, wanted.most);
  BfbPlan plan{static_cast<int32_t>(units), true, {}, {}};
  for (const Load& load : *loads) {
    const int64_t most = InUnits(load, units);
    plan.exact = plan.exact && most * load.den == units * load.num;
    plan.step_time.emplace_back(most, units);
    plan.exact_time += Rational(load.num, load.den);
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

// Numbers of units that are worth a look where exactness takes more than `most`.
std::vector<int64_t> CoarseUnits(int64_t least, int64_t most) {
  std::vector<int64_t> units;
  if (most <= kFewUnits) {
    for (int64_t few = 1; few <= most; ++few) units.push_back(few);
    return units;
  }
  for (int64_t part = kPartsOfMost / 2; part <= kPartsOfMost; ++part)
    units.push_back(most * part / kPartsOfMost);
  if (least > 0 && least <= most) units.push_back(most / least * least);
  if (kManyDivisors <= most) units.push_back(kManyDivisors);
  return units;
}

Result<BfbPlan> PlanInUnits(const BfbModel& model, const std::vector<int64_t>& candidates,
                            const std::vector<Rational>& exact) {
  std::optional<BfbPlan> best;
  Rational best_time;
  for (int64_t units : candidates) {
    Result<std::vector<Rational>> times = TimesInUnits(model, units, nullptr);
    if (!times) return tl::unexpected(times.error());
    Rational time;
    for (const Rational& step : *times) time += step;
    if (best && (time > best_time || (time == best_time && units >= best->units_per_shard)))
      continue;
    const bool same = *times == exact;
    best = BfbPlan{static_cast<int32_t>(units), same, *std::move(times), {}};
    best_time = std::move(time);
  }
  return *std::move(best);
}

Result<BfbPlan> PlanUnequalLinks(const BfbModel& model, const BfbUnits& wanted) {
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
  Rational exact_time;
  // The links that are tight in the slowest receiver of a step carry exactly their loads, so the
  // number of units is a multiple of `least`; the first one that suffices is the smallest.
  int64_t least = 1;
  for (const MinMaxTime& optimum : *optima) {
    exact.push_back(optimum.time);
    exact_time += optimum.time;
    least = LcmWithin(wanted.most, least, optimum.tight_denominator);
  }
  if (wanted.wanted == 0 && least > 0)
    for (int64_t units = least; units <= std::min(wanted.most, least * kMultiplesTried);
         units += least) {
      const Result<std::vector<Rational>> times = TimesInUnits(model, units, &exact);
      if (!times) return tl::unexpected(times.error());
      if (times->size() == exact.size())
        return BfbPlan{static_cast<int32_t>(units), true, std::move(exact), std::move(exact_time)};
    }
  const std::vector<int64_t> candidates =
      wanted.wanted > 0 ? std::vector<int64_t>{wanted.wanted} : CoarseUnits(least, wanted.most);
  Result<BfbPlan> plan = PlanInUnits(model, candidates, exact);
  if (plan) plan->exact_time = std::move(exact_time);
  return plan;
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

BfbUnits BfbUnitsFor(const Topology& topology, const Collective& collective,
                     const SynthOptions& options) {
  if (options.element_bytes == 0) return {options.chunks, kBfbMaxUnits};
  const int64_t least = std::max<int64_t>(options.element_bytes, WorthwhileChunkBytes(topology));
  return {options.chunks,
          std::min(kBfbMaxUnits, MostChunks(collective, options.size_bytes, least))};
}

Result<BfbPlan> MakeBfbPlan(const BfbModel& model, const BfbUnits& units) {
  return model.equal_links ? PlanEqualLinks(model, units) : PlanUnequalLinks(model, units);
}

void NoteUnits(const BfbPlan& plan, const SynthOptions& options) {
  if (options.notes == nullptr || options.chunks > 0 || plan.exact) return;
  Rational time;
  for (const Rational& step : plan.step_time) time += step;
  const double loss = ((time - plan.exact_time) / time).ToDouble();
  SynthNotes& notes = *options.notes;
  if (notes.chunk_loss >= loss) return;
  constexpr double kPercent = 100;
  notes.chunk_loss = loss;
  notes.remark = fmt::format(
      "{} chunk{} a shard: with finer ones, too small to be worth their messages, bytes would take "
      "{:.3g} % less",
      plan.units_per_shard, plan.units_per_shard == 1 ? "" : "s", loss * kPercent);
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
