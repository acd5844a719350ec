// The few entry points of the CUDA driver that devices need, declared by ourselves and found at run time.
//
// Reference   CUDA driver API; names with _v2 are what its header's macros make of those without
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::ipc::cuda {

using Result = int;        // CUresult: 0 is success
using DeviceNumber = int;  // CUdevice
using Pointer = uint64_t;  // CUdeviceptr
using Context = struct ContextTag*;
using Event = struct EventTag*;
using Stream = struct StreamTag*;  // null: the default one

inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kInvalidContext = 201, kNotReady = 600;
inline constexpr unsigned kEventDisableTiming = 2, kEventInterprocess = 4;
inline constexpr unsigned kLazyEnablePeerAccess = 1;
// CU_POINTER_ATTRIBUTE_*, and what the first may say.
inline constexpr int kAttributeMemoryType = 2, kAttributeDeviceOrdinal = 9;
inline constexpr unsigned kMemoryTypeDevice = 2;

struct IpcHandle {
  char bytes[64];
};

struct Uuid {
  char bytes[16];
};

struct Driver {
  Result (*Init)(unsigned flags) = nullptr;
  Result (*DeviceGetCount)(int* count) = nullptr;
  Result (*DeviceGet)(DeviceNumber* device, int ordinal) = nullptr;
  Result (*DeviceGetName)(char* name, int length, DeviceNumber device) = nullptr;
  Result (*DeviceGetUuid)(Uuid* uuid, DeviceNumber device) = nullptr;
  Result (*PrimaryCtxRetain)(Context* context, DeviceNumber device) = nullptr;
  Result (*PrimaryCtxRelease)(DeviceNumber device) = nullptr;
  Result (*PrimaryCtxGetState)(DeviceNumber device, unsigned* flags, int* is_active) = nullptr;
  Result (*CtxPushCurrent)(Context context) = nullptr;
  Result (*CtxPopCurrent)(Context* context) = nullptr;
  Result (*MemAlloc)(Pointer* pointer, size_t bytes) = nullptr;
  Result (*MemFree)(Pointer pointer) = nullptr;
  Result (*MemFill)(Pointer to, unsigned char value, size_t bytes) = nullptr;
  Result (*MemAllocHost)(void** at, size_t bytes) = nullptr;
  Result (*MemFreeHost)(void* at) = nullptr;
  Result (*MemHostRegister)(void* at, size_t bytes, unsigned flags) = nullptr;
  Result (*MemHostUnregister)(void* at) = nullptr;
  Result (*PointerGetAttribute)(void* value, int attribute, Pointer pointer) = nullptr;
  Result (*MemcpyHtoD)(Pointer to, const void* from, size_t bytes) = nullptr;
  Result (*MemcpyDtoH)(void* to, Pointer from, size_t bytes) = nullptr;
  Result (*IpcGetMemHandle)(IpcHandle* handle, Pointer pointer) = nullptr;
  Result (*IpcOpenMemHandle)(Pointer* pointer, IpcHandle handle, unsigned flags) = nullptr;
  Result (*IpcCloseMemHandle)(Pointer pointer) = nullptr;
  Result (*EventCreate)(Event* event, unsigned flags) = nullptr;
  Result (*EventDestroy)(Event event) = nullptr;
  Result (*EventRecord)(Event event, Stream stream) = nullptr;
  Result (*EventQuery)(Event event) = nullptr;
  Result (*IpcGetEventHandle)(IpcHandle* handle, Event event) = nullptr;
  Result (*IpcOpenEventHandle)(Event* event, IpcHandle handle) = nullptr;
  Result (*StreamSynchronize)(Stream stream) = nullptr;
  Result (*GetErrorString)(Result error, const char** text) = nullptr;
};

}  // namespace tutti::ipc::cuda
