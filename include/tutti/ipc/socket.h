// The socket, the descriptors that pass it, and memory that two processes share.
//
// Threads     A socket may be sent on by any thread, and received from by one at a time.
// Errors      kIo: what the system said. kPeerFailed: the other end has gone. kCorrupt: it sent no packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/ipc/packet.h"

namespace tutti::ipc {

// A descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // It is the caller's to close.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Received {
  Packet packet;
  std::vector<Descriptor> descriptors;
  bool lost_descriptors = false;  // some came for which this process has no room
};

enum class SocketKind : uint8_t { kPackets, kStream };
enum class OpenTo : uint8_t { kAnybody, kOwner };
// Listens at `path`, replacing a socket there that nobody serves.
Result<Descriptor> Listen(const std::string& path, SocketKind kind, OpenTo open_to);
// kNotFound: nobody listens there.
Result<Descriptor> Connect(const std::string& path, SocketKind kind);
Status Send(int socket, const Packet& packet, const std::vector<int>& descriptors = {});
// Waits for a packet. `wait` false: nothing where none is there. Descriptors are taken where
// `take_descriptors`, else closed unseen.
Result<std::optional<Received>> Receive(int socket, bool wait, bool take_descriptors);
// Who connected.
struct Caller {
  uint32_t user = 0;
  int32_t process = 0;
};
Result<Caller> CallerOf(int socket);
// Can be read when the process has ended; closed where the system cannot say (another container's).
Descriptor WatchProcess(int32_t process);

// A mapping of a memory file.
class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Zeros. Its size cannot change any more, so that nobody who maps it can be hurt by the other.
  // `for_others_read_only`: later mappings cannot be written through.
  static Result<Memory> Make(const char* name, int64_t bytes, bool for_others_read_only,
                             Descriptor& file);
  static Result<Memory> Map(int file, int64_t bytes, bool writable);

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  Memory(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Waits until `word` is no longer `seen`, at most `wait_ns`.
void WaitWhile(const void* word, uint32_t seen, int64_t wait_ns);
void WakeAll(const void* word);

}  // namespace tutti::ipc
