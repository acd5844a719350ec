#include "tutti/training/accelerator.h"

#include <algorithm>
#include <limits>

#include "tutti/base/units.h"

namespace tutti {

int64_t WorkPs(const Accelerator& accelerator, const KernelWork& work) {
  const auto time = [](int64_t amount, int64_t per_second) {
    return static_cast<__int128>(amount) * kPicosecondsPerSecond / per_second;
  };
  constexpr __int128 kMost = std::numeric_limits<int64_t>::max() / 4;
  const __int128 launches = static_cast<__int128>(work.kernels) * accelerator.launch_ps;
  return static_cast<int64_t>(
      std::min(kMost, std::max(time(work.flops, accelerator.flops_per_s),
                               time(work.bytes, accelerator.memory_bytes_per_s)) +
                          launches));
}

}  // namespace tutti
