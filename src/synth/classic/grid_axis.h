// One dimension of a grid whose ranks are numbered row by row.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti::classic {

struct GridAxis {
  int32_t length = 1, stride = 1;

  int32_t CoordinateOf(int32_t rank) const { return rank / stride % length; }

  // All ranks that differ from those of `ranks` along this dimension only.
  std::vector<int32_t> Extend(const std::vector<int32_t>& ranks) const {
    std::vector<int32_t> extended;
    extended.reserve(ranks.size() * static_cast<size_t>(length));
    for (const int32_t rank : ranks)
      for (int32_t at = 0; at < length; ++at)
        extended.push_back(rank + (at - CoordinateOf(rank)) * stride);
    return extended;
  }
};

}  // namespace tutti::classic
