// Step schedules of all-gather and broadcast over equal links: variants of the order of choice,
// each handed over round by round or kept in memory.
#pragma once

#include <functional>
#include <span>

#include "ten/events.h"
#include "ten/input.h"
#include "ten/rounds.h"

namespace tutti::ten {

// The order of choice of an attempt, counted from the seed: plain ones first.
struct Variant {
  uint64_t number = 0;
  bool by_rounds() const { return number < 4 || number % 2 == 1; }
  LinkOrder order() const {
    constexpr LinkOrder kPlain[] = {LinkOrder::kFarthestNumber, LinkOrder::kNearestNumber,
                                    LinkOrder::kScarcestTail, LinkOrder::kLeastBacklog};
    return number < std::size(kPlain) ? kPlain[number] : LinkOrder::kSeeded;
  }
  ChunkChoice choice() const { return number == 4 ? ChunkChoice::kRarest : ChunkChoice::kRandom; }
};

// The transfers of one round, by link.
using StepSink = std::function<Status(int32_t step, std::span<const Transfer> transfers)>;

// Calls `sink` for every round (may be empty); the number of rounds, or `most` + 1 as soon as more
// than `most` are needed. kCancelled, or what the sink says.
Result<int32_t> MatchSteps(const Input& input, const Variant& variant, int32_t most,
                           const StepSink& sink);

// The best of all variants tried.
Result<Schedule> MakeInRounds(const Input& input, const SynthOptions& options);

}  // namespace tutti::ten
