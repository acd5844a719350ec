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
// Groups      With groups the collective is done within each of them at once: N above is the size k of a
//             group, "all ranks" its members, and shard j of group g is shard first_shard(g) + j. The
//             members' order is that of their ranks in the group, and the root is a position in it. A rank
//             may be in several groups. Ranks in none have no contribution and no demand: they forward, or
//             with Others::kIdle take no part. Without groups all ranks are one group in order.
// Units       M (--size) is as docs/glossary.md says. Shard i holds M * weight(i) /
//             weight_of_size() bytes; weights are integers. With groups M is that of each group.
// Invariants  Groups: 2 members or more each, distinct ranks below num_ranks().
//             N >= 1; 0 <= root < N; a demand matrix is N x N, entries >= 0, some off-diagonal
//             entry > 0, row totals < 2^62.
// Threads     Immutable value.
// Adding      A collective is a row of the table in collective.cc; what it means follows from the row,
//             its buffers too (slots.h).
// Reference   [direct-connect] Appendix B, Definition 4; [tuna] for the v form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

// What ranks in no group do.
enum class Others : uint8_t { kForward, kIdle };

class Collective {
 public:
  // Which ranks a shard concerns on one side: one of them, the members of its group, or all.
  struct Ranks {
    bool all = false;
    NodeId one{0};                       // when neither all nor a group
    std::span<const NodeId> group = {};  // ascending; of the collective, which must outlive this

    bool several() const { return all || !group.empty(); }
    bool Contains(NodeId rank) const;
    int32_t Count(int32_t num_ranks) const;
    // Calls visit(rank) for each, ascending.
    template <class Visit>
    void ForEach(int32_t num_ranks, const Visit& visit) const {
      if (all)
        for (const NodeId rank : IdRange<NodeId>(0, num_ranks)) visit(rank);
      else if (group.empty())
        visit(one);
      else
        for (const NodeId rank : group) visit(rank);
    }
    friend bool operator==(const Ranks& a, const Ranks& b);
  };
  // One group of ranks.
  struct Group {
    std::vector<NodeId> members;  // in the order of their ranks in the group
    std::vector<NodeId> sorted;   // ascending
    int32_t first_shard = 0;

    int32_t size() const { return static_cast<int32_t>(members.size()); }
    friend bool operator==(const Group&, const Group&) = default;
  };
  struct Options {
    int32_t root = 0;  // with groups: the position of the root in each
    // all-reduce only: 1 treats the buffer as one shard (trees), 0 means N.
    int32_t all_reduce_shards = 0;
    // all-to-all-v only: bytes from rank s to rank d at [s * N + d].
    std::vector<int64_t> demand = {};
    // all-to-all-v only: what M stands for, 1 .. 2^62 - 1; 0 means the largest row total of demand.
    int64_t weight_of_size = 0;
    // Not of all-to-all-v, whose demand says who sends to whom. Empty: all ranks are one group.
    std::vector<std::vector<NodeId>> groups = {};
    Others others = Others::kForward;
  };

  static Result<Collective> Make(CollectiveKind kind, int32_t num_ranks, Options options);
  static Result<Collective> Make(CollectiveKind kind, int32_t num_ranks) {
    return Make(kind, num_ranks, Options());
  }

  CollectiveKind kind() const { return kind_; }
  int32_t num_ranks() const { return num_ranks_; }
  int32_t num_shards() const { return num_shards_; }
  IdRange<ShardId> Shards() const { return {0, num_shards_}; }
  NodeId root() const { return root_; }  // with groups that of the first
  bool has_root() const;
  bool has_groups() const { return !groups_.empty(); }
  std::span<const Group> groups() const { return groups_; }
  Others others() const { return others_; }
  int32_t root_position() const { return root_position_; }  // in each group
  bool groups_are_apart() const;                            // no rank is in two
  // The group (0 without groups) that a shard belongs to.
  int32_t GroupOf(ShardId shard) const;
  // Every rank of a group, ascending; without groups all ranks.
  std::vector<NodeId> Participants() const;
  // Takes no part, not even by forwarding. O(log ranks).
  bool IsIdle(NodeId rank) const;
  // The largest number of ranks that the collective is done within: num_ranks() without groups.
  int32_t largest_group() const;
  // Ordered pairs of different ranks of a group, those of several groups as often: N (N - 1) without.
  int64_t num_pairs() const;
  // all-reduce, one shard for each group (or in all).
  bool one_shard_each() const;
  // What Make() takes for another collective within the same groups, in as many shards.
  Options GroupOptions() const;
  // What group g does, as a collective without groups over ranks 0 .. k - 1, which are its members in
  // order.
  Collective OfGroup(int32_t g) const;
  // All-to-all of groups as one over ranks 0 .. n - 1, which are JoinedRanks() in order: of one group
  // all-to-all over its members, of several all-to-allv over all that are in one. Weights and their
  // unit are those of this collective.
  Collective Joined() const;
  std::vector<NodeId> JoinedRanks() const;
  // The rate of the mean pair of the groups over that of the mean pair of Joined().
  Rational RateOverJoined() const;
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
  int64_t weight(ShardId shard) const {
    if (!demand_.empty()) return demand_[shard.index()];
    return group_weight_.empty() ? 1 : group_weight_[static_cast<size_t>(GroupOf(shard))];
  }
  // All shards have the same size.
  bool equal_weights() const { return demand_.empty() && group_weight_.empty(); }
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
  // The shard of Reversed() that this one becomes.
  ShardId ReversedShard(ShardId shard) const;

  friend bool operator==(const Collective&, const Collective&) = default;

 private:
  Collective() = default;
  Status TakeGroups(const Options& options);
  // Who is on a side of a shard of row `side`.
  template <class Side>
  Ranks RanksOn(Side side, ShardId shard, bool destinations) const;

  CollectiveKind kind_ = CollectiveKind::kAllGather;
  int32_t num_ranks_ = 1, num_shards_ = 1;
  NodeId root_{0};
  int64_t weight_of_size_ = 1;
  std::vector<int64_t> demand_;
  std::vector<Group> groups_;
  std::vector<int64_t> group_weight_;  // of a shard of group g; empty: 1
  std::vector<NodeId> participants_;   // ascending; with groups
  Others others_ = Others::kForward;
  int32_t root_position_ = 0;
};

std::string_view Name(CollectiveKind kind);  // "all-gather"
// Several ranks contribute to each shard; all ranks want each shard.
bool Reduces(CollectiveKind kind);
bool EndsAtAllRanks(CollectiveKind kind);
// Also reads "allgather", "all_gather", "AllGather". kInvalidArgument lists the accepted names.
Result<CollectiveKind> ParseCollectiveKind(std::string_view name);

}  // namespace tutti
