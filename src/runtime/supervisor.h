// Runs the ranks of a session as processes and watches over them.
//
// Model       The caller's process forks one child a rank and sleeps until all have finished. A
//             child that ends early, a request to cancel, or no progress anywhere for a while ends
//             the run: all children are killed and reaped. Children die with their parent.
// Threads     Children run TrialRank only, so that the parent may have threads.
// Errors      kPeerFailed names the rank that died with its signal or status, or, when nothing
//             moves, where each rank is stuck; kCancelled; kResourceExhausted when a process cannot
//             be started.
#pragma once

#include "session.h"
#include "tutti/base/result.h"

namespace tutti {

Status RunAsProcesses(const Session& session);
// The same in threads of this process: for race detectors, which do not look across processes.
void RunAsThreads(const Session& session);

}  // namespace tutti
