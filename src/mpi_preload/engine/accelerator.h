// Whether buffers may lie in the memory of an accelerator, which some MPI libraries send from and
// Tutti, which copies blocks with the processor, must not touch.
//
// Threads     Any.
#pragma once

namespace tutti::mpi::preload {

// The name of an accelerator's runtime library that this process has loaded; null without any.
const char* LoadedAcceleratorRuntime();

}  // namespace tutti::mpi::preload
