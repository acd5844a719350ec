// Step schedules of all-gather and broadcast over equal links: variants of the order of choice,
// each handed over round by round or kept in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ten/events.h"
#include "ten/input.h"
#include "ten/rounds.h"

namespace tutti::ten {

// The order of choice of an attempt, counted from the seed: plain ones first. Without a policy
// that was asked for, arrival and others take turns.
class Variant {
 public:
  Variant(const Input& input, uint64_t number);

  // By rounds.h, or with a policy by events.h.
  bool by_rounds() const { return policy_ == nullptr; }
  LinkOrder order() const;
  const Policy& policy() const { return *policy_; }
  uint64_t seed() const { return seed_; }

 private:
  uint64_t number_, seed_;
  const Policy* policy_ = nullptr;
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
