// How fast this machine transforms and copies: what sim/fourier.h needs, measured with FFTW on one
// thread.
#pragma once

#include <cstdint>

#include "tutti/base/result.h"
#include "tutti/training/fourier.h"

namespace tutti {

// n >= 1; 32 n^2 bytes of memory. A second at n = 1296 or so. kInfeasible: built without FFTW.
Result<FourierKernel> MeasureFourierKernel(int32_t n);

}  // namespace tutti
