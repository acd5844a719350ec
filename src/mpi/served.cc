#include "served.h"

namespace tutti::mpi {

Served& LatestServed() {
  thread_local Served latest;
  return latest;
}

}  // namespace tutti::mpi
