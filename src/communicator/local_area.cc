#include "local_area.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "futex.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"
#include "tutti/runtime/remote.h"

namespace tutti {
namespace {

constexpr int64_t kPage = 4096;

int64_t RoundUp(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

tl::unexpected<Error> Refused(const std::string& what) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)));
}

// The first bytes of the file: whose it is.
struct Head {
  uint64_t token = 0;
  int64_t num_ranks = 0;
};

}  // namespace

void LocalBell::Ring() {
  if (state_->waiting.exchange(0) == 0) return;
  state_->bell.fetch_add(1);
  FutexWakeAll(state_->bell);
}

Result<std::unique_ptr<LocalArea>> LocalArea::Make(int32_t num_ranks) {
  const int file = memfd_create("tutti", MFD_CLOEXEC);
  if (file < 0) return Refused("cannot make a memory file");
  std::unique_ptr<LocalArea> area(new LocalArea(num_ranks, file));
  area->place_ = {getpid(), file, DrawSecret()[0]};
  if (Status mapped = area->Map(); !mapped) return tl::unexpected(mapped.error());
  // New pages are zero; the constructors make them objects all the same.
  new (area->data_) Head{area->place_.token, num_ranks};
  for (int32_t rank = 0; rank < num_ranks; ++rank) new (&area->bell(rank)) BellState();
  return area;
}

Result<std::unique_ptr<LocalArea>> LocalArea::Open(const Place& place, int32_t num_ranks) {
  const std::string path = fmt::format("/proc/{}/fd/{}", place.process, place.descriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return Refused("cannot open " + path);
  std::unique_ptr<LocalArea> area(new LocalArea(num_ranks, file));
  area->place_ = place;
  Head head;
  if (pread(file, &head, sizeof(head), 0) != static_cast<ssize_t>(sizeof(head)) ||
      head.token != place.token || head.num_ranks != num_ranks)
    return MakeError(ErrorCode::kIo, path + " is not what was said");
  if (Status mapped = area->Map(); !mapped) return tl::unexpected(mapped.error());
  return area;
}

Status LocalArea::Map() {
  const int64_t ranks = num_ranks_, rings = ranks * ranks * 2;
  const int64_t bells_end = kPage + RoundUp(ranks * static_cast<int64_t>(sizeof(BellState)));
  slots_at_ = bells_end;
  rings_at_ = slots_at_ + RoundUp(static_cast<int64_t>(BoardSlot::kRows) * ranks *
                                  static_cast<int64_t>(sizeof(BoardSlot)));
  ring_bytes_at_ = rings_at_ + RoundUp(rings * static_cast<int64_t>(sizeof(RingState)));
  bytes_ = ring_bytes_at_ + rings * static_cast<int64_t>(kRingBytes);
  struct stat status {};
  if (fstat(file_, &status) != 0) return Refused("memory file");
  if (status.st_size < bytes_ && ftruncate(file_, bytes_) != 0)
    return Refused(fmt::format("a memory file of {} bytes", bytes_));
  void* data =
      mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (data == MAP_FAILED) return Refused(fmt::format("cannot map {} bytes", bytes_));
  data_ = static_cast<std::byte*>(data);
  return {};
}

LocalArea::~LocalArea() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
  CloseFile();
}

void LocalArea::CloseFile() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

BellState& LocalArea::bell(int32_t rank) const {
  return reinterpret_cast<BellState*>(data_ + kPage)[rank];
}

BoardSlot& LocalArea::slot(uint64_t sequence, int32_t rank) const {
  const auto row = static_cast<int64_t>(sequence % BoardSlot::kRows);
  return reinterpret_cast<BoardSlot*>(data_ + slots_at_)[row * num_ranks_ + rank];
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
