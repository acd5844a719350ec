// Memory in quantities that must be planned: how much there is, and tables of gigabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

// What this process may still take without others being pushed out: the machine's figure, less
// where its control group allows less.
int64_t AvailableMemoryBytes();

// "3.2 GiB".
std::string MemoryText(int64_t bytes);

// kResourceExhausted where more is needed than there is: "`what` needs 41.2 GiB of memory, 20.1 GiB
// are available".
Status CheckMemory(const std::string& what, int64_t needed_bytes, int64_t available_bytes);

// Asks for huge pages where that range has some: to fill small ones costs a fault for each. No effect on what stands there.
void PreferHugePages(void* begin, size_t bytes);

// Room for so many before they are filled.
template <class T>
void ReserveLarge(std::vector<T>& values, size_t size) {
  if (size <= values.capacity()) return;
  values.reserve(size);
  PreferHugePages(values.data(), size * sizeof(T));
}

// Zeroed pages, in huge ones where the system has them: every access to a table that is read at
// random would miss the translation of small ones. Throws std::bad_alloc as vectors do.
class Pages {
 public:
  explicit Pages(size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

template <class T>
class LargeTable {
  static_assert(std::is_trivial_v<T>);

 public:
  explicit LargeTable(size_t size) : pages_(size * sizeof(T)), size_(size) {}
  T* data() { return static_cast<T*>(pages_.data()); }
  const T* data() const { return static_cast<const T*>(pages_.data()); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  size_t size() const { return size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }

 private:
  Pages pages_;
  size_t size_;
};

}  // namespace tutti
