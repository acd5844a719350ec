// A schedule for the network that is left to a communicator when links are lost: made by `forest` on the links and switches
// themselves, judged, and put into connections between ranks, each on its route.
//
// Model       The network is the cluster's without the links that are lost and without other communicators' ranks. Trees are
//             packed to its tightest cut; a part that goes from rank to rank through switches becomes a transfer over
//             a connection (from, to, route). Rings pay for a narrow place between racks with every shard but one, such
//             trees only with those that have to pass.
// Units       seconds a byte of M (docs/glossary.md), of the busiest link.
// Errors      Nothing where there is no such schedule: a network that is no longer connected, too large to be packed in
//             about a second, or where a part would take a way that is no route. Rings do then.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "strategy_files.h"
#include "tutti/base/rational.h"
#include "tutti/controller/controller.h"

namespace tutti::controller {

struct StrategyForLeft {
  JobStrategy strategy;  // no rings: the connections between hosts, and their routes
  StrategyTexts texts;
  Rational all_reduce;  // seconds a byte
};

// `bandwidth`: what the communicator has of each link of the network; 0: the link is lost. Files are called after `label`.
std::optional<StrategyForLeft> SynthesizeForLeft(const ClusterConfig& config,
                                                 std::span<const int64_t> bandwidth,
                                                 std::span<const int32_t> ranks,
                                                 std::string_view label);

// What an all-reduce over the rings of `strategy` takes on the same links.
Rational AllReduceOverRings(const ClusterConfig& config, std::span<const int64_t> bandwidth,
                            const JobStrategy& strategy);

// The network left to them: its ranks are `ranks`, in their order, then all switches. `origin`: the network's link of each.
Result<Topology> NetworkLeft(const ClusterConfig& config, std::span<const int64_t> bandwidth,
                             std::span<const int32_t> ranks, std::vector<LinkId>& origin);

}  // namespace tutti::controller
