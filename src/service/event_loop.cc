#include "event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::service {

Result<std::unique_ptr<EventLoop>> EventLoop::Make() {
  ipc::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  ipc::Descriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll.is_open() || !wake.is_open())
    return MakeError(ErrorCode::kIo, std::string("epoll: ") + std::strerror(errno));
  std::unique_ptr<EventLoop> loop(new EventLoop(std::move(epoll), std::move(wake)));
  const int fd = loop->wake_.fd();
  loop->Add(fd, EPOLLIN, [fd](uint32_t) {
    uint64_t rung = 0;
    [[maybe_unused]] const ssize_t size = read(fd, &rung, sizeof(rung));
  });
  return loop;
}

void EventLoop::Add(int fd, uint32_t events, Handler handler) {
  entries_[fd] = {++added_, std::make_shared<Handler>(std::move(handler))};
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(fd) | added_ << 32;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event);
}

void EventLoop::Change(int fd, uint32_t events) {
  const auto found = entries_.find(fd);
  if (found == entries_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(fd) | found->second.number << 32;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::Remove(int fd) {
  if (entries_.erase(fd) > 0) epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
}

bool EventLoop::Poll(int wait_ms) {
  std::array<epoll_event, 64> events;
  const int count =
      epoll_wait(epoll_.fd(), events.data(), static_cast<int>(events.size()), wait_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const auto found = entries_.find(static_cast<int>(event.data.u64 & 0xffffffffu));
    if (found == entries_.end() || (found->second.number & 0xffffffffu) != event.data.u64 >> 32)
      continue;
    const std::shared_ptr<Handler> handler = found->second.handler;  // it may remove itself
    (*handler)(event.events);
  }
  return count > 0;
}

void EventLoop::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = write(wake_.fd(), &one, sizeof(one));
}

}  // namespace tutti::service
