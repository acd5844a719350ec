#include "tutti/sched/cost.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/units.h"

namespace tutti {
namespace {

__extension__ using Wide = unsigned __int128;

Rational ToRational(Wide value) {
  const Rational half(int64_t{1} << 32);
  Rational result;
  for (int shift = 96; shift >= 0; shift -= 32)
    result = result * half + Rational(static_cast<int64_t>((value >> shift) & 0xffffffffu));
  return result;
}

// Links of equal alpha and bandwidth form a class: within one, the fullest link is the slowest, so
// that only one link a class and step is compared in exact fractions.
struct LinkClasses {
  std::vector<LinkSpec> spec;
  std::vector<uint32_t> of_link;
};

LinkClasses Classify(const Topology& topology) {
  LinkClasses classes;
  classes.of_link.reserve(static_cast<size_t>(topology.num_links()));
  std::map<std::pair<int64_t, int64_t>, uint32_t> index;
  for (LinkId link : topology.Links()) {
    const LinkSpec& spec = topology.spec(link);
    const auto [at, is_new] = index.try_emplace({spec.bandwidth, spec.alpha_ps},
                                                static_cast<uint32_t>(classes.spec.size()));
    if (is_new) classes.spec.push_back(spec);
    classes.of_link.push_back(at->second);
  }
  return classes;
}

// The fullest link of one class in one step, in weight * units.
template <class Load>
struct ClassLoad {
  const LinkSpec* spec;
  Load load;
};

// Calls visit(loads) for each step that carries something, with one entry a class in use.
// Load is uint64_t where no sum can leave it: units_per_shard < 2^31 and fewer than 2^32 transfers.
template <class Load, class Visit>
void ForEachStep(const Topology& topology, const Schedule& schedule, const Visit& visit) {
  TUTTI_CHECK(schedule.kind == ScheduleKind::kStep);
  const LinkClasses classes = Classify(topology);
  std::vector<Load> load(classes.of_link.size(), 0);
  std::vector<Load> fullest(classes.spec.size(), 0);
  std::vector<uint32_t> used;
  std::vector<ClassLoad<Load>> step_loads;
  const std::vector<Transfer>& transfers = schedule.transfers;
  for (size_t i = 0; i < transfers.size();) {
    const int32_t step = transfers[i].step;
    for (; i < transfers.size() && transfers[i].step == step; ++i) {
      const Transfer& transfer = transfers[i];
      auto amount = static_cast<Load>(transfer.units());
      if constexpr (!std::is_same_v<Load, uint64_t>)
        amount *= static_cast<Load>(schedule.collective.weight(transfer.shard));
      Load& sum = load[transfer.link.index()];
      if (sum == 0 && amount != 0) used.push_back(static_cast<uint32_t>(transfer.link.value));
      sum += amount;
    }
    step_loads.clear();
    for (uint32_t link : used) {
      Load& most = fullest[classes.of_link[link]];
      if (most == 0) step_loads.push_back({&classes.spec[classes.of_link[link]], 0});
      most = std::max(most, std::exchange(load[link], 0));
    }
    used.clear();
    for (ClassLoad<Load>& entry : step_loads)
      entry.load = std::exchange(fullest[static_cast<size_t>(entry.spec - classes.spec.data())], 0);
    if (!step_loads.empty()) visit(std::as_const(step_loads));
  }
}

template <class Visit>
void ForEachStep(const Topology& topology, const Schedule& schedule, const Visit& visit) {
  if (schedule.collective.demand().empty()) {
    ForEachStep<uint64_t>(topology, schedule, visit);
  } else {
    ForEachStep<Wide>(topology, schedule, visit);
  }
}

// Whether a.load / a.bandwidth < b.load / b.bandwidth. Whole parts first, so that no product of
// remainders leaves 128 bits (T3: bandwidths are at most 2^50).
template <class Load>
bool TakesLess(const ClassLoad<Load>& a, const ClassLoad<Load>& b) {
  const auto bw_a = static_cast<Wide>(a.spec->bandwidth);
  const auto bw_b = static_cast<Wide>(b.spec->bandwidth);
  if (bw_a == bw_b) return a.load < b.load;
  const Wide whole_a = a.load / bw_a, whole_b = b.load / bw_b;
  if (whole_a != whole_b) return whole_a < whole_b;
  return (a.load % bw_a) * bw_b < (b.load % bw_b) * bw_a;
}

}  // namespace

StepCost AnalyticCost(const Topology& topology, const Schedule& schedule) {
  StepCost cost;
  Wide alpha_ps = 0;
  std::map<int64_t, Wide> busiest;  // by bandwidth: sum of the loads of steps that it decides
  ForEachStep(topology, schedule, [&](const auto& loads) {
    ++cost.tl;
    const auto slowest = std::max_element(
        loads.begin(), loads.end(), [](const auto& a, const auto& b) { return TakesLess(a, b); });
    busiest[slowest->spec->bandwidth] += slowest->load;
    int64_t step_alpha = 0;
    for (const auto& entry : loads) step_alpha = std::max(step_alpha, entry.spec->alpha_ps);
    alpha_ps += static_cast<Wide>(step_alpha);
  });
  for (const auto& [bandwidth, load] : busiest) cost.tb += ToRational(load) / Rational(bandwidth);
  cost.tb *= Rational(topology.max_in_bandwidth()) /
             (Rational(schedule.collective.weight_of_size()) * Rational(schedule.units_per_shard));
  cost.alpha_s = ToRational(alpha_ps) / Rational(kPicosecondsPerSecond);
  return cost;
}

Rational AnalyticSeconds(const Topology& topology, const Schedule& schedule, int64_t size_bytes) {
  const Rational bytes_per_load =
      Rational(size_bytes) /
      (Rational(schedule.collective.weight_of_size()) * Rational(schedule.units_per_shard));
  Rational total;
  ForEachStep(topology, schedule, [&](const auto& loads) {
    Rational longest;
    for (const auto& entry : loads) {
      const Rational seconds =
          Rational(entry.spec->alpha_ps, kPicosecondsPerSecond) +
          ToRational(entry.load) * bytes_per_load / Rational(entry.spec->bandwidth);
      longest = std::max(longest, seconds);
    }
    total += longest;
  });
  return total;
}

}  // namespace tutti
