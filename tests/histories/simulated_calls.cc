// The calls that the test is linked with in place of the system's: a thread's simulated kernel answers them where it has one.
#include <ifaddrs.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <string>

#include "simulated_kernel.h"

using tutti::histories::SimulatedKernel;

namespace {

// Null: the call is the system's.
SimulatedKernel* KernelOf(int fd) {
  SimulatedKernel* kernel = SimulatedKernel::current();
  return kernel != nullptr && kernel->Has(fd) ? kernel : nullptr;
}

}  // namespace

// Names that the linker gives: reserved ones.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol) {
  SimulatedKernel* kernel = SimulatedKernel::current();
  return kernel != nullptr ? kernel->Socket(domain, type) : __real_socket(domain, type, protocol);
}

int __real_bind(int fd, const sockaddr* address, socklen_t size);
int __wrap_bind(int fd, const sockaddr* address, socklen_t size) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Bind(fd, address) : __real_bind(fd, address, size);
}

int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Listen(fd) : __real_listen(fd, backlog);
}

int __real_connect(int fd, const sockaddr* address, socklen_t size);
int __wrap_connect(int fd, const sockaddr* address, socklen_t size) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Connect(fd, address) : __real_connect(fd, address, size);
}

int __real_accept4(int fd, sockaddr* address, socklen_t* size, int flags);
int __wrap_accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Accept(fd) : __real_accept4(fd, address, size, flags);
}

int __real_close(int fd);
int __wrap_close(int fd) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Close(fd) : __real_close(fd);
}

int __real_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Shutdown(fd) : __real_shutdown(fd, how);
}

ssize_t __real_send(int fd, const void* bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void* bytes, size_t size, int flags) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Send(fd, bytes, size) : __real_send(fd, bytes, size, flags);
}

ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  SimulatedKernel* kernel = KernelOf(fd);
  if (kernel == nullptr) return __real_sendmsg(fd, message, flags);
  std::string bytes;
  for (size_t i = 0; i < message->msg_iovlen; ++i)
    bytes.append(static_cast<const char*>(message->msg_iov[i].iov_base),
                 message->msg_iov[i].iov_len);
  return kernel->Send(fd, bytes.data(), bytes.size());
}

ssize_t __real_recv(int fd, void* bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void* bytes, size_t size, int flags) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->Receive(fd, bytes, size) : __real_recv(fd, bytes, size, flags);
}

ssize_t __real_read(int fd, void* bytes, size_t size);
ssize_t __wrap_read(int fd, void* bytes, size_t size) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->ReadCounter(fd, static_cast<uint64_t*>(bytes))
                           : __real_read(fd, bytes, size);
}

ssize_t __real_write(int fd, const void* bytes, size_t size);
ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
  SimulatedKernel* kernel = KernelOf(fd);
  if (kernel == nullptr) return __real_write(fd, bytes, size);
  uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return kernel->WriteCounter(fd, value);
}

int __real_poll(pollfd* of, nfds_t count, int wait_ms);
int __wrap_poll(pollfd* of, nfds_t count, int wait_ms) {
  SimulatedKernel* kernel = count == 1 ? KernelOf(of->fd) : nullptr;
  if (kernel == nullptr) return __real_poll(of, count, wait_ms);
  of->revents = kernel->Poll(of->fd, of->events);
  return of->revents != 0 ? 1 : 0;
}

int __real_getsockopt(int fd, int level, int name, void* value, socklen_t* size);
int __wrap_getsockopt(int fd, int level, int name, void* value, socklen_t* size) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->GetOption(fd, level, name, value, size)
                           : __real_getsockopt(fd, level, name, value, size);
}

int __real_setsockopt(int fd, int level, int name, const void* value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->SetOption(fd, level, name, value)
                           : __real_setsockopt(fd, level, name, value, size);
}

int __real_getsockname(int fd, sockaddr* address, socklen_t* size);
int __wrap_getsockname(int fd, sockaddr* address, socklen_t* size) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->NameOf(fd, address, size, false)
                           : __real_getsockname(fd, address, size);
}

int __real_getpeername(int fd, sockaddr* address, socklen_t* size);
int __wrap_getpeername(int fd, sockaddr* address, socklen_t* size) {
  SimulatedKernel* kernel = KernelOf(fd);
  return kernel != nullptr ? kernel->NameOf(fd, address, size, true)
                           : __real_getpeername(fd, address, size);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) {
  SimulatedKernel* kernel = SimulatedKernel::current();
  return kernel != nullptr ? kernel->OpenEpoll() : __real_epoll_create1(flags);
}

int __real_epoll_ctl(int epoll, int how, int fd, epoll_event* event);
int __wrap_epoll_ctl(int epoll, int how, int fd, epoll_event* event) {
  SimulatedKernel* kernel = KernelOf(epoll);
  return kernel != nullptr ? kernel->ControlEpoll(epoll, how, fd, event)
                           : __real_epoll_ctl(epoll, how, fd, event);
}

int __real_epoll_wait(int epoll, epoll_event* events, int most, int wait_ms);
int __wrap_epoll_wait(int epoll, epoll_event* events, int most, int wait_ms) {
  SimulatedKernel* kernel = KernelOf(epoll);
  return kernel != nullptr ? kernel->WaitEpoll(epoll, events, most)
                           : __real_epoll_wait(epoll, events, most, wait_ms);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags) {
  SimulatedKernel* kernel = SimulatedKernel::current();
  return kernel != nullptr ? kernel->OpenCounter() : __real_eventfd(count, flags);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...) {
  if (KernelOf(fd) != nullptr) return 0;
  va_list rest;
  va_start(rest, what);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return __real_fcntl(fd, what, argument);
}

int __real_getifaddrs(ifaddrs** found);
int __wrap_getifaddrs(ifaddrs** found) {
  if (SimulatedKernel::current() == nullptr) return __real_getifaddrs(found);
  errno = ENOSYS;
  return -1;
}

ssize_t __real_getrandom(void* to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void* to, size_t size, unsigned flags) {
  SimulatedKernel* kernel = SimulatedKernel::current();
  if (kernel == nullptr) return __real_getrandom(to, size, flags);
  // In halves, the higher first: what seeds gave when std::random_device drew, they give still.
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t high = static_cast<uint32_t>(kernel->DrawWord());
    const uint64_t word = high << 32 | static_cast<uint32_t>(kernel->DrawWord());
    std::memcpy(static_cast<char*>(to) + at, &word, std::min(sizeof(word), size - at));
  }
  return static_cast<ssize_t>(size);
}

}  // extern "C"

// What the clocks say, by the names that the linker knows them by.
std::chrono::steady_clock::time_point SystemsSteadyNow() __asm__(
    "__real__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::system_clock::time_point SystemsNow() __asm__(
    "__real__ZNSt6chrono3_V212system_clock3nowEv");

std::chrono::steady_clock::time_point SimulatedSteadyNow() __asm__(
    "__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point SimulatedSteadyNow() {
  const SimulatedKernel* kernel = SimulatedKernel::current();
  if (kernel == nullptr) return SystemsSteadyNow();
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(kernel->now_ns()));
}

std::chrono::system_clock::time_point SimulatedNow() __asm__(
    "__wrap__ZNSt6chrono3_V212system_clock3nowEv");
std::chrono::system_clock::time_point SimulatedNow() {
  const SimulatedKernel* kernel = SimulatedKernel::current();
  if (kernel == nullptr) return SystemsNow();
  return std::chrono::system_clock::time_point(std::chrono::nanoseconds(kernel->now_ns()));
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
