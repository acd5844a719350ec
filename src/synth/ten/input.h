// What a run of `ten` works on, checked once, and what all its makers share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ten/link_time.h"
#include "ten/policy.h"
#include "ten/switched_events.h"
#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::ten {

inline constexpr std::string_view kName = "ten";

struct Input {
  const Topology& topology;
  const Collective& collective;
  int32_t chunks = 1;  // a shard
  std::vector<NodeId> source;
  int64_t size_bytes = 0;
  LinkModel link_model = LinkModel::kHeld;
  const Policy* policy = nullptr;  // asked for; none: several are tried
  Waiting waiting = Waiting::kAuto;
  SwitchUse switch_use = {};

  int64_t num_deliveries() const {
    return static_cast<int64_t>(source.size()) * (topology.num_ranks() - 1);
  }
  Transfer MakeTransfer(LinkId link, uint32_t chunk, int32_t step) const {
    const auto shard = static_cast<int32_t>(chunk) / chunks;
    const auto begin = static_cast<int32_t>(chunk) % chunks;
    return {ShardId{shard}, link, begin, begin + 1, step, TransferOp::kCopy};
  }
};

// kResourceExhausted: more chunks in all than numbers for them.
Status CheckChunks(const Collective& collective, const SynthOptions& options);

// The first two must outlive it. kInvalidArgument: an option, named. kResourceExhausted when
// `needed_bytes`, which the caller knows how to estimate, are more than those available.
Result<Input> MakeInput(const Topology& topology, const Collective& collective,
                        const SynthOptions& options, int64_t needed_bytes, int64_t available_bytes);

// A schedule without transfers.
Schedule Header(const Input& input, uint64_t seed);

// How many variants are tried: as asked for, or by size.
int32_t TriesOf(const Input& input, const SynthOptions& options);

// For a large network fewer chunks are compared, so that time stays in proportion to deliveries.
size_t WindowOf(const Input& input);

// Links between ranks that are all equal: time may go in rounds.
bool AllLinksEqual(const Topology& topology);

}  // namespace tutti::ten
