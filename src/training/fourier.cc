#include "tutti/training/fourier.h"

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr int64_t kNumberBytes = 16;

Status CheckJob(const FourierJob& job) {
  if (job.n < 1 || job.ranks < 1 || job.threads < 1)
    return InvalidArgument(fmt::format("an FFT of {}^3 on {} ranks of {} threads makes no sense",
                                       job.n, job.ranks, job.threads));
  if (job.ranks > job.n)
    return InvalidArgument(fmt::format("{} planes are too few for {} ranks", job.n, job.ranks));
  return {};
}

int64_t Share(int64_t of, int64_t among) { return (of + among - 1) / among; }

}  // namespace

Result<int64_t> FourierSendBytes(const FourierJob& job) {
  if (const Status valid = CheckJob(job); !valid) return tl::unexpected(valid.error());
  return Share(job.n, job.ranks) * job.n * job.n * kNumberBytes;
}

Result<FourierTimes> TimeOfFourier(const FourierJob& job, const FourierKernel& kernel,
                                   double all_to_all_s) {
  if (const Status valid = CheckJob(job); !valid) return tl::unexpected(valid.error());
  const auto planes = static_cast<double>(Share(Share(job.n, job.ranks), job.threads));
  FourierTimes times;
  times.planes_s = planes * (kernel.plane_s + kernel.copy_s);
  times.all_to_all_s = all_to_all_s;
  times.lines_s = planes * (kernel.copy_s + kernel.lines_s);
  return times;
}

}  // namespace tutti
