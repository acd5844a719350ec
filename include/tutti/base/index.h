// A number as the index of a vector.
//
//   load[Index(rank)] += bytes;
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

// `i`: 0 or more.
constexpr size_t Index(int64_t i) { return static_cast<size_t>(i); }

}  // namespace tutti
