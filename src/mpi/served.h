// What: what the latest all-to-all of this thread was really served by, for those who report on it.
// Threads: each has its own.
#pragma once

#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

struct Served {
  alltoallv::Algorithm algorithm;  // never auto
  double own_seconds = -1;         // what the MPI library's own is believed to take; < 0: not known
};

// Whoever decides writes it before the exchange begins.
Served& LatestServed();

}  // namespace tutti::mpi
