#include "tutti/ipc/cuda_pointers.h"

#include <fmt/format.h>
#include <link.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cuda_context.h"

namespace tutti::ipc {
namespace {

using cuda::Entered;
using cuda::SharedContext;

cuda::Pointer AddressOf(const void* pointer) {
  return static_cast<cuda::Pointer>(reinterpret_cast<uintptr_t>(pointer));
}

// How many libraries this process has loaded so far.
unsigned long long LibrariesLoaded() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;  // the first says it
      },
      &count);
  return count;
}

// Whether this thread has been asked within the last microseconds: to load a driver and to have memory of a device takes milliseconds.
bool LookedJustNow() {
#ifdef __x86_64__
  constexpr uint64_t kTicks = uint64_t{1} << 15;  // of the processor's clock: some ten microseconds
  static thread_local uint64_t last = 0;
  const uint64_t now = __rdtsc(), since = now - last;
  if (since < kTicks) return true;
  last = now;
#endif
  return false;
}

}  // namespace

struct CudaPointers::Driver {
  explicit Driver(const cuda::LoadedDriver& loaded) : loaded(loaded) {}

  // The number of the device whose memory it is.
  std::optional<int> DeviceOf(const void* pointer) {
    std::optional<int> number;
    if (Ask(pointer, number) != cuda::kInvalidContext) return number;
    // Some drivers answer only where a context is current; one is made for nobody who has none.
    int devices = 0;
    loaded.call.DeviceGetCount(&devices);
    for (int device = 0; device < devices; ++device) {
      if (!IsInUse(device)) continue;
      const Result<SharedContext> context = ContextOf(device);
      if (!context) continue;
      const Entered in(**context);
      if (Ask(pointer, number) == cuda::kSuccess) return number;
    }
    return std::nullopt;
  }
  // What the driver says; `number` where it is of a device.
  cuda::Result Ask(const void* pointer, std::optional<int>& number) const {
    unsigned type = 0;
    int ordinal = 0;
    const cuda::Pointer address = AddressOf(pointer);
    const auto& ask = loaded.call.PointerGetAttribute;
    const cuda::Result result = ask(&type, cuda::kAttributeMemoryType, address);
    if (result != cuda::kSuccess || type != cuda::kMemoryTypeDevice) return result;
    // Managed memory may be of no device in particular: any can copy it.
    if (ask(&ordinal, cuda::kAttributeDeviceOrdinal, address) == cuda::kSuccess)
      number = std::max(ordinal, 0);
    return result;
  }
  bool IsInUse(int number) const {
    cuda::DeviceNumber device = 0;
    unsigned flags = 0;
    int is_active = 0;
    return loaded.call.DeviceGet(&device, number) == cuda::kSuccess &&
           loaded.call.PrimaryCtxGetState(device, &flags, &is_active) == cuda::kSuccess &&
           is_active != 0;
  }
  Result<SharedContext> ContextOf(int number) {
    const std::lock_guard lock(mutex);
    if (const auto found = contexts.find(number); found != contexts.end()) return found->second;
    const Result<SharedContext> context = cuda::PrimaryContext::Retain(loaded, number);
    if (context) contexts.emplace(number, *context);
    return context;
  }
  // Where a context is current that can reach the memory.
  template <class Call>
  Status Do(const void* of_device, Call call) {
    const std::optional<int> number = DeviceOf(of_device);
    if (!number) return InvalidArgument(fmt::format("{} is of no CUDA device", of_device));
    const Result<SharedContext> context = ContextOf(*number);
    if (!context) return tl::unexpected(context.error());
    const Entered in(**context);
    return in.status() ? call(in) : in.status();
  }

  cuda::LoadedDriver loaded;
  std::mutex mutex;
  std::map<int, SharedContext> contexts;
};

CudaPointers* CudaPointers::OfThisProcess() {
  // Kept until the process ends: threads may use it until then.
  static std::atomic<CudaPointers*> found = nullptr;
  static std::atomic<unsigned long long> looked_at = 0;
  if (CudaPointers* known = found.load()) return known;
  if (LookedJustNow()) return nullptr;
  const unsigned long long loaded = LibrariesLoaded();
  // Another thread may have looked, and found it, in between.
  if (looked_at.load() == loaded) return found;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (CudaPointers* known = found.load()) return known;
  if (const auto driver = cuda::LoadDriver("libcuda.so.1", cuda::Load::kOnlyIfThere))
    found = new CudaPointers(std::make_unique<Driver>(*driver));
  looked_at = loaded;
  return found;
}

CudaPointers::CudaPointers(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}
CudaPointers::~CudaPointers() = default;

bool CudaPointers::IsOfDevice(const void* pointer) const {
  return pointer != nullptr && driver_->DeviceOf(pointer).has_value();
}

Status CudaPointers::CopyToHost(void* to, const void* from, int64_t bytes) {
  return driver_->Do(from, [&](const Entered& in) {
    return in.Checked(
        driver_->loaded.call.MemcpyDtoH(to, AddressOf(from), static_cast<size_t>(bytes)),
        "cuMemcpyDtoH");
  });
}

Status CudaPointers::CopyToDevice(void* to, const void* from, int64_t bytes) {
  return driver_->Do(to, [&](const Entered& in) {
    return in.Checked(
        driver_->loaded.call.MemcpyHtoD(AddressOf(to), from, static_cast<size_t>(bytes)),
        "cuMemcpyHtoD");
  });
}

Status CudaPointers::WaitFor(const void* of_device) {
  return driver_->Do(of_device, [&](const Entered& in) {
    return in.Checked(driver_->loaded.call.StreamSynchronize(nullptr), "cuStreamSynchronize");
  });
}

bool CudaPointers::Pin(void* host, int64_t bytes, const void* of_device) {
  constexpr unsigned kPortable = 1;  // to all devices
  return driver_
      ->Do(of_device,
           [&](const Entered& in) {
             return in.Checked(
                 driver_->loaded.call.MemHostRegister(host, static_cast<size_t>(bytes), kPortable),
                 "cuMemHostRegister");
           })
      .has_value();
}

void CudaPointers::Unpin(void* host) {
  const std::lock_guard lock(driver_->mutex);
  if (driver_->contexts.empty()) return;
  const Entered in(*driver_->contexts.begin()->second);
  if (in.status()) driver_->loaded.call.MemHostUnregister(host);
}

}  // namespace tutti::ipc
