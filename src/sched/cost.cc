#include "tutti/sched/cost.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/units.h"
#include "tutti/sched/transform.h"

namespace tutti {
namespace {

__extension__ using WideLoad = unsigned __int128;

Rational ToRational(WideLoad value) {
  const Rational half(int64_t{1} << 32);
  Rational result;
  for (int shift = 96; shift >= 0; shift -= 32)
    result = result * half + Rational(static_cast<int64_t>((value >> shift) & 0xffffffffu));
  return result;
}

// What carries bytes: links, and behind them what leads into and out of hosts with a limit. Those of
// equal alpha and bandwidth form a class: within one, the fullest is the slowest, so that only one
// a class and step is compared in exact fractions.
struct Carriers {
  std::vector<LinkSpec> spec;          // of a class
  std::vector<uint32_t> of_carrier;    // class
  std::vector<uint32_t> out_of, into;  // carrier of a node's host; kNone without a limit

  static constexpr uint32_t kNone = ~uint32_t{0};
};

Carriers Classify(const Topology& topology) {
  Carriers carriers;
  std::map<std::pair<int64_t, int64_t>, uint32_t> index;
  const auto add = [&](const LinkSpec& spec) {
    const auto [at, is_new] = index.try_emplace({spec.bandwidth, spec.alpha_ps},
                                                static_cast<uint32_t>(carriers.spec.size()));
    if (is_new) carriers.spec.push_back(spec);
    carriers.of_carrier.push_back(at->second);
    return static_cast<uint32_t>(carriers.of_carrier.size() - 1);
  };
  carriers.of_carrier.reserve(static_cast<size_t>(topology.num_links()));
  for (LinkId link : topology.Links()) add(topology.spec(link));
  if (!topology.has_host_limits()) return carriers;
  const auto add_host = [&](const auto& links, int64_t bandwidth) {
    if (links.empty()) return Carriers::kNone;
    LinkSpec spec{.bandwidth = bandwidth, .alpha_ps = std::numeric_limits<int64_t>::max()};
    for (LinkId link : links) spec.alpha_ps = std::min(spec.alpha_ps, topology.alpha_ps(link));
    return add(spec);
  };
  carriers.out_of.assign(static_cast<size_t>(topology.num_nodes()), Carriers::kNone);
  carriers.into = carriers.out_of;
  for (NodeId rank : topology.Ranks())
    if (const auto bandwidth = topology.host_bandwidth(rank)) {
      carriers.out_of[rank.index()] = add_host(topology.OutLinks(rank), *bandwidth);
      carriers.into[rank.index()] = add_host(topology.InLinks(rank), *bandwidth);
    }
  return carriers;
}

// The fullest carrier of one class in one step, in weight * units.
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
  const Carriers carriers = Classify(topology);
  std::vector<Load> load(carriers.of_carrier.size(), 0);
  std::vector<Load> fullest(carriers.spec.size(), 0);
  std::vector<uint32_t> used;
  std::vector<ClassLoad<Load>> step_loads;
  const auto add = [&load, &used](uint32_t carrier, Load amount) {
    Load& sum = load[carrier];
    if (sum == 0 && amount != 0) used.push_back(carrier);
    sum += amount;
  };
  const std::vector<Transfer>& transfers = schedule.transfers;
  for (size_t i = 0; i < transfers.size();) {
    const int32_t step = transfers[i].step;
    for (; i < transfers.size() && transfers[i].step == step; ++i) {
      const Transfer& transfer = transfers[i];
      auto amount = static_cast<Load>(transfer.units());
      if constexpr (!std::is_same_v<Load, uint64_t>)
        amount *= static_cast<Load>(schedule.collective.weight(transfer.shard));
      add(static_cast<uint32_t>(transfer.link.value), amount);
      if (carriers.into.empty()) continue;
      for (uint32_t host : {carriers.out_of[topology.tail(transfer.link).index()],
                            carriers.into[topology.head(transfer.link).index()]})
        if (host != Carriers::kNone) add(host, amount);
    }
    step_loads.clear();
    for (uint32_t carrier : used) {
      Load& most = fullest[carriers.of_carrier[carrier]];
      if (most == 0) step_loads.push_back({&carriers.spec[carriers.of_carrier[carrier]], 0});
      most = std::max(most, std::exchange(load[carrier], 0));
    }
    used.clear();
    for (ClassLoad<Load>& entry : step_loads)
      entry.load =
          std::exchange(fullest[static_cast<size_t>(entry.spec - carriers.spec.data())], 0);
    if (!step_loads.empty()) visit(std::as_const(step_loads));
  }
}

template <class Visit>
void ForEachStep(const Topology& topology, const Schedule& schedule, const Visit& visit) {
  if (schedule.collective.equal_weights()) {
    ForEachStep<uint64_t>(topology, schedule, visit);
  } else {
    ForEachStep<WideLoad>(topology, schedule, visit);
  }
}

// Bytes that one unit of load stands for at size 1.
Rational SharePerLoad(const Schedule& schedule) {
  return Rational(1) /
         (Rational(schedule.collective.weight_of_size()) * Rational(schedule.units_per_shard));
}

Rational AlphaSeconds(const LinkSpec& spec) {
  return Rational(spec.alpha_ps, kPicosecondsPerSecond);
}

// The line that is above the others from the end of `piece` on; false where none rises faster.
bool FindNextPiece(const std::vector<CostPiece>& lines, CostPiece& piece) {
  const CostPiece before = piece;
  bool found = false;
  for (const CostPiece& line : lines) {
    if (line.seconds_per_byte <= before.seconds_per_byte) continue;
    const Rational from =
        (before.fixed_s - line.fixed_s) / (line.seconds_per_byte - before.seconds_per_byte);
    if (found && (from > piece.from_bytes ||
                  (from == piece.from_bytes && line.seconds_per_byte <= piece.seconds_per_byte)))
      continue;
    piece = {from, line.fixed_s, line.seconds_per_byte};
    found = true;
  }
  return found;
}

// The largest of `lines` as a function of M >= 0.
CostCurve UpperEnvelope(const std::vector<CostPiece>& lines) {
  CostPiece piece = lines.front();
  for (const CostPiece& line : lines)
    if (line.fixed_s > piece.fixed_s ||
        (line.fixed_s == piece.fixed_s && line.seconds_per_byte > piece.seconds_per_byte))
      piece = line;
  piece.from_bytes = 0;
  CostCurve curve{piece};
  while (FindNextPiece(lines, piece)) curve.push_back(piece);
  return curve;
}

// The first piece that begins behind `bytes`.
CostCurve::const_iterator NextPiece(const CostCurve& curve, const Rational& bytes) {
  return std::upper_bound(
      curve.begin(), curve.end(), bytes,
      [](const Rational& at, const CostPiece& piece) { return at < piece.from_bytes; });
}

// That holds right behind `bytes`.
const CostPiece& PieceAt(const CostCurve& curve, const Rational& bytes) {
  return *std::prev(NextPiece(curve, bytes));
}

// Where `other` is first less than `best`, right behind that point, from `from` on.
std::optional<Rational> FirstBelow(const CostCurve& other, const CostCurve& best, Rational from) {
  for (;;) {
    const auto next_a = NextPiece(other, from), next_b = NextPiece(best, from);
    const CostPiece &a = *std::prev(next_a), &b = *std::prev(next_b);
    const Rational above = a.At(from) - b.At(from);
    const Rational falls = b.seconds_per_byte - a.seconds_per_byte;
    if (above < 0 || (above.is_zero() && falls > 0)) return from;
    std::optional<Rational> end;
    if (next_a != other.end()) end = next_a->from_bytes;
    if (next_b != best.end() && (!end || next_b->from_bytes < *end)) end = next_b->from_bytes;
    if (falls > 0) {
      Rational meet = from + above / falls;
      if (!end || meet < *end) return meet;
    }
    if (!end) return std::nullopt;
    from = *std::move(end);
  }
}

size_t LeastAt(std::span<const CostCurve> curves, const Rational& bytes) {
  size_t least = 0;
  for (size_t k = 1; k < curves.size(); ++k) {
    const CostPiece &a = PieceAt(curves[k], bytes), &b = PieceAt(curves[least], bytes);
    const Rational at_a = a.At(bytes), at_b = b.At(bytes);
    if (at_a < at_b || (at_a == at_b && a.seconds_per_byte < b.seconds_per_byte)) least = k;
  }
  return least;
}

// Whether a.load / a.bandwidth < b.load / b.bandwidth. Whole parts first, so that no product of
// remainders leaves 128 bits (T3: bandwidths are at most 2^50).
template <class Load>
bool TakesLess(const ClassLoad<Load>& a, const ClassLoad<Load>& b) {
  const auto bw_a = static_cast<WideLoad>(a.spec->bandwidth);
  const auto bw_b = static_cast<WideLoad>(b.spec->bandwidth);
  if (bw_a == bw_b) return a.load < b.load;
  const WideLoad whole_a = a.load / bw_a, whole_b = b.load / bw_b;
  if (whole_a != whole_b) return whole_a < whole_b;
  return (a.load % bw_a) * bw_b < (b.load % bw_b) * bw_a;
}

}  // namespace

