// Tenants: who may use the daemon, what each may take, and what each has taken.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memory_returns.h"
#include "metrics.h"
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

// Memory of a tenant, mapped in its process and here; counted from when it is asked for.
class TenantBuffer {
 public:
  TenantBuffer(Tenant& tenant, int64_t bytes, MemoryReturns& returns)
      : tenant_(tenant), bytes_(bytes), returns_(returns) {
    tenant_.memory_bytes += bytes_;
  }
  ~TenantBuffer() { returns_.Take(std::move(memory_), tenant_.memory_bytes, bytes_); }
  TenantBuffer(const TenantBuffer&) = delete;
  TenantBuffer& operator=(const TenantBuffer&) = delete;

  void Fill(ipc::Memory memory) { memory_ = std::move(memory); }
  std::byte* data() const { return memory_.data(); }
  int64_t bytes() const { return bytes_; }

 private:
  Tenant& tenant_;
  int64_t bytes_;
  MemoryReturns& returns_;
  ipc::Memory memory_;
};

}  // namespace tutti::service
