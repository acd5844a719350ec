#include "tutti/base/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>
#include <optional>

namespace tutti {
namespace {

// The number after `key` in a small file of the kernel's; with an empty key the first one.
std::optional<int64_t> NumberIn(const char* path, const std::string& key) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "re"), std::fclose);
  if (!file) return std::nullopt;
  char line[256];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    long long value = 0;
    if (std::string(line).compare(0, key.size(), key) != 0) continue;
    if (std::sscanf(line + key.size(), "%lld", &value) == 1) return value;
  }
  return std::nullopt;
}

}  // namespace

int64_t AvailableMemoryBytes() {
  int64_t bytes = std::numeric_limits<int64_t>::max();
  if (const auto kib = NumberIn("/proc/meminfo", "MemAvailable:"))
    bytes = *kib * 1024;
  else
    bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const auto most = NumberIn("/sys/fs/cgroup/memory.max", "");
  const auto used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (most && used) bytes = std::min(bytes, std::max<int64_t>(0, *most - *used));
  return bytes;
}

std::string MemoryText(int64_t bytes) {
  constexpr double kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
  const auto value = static_cast<double>(bytes);
  if (value >= kGiB) return fmt::format("{:.1f} GiB", value / kGiB);
  return value >= kMiB ? fmt::format("{:.1f} MiB", value / kMiB)
                       : fmt::format("{:.1f} KiB", value / kKiB);
}

Status CheckMemory(const std::string& what, int64_t needed_bytes, int64_t available_bytes) {
  if (needed_bytes <= available_bytes) return {};
  return MakeError(ErrorCode::kResourceExhausted,
                   fmt::format("{} needs {} of memory, {} are available", what,
                               MemoryText(needed_bytes), MemoryText(available_bytes)));
}

void PreferHugePages(void* begin, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  constexpr size_t kWorthIt = size_t{4} << 20;
  if (bytes < kWorthIt) return;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + kPage - 1) / kPage * kPage;
  const uintptr_t last = (address + bytes) / kPage * kPage;
  // Without them, small pages serve as well, only slower.
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

Pages::Pages(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)) {
  data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
  PreferHugePages(data_, bytes_);
}

Pages::~Pages() { ::munmap(data_, bytes_); }

}  // namespace tutti
