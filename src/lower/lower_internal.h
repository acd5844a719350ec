// Lower() with the choices that only exporters make.
#pragma once

#include <utility>
#include <vector>

#include "tutti/lower/lowering.h"

namespace tutti::lower {

struct Choices {
  int32_t channels = 1;
  // Copy what a rank itself has to deliver from input to output first, and send it from there, so
  // that both ends of a message name the same place (as an independent checker of MSCCL XML wants).
  bool copy_own_first = false;
};

Result<Plan> LowerWith(const Topology& topology, const Schedule& schedule, const Choices& choices);

// Drops the dependencies of a rank that others imply: by program order, by a later dependency on
// the same stream, or through the dependencies of a dependency. `order` lists all instructions,
// each after those it waits for. O(instructions * streams).
void PruneDependencies(const std::vector<Dependency>& order, RankPlan& rank);

// Removes streams without instructions and renumbers the dependencies.
void DropEmptyStreams(RankPlan& rank);

}  // namespace tutti::lower
