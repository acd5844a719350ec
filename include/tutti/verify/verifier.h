// The independent judge: runs a schedule symbolically and says what is wrong with it.
//
// Model       For each shard and each elementary interval (between neighbouring chunk ends) every
//             rank holds a set of contributions. A copy replaces the receiver's set by the
//             sender's, which must be a strict superset; a reduction unites two sets, which must be
//             disjoint. In the end every destination holds all contributions.
// Rules       V1 structure (S1 .. S4 of sched/schedule.h) and the right topology; V2 a sender
//             holds, fully arrived, what it sends when it sends it; V3 nothing is delivered to a
//             rank that holds it already; V4 no contribution is reduced twice into one value, none
//             is overwritten; V5 a timed link carries one message at a time (per its link model);
//             V6 the postcondition. Two
//             writes to one place at the same time must both reduce. At one instant what arrives
//             comes before what is sent. A switch holds and forwards copies, of a sum the latest (one that reduces adds as ranks do);
//             it never reduces. Blocks of no bytes (all-to-allv) need not be delivered. After a
//             fault the run goes on as if the data had been there, or the write had not been, so
//             that one fault is not reported by everyone downstream.
// Independence  Shares no code with synth; needs (topology, collective, schedule) and nothing else.
// Complexity  Time O(transfers * elementary intervals a transfer spans * N / 64 for reductions),
//             shards in parallel; memory O(transfers) + per thread one shard's state.
// Reference   [direct-connect] Appendix B Definition 4.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/sched/schedule.h"

namespace tutti {

enum class ViolationKind : uint8_t {
  kStructure,
  kWrongTopology,
  kMissingLink,
  kNotHeld,            // the sender does not hold what it sends, or only later
  kRedundantDelivery,  // the receiver holds it already
  kDoubleReduction,    // a contribution would count twice
  kOverwrite,          // a copy would lose contributions
  kLinkOverlap,
  kPostcondition,  // a destination lacks something in the end
  kSymmetry,       // verify/symmetric.h: the generators are no group of translations
};
std::string_view Name(ViolationKind kind);  // "not-held"

struct Violation {
  ViolationKind kind;
  std::string
      message;  // who, what (shard and interval), when, over which link; and the other culprit
  int64_t transfer = -1;  // index into schedule.transfers, -1 for none (postcondition)
};

struct VerifyReport {
  // In order of time, at most max_violations of them; empty means proven correct.
  std::vector<Violation> violations;
  int64_t num_violations = 0;  // all of them
  int64_t deliveries = 0;      // transfers checked
  bool cancelled = false;      // interrupted (base/cancel.h): nothing is proven
  bool verified() const { return num_violations == 0 && !cancelled; }
};

struct VerifyOptions {
  int32_t max_violations = 20;
};

VerifyReport Verify(const Topology& topology, const Collective& collective,
                    const Schedule& schedule, const VerifyOptions& options = {});

}  // namespace tutti
