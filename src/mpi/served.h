// Served: what the latest all-to-all of this thread was really served by, for those who report on
// it.
//
// Threads     Each has its own.
#pragma once

#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

struct Served {
  alltoallv::Algorithm algorithm;  // never auto
  double native_seconds = -1;      // what the native algorithm is believed to take; < 0: not known
};

// Whoever decides writes it before the exchange begins.
Served& LatestServed();

}  // namespace tutti::mpi
