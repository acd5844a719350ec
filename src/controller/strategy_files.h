// What a daemon is given for the rings and routes of a communicator: schedules over the rings, and a flow table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/base/result.h"
#include "tutti/control/policy.h"
#include "tutti/controller/cluster_config.h"
#include "tutti/sched/schedule.h"

namespace tutti::controller {

struct StrategyTexts {
  // JSON list of {"name", "text"}: all-reduce, all-gather, reduce-scatter over the rings, then the others.
  std::string schedules;
  std::string flows;  // JSON list, docs/formats/service.md
};

// `ranks`: of the network, by rank of the communicator; files are called after `label`. `by_size`: beside the rings
// schedules of few steps, on which daemons fall back where that takes less; both are predicted with the links' alphas
// and each connection's fair share of the links. kInvalidArgument: the rings have other ranks.
Result<StrategyTexts> MakeStrategyTexts(const ClusterConfig& config, std::string_view label,
                                        std::span<const int32_t> ranks, const JobStrategy& strategy,
                                        bool by_size);

// The same of schedules that are made, each with its network between the ranks of the communicator; `strategy` has the flows.
StrategyTexts TextsOf(const ClusterConfig& config, std::string_view label,
                      std::span<const int32_t> ranks, const JobStrategy& strategy,
                      std::span<const std::pair<Topology, Schedule>> files);

// The channel of each flow among those of its pair of ranks, by flow of `strategy`: the number of earlier rings with the
// same edge, as plans number parallel links.
std::vector<int32_t> ChannelsOfFlows(const JobStrategy& strategy);

}  // namespace tutti::controller
