#include "ten/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tutti/base/memory.h"

namespace tutti::ten {
namespace {

// Networks with fewer deliveries are tried in several variants by default: a fraction of a second.
constexpr int64_t kFewInputDeliveries = 200'000;
constexpr int64_t kManyDeliveries = 10'000'000;
constexpr int32_t kTriesOfFew = 8;
constexpr int32_t kDefaultTries = 4;

}  // namespace

Status CheckChunks(const Collective& collective, const SynthOptions& options) {
  const int64_t chunks = std::max(1, options.chunks);
  if (collective.num_shards() * chunks <= std::numeric_limits<int32_t>::max()) return {};
  return MakeError(ErrorCode::kResourceExhausted,
                   fmt::format("{} shards of {} chunks are more than 2^31 - 1 chunks",
                               collective.num_shards(), chunks));
}

Result<Input> MakeInput(const Topology& topology, const Collective& collective,
                        const SynthOptions& options, int64_t needed_bytes,
                        int64_t available_bytes) {
  if (options.chunks < 0 || options.tries < 0)
    return InvalidArgument(
        fmt::format("chunks and tries must be >= 0, got {} and {}", options.chunks, options.tries));
  if (options.size_bytes < 1)
    return InvalidArgument(fmt::format("the size must be >= 1 byte, got {}", options.size_bytes));
  Input input{.topology = topology,
              .collective = collective,
              .chunks = options.chunks == 0 ? 1 : options.chunks,
              .source = {},
              .size_bytes = options.size_bytes,
              .link_model = options.link_model,
              .waiting = options.waiting};
  if (!options.policy.empty()) {
    const Result<const Policy*> policy = FindPolicy(options.policy);
    if (!policy) return tl::unexpected(policy.error());
    input.policy = *policy;
  }
  if (const Status few = CheckChunks(collective, options); !few) return tl::unexpected(few.error());
  const int64_t num_chunks = int64_t{collective.num_shards()} * input.chunks;
  if (const Status fits = CheckMemory(
          fmt::format("the schedule of {} transfers", num_chunks * (topology.num_ranks() - 1)),
          needed_bytes, available_bytes);
      !fits)
    return tl::unexpected(fits.error());
  input.source.reserve(static_cast<size_t>(num_chunks));
  for (ShardId shard : collective.Shards())
    input.source.insert(input.source.end(), static_cast<size_t>(input.chunks),
                        collective.contributors(shard).one);
  return input;
}

Schedule Header(const Input& input, uint64_t seed) {
  Schedule schedule{.collective = input.collective};
  schedule.units_per_shard = input.chunks;
  schedule.topology_fingerprint = input.topology.Fingerprint();
  schedule.algorithm = kName;
  schedule.seed = seed;
  return schedule;
}

int32_t TriesOf(const Input& input, const SynthOptions& options) {
  if (options.tries > 0) return options.tries;
  if (input.num_deliveries() < kFewInputDeliveries) return kTriesOfFew;
  return input.num_deliveries() < kManyDeliveries ? kDefaultTries : 1;
}

// For a large network fewer chunks are compared, so that time stays in proportion to deliveries.
size_t WindowOf(const Input& input) {
  return std::clamp<size_t>(size_t{1 << 20} / input.source.size(), 16, 1024);
}

bool AllLinksEqual(const Topology& topology) {
  if (topology.has_switches()) return false;
  for (LinkId link : topology.Links())
    if (!(topology.spec(link) == topology.spec(LinkId{0}))) return false;
  return true;
}

}  // namespace tutti::ten
