// The best of all synthesizers for one size: what `-a auto` runs.
//
// Model       Every synthesizer that makes the collective is run as `tutti compare` runs it, an
//             all-reduce then also over one shard instead of N, or N instead of one; then, where
//             more or fewer chunks may be faster (chunk_choice), they are doubled or halved while
//             that helps. What each schedule takes is predicted by PredictedSeconds (sched/cost.h):
//             the alpha-beta cost with a barrier a step, the completion of a timed schedule. An
//             executor without barriers is never later than that under this model; by how much it
//             is earlier differs between algorithms and is not looked at.
//             Not run is what cannot be better than the best so far (the network's limits and
//             Forecast::min_steps say so), what is forecast to take longer than is left of the
//             budget, and what runs on request only. Routers (synth/router.h) make no schedule.
// Exactness   Times are compared as fractions; of equal ones the first in the registry's order.
//             Which are run depends on forecasts, not on clocks: the same choice on every machine.
// Invariants  No candidate that was predicted, or skipped for its limit, is faster than the chosen.
// Errors      kInfeasible: nothing makes it; the message holds each one's reason. kCancelled. What
//             ComputeBounds says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

inline constexpr std::string_view kAutoName = "auto";
inline constexpr int64_t kAutoBudgetNs = 60'000'000'000;  // forecast work, of all runs

// One synthesizer, in the best variant that was tried of it.
struct AutoCandidate {
  std::string_view algorithm = {};
  std::optional<Rational> seconds = {};  // predicted
  int32_t chunks = 0;                    // a shard, where predicted
  int32_t shards = 0;                    // of an all-reduce, where predicted
  bool failed = false;                   // has no schedule here, rather than skipped
  std::string reason = {};               // why nothing is predicted
};

struct AutoChoice {
  Schedule schedule;                      // its `algorithm` is that of the chosen
  SynthNotes notes;                       // of it
  std::vector<AutoCandidate> candidates;  // in the registry's order
  size_t chosen = 0;
  int64_t work_ns = 0;    // forecast of what was run
  Rational limit_s;       // proven: no schedule is faster
  Rational step_limit_s;  // proven: no step schedule with barriers is faster
};

// `collective` as the user named it; a shape of all-reduce that a candidate wants is made here.
// options.chunks > 0: with so many chunks and no others. Options that some synthesizers lack
// (policies, counting chunks) reach the others only.
Result<AutoChoice> ChooseSynthesizer(const Topology& topology, const Collective& collective,
                                     const SynthOptions& options,
                                     int64_t budget_ns = kAutoBudgetNs);

// Why it was chosen: "no schedule is faster: it meets the bound", "3.1 % faster than the next,
// ten".
std::string WhyChosen(const AutoChoice& choice);

}  // namespace tutti
