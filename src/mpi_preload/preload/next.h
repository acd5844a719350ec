// Next: finds the function that a call would have reached without this library.
//
// Model       First the next definition in the loader's search order, so that another tool that
//             wraps the same call still sees what is passed on. An MPI loaded with RTLD_LOCAL (by
//             an interpreter's module) is not in that order: then any loaded library's definition
//             but ours is taken.
// Complexity  A Next finds its function once; a later call is one load.
// Threads     Any.
#pragma once

#include <atomic>

namespace tutti::mpi::preload {

// Null where no loaded library has it.
void* FindNext(const char* name);

// The one object of that name that the process uses: a program may hold its own copy of a
// library's, which then is the one. Null where there is none.
void* FindObject(const char* name);

// As FindNext; ends the process where there is none: who called us was linked against one.
void* FindNextOrAbort(const char* name);

template <class Signature>
class Next;

template <class Return, class... Arguments>
class Next<Return(Arguments...)> {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}

  Return operator()(Arguments... arguments) {
    void* address = address_.load(std::memory_order_relaxed);
    if (address == nullptr) {
      address = FindNextOrAbort(name_);
      address_.store(address, std::memory_order_relaxed);
    }
    return reinterpret_cast<Return (*)(Arguments...)>(address)(arguments...);
  }

 private:
  const char* name_;
  std::atomic<void*> address_{nullptr};
};

}  // namespace tutti::mpi::preload
