#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cuda_driver.h"
#include "tutti/ipc/device.h"

namespace tutti::ipc {
namespace {

// The driver, and what it said. Its library is never closed: it has threads of its own.
struct LoadedDriver {
  cuda::Driver call;

  Status Checked(cuda::Result result, const char* what) const {
    if (result == cuda::kSuccess) return {};
    const char* text = nullptr;
    if (call.GetErrorString(result, &text) != cuda::kSuccess || text == nullptr) text = "unknown";
    return MakeError(result == cuda::kOutOfMemory ? ErrorCode::kResourceExhausted : ErrorCode::kIo,
                     fmt::format("{}: error {} ({})", what, result, text));
  }
};

Result<LoadedDriver> LoadDriver(const std::string& name) {
  LoadedDriver driver;
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return MakeError(ErrorCode::kInfeasible, fmt::format("no CUDA driver: {}", dlerror()));
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* symbol) {
    void* found = dlsym(library, symbol);
    if (found == nullptr) missing = symbol;
    std::memcpy(&function, &found, sizeof(found));
  };
  cuda::Driver& call = driver.call;
  find(call.Init, "cuInit");
  find(call.DeviceGetCount, "cuDeviceGetCount");
  find(call.DeviceGet, "cuDeviceGet");
  find(call.DeviceGetName, "cuDeviceGetName");
  find(call.PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(call.PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  find(call.CtxSetCurrent, "cuCtxSetCurrent");
  find(call.MemAlloc, "cuMemAlloc_v2");
  find(call.MemFree, "cuMemFree_v2");
  find(call.MemcpyHtoD, "cuMemcpyHtoD_v2");
  find(call.MemcpyDtoH, "cuMemcpyDtoH_v2");
  find(call.IpcGetMemHandle, "cuIpcGetMemHandle");
  find(call.IpcOpenMemHandle, "cuIpcOpenMemHandle_v2");
  find(call.IpcCloseMemHandle, "cuIpcCloseMemHandle");
  find(call.EventCreate, "cuEventCreate");
  find(call.EventDestroy, "cuEventDestroy_v2");
  find(call.EventRecord, "cuEventRecord");
  find(call.EventQuery, "cuEventQuery");
  find(call.IpcGetEventHandle, "cuIpcGetEventHandle");
  find(call.IpcOpenEventHandle, "cuIpcOpenEventHandle");
  find(call.GetErrorString, "cuGetErrorString");
  if (missing != nullptr)
    return MakeError(ErrorCode::kInfeasible, fmt::format("{} has no {}", name, missing));
  return driver;
}

// A device's primary context, which is shared with what else uses CUDA in this process; kept while memory or events of it live.
class Context {
 public:
  Context(const LoadedDriver& driver, cuda::DeviceNumber device, cuda::Context context)
      : driver_(driver), device_(device), context_(context) {}
  ~Context() { driver_.call.PrimaryCtxRelease(device_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const cuda::Driver& call() const { return driver_.call; }
  Status Checked(cuda::Result result, const char* what) const {
    return driver_.Checked(result, what);
  }
  // For the thread that calls: another device, or none, may be its current one.
  Status Enter() const { return Checked(call().CtxSetCurrent(context_), "cuCtxSetCurrent"); }

 private:
  LoadedDriver driver_;
  cuda::DeviceNumber device_;
  cuda::Context context_;
};

using SharedContext = std::shared_ptr<const Context>;

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(SharedContext context, cuda::Pointer pointer, int64_t bytes, bool is_own)
      : context_(std::move(context)), pointer_(pointer), bytes_(bytes), is_own_(is_own) {}
  ~CudaMemory() override {
    if (!context_->Enter()) return;
    if (is_own_)
      context_->call().MemFree(pointer_);
    else
      context_->call().IpcCloseMemHandle(pointer_);
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  int64_t bytes() const override { return bytes_; }
  std::byte* data() const override { return nullptr; }
  cuda::Pointer At(int64_t offset) const { return pointer_ + static_cast<cuda::Pointer>(offset); }

 private:
  SharedContext context_;
  cuda::Pointer pointer_;
  int64_t bytes_;
  bool is_own_;
};

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent(SharedContext context, cuda::Event event)
      : context_(std::move(context)), event_(event) {}
  ~CudaEvent() override {
    if (context_->Enter()) context_->call().EventDestroy(event_);
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Status Record() override {
    if (Status entered = context_->Enter(); !entered) return entered;
    return context_->Checked(context_->call().EventRecord(event_, nullptr), "cuEventRecord");
  }
  Result<bool> HasHappened() const override {
    if (Status entered = context_->Enter(); !entered) return tl::unexpected(entered.error());
    const cuda::Result result = context_->call().EventQuery(event_);
    if (result == cuda::kNotReady) return false;
    if (Status checked = context_->Checked(result, "cuEventQuery"); !checked)
      return tl::unexpected(checked.error());
    return true;
  }
  cuda::Event event() const { return event_; }

 private:
  SharedContext context_;
  cuda::Event event_;
};

DeviceHandle HandleOf(const cuda::IpcHandle& from, int64_t bytes) {
  DeviceHandle handle{.kind = DeviceKind::kCuda, .bytes = bytes};
  std::memcpy(handle.opaque.data(), from.bytes, sizeof(from.bytes));
  return handle;
}

cuda::IpcHandle IpcHandleOf(const DeviceHandle& from) {
  cuda::IpcHandle handle;
  std::memcpy(handle.bytes, from.opaque.data(), sizeof(handle.bytes));
  return handle;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(SharedContext context, std::string name)
      : context_(std::move(context)), name_(std::move(name)) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string name() const override { return name_; }

  Result<std::unique_ptr<DeviceMemory>> Allocate(int64_t bytes) override {
    if (bytes < 1) return InvalidArgument(fmt::format("{} bytes of device memory", bytes));
    if (Status checked = context_->Enter(); !checked) return tl::unexpected(checked.error());
    cuda::Pointer pointer = 0;
    const cuda::Result result = context_->call().MemAlloc(&pointer, static_cast<size_t>(bytes));
    if (Status checked = context_->Checked(result, "cuMemAlloc"); !checked)
      return Within(fmt::format("{} bytes of {}", bytes, name_), checked.error());
    return std::make_unique<CudaMemory>(context_, pointer, bytes, true);
  }
  Result<DeviceHandle> Export(const DeviceMemory& memory) override {
    if (Status checked = context_->Enter(); !checked) return tl::unexpected(checked.error());
    cuda::IpcHandle handle{};
    const cuda::Pointer pointer = static_cast<const CudaMemory&>(memory).At(0);
    if (Status checked = context_->Checked(context_->call().IpcGetMemHandle(&handle, pointer),
                                           "cuIpcGetMemHandle");
        !checked)
      return tl::unexpected(checked.error());
    return HandleOf(handle, memory.bytes());
  }
  Result<std::unique_ptr<DeviceMemory>> Open(const DeviceHandle& handle) override {
    if (handle.kind != DeviceKind::kCuda || handle.bytes < 1)
      return InvalidArgument("the handle is not of CUDA memory");
    if (Status checked = context_->Enter(); !checked) return tl::unexpected(checked.error());
    cuda::Pointer pointer = 0;
    const cuda::Result result = context_->call().IpcOpenMemHandle(&pointer, IpcHandleOf(handle),
                                                                  cuda::kLazyEnablePeerAccess);
    if (Status checked = context_->Checked(result, "cuIpcOpenMemHandle"); !checked)
      return tl::unexpected(checked.error());
    return std::make_unique<CudaMemory>(context_, pointer, handle.bytes, false);
  }
  Result<std::unique_ptr<DeviceEvent>> MakeEvent() override {
    if (Status checked = context_->Enter(); !checked) return tl::unexpected(checked.error());
    cuda::Event event = nullptr;
    const cuda::Result result =
        context_->call().EventCreate(&event, cuda::kEventDisableTiming | cuda::kEventInterprocess);
    if (Status checked = context_->Checked(result, "cuEventCreate"); !checked)
      return tl::unexpected(checked.error());
    return std::make_unique<CudaEvent>(context_, event);
  }
  Result<DeviceHandle> ExportEvent(const DeviceEvent& event) override {
    cuda::IpcHandle handle{};
    const cuda::Event of = static_cast<const CudaEvent&>(event).event();
    if (Status checked = context_->Checked(context_->call().IpcGetEventHandle(&handle, of),
                                           "cuIpcGetEventHandle");
        !checked)
      return tl::unexpected(checked.error());
    return HandleOf(handle, 0);
  }
  Result<std::unique_ptr<DeviceEvent>> OpenEvent(const DeviceHandle& handle) override {
    if (handle.kind != DeviceKind::kCuda || handle.bytes != 0)
      return InvalidArgument("the handle is of no CUDA event");
    if (Status checked = context_->Enter(); !checked) return tl::unexpected(checked.error());
    cuda::Event event = nullptr;
    const cuda::Result result = context_->call().IpcOpenEventHandle(&event, IpcHandleOf(handle));
    if (Status checked = context_->Checked(result, "cuIpcOpenEventHandle"); !checked)
      return tl::unexpected(checked.error());
    return std::make_unique<CudaEvent>(context_, event);
  }

  Status CopyIn(DeviceMemory& to, int64_t offset, const void* from, int64_t bytes) override {
    if (Status checked = CheckRange(to, offset, bytes); !checked) return checked;
    if (Status checked = context_->Enter(); !checked) return checked;
    return context_->Checked(context_->call().MemcpyHtoD(static_cast<CudaMemory&>(to).At(offset),
                                                         from, static_cast<size_t>(bytes)),
                             "cuMemcpyHtoD");
  }
  Status CopyOut(const DeviceMemory& from, int64_t offset, void* to, int64_t bytes) override {
    if (Status checked = CheckRange(from, offset, bytes); !checked) return checked;
    if (Status checked = context_->Enter(); !checked) return checked;
    return context_->Checked(
        context_->call().MemcpyDtoH(to, static_cast<const CudaMemory&>(from).At(offset),
                                    static_cast<size_t>(bytes)),
        "cuMemcpyDtoH");
  }
  Status Reduce(DeviceMemory& to, int64_t to_offset, const DeviceMemory& from, int64_t from_offset,
                int64_t count, int64_t element_bytes, CombineKernel combine) override {
    if (Status checked = CheckRange(to, to_offset, count * element_bytes); !checked) return checked;
    if (Status checked = CheckRange(from, from_offset, count * element_bytes); !checked)
      return checked;
    constexpr int64_t kPieceBytes = int64_t{1} << 20;
    const int64_t most = std::max<int64_t>(1, kPieceBytes / element_bytes);
    std::vector<std::byte> mine(static_cast<size_t>(std::min(count, most) * element_bytes));
    std::vector<std::byte> theirs(mine.size());
    for (int64_t done = 0; done < count; done += most) {
      const int64_t elements = std::min(most, count - done);
      const int64_t bytes = elements * element_bytes, at = done * element_bytes;
      if (Status copied = CopyOut(to, to_offset + at, mine.data(), bytes); !copied) return copied;
      if (Status copied = CopyOut(from, from_offset + at, theirs.data(), bytes); !copied)
        return copied;
      combine(mine.data(), mine.data(), theirs.data(), elements);
      if (Status copied = CopyIn(to, to_offset + at, mine.data(), bytes); !copied) return copied;
    }
    return {};
  }

 private:
  SharedContext context_;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice(int32_t number, const std::string& library) {
  Result<LoadedDriver> driver = LoadDriver(library);
  if (!driver) return tl::unexpected(driver.error());
  const cuda::Driver& call = driver->call;
  if (Status checked = driver->Checked(call.Init(0), "cuInit"); !checked)
    return MakeError(ErrorCode::kInfeasible, checked.error().message);
  int count = 0;
  if (Status checked = driver->Checked(call.DeviceGetCount(&count), "cuDeviceGetCount"); !checked)
    return tl::unexpected(checked.error());
  if (number < 0 || number >= count)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("CUDA device {}: this host has {}", number, count));
  cuda::DeviceNumber device = 0;
  if (Status checked = driver->Checked(call.DeviceGet(&device, number), "cuDeviceGet"); !checked)
    return tl::unexpected(checked.error());
  std::array<char, 256> name{};
  if (Status checked = driver->Checked(
          call.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device),
          "cuDeviceGetName");
      !checked)
    return tl::unexpected(checked.error());
  cuda::Context context = nullptr;
  if (Status checked =
          driver->Checked(call.PrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
      !checked)
    return tl::unexpected(checked.error());
  return std::make_unique<CudaDevice>(std::make_shared<const Context>(*driver, device, context),
                                      name.data());
}

}  // namespace tutti::ipc