StepCost AnalyticCost(const Topology& topology, const Schedule& schedule) {
  StepCost cost;
  WideLoad alpha_ps = 0;
  std::map<int64_t, WideLoad> busiest;  // by bandwidth: sum of the loads of steps that it decides
  ForEachStep(topology, schedule, [&](const auto& loads) {
    ++cost.tl;
    const auto slowest = std::max_element(
        loads.begin(), loads.end(), [](const auto& a, const auto& b) { return TakesLess(a, b); });
    busiest[slowest->spec->bandwidth] += slowest->load;
    int64_t step_alpha = 0;
    for (const auto& entry : loads) step_alpha = std::max(step_alpha, entry.spec->alpha_ps);
    alpha_ps += static_cast<WideLoad>(step_alpha);
  });
  for (const auto& [bandwidth, load] : busiest) cost.tb += ToRational(load) / Rational(bandwidth);
  cost.tb *= Rational(topology.max_in_bandwidth()) * SharePerLoad(schedule);
  cost.alpha_s = ToRational(alpha_ps) / Rational(kPicosecondsPerSecond);
  return cost;
}

Rational AnalyticSeconds(const Topology& topology, const Schedule& schedule, int64_t size_bytes) {
  const Rational bytes_per_load = Rational(size_bytes) * SharePerLoad(schedule);
  Rational total;
  ForEachStep(topology, schedule, [&](const auto& loads) {
    Rational longest;
    for (const auto& entry : loads) {
      const Rational seconds = AlphaSeconds(*entry.spec) + ToRational(entry.load) * bytes_per_load /
                                                               Rational(entry.spec->bandwidth);
      longest = std::max(longest, seconds);
    }
    total += longest;
  });
  return total;
}

