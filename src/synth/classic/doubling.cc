// rhd and bruck: algorithms whose messages double from round to round.
//
// rhd         All-gather by recursive doubling among the largest power of two of the ranks, the
//             farthest partner first, so that the large messages of the last rounds go to
//             neighbours; reversed it is reduce-scatter by recursive halving. Each rank beyond the
//             power of two lends its shard to a rank within it before, and gets all others after.
// bruck       In round k rank i gives rank i - 2^k all it holds, as far as that rank lacks it:
//             ceil(log2 N) rounds for any N.
// Complexity  O(N^2 * distance * in-degree) for schedules of N (N - 1) deliveries and relays.
// Reference   Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
//             MPICH" (2005); Bruck et al., "Efficient algorithms for all-to-all communications"
//             (1997). Deviation: far partners before near ones.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "classic/common.h"
#include "registry.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace classic {
namespace {

constexpr std::string_view kRhd = "rhd", kBruck = "bruck";

// Sends of one round: all start when the last of the round before has arrived.
class Rounds {
 public:
  explicit Rounds(ForwardBuilder& builder) : builder_(builder) {}
  void Send(int32_t from, int32_t to, int32_t shard) {
    if (CancelRequested()) return;
    const int32_t ready =
        builder_.Send(NodeId{from}, NodeId{to}, ShardId{shard}, builder_.Whole(), start_);
    end_ = std::max(end_, ready);
  }
  void EndRound() { start_ = end_; }

 private:
  ForwardBuilder& builder_;
  int32_t start_ = 0, end_ = 0;
};

void RecursiveDoubling(ForwardBuilder& builder, int32_t num_ranks) {
  const auto core = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(num_ranks)));
  Rounds rounds(builder);
  for (int32_t extra = core; extra < num_ranks; ++extra) rounds.Send(extra, extra - core, extra);
  rounds.EndRound();

  std::vector<std::vector<int32_t>> held(static_cast<size_t>(core));
  for (int32_t rank = 0; rank < core; ++rank) {
    held[static_cast<size_t>(rank)] = {rank};
    if (core + rank < num_ranks) held[static_cast<size_t>(rank)].push_back(core + rank);
  }
  for (int32_t far = core / 2; far >= 1; far /= 2) {
    std::vector<std::vector<int32_t>> next = held;
    for (int32_t rank = 0; rank < core; ++rank) {
      const int32_t partner = rank ^ far;
      const std::vector<int32_t>& shards = held[static_cast<size_t>(rank)];
      for (int32_t shard : shards) rounds.Send(rank, partner, shard);
      std::vector<int32_t>& received = next[static_cast<size_t>(partner)];
      received.insert(received.end(), shards.begin(), shards.end());
    }
    held = std::move(next);
    rounds.EndRound();
  }
  for (int32_t extra = core; extra < num_ranks; ++extra)
    for (int32_t shard = 0; shard < num_ranks; ++shard)
      if (shard != extra) rounds.Send(extra - core, extra, shard);
}

void Bruck(ForwardBuilder& builder, int32_t num_ranks) {
  Rounds rounds(builder);
  for (int32_t hop = 1; hop < num_ranks; hop *= 2) {
    const int32_t count = std::min(hop, num_ranks - hop);
    for (int32_t rank = 0; rank < num_ranks; ++rank)
      for (int32_t k = 0; k < count; ++k)
        rounds.Send(rank, (rank + num_ranks - hop) % num_ranks, (rank + k) % num_ranks);
    rounds.EndRound();
  }
}

using Emit = void (*)(ForwardBuilder&, int32_t num_ranks);

Result<Schedule> Synthesize(std::string_view name, Emit emit, const Topology& topology,
                            const Collective& collective, const SynthOptions& options) {
  const auto make = [&](const Topology& network, const Collective& forward,
                        const SynthOptions& how) -> Result<Schedule> {
    if (forward.kind() != CollectiveKind::kAllGather)
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("'{}' makes all-reduce over N shards, not over one", name));
    return ChunksOf(how, 1, 1, name, "")
        .and_then([&](int32_t chunks) { return ForwardBuilder::Make(network, forward, chunks); })
        .map([&](ForwardBuilder builder) {
          emit(builder, network.num_ranks());
          return std::move(builder).Finish(name, how.seed);
        });
  };
  return MakeClassic(name, topology, collective, options, make);
}

}  // namespace
}  // namespace classic

Synthesizer RhdSynthesizer() {
  using Kind = CollectiveKind;
  return {
      .name = classic::kRhd,
      .description = "recursive halving and doubling, for any number of ranks",
      .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
      .synthesize =
          [](const Topology& topology, const Collective& collective, const SynthOptions& options) {
            return classic::Synthesize(classic::kRhd, classic::RecursiveDoubling, topology,
                                       collective, options);
          },
      .groups = GroupUse::kThroughOthers};
}

Synthesizer BruckSynthesizer() {
  using Kind = CollectiveKind;
  return {
      .name = classic::kBruck,
      .description = "Bruck's all-gather: ceil(log2 N) rounds",
      .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
      .synthesize =
          [](const Topology& topology, const Collective& collective, const SynthOptions& options) {
            return classic::Synthesize(classic::kBruck, classic::Bruck, topology, collective,
                                       options);
          },
      .groups = GroupUse::kThroughOthers};
}

}  // namespace tutti
