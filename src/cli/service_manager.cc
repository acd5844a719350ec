#include "service_manager.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tutti/base/clock.h"

namespace tutti::cli {
namespace {

constexpr int kFirstPassed = 3;  // descriptor

std::string TakeVariable(const char* name) {
  const char* value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  unsetenv(name);
  return taken;
}

int64_t ParseCount(const std::string& text, int64_t otherwise) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? count : otherwise;
}

std::string NameOf(int socket) {
  const auto option = [socket](int which) {
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(socket, SOL_SOCKET, which, &value, &size) == 0 ? value : -1;
  };
  if (option(SO_TYPE) == SOCK_SEQPACKET) return "tenants";
  return option(SO_DOMAIN) == AF_UNIX ? "admin" : option(SO_DOMAIN) == AF_INET ? "peers" : "";
}

}  // namespace

ServiceManager ServiceManager::OfEnvironment() {
  ServiceManager manager;
  manager.notify_ = TakeVariable("NOTIFY_SOCKET");
  manager.listen_pid_ = TakeVariable("LISTEN_PID");
  manager.listen_fds_ = TakeVariable("LISTEN_FDS");
  manager.listen_names_ = TakeVariable("LISTEN_FDNAMES");
  const std::string watched = TakeVariable("WATCHDOG_PID");
  const int64_t watchdog = ParseCount(TakeVariable("WATCHDOG_USEC"), 0);
  if (watched.empty() || ParseCount(watched, -1) == getpid()) manager.watchdog_us_ = watchdog;
  return manager;
}

Result<std::map<std::string, int>> ServiceManager::TakeSockets() const {
  std::map<std::string, int> sockets;
  if (listen_fds_.empty() || ParseCount(listen_pid_, -1) != getpid()) return sockets;
  constexpr int64_t kMost = 16;
  const int64_t count = ParseCount(listen_fds_, -1);
  if (count < 0 || count > kMost)
    return InvalidArgument(fmt::format("LISTEN_FDS: got '{}', wanted 0 to {}", listen_fds_, kMost));
  std::string names = listen_names_ + ":";
  for (int fd = kFirstPassed; fd < kFirstPassed + static_cast<int>(count); ++fd) {
    const size_t end = names.find(':');
    std::string name = names.substr(0, end);
    names = end + 1 < names.size() ? names.substr(end + 1) : ":";
    const bool is_known = name == "tenants" || name == "admin" || name == "peers" ||
                          name == "metrics" || name == "ras";
    if (!is_known) name = NameOf(fd);
    if (name.empty())
      return InvalidArgument(fmt::format("descriptor {} that was passed is no socket", fd));
    if (!sockets.emplace(name, fd).second)
      return InvalidArgument(fmt::format("two sockets for '{}' were passed", name));
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return sockets;
}

void ServiceManager::Say(const std::string& lines) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (notify_.empty() || notify_.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, notify_.data(), notify_.size());
  const bool is_abstract = notify_[0] == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + notify_.size() +
                                           (is_abstract ? 0 : 1));
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  // Whoever does not listen is not waited for.
  sendto(fd, lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
         reinterpret_cast<const sockaddr*>(&address), size);
  close(fd);
}

void ServiceManager::Ready(const std::string& status) const {
  Say(fmt::format("READY=1\nMAINPID={}\nSTATUS={}", getpid(), status));
}

void ServiceManager::Reloading() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Say(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reads its configuration",
                  int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000));
}

void ServiceManager::Stopping() const { Say("STOPPING=1\nSTATUS=ends"); }

void ServiceManager::Beat() {
  constexpr int64_t kNsAUs = 1000, kBeats = 4;
  const int64_t now = NowNs();
  if (watchdog_us_ <= 0 || now - beat_ns_ < watchdog_us_ * kNsAUs / kBeats) return;
  beat_ns_ = now;
  Say("WATCHDOG=1");
}

}  // namespace tutti::cli
