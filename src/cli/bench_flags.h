// The flags of `tutti bench`, which `tutti` checks and tutti-experiments obeys.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common.h"

namespace tutti::cli {

struct BenchFlags {
  std::string name, output, simulated, redraw;
  bool markdown = false, large = false;
  int64_t max_ranks = 0, step = 0;
};
Command AddBenchCommand(Program& program, const std::shared_ptr<BenchFlags>& flags);

}  // namespace tutti::cli
