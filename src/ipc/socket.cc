#include "tutti/ipc/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

namespace tutti::ipc {
namespace {

constexpr size_t kMaxDescriptors = 4;
// Linux has them; this libc's headers may not name the newest.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

tl::unexpected<Error> SystemSaid(const std::string& what) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)));
}

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return InvalidArgument(
        fmt::format("socket '{}': a path has 1 to {} bytes", path, sizeof(address.sun_path) - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Descriptor> Open(SocketKind kind) {
  const int type = kind == SocketKind::kPackets ? SOCK_SEQPACKET : SOCK_STREAM;
  Descriptor socket_fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!socket_fd.is_open()) return SystemSaid("a socket");
  return socket_fd;
}

bool ConnectsTo(int fd, const sockaddr_un& address) {
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}
Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<Descriptor> Listen(const std::string& path, SocketKind kind, OpenTo open_to) {
  const Result<sockaddr_un> address = AddressOf(path);
  if (!address) return tl::unexpected(address.error());
  Result<Descriptor> probe = Open(kind);
  if (!probe) return probe;
  if (ConnectsTo(probe->fd(), *address))
    return MakeError(ErrorCode::kIo, fmt::format("{}: another daemon serves it", path));
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      return MakeError(ErrorCode::kIo, fmt::format("{}: is there and no socket", path));
    unlink(path.c_str());
  }
  Result<Descriptor> listener = Open(kind);
  if (!listener) return listener;
  constexpr int kBacklog = 128;
  const mode_t mode = open_to == OpenTo::kAnybody ? 0666 : 0600;
  // Nobody else's even before its mode is set.
  const mode_t before = umask(S_IRWXG | S_IRWXO);
  const bool bound =
      bind(listener->fd(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0;
  umask(before);
  if (!bound || chmod(path.c_str(), mode) != 0 || listen(listener->fd(), kBacklog) != 0)
    return SystemSaid(path);
  return listener;
}

Result<Descriptor> Connect(const std::string& path, SocketKind kind) {
  const Result<sockaddr_un> address = AddressOf(path);
  if (!address) return tl::unexpected(address.error());
  Result<Descriptor> made = Open(kind);
  if (made && !ConnectsTo(made->fd(), *address))
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no service at {}: {}", path, std::strerror(errno)));
  return made;
}

Status Send(int socket, const Packet& packet, const std::vector<int>& descriptors) {
  std::string bytes = Encode(packet);
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    const size_t size = descriptors.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), descriptors.data(), size);
  }
  while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
    if (errno != EINTR)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("the other end: {}", std::strerror(errno)));
  return {};
}

Result<std::optional<Received>> Receive(int socket, bool wait, bool take_descriptors) {
  std::array<std::byte, kMaxPacketBytes> bytes;
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = 0;
  while ((size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT))) < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<Received>();
    if (errno != EINTR)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("the other end: {}", std::strerror(errno)));
  }
  Received received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      received.descriptors.emplace_back(fd);
    }
  }
  if (!take_descriptors) received.descriptors.clear();
  received.lost_descriptors = take_descriptors && (message.msg_flags & MSG_CTRUNC) != 0;
  if (size == 0) return MakeError(ErrorCode::kPeerFailed, "the other end has gone");
  std::optional<Packet> packet = Decode({bytes.data(), static_cast<size_t>(size)});
  if (!packet || (message.msg_flags & MSG_TRUNC) != 0)
    return MakeError(ErrorCode::kCorrupt, "the other end sent what is no packet");
  received.packet = std::move(*packet);
  return std::optional<Received>(std::move(received));
}

Result<Caller> CallerOf(int socket) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return SystemSaid("SO_PEERCRED");
  return Caller{who.uid, who.pid};
}

Descriptor WatchProcess(int32_t process) {
  if (process <= 0) return {};
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}
Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<Memory> Memory::Make(const char* name, int64_t bytes, bool for_others_read_only,
                            Descriptor& file) {
  Descriptor made(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.is_open()) return SystemSaid("a memory file");
  // Taken at once: memory that runs out later would end the daemon.
  if (fallocate(made.fd(), 0, 0, bytes) != 0)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} bytes of memory: {}", bytes, std::strerror(errno)));
  Result<Memory> mapped = Map(made.fd(), bytes, true);
  if (!mapped) return mapped;
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | (for_others_read_only ? F_SEAL_FUTURE_WRITE : 0);
  if (fcntl(made.fd(), F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) return SystemSaid("seals");
  file = std::move(made);
  return mapped;
}

Result<Memory> Memory::Map(int file, int64_t bytes, bool writable) {
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | (writable ? PROT_WRITE : 0),
                    MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return SystemSaid("a mapping");
  return Memory(static_cast<std::byte*>(data), bytes);
}

void WaitWhile(const void* word, uint32_t seen, int64_t wait_ns) {
  constexpr int64_t kNsASecond = 1'000'000'000;
  const timespec wait{.tv_sec = wait_ns / kNsASecond, .tv_nsec = wait_ns % kNsASecond};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &wait, nullptr, 0);
}

void WakeAll(const void* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tutti::ipc
