#include "tutti/base/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tutti {
namespace {

std::mutex resizing;
std::unique_ptr<tbb::global_control> limit;

using Body = std::function<void(int64_t, int64_t)>;

#if defined(__SANITIZE_THREAD__)
// The thread sanitizer cannot see into TBB's library and reports its handovers as races; over plain
// threads what it reports is ours.
void RunBlocks(int64_t count, int64_t grain, const Body& body) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t begin; (begin = next.fetch_add(grain)) < count;)
      body(begin, std::min(begin + grain, count));
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < NumThreads(); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}
#else
void RunBlocks(int64_t count, int64_t grain, const Body& body) {
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, count, static_cast<size_t>(grain)),
      [&body](const tbb::blocked_range<int64_t>& block) { body(block.begin(), block.end()); });
}
#endif

}  // namespace

void SetNumThreads(int num_threads) {
  const std::lock_guard lock(resizing);
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
  RunBlocks(count, grain, body);
}

}  // namespace tutti
