// What one receiver gets in one step, as transfers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bfb/plan.h"
#include "tutti/sched/schedule.h"

namespace tutti {

struct Delivery {
  std::vector<Piece> pieces;
  int64_t num_transfers = 0;
};
Delivery Deliver(const BfbModel& model, const LoadProblem& problem, int64_t units_per_shard);

// Writes the transfers of `delivery` to `out`: the shards, in order of groups, laid end to end.
void WriteTransfers(const Delivery& delivery, std::span<const int32_t> shards,
                    std::span<const LinkId> in_links, int32_t step, int32_t units_per_shard,
                    Transfer* out);

// What BFB asks of every network and all options.
Status CheckBfbInput(const Topology& topology, const Collective& collective,
                     const SynthOptions& options);

}  // namespace tutti
