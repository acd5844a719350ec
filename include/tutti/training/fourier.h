// A 3-D FFT over slabs on a network: how long its three steps take.
//
// Model       n x n x n complex numbers of 16 bytes. Each of P ranks holds n / P planes, rounded up
//             on the slowest: it transforms them (2-D) and packs them, sends every other rank its
//             part (all-to-all), unpacks and transforms n / P planes of lines (1-D). A rank's
//             threads share planes evenly, each at the speed of one alone.
// Units       seconds; [M] of the all-to-all is what a rank sends, its own part included.
// Errors      kInvalidArgument: a size, a number of ranks or of threads below 1, more ranks than
//             planes.
// Reference   [alltoall-mcf] 5.2 "Workload speedups", figure 6.
#pragma once

#include <cstdint>

#include "tutti/base/result.h"

namespace tutti {

// What one thread needs; measured (reproduce) or given.
struct FourierKernel {
  double plane_s = 0;  // 2-D transform of n x n
  double lines_s = 0;  // n 1-D transforms of length n
  double copy_s = 0;   // packing or unpacking n x n numbers
};

struct FourierJob {
  int32_t n = 0;
  int32_t ranks = 0;
  int32_t threads = 1;  // of a rank
};

struct FourierTimes {
  double planes_s = 0;  // first transforms and packing
  double all_to_all_s = 0;
  double lines_s = 0;  // unpacking and last transforms
  double total_s() const { return planes_s + all_to_all_s + lines_s; }
};

Result<int64_t> FourierSendBytes(const FourierJob& job);
Result<FourierTimes> TimeOfFourier(const FourierJob& job, const FourierKernel& kernel,
                                   double all_to_all_s);

}  // namespace tutti
