// Where `explain` has its schedule from: a file, or made as `synth` makes it.
#pragma once

#include <cstdint>
#include <string>

#include "common.h"
#include "tutti/store/store.h"

namespace tutti::cli {

struct ScheduleSource {
  std::string what;  // a file with a schedule; with `algorithm` a network
  std::string algorithm;
  CollectiveFlags collective;
  ChunksFlag chunks;
  uint64_t seed = 1;

  void AddTo(Command command);
};

// Proven. kInvalidArgument: options of a maker, and no -a; kInfeasible: the schedule is wrong (what
// verify says), or the algorithm has none. `size`: what it is made for.
Result<ScheduleFile> LoadSchedule(const ScheduleSource& source, const Command& command,
                                  int64_t size, LinkModel link_model);

// A file with a schedule, proven.
Result<ScheduleFile> LoadScheduleFile(const std::string& path);

// "box0.gpu1 -> rail1"
std::string LinkName(const Topology& topology, LinkId link);

}  // namespace tutti::cli
