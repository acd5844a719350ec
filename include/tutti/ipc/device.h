// Device: memory and events of an accelerator, or of the host, that a daemon and a tenant's process share.
//
// Model       One process allocates, exports and frees; others open what was exported, by a handle that goes over the socket.
//             A write of one is seen by the other when an event recorded behind it has happened.
//             *Host*: memory is a sealed memory file, its handle the descriptor; an event is a count in such memory.
//             *CUDA*: memory is the device's, its handle and an event's the 64 bytes of cuIpc*; the driver
//             (libcuda) is opened at run time, so that no build and no host needs it.
// Units       bytes from the start of the memory.
// Errors      kInfeasible: there is no such device or driver here, with what was looked for. kResourceExhausted: its memory is
//             full. kIo: what the driver said, with the call. kInvalidArgument: a range beyond the memory, a handle
//             of another kind.
// Threads     Any.
// Processes   One that was forked from a process with an open CUDA device cannot use CUDA until it executes a program.
// Reference   [mccs] 4.1 memory handles, events; CUDA driver API, "cuIpc"
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tutti/base/result.h"
#include "tutti/ipc/socket.h"

namespace tutti::ipc {

enum class DeviceKind : uint8_t { kHost, kCuda };

// What another process opens.
struct DeviceHandle {
  DeviceKind kind = DeviceKind::kHost;
  int64_t bytes = 0;
  Descriptor file = {};                   // of the host
  std::array<std::byte, 64> opaque = {};  // of CUDA
};

// Freed at its end: given back by who allocated it, closed by who opened it.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual int64_t bytes() const = 0;
  // Where this process may read and write directly; null: only by copies.
  virtual std::byte* data() const = 0;
  // What programs of the device call its first byte in this process.
  virtual uint64_t address() const = 0;
};

class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Behind all that was begun on the device before.
  virtual Status Record() = 0;
  // Before any Record() the host says no, CUDA yes.
  virtual Result<bool> HasHappened() const = 0;
};

// dst[i] = a[i] op b[i].
using CombineKernel = void (*)(void* dst, const void* a, const void* b, int64_t count);

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;
  // By which other processes find it; the host has none.
  virtual std::string uuid() const = 0;

  // Zeros. Nobody who opens it sees more than it; CUDA therefore takes it in whole blocks.
  virtual Result<std::unique_ptr<DeviceMemory>> Allocate(int64_t bytes) = 0;
  // Memory of the host that is fast to copy from and to. It is not shared, and holds anything.
  virtual Result<std::unique_ptr<DeviceMemory>> AllocateStaging(int64_t bytes) = 0;
  virtual Result<DeviceHandle> Export(const DeviceMemory& memory) = 0;
  // In another process than the one that exported it.
  virtual Result<std::unique_ptr<DeviceMemory>> Open(const DeviceHandle& handle) = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> MakeEvent() = 0;
  virtual Result<DeviceHandle> ExportEvent(const DeviceEvent& event) = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> OpenEvent(const DeviceHandle& handle) = 0;

  virtual Status CopyIn(DeviceMemory& to, int64_t offset, const void* from, int64_t bytes) = 0;
  virtual Status CopyOut(const DeviceMemory& from, int64_t offset, void* to, int64_t bytes) = 0;
  // to[i] = to[i] op from[i] for `count` elements of `element_bytes` from the offsets on. On CUDA through pieces of host
  // memory: right on every device, at the speed of its bus.
  virtual Status Reduce(DeviceMemory& to, int64_t to_offset, const DeviceMemory& from,
                        int64_t from_offset, int64_t count, int64_t element_bytes,
                        CombineKernel combine) = 0;
};

// What CUDA memory is taken in: smaller pieces share a block of the driver's, all of which whoever opens a handle of one can read
// and write.
inline constexpr int64_t kCudaBlockBytes = int64_t{2} << 20;

std::unique_ptr<Device> MakeHostDevice();
// The number-th device of the driver in `library`.
Result<std::unique_ptr<Device>> OpenCudaDevice(int32_t number,
                                               const std::string& library = "libcuda.so.1");
// The one with this UUID, whatever its number in this process.
Result<std::unique_ptr<Device>> OpenCudaDeviceByUuid(const std::string& uuid,
                                                     const std::string& library = "libcuda.so.1");
// kInvalidArgument, where [offset, offset + bytes) is not within `memory`.
Status CheckRange(const DeviceMemory& memory, int64_t offset, int64_t bytes);

}  // namespace tutti::ipc
