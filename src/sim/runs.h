// The ways to simulate. Each takes a schedule that keeps S1 .. S4 on this topology and gives its
// messages to the recorder.
#pragma once

#include "recorder.h"

namespace tutti::sim {

// Steps one after the other, each starting when the last message of the one before has arrived.
void RunWithBarriers(const Topology& topology, const Schedule& schedule, Recorder& recorder);

// A message starts as soon as its link is free, its data has arrived and what it overwrites has
// been sent.
void RunEagerly(const Topology& topology, const Schedule& schedule, Recorder& recorder);

// A timed schedule, replayed in the order of its starts; the times themselves are only right for
// the size and the network it was made for. Each transfer reads the value that it read in the plan.
void RunTimed(const Topology& topology, const Schedule& schedule, Recorder& recorder);

}  // namespace tutti::sim
