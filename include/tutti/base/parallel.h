// Loops over several threads. The body must write only what its own index owns, so that the result
// never depends on the number of threads.
#pragma once

#include <cstdint>
#include <functional>

namespace tutti {

// Threads that ParallelFor may use from now on; 0 = as many as the machine has. Process-wide.
void SetNumThreads(int num_threads);
int NumThreads();

// Calls body(begin, end) on disjoint blocks that cover [0, count). Blocks hold at least `grain`
// indices (the last may hold fewer). Runs inline when one block is enough.
void ParallelFor(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

}  // namespace tutti
