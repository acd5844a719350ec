// Memory in whole pages.
#pragma once

#include <cstdint>

namespace tutti::mpi {

inline constexpr int64_t kPage = 4096;

inline int64_t WholePages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace tutti::mpi
