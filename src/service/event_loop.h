// EventLoop: the descriptors that the daemon's thread listens to, and when it is to look up by itself.
//
// Model       A handler is called with what epoll reports. Handlers may add and remove descriptors, their
//             own too; what was removed is not called any more.
// Threads     One, but for Wake(), which any thread and signal handler may call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "tutti/base/result.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

class Gateway;

class EventLoop {
 public:
  using Handler = std::function<void(uint32_t events)>;

  static Result<std::unique_ptr<EventLoop>> Make();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Where the system watches no more descriptors (fs.epoll.max_user_watches, memory) this one is asked in each Poll().
  void Add(int fd, uint32_t events, Handler handler);
  void Change(int fd, uint32_t events);
  void Remove(int fd);
  // Waits at most `wait_ms` (-1: for ever). True: a handler was called.
  bool Poll(int wait_ms);
  void Wake() const;
  // What carries connections to other hosts; null: they are made as they are. Must outlive this loop's connections.
  Gateway* gateway() const { return gateway_; }
  void SetGateway(Gateway* gateway) { gateway_ = gateway; }

 private:
  struct Entry {
    uint64_t number = 0;  // tells a descriptor from a later one of the same number
    std::shared_ptr<Handler> handler;
    uint32_t events = 0;
  };

  EventLoop(ipc::Descriptor epoll, ipc::Descriptor wake)
      : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  bool Watch(int fd, const Entry& entry, int how) const;
  // True: a handler was called.
  bool PollUnwatched();

  ipc::Descriptor epoll_, wake_;
  std::unordered_map<int, Entry> entries_;
  std::vector<int> unwatched_;  // that epoll could not take
  uint64_t added_ = 0;
  Gateway* gateway_ = nullptr;
};

}  // namespace tutti::service
