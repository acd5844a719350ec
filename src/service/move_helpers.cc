#include "move_helpers.h"

#include "futex.h"

namespace tutti::service {
namespace {

void PauseOrYield(int look) {
  constexpr int kPauses = 64;
  if (look % kPauses == kPauses - 1) return std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

MoveHelpers::MoveHelpers(const MoveHelpersOptions& options) : options_(options) {
  for (int32_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Help(); });
}

MoveHelpers::~MoveHelpers() {
  ends_ = true;
  state_.fetch_add(kNext);
  FutexWakeAll(state_);
  for (std::thread& thread : threads_) thread.join();
}

void MoveHelpers::RunParts() {
  for (int32_t part = next_.fetch_add(1); part < parts_; part = next_.fetch_add(1)) (*run_)(part);
}

void MoveHelpers::ForParts(int32_t parts, const std::function<void(int32_t)>& run) {
  run_ = &run;
  parts_ = parts;
  next_ = 0;
  state_.fetch_add(kNext | kOpen);  // nobody is at it
  if (asleep_.load() > 0) FutexWakeAll(state_);
  RunParts();
  // From now on nobody comes; those who are at it are awaited.
  state_.fetch_sub(kOpen);
  for (int look = 0; (state_.load() & kAtIt) != 0; ++look) PauseOrYield(look);
}

void MoveHelpers::Help() {
  constexpr int kLooks = 4096;  // before it sleeps
  int looks = 0;
  for (uint32_t seen = state_.load(); !ends_; seen = state_.load()) {
    if ((seen & kOpen) != 0) {
      if (!state_.compare_exchange_strong(seen, seen + 1)) continue;
      RunParts();
      state_.fetch_sub(1);
      looks = 0;
    } else if (++looks < kLooks) {
      PauseOrYield(looks);
    } else {
      asleep_.fetch_add(1);
      // An open work may have begun meanwhile: then the word has changed.
      if ((state_.load() & kOpen) == 0 && !ends_) FutexWait(state_, seen);
      asleep_.fetch_sub(1);
      looks = 0;
    }
  }
}

}  // namespace tutti::service
