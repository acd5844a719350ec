// How the ranks of a communicator find each other and hear of each other's end.
//
// Model       Who makes a unique id runs a *root*: a thread that listens. Every rank keeps a
//             connection to it. A *round* gives every rank what all ranks have said in it; joining
//             is the first. When a rank's connection ends before it has said goodbye, or when it says
//             why it failed, the root tells all others.
// Frames      those of control_link.h: hello, share, shared, failed, abort, end (docs/formats/wire.md).
// Errors      kPeerFailed: what the root said, or that it has gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control_link.h"
#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/communicator.h"
#include "tutti/runtime/remote.h"

namespace tutti::bootstrap {

inline constexpr size_t kMaxShareBytes = 4096;  // of one rank in a round

// What a unique id says.
struct Address {
  Endpoint root;
  JobSecret secret{};
};
UniqueId Encode(const Address& address);
// kInvalidArgument: no id of this version.
Result<Address> Decode(const UniqueId& id);

// Starts a root that lives until its ranks have gone, or the process ends.
Result<Address> StartRoot(uint32_t listen_address);

// A rank's connection to its root.
class Link {
 public:
  static Result<Link> Join(const Address& address, int32_t num_ranks, int32_t rank,
                           const Deadline& deadline);
  Link(Link&&) noexcept = default;
  Link& operator=(Link&&) noexcept = default;
  ~Link();

  // What each rank said, by rank. kCancelled: `aborted` was set.
  Result<std::vector<std::string>> Share(std::string_view mine, const Deadline& deadline,
                                         const std::atomic<bool>& aborted);
  // An error: somebody has failed or gone. Costs a system call.
  Status Check();
  // Tells the root why this rank fails, once, and adds what others say within `wait_s`.
  Error Fail(const Error& error, double wait_s);

  const Endpoint& local() const { return local_; }

 private:
  Link(ControlLink link, int32_t num_ranks)
      : link_(std::move(link)), local_(link_.local()), num_ranks_(num_ranks) {}
  // The next frame but those that end everything; nothing: none came.
  Result<std::optional<Frame>> Next(int wait_ms);

  ControlLink link_;
  Endpoint local_;
  int32_t num_ranks_ = 0;
  bool over_ = false;  // the root is no longer needed, or has failed
};

}  // namespace tutti::bootstrap
