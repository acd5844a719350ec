#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tutti/base/copy.h"
#include "tutti/ipc/device.h"

namespace tutti::ipc {
namespace {

constexpr int64_t kPageOfHost = 4096;

class HostMemory final : public DeviceMemory {
 public:
  HostMemory(Memory memory, Descriptor file, int64_t bytes)
      : memory_(std::move(memory)), file_(std::move(file)), bytes_(bytes) {}
  int64_t bytes() const override { return bytes_; }
  std::byte* data() const override { return memory_.data(); }
  uint64_t address() const override { return reinterpret_cast<uint64_t>(memory_.data()); }
  int file() const { return file_.fd(); }

 private:
  Memory memory_;
  Descriptor file_;
  int64_t bytes_;
};

// A count of records in memory that processes share: work of the host has been done when it is recorded.
class HostEvent final : public DeviceEvent {
 public:
  HostEvent(HostMemory memory, bool is_own) : memory_(std::move(memory)), is_own_(is_own) {
    if (is_own_) new (memory_.data()) std::atomic<uint64_t>(0);
  }
  Status Record() override {
    if (!is_own_)
      return MakeError(ErrorCode::kInvalidArgument, "an event is recorded by who made it");
    count().fetch_add(1);
    return {};
  }
  Result<bool> HasHappened() const override { return count().load() > 0; }
  const HostMemory& memory() const { return memory_; }

 private:
  std::atomic<uint64_t>& count() const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(memory_.data());
  }
  HostMemory memory_;
  bool is_own_;
};

Result<HostMemory> AllocateHost(int64_t bytes) {
  if (bytes < 1) return InvalidArgument(fmt::format("{} bytes of device memory", bytes));
  Descriptor file;
  const int64_t whole = (bytes + kPageOfHost - 1) / kPageOfHost * kPageOfHost;
  Result<Memory> made = Memory::Make("tutti-device", whole, false, file);
  if (!made) return tl::unexpected(made.error());
  return HostMemory(std::move(*made), std::move(file), bytes);
}

Result<DeviceHandle> ExportHost(const HostMemory& memory) {
  DeviceHandle handle{.kind = DeviceKind::kHost, .bytes = memory.bytes()};
  handle.file = Descriptor(fcntl(memory.file(), F_DUPFD_CLOEXEC, 0));
  if (!handle.file.is_open())
    return MakeError(ErrorCode::kIo, fmt::format("a descriptor: {}", std::strerror(errno)));
  return handle;
}

Result<HostMemory> OpenHost(const DeviceHandle& handle) {
  if (handle.kind != DeviceKind::kHost || !handle.file.is_open() || handle.bytes < 1)
    return InvalidArgument("the handle is not of host memory");
  Descriptor file(fcntl(handle.file.fd(), F_DUPFD_CLOEXEC, 0));
  // What the handle says is checked, not believed: to read beyond a file's end would end this process.
  const off_t there = lseek(handle.file.fd(), 0, SEEK_END);
  if (there < handle.bytes)
    return InvalidArgument(fmt::format("the handle says {} bytes, its memory has {}", handle.bytes,
                                       static_cast<int64_t>(there)));
  Result<Memory> mapped = Memory::Map(handle.file.fd(), handle.bytes, true);
  if (!mapped) return tl::unexpected(mapped.error());
  return HostMemory(std::move(*mapped), std::move(file), handle.bytes);
}

class HostDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kHost; }
  std::string name() const override { return "host"; }
  std::string uuid() const override { return ""; }

  Result<std::unique_ptr<DeviceMemory>> Allocate(int64_t bytes) override {
    Result<HostMemory> made = AllocateHost(bytes);
    if (!made) return tl::unexpected(made.error());
    return std::make_unique<HostMemory>(std::move(*made));
  }
  Result<std::unique_ptr<DeviceMemory>> AllocateStaging(int64_t bytes) override {
    return Allocate(bytes);
  }
  Result<DeviceHandle> Export(const DeviceMemory& memory) override {
    return ExportHost(static_cast<const HostMemory&>(memory));
  }
  Result<std::unique_ptr<DeviceMemory>> Open(const DeviceHandle& handle) override {
    Result<HostMemory> opened = OpenHost(handle);
    if (!opened) return tl::unexpected(opened.error());
    return std::make_unique<HostMemory>(std::move(*opened));
  }
  Result<std::unique_ptr<DeviceEvent>> MakeEvent() override {
    Result<HostMemory> made = AllocateHost(sizeof(uint64_t));
    if (!made) return tl::unexpected(made.error());
    return std::make_unique<HostEvent>(std::move(*made), true);
  }
  Result<DeviceHandle> ExportEvent(const DeviceEvent& event) override {
    return ExportHost(static_cast<const HostEvent&>(event).memory());
  }
  Result<std::unique_ptr<DeviceEvent>> OpenEvent(const DeviceHandle& handle) override {
    Result<HostMemory> opened = OpenHost(handle);
    if (!opened) return tl::unexpected(opened.error());
    if (opened->bytes() != sizeof(uint64_t)) return InvalidArgument("the handle is of no event");
    return std::make_unique<HostEvent>(std::move(*opened), false);
  }

  Status CopyIn(DeviceMemory& to, int64_t offset, const void* from, int64_t bytes) override {
    if (Status checked = CheckRange(to, offset, bytes); !checked) return checked;
    CopyMemory(to.data() + offset, from, static_cast<size_t>(bytes));
    return {};
  }
  Status CopyOut(const DeviceMemory& from, int64_t offset, void* to, int64_t bytes) override {
    if (Status checked = CheckRange(from, offset, bytes); !checked) return checked;
    CopyMemory(to, from.data() + offset, static_cast<size_t>(bytes));
    return {};
  }
  Status Reduce(DeviceMemory& to, int64_t to_offset, const DeviceMemory& from, int64_t from_offset,
                int64_t count, int64_t element_bytes, CombineKernel combine) override {
    if (Status checked = CheckRange(to, to_offset, count * element_bytes); !checked) return checked;
    if (Status checked = CheckRange(from, from_offset, count * element_bytes); !checked)
      return checked;
    std::byte* result = to.data() + to_offset;
    combine(result, result, from.data() + from_offset, count);
    return {};
  }
};

}  // namespace

Status CheckRange(const DeviceMemory& memory, int64_t offset, int64_t bytes) {
  if (offset >= 0 && bytes >= 0 && offset <= memory.bytes() && bytes <= memory.bytes() - offset)
    return {};
  return InvalidArgument(
      fmt::format("{} bytes from byte {} of memory that has {}", bytes, offset, memory.bytes()));
}

std::unique_ptr<Device> MakeHostDevice() { return std::make_unique<HostDevice>(); }

}  // namespace tutti::ipc
