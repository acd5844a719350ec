// How long an accelerator computes: a roofline.
//
// Model       Work takes the longer of its arithmetic at the attained rate and its traffic at the
//             memory bandwidth, plus a launch time a kernel.
// Units       Operations (a multiplication and the addition after it are two), bytes, whole
//             picoseconds, rounded down.
// Invariants  (callers') rates >= 1, everything else >= 0.
#pragma once

#include <cstdint>

namespace tutti {

struct Accelerator {
  int64_t flops_per_s;  // attained, not the peak
  int64_t memory_bytes_per_s;
  int64_t launch_ps;  // a kernel
};

// A100-SXM-80GB. fp32 numbers, TF32 products at half of their peak, kernels launched one by one.
inline constexpr Accelerator kA100Tf32{78'000'000'000'000, 2'039'000'000'000, 5'000'000};
// Three quarters of the 312e12 that fp16 products reach at best, kernels launched ahead of time.
inline constexpr Accelerator kA100Fp16{234'000'000'000'000, 2'039'000'000'000, 0};

struct KernelWork {
  int64_t flops = 0;
  int64_t bytes = 0;  // read and written
  int64_t kernels = 0;
};

// At most INT64_MAX / 4.
int64_t WorkPs(const Accelerator& accelerator, const KernelWork& work);

}  // namespace tutti
