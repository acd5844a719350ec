// Acceptor: a listening socket of the daemon: takes who comes, and rests where it cannot.
//
// Model       At most kAtOnce a tick, so that a storm of connections leaves the thread to others. Without a descriptor
//             left it is not listened to until the next tick: who waits in the queue would be reported for
//             ever, and the thread would never sleep.
// Lifetime    A socket that was bound here is unlinked at the end; one that was passed is its owner's.
// Threads     The daemon's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "event_loop.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

class Acceptor {
 public:
  static constexpr int32_t kAtOnce = 256;

  // `unlink`: a path to remove at the end, or nothing.
  Acceptor(EventLoop& loop, ipc::Descriptor listener, std::string unlink,
           std::function<void(ipc::Descriptor)> accepted);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Until the next tick, where who has come is to be heard first: others wait in the queue.
  void Rest();
  // Now and then: goes on where it rests.
  void Tick();
  bool rests() const { return rests_; }
  // How often it had to rest for want of descriptors.
  int64_t times_without_descriptors() const { return without_; }

 private:
  void Accept();
  void Listen();

  EventLoop& loop_;
  ipc::Descriptor listener_;
  std::string unlink_;
  std::function<void(ipc::Descriptor)> accepted_;
  int32_t left_ = kAtOnce;
  int64_t without_ = 0;
  bool rests_ = false;
};

}  // namespace tutti::service
