#include "cuda_context.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

namespace tutti::ipc::cuda {

Status LoadedDriver::Checked(Result result, const char* what) const {
  if (result == kSuccess) return {};
  const char* text = nullptr;
  if (call.GetErrorString(result, &text) != kSuccess || text == nullptr) text = "unknown";
  return MakeError(result == kOutOfMemory ? ErrorCode::kResourceExhausted : ErrorCode::kIo,
                   fmt::format("{}: error {} ({})", what, result, text));
}

tutti::Result<LoadedDriver> LoadDriver(const std::string& name, Load load) {
  LoadedDriver driver;
  void* library =
      dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (load == Load::kOnlyIfThere ? RTLD_NOLOAD : 0));
  if (library == nullptr) {
    const char* why = dlerror();
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("no CUDA driver: {}", why != nullptr ? why : (name + " is not loaded")));
  }
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* symbol) {
    void* found = dlsym(library, symbol);
    if (found == nullptr) missing = symbol;
    std::memcpy(&function, &found, sizeof(found));
  };
  Driver& call = driver.call;
  find(call.Init, "cuInit");
  find(call.DeviceGetCount, "cuDeviceGetCount");
  find(call.DeviceGet, "cuDeviceGet");
  find(call.DeviceGetName, "cuDeviceGetName");
  find(call.DeviceGetUuid, "cuDeviceGetUuid_v2");
  find(call.PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(call.PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  find(call.PrimaryCtxGetState, "cuDevicePrimaryCtxGetState");
  find(call.CtxPushCurrent, "cuCtxPushCurrent_v2");
  find(call.CtxPopCurrent, "cuCtxPopCurrent_v2");
  find(call.MemAlloc, "cuMemAlloc_v2");
  find(call.MemFree, "cuMemFree_v2");
  find(call.MemFill, "cuMemsetD8_v2");
  find(call.MemAllocHost, "cuMemAllocHost_v2");
  find(call.MemFreeHost, "cuMemFreeHost");
  find(call.MemHostRegister, "cuMemHostRegister_v2");
  find(call.MemHostUnregister, "cuMemHostUnregister");
  find(call.PointerGetAttribute, "cuPointerGetAttribute");
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
  find(call.StreamSynchronize, "cuStreamSynchronize");
  find(call.GetErrorString, "cuGetErrorString");
  if (missing != nullptr)
    return MakeError(ErrorCode::kInfeasible, fmt::format("{} has no {}", name, missing));
  return driver;
}

tutti::Result<SharedContext> PrimaryContext::Retain(const LoadedDriver& driver, int number) {
  DeviceNumber device = 0;
  if (Status checked = driver.Checked(driver.call.DeviceGet(&device, number), "cuDeviceGet");
      !checked)
    return tl::unexpected(checked.error());
  Context context = nullptr;
  if (Status checked = driver.Checked(driver.call.PrimaryCtxRetain(&context, device),
                                      "cuDevicePrimaryCtxRetain");
      !checked)
    return tl::unexpected(checked.error());
  return std::make_shared<const PrimaryContext>(driver, device, context);
}

}  // namespace tutti::ipc::cuda
