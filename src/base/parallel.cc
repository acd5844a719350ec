#include "tutti/base/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace tutti {
namespace {

std::mutex mutex;
std::unique_ptr<tbb::global_control> limit;

}  // namespace

void SetNumThreads(int num_threads) {
  const std::lock_guard lock(mutex);
  limit.reset();
  if (num_threads > 0)
    limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                  static_cast<size_t>(num_threads));
}

int NumThreads() {
  const auto allowed =
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::max(1, static_cast<int>(allowed));
}

void ParallelFor(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (count <= grain || NumThreads() == 1) return body(0, count);
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, count, static_cast<size_t>(grain)),
      [&body](const tbb::blocked_range<int64_t>& block) { body(block.begin(), block.end()); });
}

}  // namespace tutti
