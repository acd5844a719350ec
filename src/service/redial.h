// Redial: several connections tried at once to one place, of which the first that is made is taken.
//
// Model       Each leaves from a port of its own, and so by a way of its own where the network's hash chooses ways, as what comes
//             back does: of two spines, one of which is cut, one connection of four is made.
// Complexity  A system call or two for each connection and look.
// Threads     The daemon's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "endpoint.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

class Redial {
 public:
  // In place of those that were tried before.
  void Begin(const Endpoint& to, size_t connections, int64_t now_ns);
  void Close();
  // The first that is made; the others are closed. Not open: none is yet.
  ipc::Descriptor Take();
  // Begin() was called, and neither was one taken nor Close() called.
  bool has_begun() const { return has_begun_; }
  int64_t since_ns() const { return since_ns_; }
  // Some may still be made.
  bool is_under_way() const { return !dials_.empty(); }
  // errno of one that failed; 0: none has.
  int error() const { return error_; }

 private:
  std::vector<ipc::Descriptor> dials_;
  bool has_begun_ = false;
  int64_t since_ns_ = 0;
  int error_ = 0;
};

}  // namespace tutti::service
