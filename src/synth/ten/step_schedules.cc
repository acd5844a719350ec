#include "ten/step_schedules.h"

#include <iterator>
#include <limits>
#include <utility>

namespace tutti::ten {
namespace {

constexpr LinkOrder kPlainOrders[] = {LinkOrder::kFarthestNumber, LinkOrder::kNearestNumber,
                                      LinkOrder::kScarcestTail, LinkOrder::kMinBacklog};

Result<int32_t> MatchByRounds(const Input& input, const Variant& variant, int32_t most,
                              const StepSink& sink) {
  const RoundsProblem problem{.topology = input.topology,
                              .source = input.source,
                              .order = variant.order(),
                              .seed = variant.seed()};
  if (!sink) return MatchRounds(problem, most, {});
  // By link, as files have it: then a writer need not sort.
  const std::vector<LinkId> link_of_slot = InLinkSlots(input.topology);
  std::vector<uint32_t> slot_of_link(link_of_slot.size());
  for (size_t slot = 0; slot < link_of_slot.size(); ++slot)
    slot_of_link[link_of_slot[slot].index()] = static_cast<uint32_t>(slot);
  std::vector<Transfer> transfers;
  transfers.reserve(slot_of_link.size());
  return MatchRounds(
      problem, most, [&](int32_t round, std::span<const uint32_t> chunk_of_slot) -> Status {
        transfers.clear();
        for (LinkId link : input.topology.Links())
          if (const uint32_t chunk = chunk_of_slot[slot_of_link[link.index()]]; chunk != kNoChunk)
            transfers.push_back(input.MakeTransfer(link, chunk, round));
        return sink(round, transfers);
      });
}

// Equal links as links that take 1: what starts at t is of round t.
Result<int32_t> MatchByEvents(const Input& input, const Variant& variant, int32_t most,
                              const StepSink& sink) {
  const std::vector<LinkTime> time(static_cast<size_t>(input.topology.num_links()));
  const EventsProblem problem{.topology = input.topology,
                              .source = input.source,
                              .time = time,
                              .policy = variant.policy(),
                              .window = WindowOf(input),
                              .seed = variant.seed()};
  if (!sink)
    return MatchEvents(problem, most, {}).map([](int64_t end) {
      return static_cast<int32_t>(end);
    });
  Status taken;
  std::vector<Transfer> transfers;
  const auto flush = [&] {
    if (taken && !transfers.empty()) taken = sink(transfers.front().step, transfers);
    transfers.clear();
  };
  const Result<int64_t> end =
      MatchEvents(problem, most, [&](LinkId link, uint32_t chunk, int64_t start) {
        const auto step = static_cast<int32_t>(start);
        if (!transfers.empty() && transfers.front().step != step) flush();
        transfers.push_back(input.MakeTransfer(link, chunk, step));
      });
  if (!end) return tl::unexpected(end.error());
  flush();
  if (!taken) return tl::unexpected(taken.error());
  return static_cast<int32_t>(*end);
}

}  // namespace

Variant::Variant(const Input& input, uint64_t number) : number_(number), seed_(number) {
  if (input.policy != nullptr) {
    if (input.policy->takes_first) return;
    policy_ = input.policy;
    seed_ = number + 1;
    return;
  }
  if (number < std::size(kPlainOrders) || number % 2 == 1) return;
  policy_ = &(number == 4 ? RarestPolicy() : RandomPolicy());
}

LinkOrder Variant::order() const {
  return number_ < std::size(kPlainOrders) ? kPlainOrders[number_] : LinkOrder::kSeeded;
}

Result<int32_t> MatchSteps(const Input& input, const Variant& variant, int32_t most,
                           const StepSink& sink) {
  return variant.by_rounds() ? MatchByRounds(input, variant, most, sink)
                             : MatchByEvents(input, variant, most, sink);
}

Result<Schedule> MakeInRounds(const Input& input, const SynthOptions& options) {
  const int32_t fewest = FewestRounds(input.topology, input.source);
  Schedule best = Header(input, options.seed);
  best.num_steps = std::numeric_limits<int32_t>::max();
  for (int32_t attempt = 0; attempt < TriesOf(input, options); ++attempt) {
    const Variant variant(input, options.seed - 1 + static_cast<uint64_t>(attempt));
    Schedule schedule = Header(input, options.seed);
    schedule.transfers.reserve(static_cast<size_t>(input.num_deliveries()));
    const Result<int32_t> rounds = MatchSteps(
        input, variant, best.num_steps - 1,
        [&schedule](int32_t, std::span<const Transfer> transfers) -> Status {
          schedule.transfers.insert(schedule.transfers.end(), transfers.begin(), transfers.end());
          return {};
        });
    if (!rounds) return tl::unexpected(rounds.error());
    if (*rounds >= best.num_steps) continue;
    schedule.num_steps = *rounds;
    best = std::move(schedule);
    if (best.num_steps <= fewest) break;
  }
  return best;
}

}  // namespace tutti::ten
