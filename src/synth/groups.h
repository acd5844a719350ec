// Schedules of collectives within groups of ranks (coll/collective.h), out of those that algorithms make of
// whole networks.
//
// Model       A group's own collective is made on the network in which the other ranks are switches
//             (topo/group_network.h), then put where its nodes and links are: what a switch forwards several
//             times a rank gets once and keeps. What reduces is the reverse of what spreads (derive.cc), so
//             that ranks in no group also reduce what passes them. Several groups are laid over each other:
//             step by step, or, timed, one transfer after the other as links come free. Each is made both
//             ways, through the other ranks and over the links between its own, and the faster is kept.
//             All-to-all of several groups is one all-to-allv of all that are in one, so that their paths
//             are planned together; GroupUse::kTogether plans any of them together.
// Errors      Those of the synthesizer and of MakeGroupNetwork.
#pragma once

#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

// `collective` has groups, and the synthesizer takes some.
Result<Schedule> SynthesizeOfGroups(const Synthesizer& synthesizer, const Topology& topology,
                                    const Collective& collective, const SynthOptions& options);

}  // namespace tutti
