#include "hierarchy/node_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <new>
#include <random>
#include <string>

#include "copy.h"
#include "hierarchy/pages.h"
#include "message.h"

#ifdef TUTTI_MPI_SMPI
#include <simgrid/actor.h>
#include <simgrid/barrier.h>
#endif

namespace tutti::mpi {

namespace {

constexpr int kMaxRounds = 16;                         // of a barrier: up to 65536 ranks
constexpr int64_t kMaxWindowBytes = int64_t{1} << 32;  // users count in 32 bits

// Whether pages that are first written in the middle of an exchange will be there.
bool MayMapMuch() {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur != RLIM_INFINITY) return false;
  int overcommit = 2;
  if (std::FILE* file = std::fopen("/proc/sys/vm/overcommit_memory", "r")) {
    if (std::fscanf(file, "%d", &overcommit) != 1) overcommit = 2;
    std::fclose(file);
  }
  return overcommit != 2;
}

}  // namespace

// Round k of a barrier: the barrier's number, written by the rank 2^k before.
struct alignas(64) NodeMemory::Flags {
  std::array<std::atomic<uint32_t>, kMaxRounds> of_round;
};

struct NodeMemory::Control {
  alignas(64) std::atomic<uint32_t> arrived;  // at all barriers so far
#ifdef TUTTI_MPI_SMPI
  int users;
  sg_bar_t barrier;
#endif
};

static_assert(std::atomic<uint32_t>::is_always_lock_free);

struct NodeMemory::Announcement {
  int64_t good = 0;
  int64_t process = 0, file = 0;
  uint64_t number = 0;   // in the file's name
  uint64_t address = 0;  // in simulation
  int64_t crowded = 0;   // all must wait at barriers alike
};

NodeMemory::Flags& NodeMemory::flags(int member) const {
  return *(reinterpret_cast<Flags*>(reinterpret_cast<std::byte*>(control_) + sizeof(Control)) +
           member);
}

bool NodeMemory::Map(int file) {
  const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  const auto bytes = static_cast<size_t>(control_bytes_ + members_ * window_bytes_);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE, file, 0);
  if (mapped == MAP_FAILED) return false;
  madvise(mapped, bytes, MADV_DONTDUMP);
  control_ = static_cast<Control*>(mapped);
  return true;
}

#ifdef TUTTI_MPI_SMPI

NodeMemory::Announcement NodeMemory::Create() {
  if (!MayMapMuch() || !Map(-1)) return {};
  control_->users = members_;
  control_->barrier = sg_barrier_init(static_cast<unsigned>(members_));
  return {.good = 1, .address = reinterpret_cast<uint64_t>(control_)};
}

bool NodeMemory::Open(const Announcement& announced) {
  control_ = reinterpret_cast<Control*>(announced.address);
  return true;
}

NodeMemory::~NodeMemory() {
  if (control_ == nullptr || --control_->users > 0) return;
  sg_barrier_destroy(control_->barrier);
  munmap(control_, static_cast<size_t>(control_bytes_ + members_ * window_bytes_));
}

void NodeMemory::Barrier() {
  SettleCopies();
  if (members_ == 1) return;
  static const double flag_s = HostProperty("tutti_flag_seconds");
  sg_barrier_wait(control_->barrier);
  const auto rounds = static_cast<int>(std::bit_width(static_cast<unsigned>(members_ - 1)));
  if (flag_s > 0) sg_actor_sleep_for(rounds * flag_s);
}

#else

namespace {

std::string FileName(uint64_t number) {
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "tutti-%016llx", static_cast<unsigned long long>(number));
  return name.data();
}

}  // namespace

NodeMemory::Announcement NodeMemory::Create() {
  if (!MayMapMuch()) return {};
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32U | random();
  const int file = memfd_create(FileName(number).c_str(), MFD_CLOEXEC);
  if (file < 0) return {};
  const bool mapped = ftruncate(file, control_bytes_ + members_ * window_bytes_) == 0 && Map(file);
  if (!mapped) {
    close(file);
    return {};
  }
  return {.good = 1, .process = getpid(), .file = file, .number = number};
}

bool NodeMemory::Open(const Announcement& announced) {
  const std::string path =
      "/proc/" + std::to_string(announced.process) + "/fd/" + std::to_string(announced.file);
  // Another machine, or another name space of processes, has other files there: looked at by name
  // before anything is opened.
  std::array<char, 80> link{};
  const auto length = readlink(path.c_str(), link.data(), link.size());
  const std::string expected = "/memfd:" + FileName(announced.number);
  if (length < 0 || std::string(link.data(), static_cast<size_t>(length)).rfind(expected, 0) != 0) {
    return false;
  }
  if (!MayMapMuch()) return false;
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const bool mapped = Map(file);
  close(file);
  return mapped;
}

