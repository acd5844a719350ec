#include "tutti/coll/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

enum class Sharding : uint8_t { kOne, kOnePerRank, kOnePerPair, kOneOrOnePerRank };
enum class Side : uint8_t {
  kAllRanks,
  kRoot,
  kOwner
};  // of shard i: rank i; of a pair its own end

struct Row {
  Kind kind;
  std::string_view name;
  Sharding sharding;
  Side contributors, destinations;
  Kind reversed;
};
// clang-format off
constexpr std::array<Row, 9> kTable{{
    {Kind::kAllGather, "all-gather", Sharding::kOnePerRank, Side::kOwner, Side::kAllRanks, Kind::kReduceScatter},
    {Kind::kReduceScatter, "reduce-scatter", Sharding::kOnePerRank, Side::kAllRanks, Side::kOwner, Kind::kAllGather},
    {Kind::kAllReduce, "all-reduce", Sharding::kOneOrOnePerRank, Side::kAllRanks, Side::kAllRanks, Kind::kAllReduce},
    {Kind::kBroadcast, "broadcast", Sharding::kOne, Side::kRoot, Side::kAllRanks, Kind::kReduce},
    {Kind::kReduce, "reduce", Sharding::kOne, Side::kAllRanks, Side::kRoot, Kind::kBroadcast},
    {Kind::kGather, "gather", Sharding::kOnePerRank, Side::kOwner, Side::kRoot, Kind::kScatter},
    {Kind::kScatter, "scatter", Sharding::kOnePerRank, Side::kRoot, Side::kOwner, Kind::kGather},
    {Kind::kAllToAll, "all-to-all", Sharding::kOnePerPair, Side::kOwner, Side::kOwner, Kind::kAllToAll},
    {Kind::kAllToAllV, "all-to-allv", Sharding::kOnePerPair, Side::kOwner, Side::kOwner, Kind::kAllToAllV},
}};
// clang-format on

constexpr bool RowsStandInOrder() {
  for (size_t k = 0; k < kTable.size(); ++k)
    if (kTable[k].kind != static_cast<Kind>(k)) return false;
  return true;
}
static_assert(RowsStandInOrder());

const Row& RowOf(Kind kind) { return kTable[static_cast<size_t>(kind)]; }

constexpr int64_t kMaxTotal = int64_t{1} << 62;

// The largest row total, or the fault.
Result<int64_t> LargestRow(const std::vector<int64_t>& demand, int32_t num_ranks) {
  const auto n = static_cast<size_t>(num_ranks);
  if (demand.size() != n * n)
    return InvalidArgument(fmt::format("the demand matrix has {} entries, {} ranks need {} x {}",
                                       demand.size(), n, n, n));
  int64_t largest = 0;
  bool some = false;
  for (size_t s = 0; s < n; ++s) {
    int64_t row = 0;
    for (size_t d = 0; d < n; ++d) {
      const int64_t bytes = demand[s * n + d];
      if (bytes < 0)
        return InvalidArgument(
            fmt::format("the demand from rank {} to rank {} is negative: {}", s, d, bytes));
      if (bytes >= kMaxTotal - row)
        return InvalidArgument(fmt::format("the demand of rank {} adds up to 2^62 or more", s));
      row += bytes;
      some = some || (s != d && bytes > 0);
    }
    largest = std::max(largest, row);
  }
  if (!some) return InvalidArgument("the demand matrix asks for no traffic between ranks");
  return largest;
}

Result<int64_t> NumShards(const Row& row, int32_t num_ranks, int32_t wanted) {
  constexpr int32_t kMaxRanksOfPairs = 46340;  // its square is below 2^31
  switch (row.sharding) {
    case Sharding::kOne:
      return 1;
    case Sharding::kOnePerRank:
      return num_ranks;
    case Sharding::kOnePerPair:
      if (num_ranks > kMaxRanksOfPairs)
        return InvalidArgument(fmt::format("all-to-all supports at most {} ranks, got {}",
                                           kMaxRanksOfPairs, num_ranks));
      return int64_t{num_ranks} * num_ranks;
    case Sharding::kOneOrOnePerRank:
      break;
  }
  if (wanted != 0 && wanted != 1 && wanted != num_ranks)
    return InvalidArgument(fmt::format("{} over {} ranks has 1 or {} shards, not {}", row.name,
                                       num_ranks, num_ranks, wanted));
  return wanted == 0 ? num_ranks : wanted;
}

}  // namespace

