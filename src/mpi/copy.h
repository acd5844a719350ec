// Copies of block data. Every engine copy goes through here, because SimGrid's SMPI takes
// copies as free, which flatters algorithms that forward blocks.
//
// Model      In simulation (flavour smpi) a copy of b bytes takes seconds_a_copy + b / bandwidth of
//            simulated time, both from the platform: properties "tutti_copy_bandwidth" (bytes/s)
//            and "tutti_copy_seconds" of the host. A host without them copies for free. Copies are
//            added up and charged together by SettleCopies(): one event per batch, not one per
//            block. Elsewhere CopyBytes is CopyMemory and SettleCopies() is nothing. Tables that ranks
//            read and write in shared memory count as so many bytes (CountTable).
// Use        Call SettleCopies() after each batch of copies, before what depends on it: the next
//            message, a reading of the clock, the return to the caller.
// Threads    One rank per thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/base/copy.h"

namespace tutti::mpi {

#ifdef TUTTI_MPI_SMPI
// Adds a copy of so many bytes that was made by other means (MPI_Pack).
void CountCopy(int64_t bytes);
void CountTable(int64_t bytes);
void SettleCopies();
// A number that the platform gives this rank's host; 0 where it gives none.
double HostProperty(const char* name);
#else
inline void CountCopy(int64_t /*bytes*/) {}
inline void CountTable(int64_t /*bytes*/) {}
inline void SettleCopies() {}
#endif

inline void CopyBytes(std::byte* to, const std::byte* from, int64_t bytes) {
  CopyMemory(to, from, static_cast<size_t>(bytes));
  CountCopy(bytes);
}

// The ranges may overlap.
inline void MoveBytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes == 0 || to == from) return;
  MoveMemory(to, from, static_cast<size_t>(bytes));
  CountCopy(bytes);
}

}  // namespace tutti::mpi
