// DeviceAllocations: memory of CUDA devices that a program has without a service, by its address.
//
// Threads     Any.
// Errors      kInfeasible: there is no such device, or no driver. kResourceExhausted: it is full.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tutti/base/result.h"
#include "tutti/ipc/device.h"

namespace tutti {

class DeviceAllocations {
 public:
  static DeviceAllocations& OfThisProcess() {
    // Not destroyed: at the end of a process its driver may have gone before.
    static auto* all = new DeviceAllocations;
    return *all;
  }

  Result<void*> Allocate(int32_t device, int64_t bytes) {
    const Result<std::unique_ptr<ipc::Device>> opened = ipc::OpenCudaDevice(device);
    if (!opened) return tl::unexpected(opened.error());
    Result<std::unique_ptr<ipc::DeviceMemory>> made = (*opened)->Allocate(bytes);
    if (!made) return tl::unexpected(made.error());
    auto* at = reinterpret_cast<void*>((*made)->address());
    const std::lock_guard lock(mutex_);
    allocated_.emplace(at, std::move(*made));
    return at;
  }
  // False: it is none of these.
  bool Free(void* memory) {
    const std::lock_guard lock(mutex_);
    return allocated_.erase(memory) == 1;
  }

 private:
  DeviceAllocations() = default;

  std::mutex mutex_;
  std::map<void*, std::unique_ptr<ipc::DeviceMemory>> allocated_;
};

}  // namespace tutti
