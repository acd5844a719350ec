#include "ten/timed_schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "ten/events.h"
#include "ten/link_time.h"
#include "ten/reroute.h"
#include "tutti/sched/transform.h"

namespace tutti::ten {
namespace {

// Searches from every source, and their table, are worth it up to here: 4096 ranks.
constexpr int64_t kMaxPairsOfFarthest = int64_t{1} << 24;

// How an attempt matches. Without a policy that was asked for, several take turns, and so do
// waiting and not waiting where that is not fixed either: whatever the seed, the plain ones first.
struct TimedVariant {
  const Policy* policy;
  bool waits = true;
  uint64_t seed = 1;

  TimedVariant(const Input& input, uint64_t first_seed, uint64_t number)
      : policy(input.policy), seed(first_seed + number) {
    if (policy != nullptr) {
      waits = policy->waits;
    } else {
      const int64_t ranks = input.topology.num_ranks();
      const Policy* plain[] = {
          &ArrivalPolicy(),
          ranks * ranks <= kMaxPairsOfFarthest ? &FarthestPolicy() : &RarestPolicy(),
          &RarestPolicy(), &RarestPolicy()};
      // The last two differ in waiting only.
      const size_t num_plain = std::size(plain) - (input.waiting == Waiting::kAuto ? 0 : 1);
      const bool is_plain = number < num_plain;
      policy = is_plain ? plain[number] : &RandomPolicy();
      waits = is_plain ? number < 3 : number % 2 == 1;
      seed = is_plain ? first_seed : seed - 1;
    }
    if (input.waiting != Waiting::kAuto) waits = input.waiting == Waiting::kAlways;
  }
};

// For a large network fewer passes, so that they take about as long as matching does. Paths through
// switches are not routed again.
int32_t PassesOf(const Input& input, const SynthOptions& options) {
  if (input.topology.has_switches()) return 0;
  constexpr int64_t kDeliveries = 2'000'000, kMostDeliveries = 40'000'000, kMaxTriedPasses = 6;
  if (!options.final_pass || input.num_deliveries() > kMostDeliveries) return 0;
  return static_cast<int32_t>(
      std::clamp<int64_t>(kDeliveries / input.num_deliveries(), 1, kMaxTriedPasses));
}

// Hops are found chunk by chunk, each over all its switches.
void SortByStart(Schedule& schedule) {
  std::vector<size_t> order(schedule.transfers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return schedule.start_ps[a] < schedule.start_ps[b]; });
  Schedule sorted = schedule;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.transfers[i] = schedule.transfers[order[i]];
    sorted.start_ps[i] = schedule.start_ps[order[i]];
  }
  schedule = std::move(sorted);
}

// One attempt's schedule, and when it ends; later than `max_ps`: it was given up.
Result<int64_t> Match(const Input& input, const TimedVariant& how, std::span<const LinkTime> time,
                      const std::optional<SwitchPaths>& paths, int64_t max_ps, Schedule& schedule) {
  const EventsProblem problem{.topology = paths ? paths->network() : input.topology,
                              .source = input.source,
                              .time = paths ? paths->time() : time,
                              .policy = *how.policy,
                              .window = WindowOf(input),
                              .waits = how.waits,
                              .seed = how.seed};
  schedule.transfers.reserve(static_cast<size_t>(input.num_deliveries()));
  schedule.start_ps.reserve(static_cast<size_t>(input.num_deliveries()));
  const SendSink sink = [&](LinkId link, uint32_t chunk, int64_t start_ps) {
    schedule.transfers.push_back(input.MakeTransfer(link, chunk, 0));
    schedule.start_ps.push_back(start_ps);
  };
  if (!paths) return MatchEvents(problem, max_ps, sink);
  const Result<int64_t> end_ps =
      MatchThroughSwitches(problem, *paths, input.switch_use, max_ps, sink);
  SortByStart(schedule);
  return end_ps;
}

}  // namespace

Result<Schedule> MakeInEvents(const Input& input, const SynthOptions& options) {
  Schedule header = Header(input, options.seed);
  header.kind = ScheduleKind::kTimed;
  header.size_bytes = input.size_bytes;
  header.link_model = input.link_model;
  std::vector<LinkTime> time;
  for (LinkId link : input.topology.Links()) {
    time.push_back(LinkTimeOf(header, input.topology, input.MakeTransfer(link, 0, 0)));
    if (time.back().travel_ps == kLongestPs)
      return MakeError(ErrorCode::kResourceExhausted,
                       fmt::format("a chunk takes longer than {} ps on a link", kLongestPs));
  }
  std::optional<SwitchPaths> paths;
  if (input.topology.has_switches()) {
    Result<SwitchPaths> made = SwitchPaths::Make(input.topology, time);
    if (!made) return tl::unexpected(made.error());
    paths = *std::move(made);
  }
  Schedule best = header;
  int64_t best_ps = std::numeric_limits<int64_t>::max();
  const int32_t passes = PassesOf(input, options);
  for (int32_t attempt = 0; attempt < TriesOf(input, options); ++attempt) {
    const TimedVariant how(input, options.seed, static_cast<uint64_t>(attempt));
    Schedule schedule = header;
    // What is a little late may be the best when it has been routed again.
    const int64_t max_ps = passes > 0 && best_ps < kLongestPs ? best_ps + best_ps / 2 : best_ps - 1;
    Result<int64_t> end_ps = Match(input, how, time, paths, max_ps, schedule);
    if (!end_ps) return tl::unexpected(end_ps.error());
    if (*end_ps > max_ps) continue;
    if (passes > 0) {
      Result<Schedule> rerouted = Reroute(input, schedule, passes);
      if (!rerouted) return rerouted;
      schedule = *std::move(rerouted);
      end_ps = CompletionPs(input.topology, schedule);
    }
    if (*end_ps >= best_ps) continue;
    best_ps = *end_ps;
    best = std::move(schedule);
  }
  return best;
}

}  // namespace tutti::ten
