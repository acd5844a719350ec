#include "engine/fortran.h"

#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <array>

namespace tutti::mpi::preload {
namespace {

// Open MPI's Fortran constants are variables of a common block, known by address, under the
// mangling of the compiler it was built with.
using Manglings = std::array<void*, 4>;

Manglings Find(const std::array<const char*, 4>& names) {
  Manglings found{};
  std::transform(names.begin(), names.end(), found.begin(),
                 [](const char* name) { return dlsym(RTLD_DEFAULT, name); });
  return found;
}

bool Contains(const Manglings& manglings, const void* address) {
  return std::find(manglings.begin(), manglings.end(), address) != manglings.end();
}

}  // namespace

void* FortranAddress(void* argument) {
  static const Manglings in_place = Find({"mpi_fortran_in_place", "mpi_fortran_in_place_",
                                          "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"});
  static const Manglings bottom = Find(
      {"mpi_fortran_bottom", "mpi_fortran_bottom_", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"});
  if (argument == nullptr) return nullptr;
  if (Contains(in_place, argument)) return MPI_IN_PLACE;
  return Contains(bottom, argument) ? MPI_BOTTOM : argument;
}

}  // namespace tutti::mpi::preload