Result<Collective> Collective::Make(Kind kind, int32_t num_ranks, Options options) {
  if (num_ranks < 1)
    return InvalidArgument(fmt::format("a collective needs at least 1 rank, got {}", num_ranks));
  if (!options.groups.empty()) {
    Collective coll;
    coll.kind_ = kind;
    coll.num_ranks_ = num_ranks;
    if (const Status taken = coll.TakeGroups(options); !taken) return tl::unexpected(taken.error());
    return coll;
  }
  if (options.others != Others::kForward)
    return InvalidArgument("ranks can only be idle where a group says which are not");
  if (options.root < 0 || options.root >= num_ranks)
    return InvalidArgument(
        fmt::format("root {} is not a rank; there are {} ranks", options.root, num_ranks));
  Collective coll;
  coll.kind_ = kind;
  coll.num_ranks_ = num_ranks;
  if (coll.has_root()) coll.root_ = NodeId{coll.root_position_ = options.root};
  if (kind != Kind::kAllToAllV && !options.demand.empty())
    return InvalidArgument(fmt::format("{} takes no demand matrix", Name(kind)));
  const Result<int64_t> num_shards = NumShards(RowOf(kind), num_ranks, options.all_reduce_shards);
  if (!num_shards) return tl::unexpected(num_shards.error());
  coll.num_shards_ = static_cast<int32_t>(*num_shards);
  coll.weight_of_size_ = coll.num_shards_;
  if (coll.is_all_to_all()) coll.weight_of_size_ = num_ranks;
  if (kind == Kind::kAllToAllV) {
    const Result<int64_t> largest = LargestRow(options.demand, num_ranks);
    if (!largest) return tl::unexpected(largest.error());
    if (options.weight_of_size < 0 || options.weight_of_size >= kMaxTotal)
      return InvalidArgument(fmt::format("the weight of M must be within 0 .. 2^62 - 1, got {}",
                                         options.weight_of_size));
    coll.weight_of_size_ = options.weight_of_size == 0 ? *largest : options.weight_of_size;
    coll.demand_ = std::move(options.demand);
  }
  return coll;
}

bool Collective::has_root() const {
  return RowOf(kind_).contributors == Side::kRoot || RowOf(kind_).destinations == Side::kRoot;
}

bool Collective::reduces() const { return Reduces(kind_); }

bool Collective::is_all_to_all() const { return RowOf(kind_).sharding == Sharding::kOnePerPair; }

bool Collective::is_reversed_form() const {
  const Row& row = RowOf(kind_);
  return row.destinations == Side::kRoot || (reduces() && row.destinations == Side::kOwner);
}

bool Collective::treats_ranks_alike() const {
  return !has_root() && !is_all_to_all() && !has_groups() && num_shards_ == num_ranks_;
}

bool operator==(const Collective::Ranks& a, const Collective::Ranks& b) {
  return a.all == b.all &&
         std::equal(a.group.begin(), a.group.end(), b.group.begin(), b.group.end()) &&
         (a.several() || a.one == b.one);
}

bool Collective::Ranks::Contains(NodeId rank) const {
  if (all) return true;
  return group.empty() ? rank == one : std::binary_search(group.begin(), group.end(), rank);
}

int32_t Collective::Ranks::Count(int32_t num_ranks) const {
  if (all) return num_ranks;
  return group.empty() ? 1 : static_cast<int32_t>(group.size());
}

template <class SideOfShard>
Collective::Ranks Collective::RanksOn(SideOfShard side, ShardId shard, bool destinations) const {
  if (!has_groups()) {
    if (side == Side::kAllRanks) return {.all = true};
    if (side == Side::kRoot) return {.one = root_};
    if (!is_all_to_all()) return {.one = NodeId{shard.value}};
    return {.one = NodeId{destinations ? shard.value % num_ranks_ : shard.value / num_ranks_}};
  }
  const Group& group = groups_[static_cast<size_t>(GroupOf(shard))];
  if (side == Side::kAllRanks) return {.group = group.sorted};
  if (side == Side::kRoot) return {.one = group.members[static_cast<size_t>(root_position_)]};
  int32_t position = shard.value - group.first_shard;
  if (is_all_to_all()) position = destinations ? position % group.size() : position / group.size();
  return {.one = group.members[static_cast<size_t>(position)]};
}

Collective::Ranks Collective::contributors(ShardId shard) const {
  return RanksOn(RowOf(kind_).contributors, shard, false);
}

Collective::Ranks Collective::destinations(ShardId shard) const {
  return RanksOn(RowOf(kind_).destinations, shard, true);
}

int32_t Collective::GroupOf(ShardId shard) const {
  if (groups_.size() < 2) return 0;
  const auto after =
      std::upper_bound(groups_.begin(), groups_.end(), shard.value,
                       [](int32_t value, const Group& group) { return value < group.first_shard; });
  return static_cast<int32_t>(after - groups_.begin()) - 1;
}

