// What both ends of a TCP connection do with sockets and time.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace tutti::tcp {

inline bool HasPassed(std::chrono::steady_clock::time_point since, double seconds) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count() > seconds;
}

// False: the system watches no more descriptors, and errno says so. `ready` gets what epoll reports.
inline bool Register(int epoll, int fd, uint32_t& ready, int how = EPOLL_CTL_ADD) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &ready;
  return epoll_ctl(epoll, how, fd, &event) == 0;
}

// False: errno says why. Empty: it stays the kernel's default.
inline bool SetCongestion(int fd, const std::string& name) {
  return name.empty() || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                    static_cast<socklen_t>(name.size())) == 0;
}

// What became of connecting a socket that does not wait; an errno.
inline int OutcomeOfConnecting(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace tutti::tcp
