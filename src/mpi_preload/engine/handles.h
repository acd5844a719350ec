// MPI's handles to and from the integers that both halves speak of (interface.h).
#pragma once

#include <mpi.h>

#include "interface.h"

namespace tutti::mpi::preload {

#if defined(OPEN_MPI)
template <class Object>
Object FromHandle(Handle handle) {
  return reinterpret_cast<Object>(handle);
}
Handle ToHandle(auto object) { return reinterpret_cast<Handle>(object); }
#else
template <class Object>
Object FromHandle(Handle handle) {
  return static_cast<Object>(handle);  // the low half
}
Handle ToHandle(auto object) { return object; }
#endif

}  // namespace tutti::mpi::preload
