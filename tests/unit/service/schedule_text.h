// Schedules as providers give them to daemons.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tutti/coll/collective.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti::service {

inline std::string ScheduleText(const std::string& network, CollectiveKind kind,
                                std::string_view algorithm) {
  const Result<Topology> topology = ParseTopology(network);
  const Result<Collective> collective = Collective::Make(kind, topology->num_ranks(), {});
  const auto synthesizer = FindSynthesizer(algorithm);
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, {});
  EXPECT_TRUE(schedule) << schedule.error().message;
  return ScheduleToJson(*topology, *schedule);
}

}  // namespace tutti::service
