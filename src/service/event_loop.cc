#include "event_loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
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

bool EventLoop::Watch(int fd, const Entry& entry, int how) const {
  epoll_event event{};
  event.events = entry.events;
  event.data.u64 = static_cast<uint64_t>(fd) | entry.number << 32;
  return epoll_ctl(epoll_.fd(), how, fd, &event) == 0;
}

void EventLoop::Add(int fd, uint32_t events, Handler handler) {
  const Entry& entry =
      entries_[fd] = {++added_, std::make_shared<Handler>(std::move(handler)), events};
  std::erase(unwatched_, fd);
  if (!Watch(fd, entry, EPOLL_CTL_ADD)) unwatched_.push_back(fd);
}

void EventLoop::Change(int fd, uint32_t events) {
  const auto found = entries_.find(fd);
  if (found == entries_.end()) return;
  found->second.events = events;
  Watch(fd, found->second, EPOLL_CTL_MOD);  // one that is not watched is so later
}

void EventLoop::Remove(int fd) {
  if (entries_.erase(fd) == 0) return;
  if (std::erase(unwatched_, fd) == 0) epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
}

bool EventLoop::PollUnwatched() {
  bool called = false;
  for (const int fd : std::vector<int>(unwatched_)) {
    const auto found = entries_.find(fd);
    if (found == entries_.end()) continue;  // a handler before has removed it
    if (Watch(fd, found->second, EPOLL_CTL_ADD)) {
      std::erase(unwatched_, fd);
      continue;
    }
    // The events of both calls have the same numbers.
    pollfd asked{.fd = fd, .events = static_cast<short>(found->second.events), .revents = 0};
    if (poll(&asked, 1, 0) <= 0 || (asked.revents & POLLNVAL) != 0) continue;
    const std::shared_ptr<Handler> handler = found->second.handler;
    (*handler)(static_cast<uint32_t>(asked.revents));
    called = true;
  }
  return called;
}

bool EventLoop::Poll(int wait_ms) {
  constexpr int kUnwatchedMs = 5;
  const bool called = !unwatched_.empty() && PollUnwatched();
  if (called) wait_ms = 0;
  if (!unwatched_.empty()) wait_ms = wait_ms < 0 ? kUnwatchedMs : std::min(wait_ms, kUnwatchedMs);
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
  return called || count > 0;
}

void EventLoop::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = write(wake_.fd(), &one, sizeof(one));
}

}  // namespace tutti::service
