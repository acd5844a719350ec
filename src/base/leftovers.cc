#include "tutti/base/leftovers.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

// A signal handler may neither lock nor allocate: fixed slots, each taken by an exchange.
enum State : int { kFree, kBeingFilled, kUsed };
struct Slot {
  std::atomic<int> state{kFree};
  pid_t pid = 0;             // 0: a file
  char path[PATH_MAX] = {};  // ends in 0
};
static_assert(std::atomic<int>::is_always_lock_free);

constexpr size_t kSlots = 256;
std::array<Slot, kSlots> slots;

template <class Fill>
int Take(const Fill& fill) {
  for (size_t i = 0; i < kSlots; ++i) {
    int expected = kFree;
    if (!slots[i].state.compare_exchange_strong(expected, kBeingFilled)) continue;
    fill(slots[i]);
    slots[i].state.store(kUsed);
    return static_cast<int>(i);
  }
  return -1;
}

void Release(int slot) {
  if (slot >= 0) slots[static_cast<size_t>(slot)].state.store(kFree);
}

}  // namespace

TemporaryName::TemporaryName(const std::string& path)
    : slot_(path.size() >= PATH_MAX ? -1 : Take([&path](Slot& slot) {
        slot.pid = 0;
        std::memcpy(slot.path, path.c_str(), path.size() + 1);
      })) {}
TemporaryName::~TemporaryName() { Release(slot_); }
TemporaryName::TemporaryName(TemporaryName&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}
TemporaryName& TemporaryName::operator=(TemporaryName&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

StartedProgram::StartedProgram(pid_t pid) : slot_(Take([pid](Slot& slot) { slot.pid = pid; })) {}
StartedProgram::~StartedProgram() { Release(slot_); }

void RemoveLeftovers() {
  for (const Slot& slot : slots) {
    if (slot.state.load() != kUsed) continue;
    if (slot.pid != 0)
      ::kill(slot.pid, SIGKILL);
    else
      ::unlink(slot.path);
  }
}

}  // namespace tutti
