// Memory for the duration of one exchange, taken from buffers that the process keeps, so that a
// program's second call of a kind allocates nothing.
//
// Model       A lease takes the smallest free buffer that is large enough; if none is, a free one
//             is grown (its old contents are worth nothing). Buffers go back when the lease ends.
// Complexity  A lock and a walk over the free buffers, of which there are as many as leases at
//             once.
// Threads     Any.
// Errors      A lease whose data() is null had no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::mpi {

class Lease {
 public:
  Lease() = default;
  explicit Lease(int64_t bytes);
  ~Lease();
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Null only if there was no memory or nothing was leased. Aligned for any type.
  std::byte* data() const { return data_; }
  int64_t capacity() const { return capacity_; }  // at least what was asked for

 private:
  std::byte* data_ = nullptr;
  int64_t capacity_ = 0;
};

// A lease of `count` elements of a type that needs no constructor; their values are unspecified.
template <class T>
class LeasedArray {
 public:
  explicit LeasedArray(int64_t count)
      : lease_(count * static_cast<int64_t>(sizeof(T))), count_(count) {}

  bool ok() const { return lease_.data() != nullptr; }
  T* data() const { return reinterpret_cast<T*>(lease_.data()); }
  T& operator[](int64_t index) const { return data()[index]; }
  std::span<T> span() const { return {data(), static_cast<size_t>(count_)}; }

 private:
  Lease lease_;
  int64_t count_;
};

// Frees what is not leased.
void ReleaseFreeBuffers();

}  // namespace tutti::mpi
