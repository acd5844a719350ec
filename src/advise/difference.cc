#include "tutti/advise/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tutti {
namespace {

// A transfer with its interval in parts of a shard: begin and end over both numbers of units.
std::array<int64_t, 6> KeyOf(const Schedule& schedule, size_t i, int64_t other_units) {
  const Transfer& transfer = schedule.transfers[i];
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  return {timed ? schedule.start_ps[i] : transfer.step,
          transfer.link.value,
          transfer.shard.value,
          transfer.begin * other_units,
          transfer.end * other_units,
          static_cast<int64_t>(transfer.op)};
}

std::vector<std::array<int64_t, 6>> KeysOf(const Schedule& schedule, int64_t other_units) {
  std::vector<std::array<int64_t, 6>> keys;
  keys.reserve(schedule.transfers.size());
  for (size_t i = 0; i < schedule.transfers.size(); ++i)
    keys.push_back(KeyOf(schedule, i, other_units));
  std::sort(keys.begin(), keys.end());
  return keys;
}

// What the chain was sending over at a time.
LinkId LinkAt(const CriticalChain& chain, double time_s) {
  for (const ChainMessage& message : chain.messages)
    if (message.end_s >= time_s) return message.link;
  return chain.longest_on;
}

}  // namespace

std::vector<std::string> WhyNotComparable(const ScheduleOn& a, const ScheduleOn& b) {
  std::vector<std::string> reasons;
  const Collective &one = a.schedule.collective, &other = b.schedule.collective;
  if (one.kind() != other.kind())
    reasons.push_back(
        fmt::format("other collectives: {} and {}", Name(one.kind()), Name(other.kind())));
  else if (!std::ranges::equal(one.groups(), other.groups()) || one.others() != other.others())
    reasons.emplace_back("other groups of ranks");
  else if (one.has_root() && one.root() != other.root())
    reasons.push_back(fmt::format("other roots: {} and {}", one.root().value, other.root().value));
  else if (one.demand() != other.demand())
    reasons.emplace_back("other demand matrices");
  if (a.topology.num_ranks() != b.topology.num_ranks())
    reasons.push_back(fmt::format("other numbers of ranks: {} and {}", a.topology.num_ranks(),
                                  b.topology.num_ranks()));
  else if (a.topology.Fingerprint() != b.topology.Fingerprint())
    reasons.push_back(
        fmt::format("other networks: {} and {}", a.topology.name(), b.topology.name()));
  return reasons;
}

bool SameTransfers(const Schedule& a, const Schedule& b) {
  if (a.kind != b.kind || a.transfers.size() != b.transfers.size() || a.collective != b.collective)
    return false;
  if (a.kind == ScheduleKind::kTimed &&
      (a.size_bytes != b.size_bytes || a.link_model != b.link_model))
    return false;
  return KeysOf(a, b.units_per_shard) == KeysOf(b, a.units_per_shard);
}

std::vector<LinkDifference> LinkDifferences(const Topology& topology,
                                            const std::vector<LinkTraffic>& a,
                                            const std::vector<LinkTraffic>& b) {
  std::vector<std::pair<Rational, LinkDifference>> rows;
  for (LinkId link : topology.Links()) {
    const Rational &one = a[link.index()].share, &other = b[link.index()].share;
    if (one == other) continue;
    const Rational more = one > other ? one - other : other - one;
    rows.push_back({more / Rational(topology.bandwidth(link)), {link, one, other}});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<LinkDifference> differences;
  for (auto& [seconds, row] : rows) differences.push_back(std::move(row));
  return differences;
}

std::vector<double> ArrivalOfTenths(const std::vector<SimMessage>& trace) {
  std::vector<std::pair<double, double>> arrivals;  // time, bytes
  double total = 0;
  for (const SimMessage& message : trace) {
    arrivals.emplace_back(message.arrive_s, message.bytes);
    total += message.bytes;
  }
  if (total <= 0) return {};
  std::sort(arrivals.begin(), arrivals.end());
  constexpr int kTenths = 10;
  constexpr double kRounding = 1e-9;
  std::vector<double> times;
  double so_far = 0;
  for (const auto& [time, bytes] : arrivals) {
    so_far += bytes;
    while (std::ssize(times) < kTenths &&
           so_far * kTenths >= total * static_cast<double>(times.size() + 1) * (1 - kRounding))
      times.push_back(time);
  }
  return times;
}

Result<std::optional<FallingBehind>> FirstBehind(const ScheduleOn& a, const ScheduleOn& b,
                                                 SimOptions options) {
  constexpr double kMuchOfTheTime = 0.01;
  options.record_messages = true;
  const Result<SimReport> one = Simulate(a.topology, a.schedule, options);
  if (!one) return tl::unexpected(one.error());
  const Result<SimReport> other = Simulate(b.topology, b.schedule, options);
  if (!other) return tl::unexpected(other.error());
  const std::vector<double> of_a = ArrivalOfTenths(one->trace),
                            of_b = ArrivalOfTenths(other->trace);
  const double much = kMuchOfTheTime * std::min(one->time_s, other->time_s);
  for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
    if (of_a[i] - of_b[i] <= much && of_b[i] - of_a[i] <= much) continue;
    FallingBehind behind{.is_b = of_b[i] > of_a[i], .tenths = static_cast<int32_t>(i) + 1};
    const ScheduleOn& slow = behind.is_b ? b : a;
    behind.time_s = std::max(of_a[i], of_b[i]);
    behind.other_s = std::min(of_a[i], of_b[i]);
    const Result<CriticalChain> chain = FindCriticalChain(slow.topology, slow.schedule, options);
    if (!chain) return tl::unexpected(chain.error());
    behind.on = LinkAt(*chain, behind.other_s);
    return behind;
  }
  return std::optional<FallingBehind>();
}

}  // namespace tutti
