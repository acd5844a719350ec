// Which ranks of a network the ranks of a job lie on best: the order in which a schedule takes least time.
//
// Model       A placement is an order of all N ranks of the network: rank i of the job lies on the i-th. The
//             first `num_used` ranks of the job take part in something; the others lie on what is left, in
//             ascending order. What a placement takes is asked of the caller, who makes the schedule and
//             prices it.
// Search      All N! / (N - used)! placements where those are at most kAllUpTo. Otherwise from the best of
//             the given starts: exchanges of two places, in random order, each kept where it is less, until
//             none is; then again from the best, some places drawn anew. Ends after `max_tries` placements.
// Exactness   Prices are rationals: which of two placements takes less is never rounded.
// Invariants  The same seed gives the same placement on every machine. Never worse than any start.
//             Placements that have no price since a group falls apart there (kInfeasible) are passed over, also
//             starts; where no start has one, placements drawn at random are the next.
// Errors      kCancelled; where no placement tried has a price, what the first start's fails with; at once
//             where that is not kInfeasible.
// Complexity  max_tries, or kAllUpTo, prices; O(N) a try beside.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"

namespace tutti {

struct FoundPlacement {
  std::vector<NodeId> ranks;  // all N, the used ones first
  Rational seconds;
  std::optional<Rational> first_seconds;  // of the first start; nothing where it has no price
  int64_t tries = 0;
  bool is_least = false;  // none of all placements takes less
};

struct PlacementSearch {
  static constexpr int64_t kAllUpTo = 5040;

  uint64_t seed = 1;
  int64_t max_tries = 2000;
};

// `starts`: orders of all N ranks, at least one. `num_used` <= N.
Result<FoundPlacement> FindPlacement(
    const std::vector<std::vector<NodeId>>& starts, int32_t num_used,
    const std::function<Result<Rational>(std::span<const NodeId>)>& seconds_of,
    const PlacementSearch& search);

}  // namespace tutti
