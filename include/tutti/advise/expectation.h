// What to expect of a network: the best schedule of Tutti, a ring, the proven limit, and other
// wirings of the same ports.
//
// Model       Best: ChooseSynthesizer (synth/auto.h), on networks of few ranks with switches also
//             on the best unwinding (advise/unwinding.h). Ring: the synthesizer `ring` where ranks
//             are joined directly, else RingEstimate of advise/wiring.h. Limit: ProveBounds.
// Wirings     Bidirectional networks of as many ranks with as many ports from design/finder.h, all
//             with the links of the network asked about.
// Complexity  A choice among all algorithms a collective and size; each has kExpectBudgetNs.
// Errors      As those; an algorithm's kInfeasible is told in the answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/advise/shape.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/sched/schedule.h"
#include "tutti/topo/topology.h"

namespace tutti {

// With more, schedules through the switches as they are stand for the best.
inline constexpr int32_t kMaxRanksToUnwind = 16;
inline constexpr int64_t kExpectBudgetNs = 20'000'000'000;  // forecast work of a choice

struct Expectation {
  CollectiveKind collective = CollectiveKind::kAllReduce;
  int64_t size_bytes = 0;
  Rational bus_factor = 1;
  Rational limit_s = {};                // proven: nothing is faster
  std::optional<Rational> best_s = {};  // nullopt: `reason`
  std::string algorithm = {}, reason = {};
  // What best_s was predicted of, and the network that it is on where switches were unwound.
  std::optional<Schedule> schedule = {};
  std::optional<Topology> unwound = {};
  std::optional<Rational> ring_s = {};
  bool ring_is_estimate = false;
};

// `expression` names `topology`. kCancelled, and what bounds say.
Result<Expectation> Expect(const Topology& topology, const std::string& expression,
                           const Boxes& boxes, CollectiveKind collective, int64_t size_bytes);

struct OtherWiring {
  std::string recipe;
  Topology topology;
};
// Networks that are worth wiring in place of `topology`, each other than it. kInfeasible: why none
// is looked for: switches, unlike links, one machine, or too many ranks.
inline constexpr int32_t kMaxRanksToRewire = 64;
Result<std::vector<OtherWiring>> OtherWirings(const Topology& topology);

}  // namespace tutti
