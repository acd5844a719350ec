// Tenants: who may use the daemon, what each may take, and what each has taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tutti/ipc/socket.h"
#include "tutti/service/daemon.h"

namespace tutti::service {

struct Tenant {
  TenantOptions options;
  int64_t memory_bytes = 0;
  int32_t processes = 0;
  int32_t ranks = 0;
  int64_t operations = 0, bytes = 0, refused = 0;
};

// Memory of a tenant, mapped in its process and here; counted from when it is asked for.
class TenantBuffer {
 public:
  TenantBuffer(Tenant& tenant, int64_t bytes) : tenant_(tenant), bytes_(bytes) {
    tenant_.memory_bytes += bytes_;
  }
  ~TenantBuffer() { tenant_.memory_bytes -= bytes_; }
  TenantBuffer(const TenantBuffer&) = delete;
  TenantBuffer& operator=(const TenantBuffer&) = delete;

  void Fill(ipc::Memory memory) { memory_ = std::move(memory); }
  std::byte* data() const { return memory_.data(); }
  int64_t bytes() const { return bytes_; }

 private:
  Tenant& tenant_;
  int64_t bytes_;
  ipc::Memory memory_;
};

}  // namespace tutti::service
