// Weights of shards that all together fit into 31 bits, for loads of links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tutti/coll/collective.h"

namespace tutti::classic {

// Shifts the weights right until the sum over all units fits. Loads only rank paths of equal length,
// so the lost low bits do no harm.
class ShardWeights {
 public:
  ShardWeights(const Collective& collective, int32_t units_per_shard) : collective_(&collective) {
    __extension__ using Wide = unsigned __int128;
    Wide total = 0;
    for (ShardId shard : collective.Shards()) total += static_cast<Wide>(collective.weight(shard));
    total *= static_cast<Wide>(units_per_shard);
    constexpr auto kMost = static_cast<Wide>(std::numeric_limits<int32_t>::max() / 2);
    while ((total >> shift_) > kMost) ++shift_;
  }

  // At least 1, so that nothing is free.
  uint32_t Of(ShardId shard) const {
    return static_cast<uint32_t>(std::max<int64_t>(1, collective_->weight(shard) >> shift_));
  }

 private:
  const Collective* collective_;
  int32_t shift_ = 0;
};

}  // namespace tutti::classic
