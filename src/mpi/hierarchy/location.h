// Location: where in its node this process is bound. The one place that asks hwloc, kept apart so
// that simulation, where a process has no place in a real node, does without.
#pragma once

namespace tutti::mpi {

// Numbers are equal for two processes of one node that are bound inside the same part; -1: bound to
// more than one part, or not known.
struct Location {
  int cache = -1;          // last level cache
  int memory_domain = -1;  // NUMA
  int socket = -1;
};

Location LocationOfThisProcess();

}  // namespace tutti::mpi
