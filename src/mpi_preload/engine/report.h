// TUTTI_VERBOSE: what this rank's calls were served by, how many of each size there were, and how
// long they took.
//
// Units       Seconds; bytes of the largest block of a call, in classes of powers of two.
// Threads     Any; a lock around a few additions.
#pragma once

#include <cstdint>
#include <string>

#include "interface.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi::preload {

struct ServedCall {
  const char* function;  // "MPI_Alltoallv"
  int ranks;
  int64_t largest_block_bytes;
  alltoallv::Algorithm algorithm;  // what really ran
  double seconds;
  double native_seconds;  // what the native algorithm is believed to take; < 0: not known
};

void Record(const ServedCall& call);
void Record(PassedOn call);

// The report as text, lines in order of function, ranks, bytes and algorithm. `title` ends the
// first line.
std::string ReportText(const std::string& title);

}  // namespace tutti::mpi::preload
