#include "ten/chunk_count.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tutti/sched/cost.h"
#include "tutti/synth/ten.h"

namespace tutti {

int32_t EvenChunks(const Topology& topology) {
  const std::optional<int32_t> degree = topology.regular_degree();
  if (!degree || *degree == 0 || !topology.is_homogeneous() || topology.has_switches()) return 1;
  return *degree / std::gcd(*degree, topology.num_ranks() - 1);
}

namespace ten {
namespace {

// Seconds.
constexpr int64_t kMostTransfers = 4'000'000;
constexpr int kMostInVain = 2;
// Of more deliveries a chunk, numbers are compared by fewer tries.
constexpr int64_t kFewDeliveries = 1000;
constexpr int32_t kTriesToCompare = 2;

// The first above `count` of 1, 2, 3, 4, 6, 8, 12, ... and `even`.
int32_t NextCount(int32_t count, int32_t even) {
  int32_t next = 2;
  while (next <= count) {
    const bool is_power = (next & (next - 1)) == 0;
    next = is_power ? next / 2 * 3 : next / 3 * 4;
  }
  return count < even ? std::min(even, next) : next;
}

// A chunk of less than a byte is none.
int64_t BytesOfLargestShard(const Collective& collective, int64_t size_bytes) {
  Rational largest;
  for (ShardId shard : collective.Shards())
    largest = std::max(largest, collective.ShardBytes(shard, size_bytes));
  return largest.Ceil().Num64().value_or(size_bytes);
}

}  // namespace

Result<Schedule> WithBestChunkCount(
    const Topology& topology, const Collective& collective, const SynthOptions& options,
    const std::function<Result<Schedule>(const SynthOptions&)>& make) {
  SynthOptions with_count = options;
  with_count.auto_chunks = false;
  with_count.chunks = 1;
  const int64_t deliveries = int64_t{collective.num_shards()} * (collective.num_ranks() - 1);
  const bool is_first_look =
      deliveries > kFewDeliveries && (options.tries == 0 || options.tries > kTriesToCompare);
  if (is_first_look) with_count.tries = kTriesToCompare;
  Result<Schedule> best = make(with_count);
  if (!best || best->transfers.empty()) return best;
  Rational best_s = PredictedSeconds(topology, *best, options.size_bytes);
  const auto transfers_a_chunk = static_cast<int64_t>(best->transfers.size());
  const int64_t most_chunks = BytesOfLargestShard(collective, options.size_bytes);
  const int32_t even = EvenChunks(topology);
  int64_t transfers = 0;
  int in_vain = 0;
  for (int32_t count = 2; in_vain < kMostInVain && count <= most_chunks;
       count = NextCount(count, even)) {
    transfers += count * transfers_a_chunk;
    if (transfers > kMostTransfers) break;
    with_count.chunks = count;
    Result<Schedule> made = make(with_count);
    if (!made && made.error().code == ErrorCode::kCancelled) return made;
    if (!made) break;
    Rational seconds = PredictedSeconds(topology, *made, options.size_bytes);
    ++in_vain;
    if (seconds >= best_s) continue;
    in_vain = 0;
    best_s = std::move(seconds);
    best = std::move(made);
  }
  if (!is_first_look) return best;
  with_count.tries = options.tries;
  with_count.chunks = best->units_per_shard;
  Result<Schedule> made = make(with_count);
  if (!made && made.error().code == ErrorCode::kCancelled) return made;
  if (made && PredictedSeconds(topology, *made, options.size_bytes) < best_s) return made;
  return best;
}

}  // namespace ten
}  // namespace tutti
