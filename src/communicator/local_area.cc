#include "local_area.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "futex.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"
#include "tutti/runtime/remote.h"

namespace tutti {
namespace {

constexpr int64_t kAreaPage = 4096;

int64_t RoundUp(int64_t bytes) { return (bytes + kAreaPage - 1) / kAreaPage * kAreaPage; }

tl::unexpected<Error> Refused(const std::string& what) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)));
}

// The first bytes of the file: whose it is.
struct Head {
  uint64_t token = 0;
  int64_t num_ranks = 0;
};

}  // namespace

namespace {

// In no folder, so that nothing stays behind.
socklen_t Address(uint64_t token, int32_t index, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("tutti-{:016x}-{}", token, index);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

}  // namespace

WakeSocket::~WakeSocket() {
  if (fd_ >= 0) close(fd_);
}

bool WakeSocket::Open(uint64_t token, int32_t index) {
  fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  const socklen_t size = Address(token, index, address);
  return fd_ >= 0 && bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

void WakeSocket::Send(uint64_t token, int32_t index) const {
  sockaddr_un address{};
  const socklen_t size = Address(token, index, address);
  const char byte = 0;
  // A full queue wakes, too; who cannot be reached looks again by itself.
  sendto(fd_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
         size);
}

void WakeSocket::Drain() const {
  char bytes[64];
  while (recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
  }
}

void LocalBell::Ring() {
  switch (state_->sleeps.exchange(Sleeps::kNo)) {
    case Sleeps::kNo:
      return;
    case Sleeps::kOnBell:
      state_->bell.fetch_add(1);
      return FutexWakeAll(state_->bell);
    case Sleeps::kOnSockets:
      return socket_->Send(token_, index_);
  }
}

class LocalArea::Mapping {
 public:
  static Result<std::shared_ptr<Mapping>> Make(int file, int64_t bytes) {
    void* data =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) return Refused(fmt::format("cannot map {} bytes", bytes));
    return std::make_shared<Mapping>(static_cast<std::byte*>(data), bytes);
  }
  Mapping(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  ~Mapping() { munmap(data_, static_cast<size_t>(bytes_)); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }

  // Those that this process has made, by token.
  static std::shared_ptr<Mapping> Find(uint64_t token) {
    const std::lock_guard lock(mutex_);
    const auto found = made_.find(token);
    return found == made_.end() ? nullptr : found->second.lock();
  }
  static void Keep(uint64_t token, const std::shared_ptr<Mapping>& mapping) {
    const std::lock_guard lock(mutex_);
    std::erase_if(made_, [](const auto& entry) { return entry.second.expired(); });
    made_[token] = mapping;
  }

 private:
  static std::mutex mutex_;
  static std::map<uint64_t, std::weak_ptr<Mapping>> made_;

  std::byte* data_;
  int64_t bytes_;
};
std::mutex LocalArea::Mapping::mutex_;
std::map<uint64_t, std::weak_ptr<LocalArea::Mapping>> LocalArea::Mapping::made_;

LocalArea::LocalArea(int32_t num_ranks, int file) : num_ranks_(num_ranks), file_(file) {
  const int64_t ranks = num_ranks_, rings = ranks * ranks * 2;
  const auto rows = static_cast<int64_t>(BoardSlot::kRows);
  const auto block_rows = static_cast<int64_t>(BoardSlot::kBlockRows);
  slots_at_ = kAreaPage + RoundUp(ranks * static_cast<int64_t>(sizeof(BellState)));
  blocks_at_ = slots_at_ + RoundUp(rows * ranks * static_cast<int64_t>(sizeof(BoardSlot)));
  wide_blocks_at_ = blocks_at_ + RoundUp(block_rows * ranks * BoardSlot::kBlockBytes);
  rings_at_ = wide_blocks_at_ + RoundUp(block_rows * ranks * BoardSlot::kWideBytes);
  ring_bytes_at_ = rings_at_ + RoundUp(rings * static_cast<int64_t>(sizeof(RingState)));
  bytes_ = ring_bytes_at_ + rings * static_cast<int64_t>(kRingBytes);
}

Status LocalArea::Map() {
  Result<std::shared_ptr<Mapping>> mapping = Mapping::Make(file_, bytes_);
  if (!mapping) return tl::unexpected(mapping.error());
  mapping_ = std::move(*mapping);
  data_ = mapping_->data();
  return {};
}

Result<std::unique_ptr<LocalArea>> LocalArea::Make(int32_t num_ranks) {
  const int file = memfd_create("tutti", MFD_CLOEXEC);
  if (file < 0) return Refused("cannot make a memory file");
  std::unique_ptr<LocalArea> area(new LocalArea(num_ranks, file));
  area->place_ = {getpid(), file, DrawSecret()[0]};
  if (ftruncate(file, area->bytes_) != 0)
    return Refused(fmt::format("a memory file of {} bytes", area->bytes_));
  if (Status mapped = area->Map(); !mapped) return tl::unexpected(mapped.error());
  // New pages are zero; the constructors make them objects all the same.
  new (area->data_) Head{area->place_.token, num_ranks};
  for (int32_t rank = 0; rank < num_ranks; ++rank) new (&area->bell(rank)) BellState();
  Mapping::Keep(area->place_.token, area->mapping_);
  return area;
}

Result<std::unique_ptr<LocalArea>> LocalArea::Open(const Place& place, int32_t num_ranks) {
  if (place.process == getpid())
    if (std::shared_ptr<Mapping> mapping = Mapping::Find(place.token)) {
      std::unique_ptr<LocalArea> area(new LocalArea(num_ranks, -1));
      area->place_ = place;
      area->data_ = mapping->data();
      area->mapping_ = std::move(mapping);
      return area;
    }
  const std::string path = fmt::format("/proc/{}/fd/{}", place.process, place.descriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return Refused("cannot open " + path);
  std::unique_ptr<LocalArea> area(new LocalArea(num_ranks, file));
  area->place_ = place;
  struct stat status {};
  Head head;
  const bool known = fstat(file, &status) == 0 && status.st_size == area->bytes_ &&
                     pread(file, &head, sizeof(head), 0) == static_cast<ssize_t>(sizeof(head)) &&
                     head.token == place.token && head.num_ranks == num_ranks;
  if (!known) return MakeError(ErrorCode::kIo, path + " is not what was said");
  if (Status mapped = area->Map(); !mapped) return tl::unexpected(mapped.error());
  return area;
}

void LocalArea::CloseFile() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

BellState& LocalArea::bell(int32_t rank) const {
  return reinterpret_cast<BellState*>(data_ + kAreaPage)[rank];
}

uint64_t LocalArea::DoneByAll() const {
  uint64_t least = bell(0).board_done.load();
  for (int32_t rank = 1; rank < num_ranks_; ++rank)
    least = std::min(least, bell(rank).board_done.load());
  return least;
}

BoardSlot& LocalArea::slot(uint64_t sequence, int32_t rank) const {
  const auto row = static_cast<int64_t>(sequence % BoardSlot::kRows);
  return reinterpret_cast<BoardSlot*>(data_ + slots_at_)[row * num_ranks_ + rank];
}

std::byte* LocalArea::block(uint64_t sequence, int32_t rank) const {
  const auto row = static_cast<int64_t>(sequence % BoardSlot::kBlockRows);
  return data_ + blocks_at_ + (row * num_ranks_ + rank) * BoardSlot::kBlockBytes;
}

std::byte* LocalArea::wide_block(uint64_t sequence, int32_t rank) const {
  const auto row = static_cast<int64_t>(sequence % BoardSlot::kBlockRows);
  return data_ + wide_blocks_at_ + (row * num_ranks_ + rank) * BoardSlot::kWideBytes;
}

RingState& LocalArea::ring(int32_t from, int32_t to, Ring which) const {
  return reinterpret_cast<RingState*>(data_ + rings_at_)[RingIndex(from, to, which)];
}

std::byte* LocalArea::RingBytes(int32_t from, int32_t to, Ring which) const {
  return data_ + ring_bytes_at_ + RingIndex(from, to, which) * static_cast<int64_t>(kRingBytes);
}

uint64_t HostWord() {
  Fnv1a word;
  word.AddBytes(ReadFile("/proc/sys/kernel/random/boot_id").value_or(""));
  // Containers of one kernel do not see each other's processes.
  struct stat pids {};
  if (stat("/proc/self/ns/pid", &pids) == 0) word.AddWord(static_cast<int64_t>(pids.st_ino));
  word.AddWord(geteuid());
  return word.value();
}

}  // namespace tutti
