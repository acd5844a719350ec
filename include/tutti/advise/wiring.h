// How the machines of a network are cabled, and which settings of NCCL that asks for.
//
// Model       Machines are boxes by name (advise/shape.h), or ranks where there are none; dgx1 is
//             one machine. A switch whose neighbours are all ranks of one box is inside that box;
//             with any other switch the machines are switched, without one cabled directly.
// Reference   Settings: NCCL's documentation of its environment variables; what people met on
//             machines without a switch: NVIDIA/nccl issues 1034 and 1095.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/advise/shape.h"
#include "tutti/base/rational.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

enum class WiringKind : uint8_t {
  kOneMachine,
  kSwitched,
  kAllPairs,  // a cable between any two machines; two machines, and three in a ring, too
  kRing,      // each has two neighbours, and four machines or more close a circle
  kLine,      // a ring with one cable missing
  kOther,
};
std::string_view Name(WiringKind kind);  // "ring"

struct Wiring {
  WiringKind kind = WiringKind::kOneMachine;
  int32_t machines = 0;
  int32_t max_neighbours = 0;   // directly cabled ones of a machine
  bool separate_rails = false;  // switched: some ranks reach others only through a rank
  // Machines in an order in which each is cabled to the next and the last to the first, where the
  // search finds one: kRing, kAllPairs, small kOther. By the number of the box, or the rank.
  std::vector<int32_t> circle = {};
};
Wiring WiringOf(const Topology& topology, const Boxes& boxes);

// A variable of NCCL's environment.
struct NcclSetting {
  std::string variable = {};
  std::string value = {};  // "" where only the machine itself can tell: the reason says what to put
  std::string reason = {};
};
struct NcclAdvice {
  std::vector<NcclSetting> settings = {};
  std::vector<std::string> notes = {};  // traps that no setting avoids, and checks
};
NcclAdvice AdviseNccl(const Wiring& wiring);

// What a ring over all ranks in their order, box after box, takes in steady state, each hop over
// shortest paths, evenly over equal ones: an estimate of NCCL's rings where switches are between.
// A channel a place in the boxes, so that each NIC is used; odd boxes are passed backwards, so that
// crossings stay on their rail.
struct RingEstimate {
  int32_t channels = 1;
  int64_t hop_ps = 0;              // the largest sum of alphas between neighbours
  Rational seconds_per_byte = {};  // of what passes each neighbour pair in all channels together

  // All-gather and reduce-scatter: N - 1 hops of M / N; all-reduce twice that; broadcast and reduce
  // all of M. nullopt: another collective.
  std::optional<Rational> Seconds(CollectiveKind kind, int32_t ranks, int64_t size_bytes) const;
};
RingEstimate EstimateRing(const Topology& topology, const Boxes& boxes);

}  // namespace tutti
