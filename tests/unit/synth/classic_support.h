// What the tests of the classic algorithms share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "support/parse.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti::classic_test {

using test_support::Parse;

inline const Synthesizer& Algorithm(std::string_view name) {
  const Result<const Synthesizer*> found = FindSynthesizer(name);
  EXPECT_TRUE(found.has_value()) << found.error().message;
  return **found;
}

// The collective as `-a name` wants it.
inline Collective CollectiveFor(std::string_view name, CollectiveKind kind, int32_t num_ranks,
                                int32_t root = 0) {
  Collective::Options options;
  options.root = root;
  if (kind == CollectiveKind::kAllReduce && Algorithm(name).one_shard_all_reduce)
    options.all_reduce_shards = 1;
  return *Collective::Make(kind, num_ranks, std::move(options));
}

inline Result<Schedule> Synthesize(std::string_view name, const Topology& topology,
                                   const Collective& collective, const SynthOptions& options = {}) {
  return RunSynthesizer(Algorithm(name), topology, collective, options);
}

// Proven correct, labelled, and not below the limits.
inline void ExpectSound(std::string_view name, const Topology& topology,
                        const Collective& collective, const Schedule& schedule) {
  const VerifyReport report = Verify(topology, collective, schedule);
  EXPECT_TRUE(report.verified()) << (report.violations.empty() ? ""
                                                               : report.violations.front().message);
  EXPECT_EQ(schedule.algorithm, name);
  EXPECT_EQ(schedule.topology_fingerprint, topology.Fingerprint());
  const Result<Bounds> bounds = ComputeBounds(topology, collective);
  ASSERT_TRUE(bounds.has_value()) << bounds.error().message;
  const StepCost cost = AnalyticCost(topology, schedule);
  EXPECT_EQ(cost.tl, schedule.num_steps);
  EXPECT_GE(cost.tl, bounds->steps);
  EXPECT_GE(cost.tb, bounds->tb);
}

inline Schedule MustRun(std::string_view name, const Topology& topology, CollectiveKind kind,
                        const SynthOptions& options = {}, int32_t root = 0) {
  const Collective collective = CollectiveFor(name, kind, topology.num_ranks(), root);
  Result<Schedule> made = Synthesize(name, topology, collective, options);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  if (!made) return {.collective = collective};
  ExpectSound(name, topology, collective, *made);
  return *std::move(made);
}

inline StepCost CostOf(std::string_view name, std::string_view expression, CollectiveKind kind,
                       const SynthOptions& options = {}) {
  const Topology topology = Parse(expression);
  return AnalyticCost(topology, MustRun(name, topology, kind, options));
}

}  // namespace tutti::classic_test
