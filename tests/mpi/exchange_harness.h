// What the tests of exchanges share: bytes that every rank can work out, sizes drawn from a seed,
// and a count of what failed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace tutti::mpi {

inline constexpr unsigned char kUntouched = 0xA5;

inline int failures = 0;

inline void Fail(const std::string& what) {
  if (++failures <= 5) std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

inline uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

inline unsigned char ByteOf(uint64_t seed, int source, int destination, int64_t offset) {
  return static_cast<unsigned char>(
      Mix(seed * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(source) * 1000003U +
          static_cast<uint64_t>(destination) * 7919U + static_cast<uint64_t>(offset)));
}

// What ranks send each other, in elements; every rank knows the whole from the seed.
struct Workload {
  uint64_t seed;
  int most;  // elements a block
  int zeros_of_eight;

  bool symmetric = false;  // as much from a to b as from b to a, which MPI_IN_PLACE demands

  int Count(int source, int destination) const {
    if (symmetric && source > destination) return Count(destination, source);
    const uint64_t drawn =
        Mix(seed ^ (static_cast<uint64_t>(source) << 32U) ^ static_cast<uint64_t>(destination));
    if (static_cast<int>(drawn % 8) < zeros_of_eight) return 0;
    return static_cast<int>((drawn >> 8U) % static_cast<uint64_t>(most + 1));
  }
};

struct Ranks {
  MPI_Comm communicator;
  int rank, size;

  explicit Ranks(MPI_Comm on) : communicator(on), rank(0), size(0) {
    MPI_Comm_rank(on, &rank);
    MPI_Comm_size(on, &size);
  }
};

// Ends the program: 1 if anything failed on any rank.
inline int Finish() {
  int all = failures;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

}  // namespace tutti::mpi
