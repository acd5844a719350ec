#include "scarcity.h"

#include <linux/falloc.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <new>

namespace tutti::service {
namespace {

thread_local Scarcity* scarcity_of_thread = nullptr;

}  // namespace

Scarcity::Scope::Scope(Scarcity* scarcity) : before_(scarcity_of_thread) {
  scarcity_of_thread = scarcity;
}
Scarcity::Scope::~Scope() { scarcity_of_thread = before_; }

bool Scarcity::Fails(const char* call, int error) {
  Scarcity* const self = scarcity_of_thread;
  if (self == nullptr || (++self->calls_ != self->fails_ && self->always_ != call)) return false;
  const Scope uncounted(nullptr);
  self->failed_ = call;
  self->error_ = errno = error;
  return true;
}

}  // namespace tutti::service

using tutti::service::Scarcity;

// Names that the linker gives: reserved ones.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol) {
  return Scarcity::Fails("socket", EMFILE) ? -1 : __real_socket(domain, type, protocol);
}

int __real_accept4(int fd, sockaddr* address, socklen_t* size, int flags);
int __wrap_accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  return Scarcity::Fails("accept4", EMFILE) ? -1 : __real_accept4(fd, address, size, flags);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) {
  return Scarcity::Fails("epoll_create1", EMFILE) ? -1 : __real_epoll_create1(flags);
}

// A user may watch so many descriptors (fs.epoll.max_user_watches).
int __real_epoll_ctl(int epoll, int how, int fd, epoll_event* event);
int __wrap_epoll_ctl(int epoll, int how, int fd, epoll_event* event) {
  if (how == EPOLL_CTL_ADD && Scarcity::Fails("epoll_ctl", ENOSPC)) return -1;
  return __real_epoll_ctl(epoll, how, fd, event);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags) {
  return Scarcity::Fails("eventfd", EMFILE) ? -1 : __real_eventfd(count, flags);
}

int __real_memfd_create(const char* name, unsigned flags);
int __wrap_memfd_create(const char* name, unsigned flags) {
  return Scarcity::Fails("memfd_create", EMFILE) ? -1 : __real_memfd_create(name, flags);
}

int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size) {
  return Scarcity::Fails("fallocate", ENOSPC) ? -1 : __real_fallocate(fd, mode, offset, size);
}

void* __real_mmap(void* at, size_t size, int access, int flags, int fd, off_t offset);
void* __wrap_mmap(void* at, size_t size, int access, int flags, int fd, off_t offset) {
  return Scarcity::Fails("mmap", ENOMEM) ? MAP_FAILED
                                         : __real_mmap(at, size, access, flags, fd, offset);
}

// Of the calls without a function of their own, one makes a descriptor.
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  if (number == SYS_pidfd_open && Scarcity::Fails("pidfd_open", EMFILE)) return -1;
  va_list rest;
  va_start(rest, number);
  long words[6];
  for (long& word : words) word = va_arg(rest, long);
  va_end(rest);
  return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// operator new, where much is asked for: Linux gives little even when there is none left.
void* __real__Znwm(size_t size);
void* __wrap__Znwm(size_t size) {
  constexpr size_t kMuch = size_t{64} << 10;
  if (size >= kMuch && Scarcity::Fails("operator new", ENOMEM)) throw std::bad_alloc();
  return __real__Znwm(size);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
