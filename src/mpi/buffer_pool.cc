#include "buffer_pool.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace tutti::mpi {
namespace {

struct Buffer {
  std::byte* data;
  int64_t capacity;
};

struct Pool {
  std::mutex mutex;
  std::vector<Buffer> free;  // ascending capacity
};

// Never destroyed: communicators may be freed after static objects are.
Pool& ThePool() {
  static Pool* pool = new Pool;
  return *pool;
}

constexpr int64_t kMinCapacity = 4096;

}  // namespace

Lease::Lease(int64_t bytes) {
  Pool& pool = ThePool();
  Buffer outgrown{nullptr, 0};
  {
    const std::scoped_lock lock(pool.mutex);
    const auto fits =
        std::lower_bound(pool.free.begin(), pool.free.end(), bytes,
                         [](const Buffer& each, int64_t need) { return each.capacity < need; });
    if (fits != pool.free.end()) {
      data_ = fits->data;
      capacity_ = fits->capacity;
      pool.free.erase(fits);
      return;
    }
    if (!pool.free.empty()) {
      outgrown = pool.free.back();
      pool.free.pop_back();
    }
  }
  // Freed first, so that old and new are not needed at once.
  std::free(outgrown.data);
  const int64_t capacity = std::max(bytes, kMinCapacity);
  data_ = static_cast<std::byte*>(std::malloc(static_cast<size_t>(capacity)));
  if (data_ != nullptr) capacity_ = capacity;
}

Lease::~Lease() {
  if (data_ == nullptr) return;
  Pool& pool = ThePool();
  const std::scoped_lock lock(pool.mutex);
  const auto place = std::lower_bound(
      pool.free.begin(), pool.free.end(), capacity_,
      [](const Buffer& each, int64_t capacity) { return each.capacity < capacity; });
  pool.free.insert(place, Buffer{data_, capacity_});
}

Lease::Lease(Lease&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

void ReleaseFreeBuffers() {
  Pool& pool = ThePool();
  const std::scoped_lock lock(pool.mutex);
  for (const Buffer& each : pool.free) std::free(each.data);
  pool.free.clear();
}

}  // namespace tutti::mpi
