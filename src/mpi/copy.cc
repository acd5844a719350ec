#include "copy.h"

#ifdef TUTTI_MPI_SMPI

#include <simgrid/actor.h>
#include <simgrid/host.h>

#include <cstdlib>

namespace tutti::mpi {

double HostProperty(const char* name) {
  const char* text = sg_host_get_property_value(sg_host_self(), name);
  return text == nullptr ? 0 : std::strtod(text, nullptr);
}

namespace {

// SMPI gives every rank its own copy of a program's globals.
struct CopyCosts {
  double seconds_a_copy = 0;
  double seconds_a_byte = 0;
};

const CopyCosts& Costs() {
  static const CopyCosts costs = [] {
    const double bandwidth = HostProperty("tutti_copy_bandwidth");
    return CopyCosts{HostProperty("tutti_copy_seconds"), bandwidth > 0 ? 1 / bandwidth : 0};
  }();
  return costs;
}

double unsettled_s = 0;

}  // namespace

void CountCopy(int64_t bytes) {
  const CopyCosts& costs = Costs();
  unsettled_s += costs.seconds_a_copy + costs.seconds_a_byte * static_cast<double>(bytes);
}

void CountTable(int64_t bytes) {
  unsettled_s += Costs().seconds_a_byte * static_cast<double>(bytes);
}

void SettleCopies() {
  if (unsettled_s <= 0) return;
  sg_actor_sleep_for(unsettled_s);
  unsettled_s = 0;
}

}  // namespace tutti::mpi

#endif
