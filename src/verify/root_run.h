// Rules Z3 and Z4 of tutti/verify/symmetric.h: what happens to shard 0.
#pragma once

#include "tutti/sched/schedule.h"
#include "tutti/verify/verifier.h"

namespace tutti::verify {

// Adds what is wrong with `root`, in order of time and at most `limit` of it in words. `root` keeps
// S1 .. S4 and all its shards are 0.
void RunRoot(const Topology& topology, const Schedule& root, size_t limit, VerifyReport& report);

}  // namespace tutti::verify
