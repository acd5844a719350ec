// Collective: what a collective operation means, rank by rank and byte by byte.
//
// Model       The data is cut into *shards* (coll-specific, below); a chunk is an interval of a
//             shard. Each shard has contributors and destinations:
//               collective      shards         contributors of shard i   destinations of shard i
//               all-gather      N              rank i                    all ranks
//               broadcast       1              root                      all ranks
//               scatter         N              root                      rank i
//               gather          N              rank i                    root
//               all-to-all(v)   N*N, i=s*N+d   rank s                    rank d
//               reduce-scatter  N              all ranks                 rank i
//               all-reduce      N or 1         all ranks                 all ranks
//               reduce          1              all ranks                 root
//             Precondition: a contributor holds its own contribution. Postcondition: a destination
//             holds, for every byte of the shard, the reduction of every contribution exactly once.
//             Nothing else is required of anyone, and anyone may hold anything on the way.
// Units       M (--size) is as docs/glossary.md says. Shard i holds M * weight(i) /
//             weight_of_size() bytes; weights are integers.
// Invariants  N >= 1; 0 <= root < N; a demand matrix is N x N, entries >= 0, some off-diagonal
//             entry > 0, row totals < 2^62.
// Threads     Immutable value.
// Adding      A collective is a row of the table in collective.cc; what it means follows from the row,
//             its buffers too (slots.h).
// Reference   [direct-connect] Appendix B, Definition 4; [tuna] for the v form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"

namespace tutti {

enum class CollectiveKind : uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kAllToAllV,
};

class Collective {
 public:
  // Which ranks a shard concerns on one side: one of them, or all.
  struct Ranks {
    bool all = false;
    NodeId one{0};  // when not all
    bool Contains(NodeId rank) const { return all || rank == one; }
    friend bool operator==(const Ranks&, const Ranks&) = default;
  };
  struct Options {
    int32_t root = 0;
    // all-reduce only: 1 treats the buffer as one shard (trees), 0 means N.
    int32_t all_reduce_shards = 0;
    // all-to-all-v only: bytes from rank s to rank d at [s * N + d].
    std::vector<int64_t> demand = {};
    // all-to-all-v only: what M stands for, 1 .. 2^62 - 1; 0 means the largest row total of demand.
    int64_t weight_of_size = 0;
  };

  static Result<Collective> Make(CollectiveKind kind, int32_t num_ranks, Options options);
  static Result<Collective> Make(CollectiveKind kind, int32_t num_ranks) {
    return Make(kind, num_ranks, Options());
  }

  CollectiveKind kind() const { return kind_; }
  int32_t num_ranks() const { return num_ranks_; }
  int32_t num_shards() const { return num_shards_; }
  IdRange<ShardId> Shards() const { return {0, num_shards_}; }
  NodeId root() const { return root_; }
  bool has_root() const;
  // Transfers reduce: several ranks contribute to one shard.
  bool reduces() const;
  // A shard for each ordered pair of ranks: all-to-all(v).
  bool is_all_to_all() const;
  // Data flows towards owners or a root, as time reversed makes of the collective Reversed():
  // reduce-scatter, reduce and gather.
  bool is_reversed_form() const;
  // With a shard a rank, and all ranks alike: all-gather, reduce-scatter, all-reduce of N shards.
  bool treats_ranks_alike() const;
  Ranks contributors(ShardId shard) const;
  Ranks destinations(ShardId shard) const;

  // Relative sizes: bytes of a shard = M * weight(shard) / weight_of_size().
  int64_t weight(ShardId shard) const { return demand_.empty() ? 1 : demand_[shard.index()]; }
  int64_t weight_of_size() const { return weight_of_size_; }
  Rational ShardBytes(ShardId shard, int64_t size_bytes) const {
    return Rational(size_bytes) * Rational(weight(shard), weight_of_size_);
  }
  const std::vector<int64_t>& demand() const { return demand_; }

  // busbw / algbw as nccl-tests defines it; 1 where it defines none.
  Rational BusFactor() const;
  // The collective whose schedules are this one's reversed: all-gather <-> reduce-scatter,
  // broadcast <-> reduce, scatter <-> gather, all-to-all(v) <-> its transpose, all-reduce itself.
  Collective Reversed() const;

  friend bool operator==(const Collective&, const Collective&) = default;

 private:
  Collective() = default;

  CollectiveKind kind_ = CollectiveKind::kAllGather;
  int32_t num_ranks_ = 1, num_shards_ = 1;
  NodeId root_{0};
  int64_t weight_of_size_ = 1;
  std::vector<int64_t> demand_;
};

std::string_view Name(CollectiveKind kind);  // "all-gather"
// Several ranks contribute to each shard; all ranks want each shard.
bool Reduces(CollectiveKind kind);
bool EndsAtAllRanks(CollectiveKind kind);
// Also reads "allgather", "all_gather", "AllGather". kInvalidArgument lists the accepted names.
Result<CollectiveKind> ParseCollectiveKind(std::string_view name);

}  // namespace tutti