NodeMemory::~NodeMemory() {
  if (control_ == nullptr) return;
  munmap(control_, static_cast<size_t>(control_bytes_ + members_ * window_bytes_));
}

template <class IsOver>
void NodeMemory::WaitUntil(const IsOver& is_over) const {
  constexpr int kPolls = 2000, kYieldsAProgress = 8;
  for (int poll = crowded_ ? kPolls : 0; poll < kPolls; ++poll) {
    if (is_over()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  for (int yield = 1; !is_over(); ++yield) {
    sched_yield();
    if (yield % kYieldsAProgress != 0) continue;
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, static_cast<int>(Tag::kNode), communicator_, &found,
                MPI_STATUS_IGNORE);
  }
}

void NodeMemory::WaitFor(const std::atomic<uint64_t>& word, uint64_t least) const {
  WaitUntil([&] { return word.load(std::memory_order_acquire) >= least; });
}

void NodeMemory::Barrier() {
  if (members_ == 1) return;
  ++turn_;
  // Numbers of barriers wrap around: what counts is how far they are apart.
  const auto is_past = [](const std::atomic<uint32_t>& now, uint32_t goal) {
    return static_cast<int32_t>(now.load(std::memory_order_acquire) - goal) >= 0;
  };
  if (crowded_) {
    const uint32_t goal = turn_ * static_cast<uint32_t>(members_);
    control_->arrived.fetch_add(1, std::memory_order_acq_rel);
    WaitUntil([&] { return is_past(control_->arrived, goal); });
    return;
  }
  size_t round = 0;
  for (int distance = 1; distance < members_; distance *= 2, ++round) {
    flags((self_ + distance) % members_).of_round[round].store(turn_, std::memory_order_release);
    const std::atomic<uint32_t>& own = flags(self_).of_round[round];
    WaitUntil([&] { return is_past(own, turn_); });
  }
}

#endif

int NodeMemory::Make(MPI_Comm communicator, const std::vector<int>& members, int self,
                     int64_t window_bytes, std::unique_ptr<NodeMemory>* memory) {
  std::unique_ptr<NodeMemory> made(new NodeMemory);
  made->communicator_ = communicator;
  made->members_ = static_cast<int>(members.size());
  made->self_ = self;
  made->window_bytes_ = WholePages(window_bytes);
  made->control_bytes_ = WholePages(static_cast<int64_t>(sizeof(Control)) +
                                    made->members_ * static_cast<int64_t>(sizeof(Flags)));
  Announcement announced;
  if (made->IsFirst()) {
    const bool fits = made->members_ <= 1 << kMaxRounds && window_bytes <= kMaxWindowBytes;
    announced = fits ? made->Create() : Announcement{};
    announced.crowded = made->members_ > sysconf(_SC_NPROCESSORS_ONLN) ? 1 : 0;
    std::vector<MPI_Request> requests(members.size() - 1, MPI_REQUEST_NULL);
    for (size_t m = 1; m < members.size(); ++m) {
      const int error = SendBytes(reinterpret_cast<const std::byte*>(&announced), sizeof(announced),
                                  members[m], Tag::kSizes, communicator, &requests[m - 1]);
      if (error != MPI_SUCCESS) return error;
    }
    if (const int error = WaitForAll(requests)) return error;
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    int error = ReceiveBytes(reinterpret_cast<std::byte*>(&announced), sizeof(announced),
                             members.front(), Tag::kSizes, communicator, &request);
    if (error == MPI_SUCCESS) error = WaitForAll({&request, 1});
    if (error != MPI_SUCCESS) return error;
    if (announced.good != 0) announced.good = made->Open(announced) ? 1 : 0;
  }
  int good = announced.good != 0 ? 1 : 0, all_good = 0;
  const int error = PMPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, communicator);
#ifndef TUTTI_MPI_SMPI
  // By now every other rank has opened it, or tried to.
  if (made->IsFirst() && announced.good != 0) close(static_cast<int>(announced.file));
#endif
  if (error != MPI_SUCCESS || all_good == 0) return error;
  made->crowded_ = announced.crowded != 0;
  made->windows_ = reinterpret_cast<std::byte*>(made->control_) + made->control_bytes_;
  *memory = std::move(made);
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi
