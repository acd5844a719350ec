// The plans that a calibration runs: all-to-all-v of a few pairs, with bytes as elements.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/lower/plan.h"

namespace tutti::calibrate {

struct Pair {
  int32_t first = 0, second = 0;
};

// Rounds of disjoint pairs in which every two ranks meet once.
std::vector<std::vector<Pair>> Tournament(int32_t ranks);

// In each pair the first sends `bytes`, and the second answers with one byte when it has them.
Plan PingPlan(int32_t ranks, const std::vector<Pair>& pairs, int64_t bytes);
// `bytes` from `rank` to every other; or to it from every other.
Plan FanOutPlan(int32_t ranks, int32_t rank, int64_t bytes);
Plan FanInPlan(int32_t ranks, int32_t rank, int64_t bytes);
// `bytes` from every rank to every other.
Plan ShufflePlan(int32_t ranks, int64_t bytes);

}  // namespace tutti::calibrate
