// Which thread blocks an MSCCL++ plan moves what in: groups of events (mscclpp_events.h) that share
// no data which is written are dealt to layers, and each rank has one thread block a layer.
#pragma once

#include <cstdint>
#include <vector>

#include "mscclpp_events.h"

namespace tutti::lower {

enum class Layering : uint8_t {
  kSpread,    // each group where least is moved so far
  kLevelled,  // of the layers where least is moved, where thread blocks stay shortest
};

class LayersOfGroups {
 public:
  explicit LayersOfGroups(const Events& events);

  // The layer of each group. kSpread: O(groups log layers). kLevelled: O(events), times the layers
  // that are looked at.
  std::vector<int32_t> Find(Layering layering, int32_t layers) const;

 private:
  // What a group does at one rank in one level.
  struct Share {
    int32_t rank, level;
    int32_t puts = 0, others = 0;             // puts; reductions and copies
    std::vector<int32_t> to = {}, from = {};  // ranks, each once
  };

  std::vector<int32_t> Spread(int32_t layers) const;
  std::vector<int32_t> Levelled(int32_t layers) const;

  int32_t num_ranks_ = 0;
  std::vector<int64_t> volume_;             // of each group
  std::vector<std::vector<Share>> shares_;  // of each group, by rank and level
};

}  // namespace tutti::lower
