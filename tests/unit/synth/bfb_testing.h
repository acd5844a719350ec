// Shared by the tests of BFB: schedules that are proven before use.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/parse.h"
#include "tutti/coll/collective.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {

using test_support::Parse;

inline Collective MustCollective(CollectiveKind kind, int32_t num_ranks, int32_t root = 0) {
  return *Collective::Make(kind, num_ranks, {.root = root, .all_reduce_shards = 0, .demand = {}});
}

// By the named algorithm, through the registry; proven correct.
inline Schedule MustSynthesize(const Topology& topology, const Collective& collective,
                               const SynthOptions& options = {}) {
  const Result<const Synthesizer*> bfb = FindSynthesizer("bfb");
  EXPECT_TRUE(bfb.has_value());
  Result<Schedule> schedule = RunSynthesizer(**bfb, topology, collective, options);
  EXPECT_TRUE(schedule.has_value()) << (schedule ? "" : schedule.error().message);
  const VerifyReport report = Verify(topology, collective, *schedule);
  EXPECT_TRUE(report.verified()) << report.violations.front().message;
  EXPECT_EQ(schedule->algorithm, "bfb");
  EXPECT_EQ(schedule->seed, options.seed);
  EXPECT_EQ(schedule->topology_fingerprint, topology.Fingerprint());
  return *std::move(schedule);
}

inline Collective AllGather(const Topology& topology) {
  return MustCollective(CollectiveKind::kAllGather, topology.num_ranks());
}

inline BfbCost MustCost(const Topology& topology, const SynthOptions& options = {}) {
  const Result<BfbCost> cost = ComputeBfbCost(topology, AllGather(topology), options);
  EXPECT_TRUE(cost.has_value()) << (cost ? "" : cost.error().message);
  return *cost;
}

// [TB*]
inline Rational OptimalTb(const Topology& topology) {
  return Rational(topology.num_ranks() - 1, topology.num_ranks());
}

}  // namespace tutti
