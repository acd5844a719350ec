// Tenants: who may use the daemon, what each may take, and what each has taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
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

// Memory of a tenant, mapped in its process and here.
class TenantBuffer {
 public:
  TenantBuffer(Tenant& tenant, ipc::Memory memory) : tenant_(tenant), memory_(std::move(memory)) {
    tenant_.memory_bytes += memory_.bytes();
  }
  ~TenantBuffer() { tenant_.memory_bytes -= memory_.bytes(); }
  TenantBuffer(const TenantBuffer&) = delete;
  TenantBuffer& operator=(const TenantBuffer&) = delete;

  std::byte* data() const { return memory_.data(); }
  int64_t bytes() const { return memory_.bytes(); }

 private:
  Tenant& tenant_;
  ipc::Memory memory_;
};

}  // namespace tutti::service
