// Tenants: who may use the daemon, what each may take, and what each has taken.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "memory_returns.h"
#include "metrics.h"
#include "tutti/ipc/device.h"
#include "tutti/ipc/socket.h"
#include "tutti/service/daemon.h"

namespace tutti::service {

struct Tenant {
  TenantOptions options;
  bool is_anybody = false;  // it is a user that no tenant names
  // Also what is being given back (memory_returns.h).
  std::atomic<int64_t> memory_bytes = 0;
  int32_t processes = 0;
  int32_t ranks = 0;
  int64_t operations = 0, bytes = 0, refused = 0;
  TenantMetrics metrics = {};

  void CountRefusal(ErrorCode code) {
    ++refused;
    metrics.AddRefusal(code);
  }
};

// Memory of a CUDA device, and the host's by way of which its data goes.
struct OnDevice {
  std::shared_ptr<ipc::Device> device;
  std::unique_ptr<ipc::DeviceMemory> memory, staging;
};

// Memory of a tenant, mapped in its process and here, or on a CUDA device with as much memory of the host here, by way of which
// its data goes; counted once, from when it is asked for.
class TenantBuffer {
 public:
  TenantBuffer(Tenant& tenant, int64_t bytes, MemoryReturns& returns)
      : tenant_(tenant), bytes_(bytes), returns_(returns) {
    tenant_.memory_bytes += bytes_;
  }
  ~TenantBuffer() { returns_.Take(std::move(held_), tenant_.memory_bytes, bytes_); }
  TenantBuffer(const TenantBuffer&) = delete;
  TenantBuffer& operator=(const TenantBuffer&) = delete;

  void Fill(ipc::Memory memory) {
    data_ = memory.data();
    held_ = std::make_shared<ipc::Memory>(std::move(memory));
  }
  void Fill(std::shared_ptr<OnDevice> memory) {
    data_ = memory->staging->data();
    on_device_ = memory.get();
    held_ = std::move(memory);
  }
  // What operations read and write.
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // Null: it is memory of the host.
  OnDevice* on_device() const { return on_device_; }

 private:
  Tenant& tenant_;
  int64_t bytes_;
  MemoryReturns& returns_;
  std::byte* data_ = nullptr;
  OnDevice* on_device_ = nullptr;
  std::shared_ptr<void> held_;
};

}  // namespace tutti::service
