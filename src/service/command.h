// Command: what a rank of a tenant is to do, checked, with the memory that it needs.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective_call.h"
#include "departures.h"
#include "tenant.h"
#include "tutti/communicator.h"

namespace tutti::service {

// Buffers that stay while this is there. A collective has two at most, for which no memory is taken.
class HeldBuffers {
 public:
  void Add(const std::shared_ptr<TenantBuffer>& buffer) {
    for (std::shared_ptr<TenantBuffer>& first : first_) {
      if (first == buffer) return;
      if (first != nullptr) continue;
      first = buffer;
      return;
    }
    if (others_.empty() || others_.back() != buffer) others_.push_back(buffer);
  }

 private:
  std::array<std::shared_ptr<TenantBuffer>, 2> first_;
  std::vector<std::shared_ptr<TenantBuffer>> others_;
};

struct Command {
  bool is_exchange = false;
  bool is_of_all = true;  // all ranks take part, as in all-to-all-v; else perhaps only some
  CollectiveCall call;
  std::vector<Message> messages;
  uint64_t what = 0;  // of an exchange
  int64_t bytes = 0;  // for statistics
  HeldBuffers memory;
  int64_t posted_ns = 0;

  CallOfRank AsCall() const { return {.is_of_all = is_of_all, .messages = messages}; }
  std::string Text() const { return TextOf(is_exchange, call, messages.size()); }
  static std::string TextOf(bool is_exchange, const CollectiveCall& call, size_t messages) {
    return is_exchange ? fmt::format("{} messages", messages) : ToText(call);
  }
};

}  // namespace tutti::service
