// What the tests of the room share: networks and proven schedules.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/parse.h"
#include "tutti/sched/schedule.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {

using test_support::Parse;

inline Schedule MustMake(const Topology& topology, CollectiveKind kind,
                         const std::string& algorithm, SynthOptions options = {}) {
  const Synthesizer* const synthesizer = *FindSynthesizer(algorithm);
  const Collective collective = *Collective::Make(
      kind, topology.num_ranks(), {.all_reduce_shards = synthesizer->one_shard_all_reduce ? 1 : 0});
  Result<Schedule> schedule = RunSynthesizer(*synthesizer, topology, collective, options);
  EXPECT_TRUE(schedule.has_value()) << schedule.error().message;
  if (!schedule) return Schedule{.collective = collective};
  EXPECT_TRUE(Verify(topology, schedule->collective, *schedule).verified());
  return *std::move(schedule);
}

}  // namespace tutti