std::vector<NodeId> Collective::Participants() const {
  if (has_groups()) return participants_;
  std::vector<NodeId> all;
  for (const NodeId rank : IdRange<NodeId>(0, num_ranks_)) all.push_back(rank);
  return all;
}

bool Collective::IsIdle(NodeId rank) const {
  return others_ == Others::kIdle && rank.value < num_ranks_ &&
         !std::binary_search(participants_.begin(), participants_.end(), rank);
}

bool Collective::groups_are_apart() const {
  size_t members = 0;
  for (const Group& group : groups_) members += group.members.size();
  return members == participants_.size();
}

int32_t Collective::largest_group() const {
  if (!has_groups()) return num_ranks_;
  int32_t largest = 0;
  for (const Group& group : groups_) largest = std::max(largest, group.size());
  return largest;
}

int64_t Collective::num_pairs() const {
  const auto pairs = [](int64_t k) { return k * (k - 1); };
  if (!has_groups()) return pairs(num_ranks_);
  int64_t sum = 0;
  for (const Group& group : groups_) sum += pairs(group.size());
  return sum;
}

bool Collective::one_shard_each() const {
  return num_shards_ == static_cast<int32_t>(std::max<size_t>(1, groups_.size()));
}

Collective Collective::OfGroup(int32_t g) const {
  if (!has_groups()) return *this;
  Options options;
  options.root = root_position_;
  if (kind_ == Kind::kAllReduce && one_shard_each()) options.all_reduce_shards = 1;
  Result<Collective> made = Make(kind_, groups_[static_cast<size_t>(g)].size(), std::move(options));
  TUTTI_CHECK(made.has_value());
  return *std::move(made);
}

Collective::Options Collective::GroupOptions() const {
  Options options;
  options.root = root_position_;
  options.others = others_;
  if (kind_ == Kind::kAllReduce && one_shard_each()) options.all_reduce_shards = 1;
  for (const Group& group : groups_) options.groups.push_back(group.members);
  return options;
}

std::vector<NodeId> Collective::JoinedRanks() const {
  return groups_.size() == 1 ? groups_[0].members : Participants();
}

Rational Collective::RateOverJoined() const {
  const auto n = static_cast<int64_t>(JoinedRanks().size());
  return Rational(n * (n - 1), num_pairs());
}

Collective Collective::Joined() const {
  TUTTI_CHECK(is_all_to_all());
  if (groups_.size() < 2) return OfGroup(0);
  const size_t n = participants_.size();
  Options options;
  options.weight_of_size = weight_of_size_;
  options.demand.assign(n * n, 0);
  for (const Group& group : groups_) {
    std::vector<size_t> places;
    for (const NodeId rank : group.sorted)
      places.push_back(
          static_cast<size_t>(std::lower_bound(participants_.begin(), participants_.end(), rank) -
                              participants_.begin()));
    for (const size_t s : places)
      for (const size_t d : places) options.demand[s * n + d] += weight(ShardId{group.first_shard});
  }
  Result<Collective> made = Make(Kind::kAllToAllV, static_cast<int32_t>(n), std::move(options));
  TUTTI_CHECK(made.has_value());
  return *std::move(made);
}

namespace {

// The members of one group, or the fault.
Result<Collective::Group> MakeGroup(std::vector<NodeId> members, size_t index, int32_t num_ranks) {
  const auto fail = [index](std::string text) {
    return InvalidArgument(fmt::format("group {}: {}", index, text));
  };
  if (members.size() < 2)
    return fail(fmt::format("it has {} rank{}, wanted at least 2", members.size(),
                            members.size() == 1 ? "" : "s"));
  Collective::Group group;
  group.sorted = members;
  std::sort(group.sorted.begin(), group.sorted.end());
  for (const NodeId rank : {group.sorted.front(), group.sorted.back()})
    if (rank.value < 0 || rank.value >= num_ranks)
      return fail(fmt::format("{} is not a rank; there are {} ranks", rank.value, num_ranks));
  if (const auto twice = std::adjacent_find(group.sorted.begin(), group.sorted.end());
      twice != group.sorted.end())
    return fail(fmt::format("rank {} is in it twice", twice->value));
  group.members = std::move(members);
  return group;
}

}  // namespace

