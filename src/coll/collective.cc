#include "tutti/coll/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <utility>

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

Result<int32_t> NumShards(const Row& row, int32_t num_ranks, int32_t wanted) {
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
      return num_ranks * num_ranks;
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
  if (options.root < 0 || options.root >= num_ranks)
    return InvalidArgument(
        fmt::format("root {} is not a rank; there are {} ranks", options.root, num_ranks));
  Collective coll;
  coll.kind_ = kind;
  coll.num_ranks_ = num_ranks;
  if (coll.has_root()) coll.root_ = NodeId{options.root};
  if (kind != Kind::kAllToAllV && !options.demand.empty())
    return InvalidArgument(fmt::format("{} takes no demand matrix", Name(kind)));
  const Result<int32_t> num_shards = NumShards(RowOf(kind), num_ranks, options.all_reduce_shards);
  if (!num_shards) return tl::unexpected(num_shards.error());
  coll.num_shards_ = *num_shards;
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
  return !has_root() && !is_all_to_all() && num_shards_ == num_ranks_;
}

Collective::Ranks Collective::contributors(ShardId shard) const {
  const Side side = RowOf(kind_).contributors;
  if (side == Side::kAllRanks) return {true, NodeId{0}};
  if (side == Side::kRoot) return {false, root_};
  return {false, NodeId{is_all_to_all() ? shard.value / num_ranks_ : shard.value}};
}

Collective::Ranks Collective::destinations(ShardId shard) const {
  const Side side = RowOf(kind_).destinations;
  if (side == Side::kAllRanks) return {true, NodeId{0}};
  if (side == Side::kRoot) return {false, root_};
  return {false, NodeId{is_all_to_all() ? shard.value % num_ranks_ : shard.value}};
}

Rational Collective::BusFactor() const {
  const Row& row = RowOf(kind_);
  if (row.sharding == Sharding::kOne) return 1;
  const int64_t passes = reduces() && row.destinations == Side::kAllRanks ? 2 : 1;
  return Rational(passes * (int64_t{num_ranks_} - 1), num_ranks_);
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
