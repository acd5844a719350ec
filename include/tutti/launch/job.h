// Which rank of which job this process is, as the launcher says in the environment.
//
// Reference   Open MPI and PMIx: OMPI_COMM_WORLD_*; MPICH's Hydra: PMI_RANK, PMI_SIZE,
//             MPI_LOCALNRANKS; torchrun: RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR; Slurm:
//             SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NUM_NODES.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tutti/base/result.h"

namespace tutti {

struct JobRank {
  std::string launcher;  // "Open MPI", "Hydra", "torchrun", "Slurm"
  int32_t rank = 0, num_ranks = 1;
  bool one_host = false;  // all ranks are on this host
  std::string root_host;  // of rank 0; "": not known
  uint64_t identity = 0;  // the same for all ranks of a job, likely another one for another job
  uint16_t Port() const;  // to meet at where none was given: 20000 to 31999, by identity
};

// The value of a variable, null where it is not set.
using Environment = std::function<const char*(const char* name)>;

// Nothing where no launcher started this process. kInvalidArgument: a variable that is no number in its
// range, named.
Result<std::optional<JobRank>> FindJob(const Environment& environment);

}  // namespace tutti