Status Collective::TakeGroups(const Options& options) {
  if (kind_ == Kind::kAllToAllV)
    return InvalidArgument("all-to-allv takes no groups: its demand says who sends to whom");
  if (!options.demand.empty())
    return InvalidArgument(fmt::format("{} takes no demand matrix", Name(kind_)));
  if (kind_ == Kind::kAllReduce && options.all_reduce_shards > 1)
    return InvalidArgument(
        fmt::format("all-reduce of groups has 1 shard a group or one a rank of it (0), not {}",
                    options.all_reduce_shards));
  constexpr int64_t kMostShards = std::numeric_limits<int32_t>::max();
  int64_t shards = 0, weight_of_size = 1;
  std::vector<int64_t> shards_of;
  for (size_t g = 0; g < options.groups.size(); ++g) {
    Result<Group> group = MakeGroup(options.groups[g], g, num_ranks_);
    if (!group) return tl::unexpected(group.error());
    if (has_root() && (options.root < 0 || options.root >= group->size()))
      return InvalidArgument(fmt::format("root {} is no position in group {}, which has {} ranks",
                                         options.root, g, group->size()));
    const Result<int64_t> count =
        NumShards(RowOf(kind_), group->size(), options.all_reduce_shards == 1 ? 1 : 0);
    if (!count) return tl::unexpected(count.error());
    group->first_shard = static_cast<int32_t>(shards);
    shards += *count;
    if (shards > kMostShards)
      return InvalidArgument(fmt::format("the groups have more than {} shards", kMostShards));
    shards_of.push_back(is_all_to_all() ? group->size() : *count);
    const int64_t factor = shards_of.back() / std::gcd(weight_of_size, shards_of.back());
    if (weight_of_size > kMaxTotal / factor)
      return InvalidArgument("the sizes of the groups have no common multiple below 2^62");
    weight_of_size *= factor;
    participants_.insert(participants_.end(), group->sorted.begin(), group->sorted.end());
    groups_.push_back(*std::move(group));
  }
  std::sort(participants_.begin(), participants_.end());
  participants_.erase(std::unique(participants_.begin(), participants_.end()), participants_.end());
  num_shards_ = static_cast<int32_t>(shards);
  weight_of_size_ = weight_of_size;
  if (std::adjacent_find(shards_of.begin(), shards_of.end(), std::not_equal_to<>()) !=
      shards_of.end())
    for (const int64_t count : shards_of) group_weight_.push_back(weight_of_size / count);
  others_ = options.others;
  if (has_root()) {
    root_position_ = options.root;
    root_ = groups_[0].members[static_cast<size_t>(root_position_)];
  }
  return {};
}

Rational Collective::BusFactor() const {
  const Row& row = RowOf(kind_);
  if (row.sharding == Sharding::kOne) return 1;
  const int64_t passes = reduces() && row.destinations == Side::kAllRanks ? 2 : 1;
  const int64_t ranks = largest_group();
  return Rational(passes * (ranks - 1), ranks);
}

Collective Collective::Reversed() const {
  Collective reversed = *this;
  reversed.kind_ = RowOf(kind_).reversed;
  if (kind_ != Kind::kAllToAllV) return reversed;
  const auto n = static_cast<size_t>(num_ranks_);
  for (size_t s = 0; s < n; ++s)
    for (size_t d = 0; d < n; ++d) reversed.demand_[d * n + s] = demand_[s * n + d];
  // M names what the busiest *sender* of the original sends, so the unit stays.
  return reversed;
}

ShardId Collective::ReversedShard(ShardId shard) const {
  if (!is_all_to_all()) return shard;
  if (!has_groups())
    return ShardId{(shard.value % num_ranks_) * num_ranks_ + shard.value / num_ranks_};
  const Group& group = groups_[static_cast<size_t>(GroupOf(shard))];
  const int32_t k = group.size(), local = shard.value - group.first_shard;
  return ShardId{group.first_shard + local % k * k + local / k};
}

std::string_view Name(Kind kind) { return RowOf(kind).name; }
bool Reduces(Kind kind) { return RowOf(kind).contributors == Side::kAllRanks; }
bool EndsAtAllRanks(Kind kind) { return RowOf(kind).destinations == Side::kAllRanks; }

namespace {

// "all-reduce", "allreduce", "all_reduce" and "AllReduce" are one name.
std::string LettersOf(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '-' && c != '_')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

Result<Kind> ParseCollectiveKind(std::string_view name) {
  std::string accepted;
  const std::string letters = LettersOf(name);
  for (const Row& row : kTable) {
    if (LettersOf(row.name) == letters) return row.kind;
    accepted += accepted.empty() ? "" : ", ";
    accepted += row.name;
  }
  return InvalidArgument(fmt::format("unknown collective '{}'; accepted are {}", name, accepted));
}

}  // namespace tutti
