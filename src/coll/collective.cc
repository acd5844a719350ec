#include "tutti/coll/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace tutti {
namespace {

using Kind = CollectiveKind;

struct Row {
  Kind kind;
  std::string_view name;
  Kind reversed;
};
constexpr std::array<Row, 9> kTable{{
    {Kind::kAllGather, "all-gather", Kind::kReduceScatter},
    {Kind::kReduceScatter, "reduce-scatter", Kind::kAllGather},
    {Kind::kAllReduce, "all-reduce", Kind::kAllReduce},
    {Kind::kBroadcast, "broadcast", Kind::kReduce},
    {Kind::kReduce, "reduce", Kind::kBroadcast},
    {Kind::kGather, "gather", Kind::kScatter},
    {Kind::kScatter, "scatter", Kind::kGather},
    {Kind::kAllToAll, "all-to-all", Kind::kAllToAll},
    {Kind::kAllToAllV, "all-to-allv", Kind::kAllToAllV},
}};

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
  switch (kind) {
    case Kind::kBroadcast:
    case Kind::kReduce:
      coll.num_shards_ = 1;
      break;
    case Kind::kAllReduce:
      if (options.all_reduce_shards != 0 && options.all_reduce_shards != 1 &&
          options.all_reduce_shards != num_ranks)
        return InvalidArgument(fmt::format("all-reduce over {} ranks has 1 or {} shards, not {}",
                                           num_ranks, num_ranks, options.all_reduce_shards));
      coll.num_shards_ = options.all_reduce_shards == 0 ? num_ranks : options.all_reduce_shards;
      break;
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      if (num_ranks > 46340)
        return InvalidArgument(
            fmt::format("all-to-all supports at most 46340 ranks, got {}", num_ranks));
      coll.num_shards_ = num_ranks * num_ranks;
      break;
    default:
      coll.num_shards_ = num_ranks;
  }
  coll.weight_of_size_ = coll.num_shards_;
  if (kind == Kind::kAllToAll) coll.weight_of_size_ = num_ranks;
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
  return kind_ == Kind::kBroadcast || kind_ == Kind::kReduce || kind_ == Kind::kGather ||
         kind_ == Kind::kScatter;
}

bool Collective::reduces() const {
  return kind_ == Kind::kReduceScatter || kind_ == Kind::kAllReduce || kind_ == Kind::kReduce;
}

Collective::Ranks Collective::contributors(ShardId shard) const {
  switch (kind_) {
    case Kind::kAllGather:
    case Kind::kGather:
      return {false, NodeId{shard.value}};
    case Kind::kBroadcast:
    case Kind::kScatter:
      return {false, root_};
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return {false, NodeId{shard.value / num_ranks_}};
    case Kind::kReduceScatter:
    case Kind::kAllReduce:
    case Kind::kReduce:
      break;
  }
  return {true, NodeId{0}};
}

Collective::Ranks Collective::destinations(ShardId shard) const {
  switch (kind_) {
    case Kind::kReduceScatter:
    case Kind::kScatter:
      return {false, NodeId{shard.value}};
    case Kind::kReduce:
    case Kind::kGather:
      return {false, root_};
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return {false, NodeId{shard.value % num_ranks_}};
    case Kind::kAllGather:
    case Kind::kBroadcast:
    case Kind::kAllReduce:
      break;
  }
  return {true, NodeId{0}};
}

Rational Collective::BusFactor() const {
  switch (kind_) {
    case Kind::kAllReduce:
      return Rational(2 * (int64_t{num_ranks_} - 1), num_ranks_);
    case Kind::kBroadcast:
    case Kind::kReduce:
      return 1;
    default:
      return Rational(int64_t{num_ranks_} - 1, num_ranks_);
  }
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

Result<Kind> ParseCollectiveKind(std::string_view name) {
  std::string accepted;
  for (const Row& row : kTable) {
    if (row.name == name) return row.kind;
    accepted += accepted.empty() ? "" : ", ";
    accepted += row.name;
  }
  return InvalidArgument(fmt::format("unknown collective '{}'; accepted are {}", name, accepted));
}

}  // namespace tutti
