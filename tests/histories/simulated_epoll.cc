// What descriptors report, epolls and counters.
#include <poll.h>

#include <cerrno>

#include "simulated_kernel.h"

namespace tutti::histories {

uint32_t SimulatedKernel::StateOf(int fd) const {
  const File* file = Find(fd);
  if (file == nullptr) return 0;
  switch (file->kind) {
    case File::Kind::kFresh:
      return EPOLLOUT | EPOLLHUP;
    case File::Kind::kListener:
      return file->waiting.empty() ? 0u : uint32_t{EPOLLIN};
    case File::Kind::kUnixListener:
      return 0;
    case File::Kind::kCounter:
      return EPOLLOUT | (file->count > 0 ? uint32_t{EPOLLIN} : 0u);
    case File::Kind::kEpoll: {
      for (const int candidate : file->candidates) {
        const Watch& watch = file->watched.at(candidate);
        if (watch.edge && !watch.pending) continue;
        if ((StateOf(candidate) & (watch.events | EPOLLERR | EPOLLHUP)) != 0) return EPOLLIN;
      }
      return 0;
    }
    case File::Kind::kWire:
      break;
  }
  const End& end = file->wire->ends[static_cast<size_t>(file->side)];
  uint32_t state = 0;
  if (end.state == End::State::kConnecting) return 0;
  if (end.in.size() > end.taken || end.has_ended) state |= EPOLLIN;
  if (end.has_ended) state |= EPOLLRDHUP;
  if (end.state == End::State::kOver)
    return state | EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP |
           (end.error != 0 ? uint32_t{EPOLLERR} : 0u);
  if (end.has_ended && end.ends) state |= EPOLLHUP;
  if (end.out.size() < options_.send_buffer || end.ends) state |= EPOLLOUT;
  return state;
}

void SimulatedKernel::Tell(int fd) {
  const File* file = Find(fd);
  if (file == nullptr) return;
  if (news_) news_(file->host);
  for (const int epoll : file->watchers) {
    File& watcher = files_.at(epoll);
    Watch& watch = watcher.watched.at(fd);
    watch.pending = true;
    watcher.candidates.insert(fd);
    Tell(epoll);
  }
}

int SimulatedKernel::OpenEpoll() { return Open(File::Kind::kEpoll); }

int SimulatedKernel::ControlEpoll(int epoll, int how, int fd, epoll_event* event) {
  File* watcher = Find(epoll);
  File* file = Find(fd);
  if (watcher == nullptr || file == nullptr) return Fail(EBADF);
  if (how == EPOLL_CTL_DEL) {
    std::erase(file->watchers, epoll);
    watcher->candidates.erase(fd);
    return watcher->watched.erase(fd) > 0 ? 0 : Fail(ENOENT);
  }
  if ((how == EPOLL_CTL_ADD) == (watcher->watched.count(fd) > 0))
    return Fail(how == EPOLL_CTL_ADD ? EEXIST : ENOENT);
  if (how == EPOLL_CTL_ADD) file->watchers.push_back(epoll);
  watcher->watched[fd] = {.epoll = epoll,
                          .events = event->events & ~uint32_t{EPOLLET},
                          .data = event->data,
                          .edge = (event->events & EPOLLET) != 0,
                          .pending = true};
  watcher->candidates.insert(fd);
  if (StateOf(epoll) != 0) Tell(epoll);
  return 0;
}

int SimulatedKernel::WaitEpoll(int epoll, epoll_event* events, int most) {
  File* watcher = Find(epoll);
  if (watcher == nullptr) return Fail(EBADF);
  int count = 0;
  for (auto at = watcher->candidates.begin(); at != watcher->candidates.end() && count < most;) {
    Watch& watch = watcher->watched.at(*at);
    const uint32_t state = StateOf(*at) & (watch.events | EPOLLERR | EPOLLHUP);
    const bool reported = state != 0 && (!watch.edge || watch.pending);
    if (reported) {
      events[count].events = state;
      events[count++].data = watch.data;
    }
    watch.pending = false;
    if (!reported || watch.edge)
      at = watcher->candidates.erase(at);
    else
      ++at;
  }
  return count;
}

int SimulatedKernel::OpenCounter() { return Open(File::Kind::kCounter); }

ssize_t SimulatedKernel::ReadCounter(int fd, uint64_t* value) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  if (file->count == 0) return Fail(EAGAIN);
  *value = std::exchange(file->count, 0);
  return sizeof(*value);
}

ssize_t SimulatedKernel::WriteCounter(int fd, uint64_t value) {
  File* file = Find(fd);
  if (file == nullptr) return Fail(EBADF);
  file->count += value;
  Tell(fd);
  return sizeof(value);
}

short SimulatedKernel::Poll(int fd, short events) const {
  const uint32_t state = StateOf(fd);
  short ready = 0;
  if ((state & EPOLLIN) != 0) ready |= POLLIN;
  if ((state & EPOLLOUT) != 0) ready |= POLLOUT;
  ready = static_cast<short>(ready & events);
  if ((state & EPOLLERR) != 0) ready |= POLLERR;
  if ((state & EPOLLHUP) != 0) ready |= POLLHUP;
  return ready;
}

}  // namespace tutti::histories
