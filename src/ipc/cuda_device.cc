#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "cuda_context.h"
#include "tutti/ipc/device.h"

namespace tutti::ipc {
namespace {

using cuda::Entered;
using cuda::SharedContext;

// Of the device, freed or closed at its end.
class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(SharedContext context, cuda::Pointer pointer, int64_t bytes, bool is_own)
      : context_(std::move(context)), pointer_(pointer), bytes_(bytes), is_own_(is_own) {}
  ~CudaMemory() override {
    const Entered in(*context_);
    if (!in.status()) return;
    if (is_own_)
      context_->call().MemFree(pointer_);
    else
      context_->call().IpcCloseMemHandle(pointer_);
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  int64_t bytes() const override { return bytes_; }
  std::byte* data() const override { return nullptr; }
  uint64_t address() const override { return pointer_; }
  cuda::Pointer At(int64_t offset) const { return pointer_ + static_cast<cuda::Pointer>(offset); }

 private:
  SharedContext context_;
  cuda::Pointer pointer_;
  int64_t bytes_;
  bool is_own_;
};

// Of the host, which the device reads and writes at the full speed of its bus.
class PinnedMemory final : public DeviceMemory {
 public:
  PinnedMemory(SharedContext context, void* at, int64_t bytes)
      : context_(std::move(context)), at_(static_cast<std::byte*>(at)), bytes_(bytes) {}
  ~PinnedMemory() override {
    const Entered in(*context_);
    if (in.status()) context_->call().MemFreeHost(at_);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  int64_t bytes() const override { return bytes_; }
  std::byte* data() const override { return at_; }
  uint64_t address() const override { return reinterpret_cast<uint64_t>(at_); }

 private:
  SharedContext context_;
  std::byte* at_;
  int64_t bytes_;
};

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent(SharedContext context, cuda::Event event)
      : context_(std::move(context)), event_(event) {}
  ~CudaEvent() override {
    const Entered in(*context_);
    if (in.status()) context_->call().EventDestroy(event_);
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Status Record() override {
    const Entered in(*context_);
    if (!in.status()) return in.status();
    return in.Checked(context_->call().EventRecord(event_, nullptr), "cuEventRecord");
  }
  Result<bool> HasHappened() const override {
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    const cuda::Result result = context_->call().EventQuery(event_);
    if (result == cuda::kNotReady) return false;
    if (Status checked = in.Checked(result, "cuEventQuery"); !checked)
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
  CudaDevice(SharedContext context, std::string name, std::string uuid)
      : context_(std::move(context)), name_(std::move(name)), uuid_(std::move(uuid)) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string name() const override { return name_; }
  std::string uuid() const override { return uuid_; }

  Result<std::unique_ptr<DeviceMemory>> Allocate(int64_t bytes) override {
    if (bytes < 1 || bytes > INT64_MAX - kCudaBlockBytes)
      return InvalidArgument(fmt::format("{} bytes of device memory", bytes));
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    cuda::Pointer pointer = 0;
    const auto whole = static_cast<size_t>((bytes + kCudaBlockBytes - 1) / kCudaBlockBytes) *
                       size_t{kCudaBlockBytes};
    if (Status checked = in.Checked(call().MemAlloc(&pointer, whole), "cuMemAlloc"); !checked)
      return Within(fmt::format("{} bytes of {}", bytes, name_), checked.error());
    auto memory = std::make_unique<CudaMemory>(context_, pointer, bytes, true);
    if (Status checked = in.Checked(call().MemFill(pointer, 0, whole), "cuMemsetD8"); !checked)
      return tl::unexpected(checked.error());
    return memory;
  }
  Result<std::unique_ptr<DeviceMemory>> AllocateStaging(int64_t bytes) override {
    if (bytes < 1) return InvalidArgument(fmt::format("{} bytes of host memory", bytes));
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    void* at = nullptr;
    if (Status checked =
            in.Checked(call().MemAllocHost(&at, static_cast<size_t>(bytes)), "cuMemAllocHost");
        !checked)
      return Within(fmt::format("{} bytes of the host for {}", bytes, name_), checked.error());
    return std::make_unique<PinnedMemory>(context_, at, bytes);
  }
  Result<DeviceHandle> Export(const DeviceMemory& memory) override {
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    cuda::IpcHandle handle{};
    if (Status checked =
            in.Checked(call().IpcGetMemHandle(&handle, memory.address()), "cuIpcGetMemHandle");
        !checked)
      return tl::unexpected(checked.error());
    return HandleOf(handle, memory.bytes());
  }
  Result<std::unique_ptr<DeviceMemory>> Open(const DeviceHandle& handle) override {
    if (handle.kind != DeviceKind::kCuda || handle.bytes < 1)
      return InvalidArgument("the handle is not of CUDA memory");
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    cuda::Pointer pointer = 0;
    if (Status checked = in.Checked(
            call().IpcOpenMemHandle(&pointer, IpcHandleOf(handle), cuda::kLazyEnablePeerAccess),
            "cuIpcOpenMemHandle");
        !checked)
      return tl::unexpected(checked.error());
    return std::make_unique<CudaMemory>(context_, pointer, handle.bytes, false);
  }
  Result<std::unique_ptr<DeviceEvent>> MakeEvent() override {
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    cuda::Event event = nullptr;
    if (Status checked = in.Checked(
            call().EventCreate(&event, cuda::kEventDisableTiming | cuda::kEventInterprocess),
            "cuEventCreate");
        !checked)
      return tl::unexpected(checked.error());
    return std::make_unique<CudaEvent>(context_, event);
  }
  Result<DeviceHandle> ExportEvent(const DeviceEvent& event) override {
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    cuda::IpcHandle handle{};
    const cuda::Event of = static_cast<const CudaEvent&>(event).event();
    if (Status checked = in.Checked(call().IpcGetEventHandle(&handle, of), "cuIpcGetEventHandle");
        !checked)
      return tl::unexpected(checked.error());
    return HandleOf(handle, 0);
  }
  Result<std::unique_ptr<DeviceEvent>> OpenEvent(const DeviceHandle& handle) override {
    if (handle.kind != DeviceKind::kCuda || handle.bytes != 0)
      return InvalidArgument("the handle is of no CUDA event");
    const Entered in(*context_);
    if (!in.status()) return tl::unexpected(in.status().error());
    cuda::Event event = nullptr;
    if (Status checked = in.Checked(call().IpcOpenEventHandle(&event, IpcHandleOf(handle)),
                                    "cuIpcOpenEventHandle");
        !checked)
      return tl::unexpected(checked.error());
    return std::make_unique<CudaEvent>(context_, event);
  }

  Status CopyIn(DeviceMemory& to, int64_t offset, const void* from, int64_t bytes) override {
    if (Status checked = CheckRange(to, offset, bytes); !checked) return checked;
    const Entered in(*context_);
    if (!in.status()) return in.status();
    return in.Checked(call().MemcpyHtoD(static_cast<CudaMemory&>(to).At(offset), from,
                                        static_cast<size_t>(bytes)),
                      "cuMemcpyHtoD");
  }
  Status CopyOut(const DeviceMemory& from, int64_t offset, void* to, int64_t bytes) override {
    if (Status checked = CheckRange(from, offset, bytes); !checked) return checked;
    const Entered in(*context_);
    if (!in.status()) return in.status();
    return in.Checked(call().MemcpyDtoH(to, static_cast<const CudaMemory&>(from).At(offset),
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
  const cuda::Driver& call() const { return context_->call(); }

  SharedContext context_;
  std::string name_, uuid_;
};

// As nvidia-smi writes it, without what stands before.
std::string TextOf(const cuda::Uuid& uuid) {
  std::string text;
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

Result<std::string> UuidOf(const cuda::LoadedDriver& driver, cuda::DeviceNumber device) {
  cuda::Uuid uuid{};
  if (Status checked = driver.Checked(driver.call.DeviceGetUuid(&uuid, device), "cuDeviceGetUuid");
      !checked)
    return tl::unexpected(checked.error());
  return TextOf(uuid);
}

struct StartedDriver {
  cuda::LoadedDriver driver;
  int devices = 0;
};

Result<StartedDriver> StartDriver(const std::string& library) {
  const Result<cuda::LoadedDriver> driver = cuda::LoadDriver(library, cuda::Load::kIfNeeded);
  if (!driver) return tl::unexpected(driver.error());
  if (Status checked = driver->Checked(driver->call.Init(0), "cuInit"); !checked)
    return MakeError(ErrorCode::kInfeasible, checked.error().message);
  StartedDriver started{*driver};
  if (Status checked =
          driver->Checked(driver->call.DeviceGetCount(&started.devices), "cuDeviceGetCount");
      !checked)
    return tl::unexpected(checked.error());
  return started;
}

Result<std::unique_ptr<Device>> OpenNumber(const cuda::LoadedDriver& driver, int number) {
  const Result<SharedContext> context = cuda::PrimaryContext::Retain(driver, number);
  if (!context) return tl::unexpected(context.error());
  std::array<char, 256> name{};
  if (Status checked =
          driver.Checked(driver.call.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1,
                                                   (*context)->device()),
                         "cuDeviceGetName");
      !checked)
    return tl::unexpected(checked.error());
  Result<std::string> uuid = UuidOf(driver, (*context)->device());
  if (!uuid) return tl::unexpected(uuid.error());
  return std::make_unique<CudaDevice>(*context, name.data(), std::move(*uuid));
}

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice(int32_t number, const std::string& library) {
  const Result<StartedDriver> started = StartDriver(library);
  if (!started) return tl::unexpected(started.error());
  if (number < 0 || number >= started->devices)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("CUDA device {}: this host has {}", number, started->devices));
  return OpenNumber(started->driver, number);
}

Result<std::unique_ptr<Device>> OpenCudaDeviceByUuid(const std::string& uuid,
                                                     const std::string& library) {
  const Result<StartedDriver> started = StartDriver(library);
  if (!started) return tl::unexpected(started.error());
  const cuda::Driver& call = started->driver.call;
  for (int number = 0; number < started->devices; ++number) {
    cuda::DeviceNumber device = 0;
    if (call.DeviceGet(&device, number) != cuda::kSuccess) continue;
    if (const Result<std::string> its = UuidOf(started->driver, device); its && *its == uuid)
      return OpenNumber(started->driver, number);
  }
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("CUDA device {}: not among the {} that are seen here", uuid, started->devices));
}

}  // namespace tutti::ipc
