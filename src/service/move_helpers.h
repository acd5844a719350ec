// MoveHelpers: threads that take parts of what the daemon's thread moves between ranks of its host, where that is much: one
// collective of large buffers then uses as many cores as the daemon has runtimes.
//
// Model       ForParts() runs numbered parts, by whoever is free, the caller among them, and returns when all have been run. A
//             helper that does not come leaves its parts to the others. Helpers look around for a while after
//             each work, then sleep.
// Threads     ForParts: one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace tutti::service {

struct MoveHelpersOptions {
  int32_t threads = 1;
  int64_t min_bytes = int64_t{64} << 10;  // of a move that is worth handing over
  int64_t part_bytes = int64_t{32} << 10;
};

class MoveHelpers {
 public:
  explicit MoveHelpers(const MoveHelpersOptions& options);
  ~MoveHelpers();
  MoveHelpers(const MoveHelpers&) = delete;
  MoveHelpers& operator=(const MoveHelpers&) = delete;

  const MoveHelpersOptions& options() const { return options_; }
  void ForParts(int32_t parts, const std::function<void(int32_t)>& run);

 private:
  // state_: the number of the work, whether it is open to helpers, and how many are at it.
  static constexpr uint32_t kAtIt = 0xff, kOpen = 0x100, kNext = 0x200;

  void Help();
  void RunParts();

  MoveHelpersOptions options_;
  std::atomic<uint32_t> state_{0}, asleep_{0};
  std::atomic<bool> ends_{false};
  std::atomic<int32_t> next_{0};
  int32_t parts_ = 0;
  const std::function<void(int32_t)>* run_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace tutti::service
