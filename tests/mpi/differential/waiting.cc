#include "waiting.h"

#include <mpi.h>
#include <sched.h>

namespace tutti::mpi::differential {
namespace {

bool yields_when_idle = false;

}  // namespace
}  // namespace tutti::mpi::differential

#ifdef MPICH_VERSION
#include <dlfcn.h>

extern "C" unsigned ucp_worker_progress(void* worker);

// Found by MPICH before UCX's own.
unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned events = progress(worker);
  if (events == 0 && tutti::mpi::differential::yields_when_idle) sched_yield();
  return events;
}
#endif

namespace tutti::mpi::differential {

void WaitForManyRanks(bool with_threads) {
  yields_when_idle = !with_threads;
  const sched_param none = {};
  static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &none));
}

}  // namespace tutti::mpi::differential
