// The measuring programs of `tutti mpi`: found, run under the MPI's launcher, and read.
//
// Errors      kNotFound without a launcher or program; kPeerFailed with the command that failed.
#pragma once

#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/tune/cost_model.h"

namespace tutti::cli {

// How a measuring program is to be launched.
struct Launch {
  tune::Library library = tune::Library::kOpenMpi;
  int ranks = 0;  // 0: as many as there are cores, 2 at least
  std::string hostfile;
  std::vector<std::string> launcher_arguments;
};

struct MpiCluster {
  int ranks = 0, nodes = 0, largest_node = 0;
  // Ranks a core on the machine with the most ranks for its cores, where they have to take turns; else 0.
  int crowded_ranks = 0, crowded_cores = 0;

  bool crowded() const { return crowded_ranks > 0; }
};

// What a measuring program prints, sorted by its kind; its progress is shown on the way.
struct MpiOutput {
  MpiCluster cluster;
  std::string samples;
  std::vector<std::string> times;
};

// `program` is "probe" or "tune".
Result<MpiOutput> MeasureMpi(const Launch& launch, const std::string& program,
                             const std::vector<std::string>& arguments);

}  // namespace tutti::cli
