// How ranks wait for each other where there are more of them, or of their threads, than cores.
//
// Model       What a call costs then is waiting: a rank that polls for a message spends its turn of
//             the scheduler while the rank that will send it has no core. Open MPI's ranks let others
//             run by mpi_yield_when_idle; MPICH's never do, so that waiting.cc puts itself before the
//             function of UCX that they poll with. Calls and answers are what they were.
#pragma once

namespace tutti::mpi::differential {

// Before any other thread is made. Where the system refuses, calls only take longer.
//
// - A thread that is woken does not take the core from the one that woke it, which may hold what
//   both need: Open MPI's waiting threads spin until their waker is through.
// - MPICH's ranks yield while they poll, unless threads of one rank call at once: it polls under
//   its lock, and who is let run then is mostly a thread that wants the lock (20 to 60 times slower).
void WaitForManyRanks(bool with_threads);

}  // namespace tutti::mpi::differential