Rational PredictedSeconds(const Topology& topology, const Schedule& schedule, int64_t size_bytes) {
  if (schedule.kind == ScheduleKind::kStep) return AnalyticSeconds(topology, schedule, size_bytes);
  return Rational(CompletionPs(topology, schedule), kPicosecondsPerSecond);
}

CostCurve AnalyticCurve(const Topology& topology, const Schedule& schedule) {
  const Rational share = SharePerLoad(schedule);
  // The steps' pieces added up: what changes at which size.
  std::map<Rational, std::pair<Rational, Rational>> changes{{Rational(0), {}}};
  std::vector<CostPiece> lines;
  ForEachStep(topology, schedule, [&](const auto& loads) {
    lines.clear();
    for (const auto& entry : loads)
      lines.push_back({0, AlphaSeconds(*entry.spec),
                       ToRational(entry.load) * share / Rational(entry.spec->bandwidth)});
    CostPiece before;
    for (const CostPiece& piece : UpperEnvelope(lines)) {
      auto& [fixed_s, seconds_per_byte] = changes[piece.from_bytes];
      fixed_s += piece.fixed_s - before.fixed_s;
      seconds_per_byte += piece.seconds_per_byte - before.seconds_per_byte;
      before = piece;
    }
  });
  CostCurve curve;
  CostPiece sum;
  for (const auto& [from_bytes, change] : changes) {
    sum.from_bytes = from_bytes;
    sum.fixed_s += change.first;
    sum.seconds_per_byte += change.second;
    curve.push_back(sum);
  }
  return curve;
}

Rational SecondsAt(const CostCurve& curve, const Rational& bytes) {
  return PieceAt(curve, bytes).At(bytes);
}

std::vector<LeastRange> LeastCurves(std::span<const CostCurve> curves, const Rational& from) {
  TUTTI_CHECK(!curves.empty());
  std::vector<LeastRange> ranges{{LeastAt(curves, from), from}};
  for (;;) {
    const LeastRange& last = ranges.back();
    std::optional<Rational> next;
    for (size_t k = 0; k < curves.size(); ++k) {
      if (k == last.curve) continue;
      const std::optional<Rational> below =
          FirstBelow(curves[k], curves[last.curve], last.from_bytes);
      if (below && (!next || *below < *next)) next = below;
    }
    if (!next) return ranges;
    ranges.push_back({LeastAt(curves, *next), *next});
  }
}

}  // namespace tutti
