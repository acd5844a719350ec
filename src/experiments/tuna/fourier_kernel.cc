#include "fourier_kernel.h"

#ifdef TUTTI_FFTW
#include <fftw3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#endif

namespace tutti {

#ifndef TUTTI_FFTW

Result<FourierKernel> MeasureFourierKernel(int32_t) {
  return MakeError(ErrorCode::kInfeasible, "built without FFTW (-DTUTTI_FFTW=ON brings it in)");
}

#else

namespace {

constexpr size_t kRuns = 5;

struct FreeNumbers {
  void operator()(fftw_complex* numbers) const { fftw_free(numbers); }
};
struct DestroyPlan {
  void operator()(fftw_plan plan) const { fftw_destroy_plan(plan); }
};
using Numbers = std::unique_ptr<fftw_complex, FreeNumbers>;
using Plan = std::unique_ptr<fftw_plan_s, DestroyPlan>;

template <class Work>
double MedianSeconds(const Work& work) {
  std::array<double, kRuns> seconds{};
  for (double& one : seconds) {
    const auto before = std::chrono::steady_clock::now();
    work();
    one = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRuns / 2];
}

Numbers Allocate(size_t count) {
  Numbers numbers(fftw_alloc_complex(count));
  for (size_t i = 0; i < count; ++i) {
    numbers.get()[i][0] = static_cast<double>(i % 7);
    numbers.get()[i][1] = static_cast<double>(i % 5);
  }
  return numbers;
}

}  // namespace

Result<FourierKernel> MeasureFourierKernel(int32_t n) {
  const size_t side = static_cast<size_t>(n);
  const size_t count = side * side;
  const Numbers in = Allocate(count);
  const Numbers out = Allocate(count);
  const Plan plane(fftw_plan_dft_2d(n, n, in.get(), out.get(), FFTW_FORWARD,
                                    FFTW_ESTIMATE | FFTW_PRESERVE_INPUT));
  const Plan lines(fftw_plan_many_dft(1, &n, n, in.get(), nullptr, 1, n, out.get(), nullptr, 1, n,
                                      FFTW_FORWARD, FFTW_ESTIMATE | FFTW_PRESERVE_INPUT));
  FourierKernel kernel;
  kernel.plane_s = MedianSeconds([&] { fftw_execute(plane.get()); });
  kernel.lines_s = MedianSeconds([&] { fftw_execute(lines.get()); });
  // Packing gathers columns: it reads along one dimension and writes along the other.
  kernel.copy_s = MedianSeconds([&] {
    for (size_t row = 0; row < side; ++row)
      for (size_t column = 0; column < side; ++column)
        std::copy_n(in.get()[row * side + column], 2, out.get()[column * side + row]);
  });
  return kernel;
}

#endif

}  // namespace tutti
