#include "preload/next.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>

namespace tutti::mpi::preload {
namespace {

bool IsOurs(void* address) {
  Dl_info found;
  Dl_info ours;
  return dladdr(address, &found) != 0 && dladdr(reinterpret_cast<void*>(&FindNext), &ours) != 0 &&
         found.dli_fbase == ours.dli_fbase;
}

void* FindInAnyLibrary(const char* name) {
  void* program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return nullptr;
  link_map* library = nullptr;
  void* found = nullptr;
  if (dlinfo(program, RTLD_DI_LINKMAP, static_cast<void*>(&library)) == 0) {
    for (; library != nullptr && found == nullptr; library = library->l_next) {
      if (library->l_name == nullptr || library->l_name[0] == '\0') continue;
      void* handle = dlopen(library->l_name, RTLD_LAZY | RTLD_NOLOAD);
      if (handle == nullptr) continue;
      void* address = dlsym(handle, name);
      if (address != nullptr && !IsOurs(address)) found = address;
      dlclose(handle);
    }
  }
  dlclose(program);
  return found;
}

}  // namespace

void* FindNext(const char* name) {
  void* next = dlsym(RTLD_NEXT, name);
  return next != nullptr ? next : FindInAnyLibrary(name);
}

void* FindObject(const char* name) {
  void* object = dlsym(RTLD_DEFAULT, name);
  return object != nullptr ? object : FindInAnyLibrary(name);
}

void* FindNextOrAbort(const char* name) {
  void* next = FindNext(name);
  if (next == nullptr) {
    std::fprintf(stderr, "%s: no MPI library of this process has %s\n", TUTTI_LIBRARY, name);
    std::abort();
  }
  return next;
}

}  // namespace tutti::mpi::preload
