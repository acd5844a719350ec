// Networks at random.
#pragma once

#include <cstdint>
#include <utility>

#include "support/build.h"
#include "tutti/base/random.h"

namespace tutti::test_support {

struct DigraphSizes {
  int32_t least_ranks = 2, most_ranks = 2;
  int32_t bandwidths = 6;  // 1 MB/s and so many multiples of it
};

// A circle and one-way links at random: ranks take in more or less than they give out.
inline Topology RandomDigraph(uint64_t seed, const DigraphSizes& sizes) {
  Random random(seed);
  const int32_t spread = sizes.most_ranks - sizes.least_ranks + 1;
  const auto ranks =
      sizes.least_ranks + static_cast<int32_t>(random.Below(static_cast<uint64_t>(spread)));
  Topology::Builder builder(ranks);
  const auto spec = [&] {
    const uint64_t times = 1 + random.Below(static_cast<uint64_t>(sizes.bandwidths));
    return LinkSpec{.bandwidth = static_cast<int64_t>(times) * 1'000'000, .alpha_ps = 1000};
  };
  for (int32_t rank = 0; rank < ranks; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % ranks}, spec());
  for (uint64_t extra = random.Below(static_cast<uint64_t>(2 * ranks)); extra > 0; --extra) {
    const auto a = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    const auto b = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    if (a != b) builder.AddLink(NodeId{a}, NodeId{b}, spec());
  }
  return MustBuild(std::move(builder));
}

}  // namespace tutti::test_support
