#include "engine/accelerator.h"

#include <link.h>

#include <cstddef>
#include <cstring>

namespace tutti::mpi::preload {
namespace {

// NVIDIA's driver, AMD's HIP, oneAPI's Level Zero.
constexpr const char* kRuntimes[] = {"libcuda.so", "libamdhip64.so", "libze_loader.so"};

int Look(dl_phdr_info* library, size_t /*size*/, void* found) {
  for (const char* runtime : kRuntimes) {
    if (library->dlpi_name != nullptr && std::strstr(library->dlpi_name, runtime) != nullptr) {
      *static_cast<const char**>(found) = runtime;
      return 1;
    }
  }
  return 0;
}

}  // namespace

const char* LoadedAcceleratorRuntime() {
  const char* found = nullptr;
  dl_iterate_phdr(&Look, static_cast<void*>(&found));
  return found;
}

}  // namespace tutti::mpi::preload
