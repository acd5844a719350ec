// OfThisProcess<Thing>(): the one Thing of this process, whose thread begins with the first call.
//
// Model       Thing has Begin(), which starts a detached thread. It is never destroyed: the thread may outlive whoever
//             would do it. A child that was forked has its parent's object and not the thread, and makes its own.
// Threads     Any may call. No lock is taken, which another thread might have held when this process was forked.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>

namespace tutti {

template <class Thing>
Thing& OfThisProcess() {
  struct Made {
    Thing thing;
    pid_t process = getpid();
  };
  static std::atomic<Made*> known{nullptr};
  Made* made = known.load();
  while (made == nullptr || made->process != getpid()) {
    auto fresh = std::make_unique<Made>();
    if (!known.compare_exchange_strong(made, fresh.get())) continue;
    made = fresh.release();
    made->thing.Begin();
  }
  return made->thing;
}

}  // namespace tutti
