// Limits of the memory that ranks share.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr int64_t kPage = 4096;
// All buffers together.
inline constexpr int64_t kMaxBytes = int64_t{1} << 62;

}  // namespace tutti
