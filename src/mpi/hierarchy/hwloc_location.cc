#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include "hierarchy/location.h"

namespace tutti::mpi {

namespace {

// Asked before hwloc, which takes milliseconds to look around. True where it is not known.
bool IsBound() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return true;
  return CPU_COUNT(&allowed) < ::sysconf(_SC_NPROCESSORS_ONLN);
}

// The one object of this type that holds the whole set, or -1.
int ObjectAround(hwloc_topology_t topology, hwloc_const_bitmap_t bound, hwloc_obj_type_t type) {
  const int objects = hwloc_get_nbobjs_by_type(topology, type);
  for (int i = 0; i < objects; ++i) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, static_cast<unsigned int>(i));
    if (object != nullptr && object->cpuset != nullptr &&
        hwloc_bitmap_isincluded(bound, object->cpuset) != 0) {
      return i;
    }
  }
  return -1;
}

}  // namespace

Location LocationOfThisProcess() {
  Location location;
  if (!IsBound()) return location;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return location;
  hwloc_bitmap_t bound = hwloc_bitmap_alloc();
  if (bound != nullptr && hwloc_topology_load(topology) == 0 &&
      hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_iszero(bound) == 0) {
    location = {.cache = ObjectAround(topology, bound, HWLOC_OBJ_L3CACHE),
                .memory_domain = ObjectAround(topology, bound, HWLOC_OBJ_NUMANODE),
                .socket = ObjectAround(topology, bound, HWLOC_OBJ_PACKAGE)};
  }
  hwloc_bitmap_free(bound);
  hwloc_topology_destroy(topology);
  return location;
}

}  // namespace tutti::mpi
