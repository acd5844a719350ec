// ServedDevices: the CUDA devices of this host on which tenants have memory.
//
// Model       A device is opened when memory of it is first asked for, by its UUID, whatever its number is for the tenant. Each
//             has a thread for its copies, so that neither another device's nor plans wait for them.
// Threads     Make: any. CopierOf, RunFinished: the daemon's.
// Errors      Make: kInfeasible where there is no such device or driver; kResourceExhausted where it, or the host, is full.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tenant.h"
#include "tutti/base/result.h"
#include "tutti/ipc/device.h"
#include "worker.h"

namespace tutti::service {

class ServedDevices {
 public:
  struct Made {
    std::shared_ptr<OnDevice> memory;
    ipc::DeviceHandle handle;  // for the tenant's process
  };

  // `wake`: the daemon's thread, when a copy is done.
  explicit ServedDevices(std::function<void()> wake) : wake_(std::move(wake)) {}

  static Result<Made> Make(const std::string& uuid, int64_t bytes) {
    Result<std::unique_ptr<ipc::Device>> device = ipc::OpenCudaDeviceByUuid(uuid);
    if (!device) return tl::unexpected(device.error());
    auto memory = std::make_shared<OnDevice>();
    memory->device = std::move(*device);
    Result<std::unique_ptr<ipc::DeviceMemory>> allocated = memory->device->Allocate(bytes);
    if (!allocated) return tl::unexpected(allocated.error());
    memory->memory = std::move(*allocated);
    Result<std::unique_ptr<ipc::DeviceMemory>> staging = memory->device->AllocateStaging(bytes);
    if (!staging) return tl::unexpected(staging.error());
    memory->staging = std::move(*staging);
    Result<ipc::DeviceHandle> handle = memory->device->Export(*memory->memory);
    if (!handle) return tl::unexpected(handle.error());
    return Made{std::move(memory), std::move(*handle)};
  }

  // Of a device that was opened: there are no more of them than devices.
  Worker& CopierOf(const ipc::Device& device) {
    std::unique_ptr<Worker>& copier = copiers_[device.uuid()];
    if (copier == nullptr) copier = std::make_unique<ThreadWorker>(wake_);
    return *copier;
  }
  bool RunFinished() {
    bool happened = false;
    for (const auto& [uuid, copier] : copiers_) happened = copier->RunFinished() || happened;
    return happened;
  }
  // Waits for the copies that run; others are dropped.
  void End() { copiers_.clear(); }

 private:
  std::function<void()> wake_;
  std::map<std::string, std::unique_ptr<Worker>> copiers_;
};

}  // namespace tutti::service
